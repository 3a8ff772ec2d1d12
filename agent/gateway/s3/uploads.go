package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/s3/listing"
	"github.com/restripe/restripe/agent/gateway/s3/message"
	"github.com/restripe/restripe/agent/gateway/s3/upload"
)

// createUpload begins an upload.
func createUpload(ctx context.Context, q *request) error {
	s := q.server
	options, err := s.mayPut(ctx, q)
	if err != nil {
		return err
	}
	metadata, err := metadataOf(q.Header)
	if err != nil {
		return err
	}
	kept, err := q.newUpload(&options)
	if err != nil {
		return err
	}
	id, err := s.parted().Begin(ctx, q.bucket, q.key, &kept, metadata)
	if err != nil {
		return err
	}
	if kept.Algorithm != "" {
		q.w.Header().Set("X-Amz-Checksum-Algorithm", strings.ToUpper(kept.Algorithm))
		q.w.Header().Set("X-Amz-Checksum-Type", kept.Type)
	}
	return q.reply(&message.CreateUploadResult{Bucket: q.bucket, Key: q.key, UploadID: id})
}

// newUpload is what a request says of an upload that begins.
func (q *request) newUpload(options *api.PutOptions) (kept upload.State, err error) {
	class, err := q.server.options.Classes.For(q.object(), options.Class)
	if err != nil {
		return kept, err
	}
	kept.Class, kept.Scheme = class.Name, options.Scheme
	asked, kind := q.Header.Get("X-Amz-Checksum-Algorithm"), strings.ToUpper(q.Header.Get("X-Amz-Checksum-Type"))
	if kind != "" && kind != typeWhole && kind != typeComposite {
		return kept, badHeader("x-amz-checksum-type", kind, typeComposite+" or "+typeWhole)
	}
	if asked == "" {
		if kind != "" {
			return kept, refuse(invalidRequest.saying(
				"The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header."), "x-amz-checksum-type is %s", kind)
		}
		return kept, nil
	}
	chosen := checksumNamed(asked)
	if chosen == nil {
		return kept, unknownChecksum(asked)
	}
	kept.Algorithm, kept.Type = chosen.name, typeWhole
	if chosen.parts != wholeOnly && kind != typeWhole {
		kept.Type = typeComposite
	}
	if kind != "" && kind != kept.Type || chosen.parts == partsOnly && kept.Type == typeWhole {
		return kept, refuse(invalidRequest.saying("The %s checksum type cannot be used with the %s checksum algorithm.", kind, chosen.name),
			"want the other type, or none")
	}
	return kept, nil
}

// parted are the uploads of the gateway.
func (s *Server) parted() upload.Uploads { return upload.Of(s.options.Objects) }

// upload returns the upload that a request names, whose object the user may write.
func (s *Server) upload(ctx context.Context, q *request) (*upload.Upload, error) {
	if err := q.may(ctx, access.Write, q.object()); err != nil {
		return nil, err
	}
	u, err := s.parted().Find(ctx, uploadName(q))
	if errors.Is(err, upload.ErrGone) {
		if err := q.inBucket(ctx, q.bucket); err != nil {
			return nil, err
		}
		return nil, noUpload(q)
	}
	if err != nil {
		return nil, err
	}
	return u, q.may(ctx, access.Write, q.object(), u.Class)
}

func uploadName(q *request) upload.Name {
	return upload.Name{Bucket: q.bucket, Key: q.key, ID: q.query.get("uploadId")}
}

// underWay is upload for what can be done with one that is not completed.
func (s *Server) underWay(ctx context.Context, q *request) (*upload.Upload, error) {
	u, err := s.upload(ctx, q)
	if err == nil && u.Completed != nil {
		err = noUpload(q)
	}
	return u, err
}

func noUpload(q *request) error {
	return refuse(noSuchUpload,
		"there is no upload %.80q for the key %.200q: it was completed or given up, or began more than %d days ago",
		uploadName(q).ID, q.key, upload.Kept/(24*time.Hour))
}

// putPart stores a part.
func putPart(ctx context.Context, q *request) error {
	s := q.server
	number, err := q.partNumber()
	if err != nil {
		return err
	}
	u, err := s.underWay(ctx, q)
	if err != nil {
		return err
	}
	body, err := q.openBody()
	if err != nil {
		return err
	}
	if err := choosePart(body, u); err != nil {
		return err
	}
	if _, err := s.parted().PutPart(ctx, u, number, body, body.size, body.digests); err != nil {
		return err
	}
	q.setSums(body)
	return q.done(http.StatusOK)
}

// choosePart has the checksum be known of a part that the upload asks for.
func choosePart(of *body, u *upload.Upload) error {
	chosen := checksumNamed(u.Algorithm)
	if of.chosen != nil && chosen != nil && of.chosen != chosen {
		return refuse(invalidRequest, "the part has a checksum of the kind %s, and the upload is one of %s", of.chosen.label(),
			chosen.label())
	}
	of.choose(chosen)
	return nil
}

func (q *request) partNumber() (int, error) {
	text := q.query.get("partNumber")
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 || number > upload.PartsMost {
		return 0, refuse(invalidArgument, "partNumber is %.20q; want 1 to %d", text, upload.PartsMost)
	}
	return number, nil
}

// copyPart stores bytes of an object as a part.
func copyPart(ctx context.Context, q *request) error {
	s := q.server
	number, err := q.partNumber()
	if err != nil {
		return err
	}
	u, err := s.underWay(ctx, q)
	if err != nil {
		return err
	}
	return q.slowly(ctx, func(ctx context.Context) (any, error) {
		source, err := s.openSource(ctx, q)
		if err != nil {
			return nil, err
		}
		of, err := copySpan(q.Header.Get(headerSource+"-Range"), source.is.Size)
		if err != nil {
			return nil, err
		}
		var body *body
		var stored api.Object
		fed, err := s.pour(ctx, part(source.reader, of), func(from io.Reader) (err error) {
			body = bodyOf(from, of.length, checksumNamed(u.Algorithm))
			stored, err = s.parted().PutPart(ctx, u, number, body, body.size, body.digests)
			return err
		})
		if fed != nil {
			err = fed
		}
		if err != nil {
			return nil, err
		}
		return &message.CopyResult{
			XMLName: xml.Name{Space: namespace, Local: "CopyPartResult"}, LastModified: stored.Modified.Format(timeFormat),
			Sums: body.sums(),
		}, nil
	})
}

// abortUpload gives an upload up.
func abortUpload(ctx context.Context, q *request) error {
	s := q.server
	u, err := s.underWay(ctx, q)
	if err != nil {
		return err
	}
	if err := checkTime(q.Header.Get("X-Amz-If-Match-Initiated-Time"), "begun", u.Began()); err != nil {
		return err
	}
	switch err := s.parted().Abort(ctx, u); {
	case errors.Is(err, upload.ErrGone):
		return noUpload(q)
	case err != nil:
		return err
	}
	return q.done(http.StatusNoContent)
}

func listParts(ctx context.Context, q *request) error {
	s := q.server
	u, err := s.underWay(ctx, q)
	if err != nil {
		return err
	}
	result := message.ListPartsResult{
		Bucket: q.bucket, Key: q.key, UploadID: u.ID, Initiator: theOwner, Owner: theOwner, StorageClass: partedClass(&u.State),
		ChecksumAlgorithm: strings.ToUpper(u.Algorithm), ChecksumType: u.Type,
	}
	if result.MaxParts, err = q.number("max-parts", listMost); err != nil {
		return err
	}
	if q.query.get("part-number-marker") != "" {
		if result.PartNumberMarker, err = q.number("part-number-marker", upload.PartsMost); err != nil {
			return err
		}
	}
	if err := q.hold(ctx, listBytes); err != nil {
		return err
	}
	parts, err := s.parted().Parts(ctx, u, result.PartNumberMarker, result.MaxParts+1)
	if err != nil {
		return err
	}
	if len(parts) > result.MaxParts {
		result.IsTruncated, parts = true, parts[:result.MaxParts]
	}
	for i := range parts {
		is := &parts[i].Object
		known := sumsOf(is.Metadata, strconv.Quote(etagOf(is)))
		known.ChecksumType = ""
		result.Part = append(result.Part, message.ListedPart{
			PartNumber: parts[i].Number, LastModified: is.Modified.Format(timeFormat), Size: is.Size, Sums: known,
		})
		result.NextPartNumberMarker = parts[i].Number
	}
	return q.reply(&result)
}

// partedClass is the storage class of the object that an upload will be.
func partedClass(u *upload.State) string {
	if u.Scheme != "" {
		return u.Scheme
	}
	return standard
}

// listUploads answers which uploads of a bucket are under way, by key and then by when they began.
func listUploads(ctx context.Context, q *request) error {
	s := q.server
	what := listing.Listing{Prefix: q.query.get("prefix"), Delimiter: q.query.get("delimiter"), After: q.query.get("key-marker")}
	marker := q.query.get("upload-id-marker")
	encoded, err := encoder(q.query.get("encoding-type"))
	if err != nil {
		return err
	}
	if what.Most, err = q.number("max-uploads", listMost); err != nil {
		return err
	}
	sees, err := q.mayList(ctx, what.Prefix)
	if err != nil {
		return err
	}
	result := message.ListUploadsResult{
		Bucket: q.bucket, KeyMarker: encoded(what.After), UploadIDMarker: marker, Delimiter: encoded(what.Delimiter),
		Prefix: encoded(what.Prefix), MaxUploads: what.Most, EncodingType: q.query.get("encoding-type"),
	}
	found, more, err := s.parted().List(ctx, q.bucket, what, marker, sees)
	if err != nil {
		return err
	}
	for _, one := range found {
		if one.Upload == nil {
			result.CommonPrefixes = append(result.CommonPrefixes, message.CommonPrefix{Prefix: encoded(one.Common)})
			continue
		}
		result.Upload = append(result.Upload, message.ListedUpload{
			Key: encoded(one.Key), UploadID: one.ID, Initiator: theOwner, Owner: theOwner, StorageClass: partedClass(&one.State),
			Initiated: one.Began().Format(timeFormat), ChecksumAlgorithm: strings.ToUpper(one.Algorithm), ChecksumType: one.Type,
		})
	}
	if result.IsTruncated = more; more {
		last := &found[len(found)-1]
		result.NextKeyMarker = encoded(last.Common)
		if last.Upload != nil {
			result.NextKeyMarker, result.NextUploadIDMarker = encoded(last.Key), last.ID
		}
	}
	return q.reply(&result)
}
