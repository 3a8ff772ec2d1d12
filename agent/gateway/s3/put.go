package s3

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/s3/message"
)

// keyMost is how long a key is that clients of S3 put.
const keyMost = 1024

// mayPut refuses what cannot be put, and returns how the object is to be kept, but for its size.
func (s *Server) mayPut(ctx context.Context, q *request) (options api.PutOptions, err error) {
	if err := q.checkUnknown(); err != nil {
		return options, err
	}
	if len(q.key) > keyMost {
		return options, refuse(keyTooLong, "the key has %d bytes; one has %d at most", len(q.key), keyMost)
	}
	options, into, err := q.place(q.object())
	if err != nil {
		return options, err
	}
	if err := q.may(ctx, access.Write, q.object(), into); err != nil {
		return options, err
	}
	return options, q.inBucket(ctx, q.bucket)
}

func putObject(ctx context.Context, q *request) error {
	s := q.server
	options, err := s.mayPut(ctx, q)
	if err != nil {
		return err
	}
	if options.Metadata, err = metadataOf(q.Header); err != nil {
		return err
	}
	body, err := q.openBody()
	if err != nil {
		return err
	}
	if options.IfRevision, err = q.over(); err != nil {
		return err
	}
	options.Size, options.Digests = body.size, body.digests
	stored, err := s.options.Objects.Put(ctx, q.object(), body, options)
	if err != nil {
		if options.IfRevision != nil {
			err = conditional(err)
		}
		return err
	}
	q.setSums(body)
	setVersion(q, s.version(&stored))
	q.w.Header().Set("X-Amz-Object-Size", strconv.FormatInt(body.size, 10))
	return q.done(http.StatusOK)
}

// sumsOf are those of an object.
func sumsOf(metadata map[string]string, etag string) (known message.Sums) {
	known.ETag = etag
	for i := range checksums {
		if sum := metadata[metaSum+checksums[i].name]; sum != "" {
			known.Set(checksums[i].name, sum, checksumType(sum))
		}
	}
	return known
}

// sums are those of a body that was stored.
func (b *body) sums() message.Sums {
	known := message.Sums{ETag: strconv.Quote(b.etag())}
	if b.chosen != nil {
		known.Set(b.chosen.name, b.sum(), typeWhole)
	}
	return known
}

// setSums has an answer say what is known of a body that was stored.
func (q *request) setSums(of *body) {
	header := q.w.Header()
	header.Set("ETag", strconv.Quote(of.etag()))
	if of.chosen != nil {
		header.Set(of.chosen.header(), of.sum())
		header.Set("X-Amz-Checksum-Type", typeWhole)
	}
}

func deleteObject(ctx context.Context, q *request) error {
	s := q.server
	conditions := deletion{
		tag: q.Header.Get("If-Match"), modified: q.Header.Get("X-Amz-If-Match-Last-Modified-Time"), size: q.Header.Get("X-Amz-If-Match-Size"),
	}
	err := s.remove(ctx, q, q.key, q.query.get("versionId"), &conditions)
	if isGone(err) && conditions == (deletion{}) {
		err = q.inBucket(ctx, q.bucket)
	}
	if err != nil {
		return err
	}
	return q.done(http.StatusNoContent)
}

// remove deletes an object for which the conditions hold, where there are any, and which is the version of an ID, unless that is empty.
func (s *Server) remove(ctx context.Context, q *request, key, id string, conditions *deletion) error {
	name := objectOf(q.bucket, key)
	if err := q.may(ctx, access.Delete, name); err != nil {
		return err
	}
	isAny := *conditions == (deletion{})
	if isAny && id == "" {
		return s.options.Objects.Delete(ctx, name, nil)
	}
	there, err := s.options.Objects.Find(ctx, name)
	if err == nil && there == nil {
		if err = q.inBucket(ctx, q.bucket); err == nil {
			err = noKey(key)
		}
	}
	if err == nil {
		err = conditions.check(there)
	}
	if err == nil {
		err = s.checkDelete(there, key, id)
	}
	switch {
	case err != nil:
		return err
	case isAny && id == nullVersion: // whatever it is by now
		return s.options.Objects.Delete(ctx, name, nil)
	case isAny:
		return s.options.Objects.Delete(ctx, name, &there.Revision)
	}
	return conditional(s.options.Objects.Delete(ctx, name, &there.Revision))
}

// Bounds on deleting several objects by one request.
const (
	deleteMost   = 1000
	deleteAtOnce = 16
)

// deleteObjects removes objects one by one, several side by side.
func deleteObjects(ctx context.Context, q *request) error {
	s := q.server
	var asked message.DeleteRequest
	if err := q.readXML(&asked, q.Header); err != nil {
		return err
	}
	if len(asked.Objects) == 0 || len(asked.Objects) > deleteMost {
		return refuse(malformedXML, "%d objects are to be deleted; want 1 to %d", len(asked.Objects), deleteMost)
	}
	if err := q.meets(); err != nil {
		return err
	}
	if err := q.inBucket(ctx, q.bucket); err != nil {
		return err
	}
	failed := make([]error, len(asked.Objects))
	var work errgroup.Group
	work.SetLimit(deleteAtOnce)
	for i := range asked.Objects {
		work.Go(func() error {
			one := &asked.Objects[i]
			switch {
			case one.Key == "" || len(one.Key) > api.MaxKeyBytes-len(q.bucket)-1:
				failed[i] = refuse(keyTooLong, "a key has 1 byte or more, and not too many; this one has %d", len(one.Key))
			default:
				failed[i] = s.remove(ctx, q, one.Key, one.VersionID, &deletion{one.ETag, one.LastModifiedTime, one.Size})
			}
			return nil
		})
	}
	if err := errors.Join(work.Wait(), ctx.Err()); err != nil {
		return err
	}
	var result message.DeleteResult
	for i := range asked.Objects {
		one := &asked.Objects[i]
		switch err := failed[i]; {
		case err == nil || isGone(err) && one.ETag+one.LastModifiedTime+one.Size == "":
			if !asked.Quiet {
				result.Deleted = append(result.Deleted, message.DeletedEntry{Key: one.Key, VersionID: one.VersionID})
			}
		default:
			result.Errors = append(result.Errors, message.DeleteError{Key: one.Key, Code: codeOf(err).name, Message: err.Error()})
		}
	}
	return q.reply(&result)
}
