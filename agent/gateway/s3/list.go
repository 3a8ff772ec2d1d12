package s3

import (
	"context"
	"encoding/base64"
	"strconv"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/s3/listing"
	"github.com/restripe/restripe/agent/gateway/s3/message"
)

// listMost is how many keys and common prefixes an answer has at most.
const listMost = 1000

// listBytes is the memory that a listing holds.
const listBytes = 2 << 20

// listObjects answers either of the two listings.
func listObjects(ctx context.Context, q *request) error {
	s := q.server
	isSecond := q.query.get("list-type") == "2"
	if version := q.query.get("list-type"); version != "" && !isSecond {
		return refuse(invalidArgument, "list-type is %.20q; want 2", version)
	}
	what := listing.Listing{Prefix: q.query.get("prefix"), Delimiter: q.query.get("delimiter"), After: q.query.get("marker")}
	var err error
	if what.Most, err = q.number("max-keys", listMost); err != nil {
		return err
	}
	result := message.ListResult{
		Name: q.bucket, Prefix: what.Prefix, MaxKeys: what.Most, Delimiter: what.Delimiter, EncodingType: q.query.get("encoding-type"),
	}
	if isSecond {
		result.StartAfter = q.query.get("start-after")
		what.After = result.StartAfter
		if q.query.has("continuation-token") {
			given := q.query.get("continuation-token")
			result.ContinuationToken = &given
			if what.After, err = readToken(given); err != nil {
				return err
			}
		}
	} else {
		result.Marker = &what.After
	}
	encoded, err := encoder(result.EncodingType)
	if err != nil {
		return err
	}
	sees, err := q.mayList(ctx, what.Prefix)
	if err != nil {
		return err
	}
	items, more, err := listing.Objects(ctx, s.options.Objects, q.bucket, what, sees)
	if err != nil {
		return err
	}
	withOwner := !isSecond || q.query.get("fetch-owner") == "true"
	for i := range items {
		if items[i].Object == nil {
			result.CommonPrefixes = append(result.CommonPrefixes, message.CommonPrefix{Prefix: encoded(items[i].Name)})
			continue
		}
		one := s.listed(items[i].Object, encoded(items[i].Name))
		if withOwner {
			one.Owner = &theOwner
		}
		result.Contents = append(result.Contents, one)
	}
	if result.IsTruncated = more; more {
		last := items[len(items)-1].Name
		if isSecond {
			result.NextContinuationToken = token(last)
		} else {
			result.NextMarker = encoded(last)
		}
	}
	if isSecond {
		count := len(items)
		result.KeyCount = &count
	}
	for _, text := range []*string{&result.Prefix, &result.Delimiter, &result.StartAfter, result.Marker} {
		if text != nil {
			*text = encoded(*text)
		}
	}
	return q.reply(&result)
}

func (s *Server) listed(is *api.Object, name string) message.ListedObject {
	one := message.ListedObject{
		Key: name, LastModified: is.Modified.Format(timeFormat), ETag: strconv.Quote(etagOf(is)), Size: is.Size,
		StorageClass: s.storageClass(is),
	}
	for i := range checksums {
		if sum := is.Metadata[metaSum+checksums[i].name]; sum != "" {
			one.ChecksumAlgorithm = append(one.ChecksumAlgorithm, checksums[i].label())
			one.ChecksumType = checksumType(sum)
		}
	}
	return one
}

// mayList refuses a listing to those who see nothing of it, and returns what they see. The bucket has to be there.
func (q *request) mayList(ctx context.Context, prefix string) (sees func(key, class string) bool, err error) {
	in := q.caller.user.Scope(access.List)
	every, some := in.HasKey(q.bucket + "/" + prefix)
	if !some {
		return nil, q.lacks("list on objects is missing for prefix %.80q of bucket %s", prefix, q.bucket)
	}
	if err := q.hold(ctx, listBytes); err != nil {
		return nil, err
	}
	if err := q.inBucket(ctx, q.bucket); err != nil {
		return nil, err
	}
	if every {
		return func(string, string) bool { return true }, nil
	}
	return in.Has, nil
}

// encoder returns how names are written.
func encoder(kind string) (func(string) string, error) {
	switch kind {
	case "":
		return func(name string) string { return name }, nil
	case "url":
		return func(name string) string { return encode(name, true) }, nil
	}
	return nil, refuse(invalidArgument, "encoding-type is %.20q; want url, or nothing", kind)
}

// token and readToken are how a listing says where it goes on.
func token(after string) string { return base64.RawURLEncoding.EncodeToString([]byte(after)) }

func readToken(text string) (string, error) {
	after, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return "", refuse(invalidArgument, "the continuation token is none of this server")
	}
	return string(after), nil
}
