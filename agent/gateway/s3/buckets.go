package s3

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/gateway/s3/listing"
	"github.com/restripe/restripe/agent/gateway/s3/message"
)

// A bucket is there as long as any object is whose key begins with its name and a slash. One that was made and is empty has an object
// whose key is just that: its marker, which no client of S3 sees as an object.

// markerBody are the bytes of a marker. They are there so that it has a block, from which it comes back when the catalog is rebuilt: an
// empty object has none.
const markerBody = "bucket\n"

// timeFormat is how S3 has times in XML.
const timeFormat = "2006-01-02T15:04:05.000Z"

var theOwner = message.Owner{ID: ownerID, DisplayName: ownerID}

// bucketsMost is how many buckets an answer has at most.
const bucketsMost = 10_000

func listBuckets(ctx context.Context, q *request) error {
	s := q.server
	most, err := q.number("max-buckets", bucketsMost+1)
	switch {
	case err != nil:
		return err
	case !q.query.has("max-buckets"):
		most = bucketsMost
	case most < 1 || most > bucketsMost:
		return refuse(invalidArgument, "max-buckets is %.20q; want 1 to %d", q.query.get("max-buckets"), bucketsMost)
	}
	prefix, in := q.query.get("prefix"), q.caller.user.Scope(access.List)
	result := message.ListBucketsResult{Owner: theOwner, Prefix: prefix}
	after, err := readToken(q.query.get("continuation-token"))
	if err != nil {
		return err
	}
	if err := q.hold(ctx, listBytes); err != nil {
		return err
	}
	found, more, err := listing.Buckets(ctx, s.options.Objects, prefix, after, most, func(name string) bool {
		return isBucketName(name) && in.Meets(name+"/")
	})
	if err != nil {
		return err
	}
	for _, one := range found {
		result.Buckets = append(result.Buckets, message.BucketEntry{Name: one.Name, CreationDate: one.Since.Format(timeFormat)})
	}
	if more {
		result.ContinuationToken = token(found[len(found)-1].Name)
	}
	return q.reply(&result)
}

// number reads a parameter that is a number, up to a largest one, which it is where nothing is said.
func (q *request) number(name string, most int) (int, error) {
	text := q.query.get(name)
	if text == "" {
		return most, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, refuse(invalidArgument, "%s is %.40q; want a whole number that is not negative", name, text)
	}
	return min(int(n), most), nil
}

// headBucket says whether a bucket is there to whoever may do anything in it.
func headBucket(ctx context.Context, q *request) error {
	if err := q.seen(ctx); err != nil {
		return err
	}
	q.w.Header().Set("X-Amz-Bucket-Region", region)
	return q.done(http.StatusOK)
}

// region is what is said of where buckets are. Requests may be signed for any.
const region = "us-east-1"

// getLocation answers nothing, which is how S3 says us-east-1.
func getLocation(ctx context.Context, q *request) error {
	if err := q.seen(ctx); err != nil {
		return err
	}
	return q.send(http.StatusOK, []byte("<LocationConstraint "+xmlPrefix+"/>"))
}

// createBucket puts the marker of a bucket.
func createBucket(ctx context.Context, q *request) error {
	s := q.server
	if err := q.checkUnknown(); err != nil {
		return err
	}
	text, err := q.readAll(q.Header)
	if err != nil {
		return err
	}
	var configuration struct {
		XMLName            xml.Name `xml:"CreateBucketConfiguration"`
		LocationConstraint string
		Tags               *struct{}
	}
	if len(bytes.TrimSpace(text)) > 0 {
		if err := xml.Unmarshal(text, &configuration); err != nil {
			return refuse(malformedXML, "the body is no CreateBucketConfiguration: %w", err)
		}
	}
	if configuration.Tags != nil {
		return refuse(notImplemented, "buckets have no tags here: objects have")
	}
	options, into, err := q.place(q.object())
	if err != nil {
		return err
	}
	if err := q.may(ctx, access.Write, q.object(), into); err != nil {
		return err
	}
	options.IfRevision = &block.Stamp{}
	options.Size = int64(len(markerBody))
	_, err = s.options.Objects.Put(ctx, q.object(), strings.NewReader(markerBody), options)
	if errors.Is(err, api.ErrConflict) || err != nil && codeOf(err) == operationAborted {
		return refuse(bucketAlreadyOwned, "the bucket %s is there already", q.bucket)
	}
	if err != nil {
		return err
	}
	q.w.Header().Set("Location", "/"+q.bucket)
	q.w.Header().Set("X-Amz-Bucket-Arn", "arn:aws:s3:::"+q.bucket)
	return q.done(http.StatusOK)
}

// deleteBucket removes the marker of a bucket that has nothing in it.
func deleteBucket(ctx context.Context, q *request) error {
	s := q.server
	marker := q.object()
	if err := q.may(ctx, access.Delete, marker); err != nil {
		return err
	}
	there, err := object.Records(ctx, s.options.Objects, marker, "", 2)
	if err != nil {
		return err
	}
	if len(there) == 0 {
		return noBucket(q.bucket)
	}
	if key, err := api.DecodeKey(there[0].Key64); err != nil || key != marker || len(there) > 1 {
		return errors.Join(err, refuse(bucketNotEmpty, "there are objects in the bucket %s; delete them first", q.bucket))
	}
	if err := s.options.Objects.Delete(ctx, marker, &there[0].Revision); err != nil {
		if isGone(err) {
			return noBucket(q.bucket)
		}
		return err
	}
	return q.done(http.StatusNoContent)
}
