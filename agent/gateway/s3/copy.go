package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"net/url"
	"strconv"
	"strings"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/gateway/s3/message"
	"github.com/restripe/restripe/agent/stripe"
)

const headerSource = "X-Amz-Copy-Source"

// source reads what a copy is of, and of which version; that is empty for the current one.
func (q *request) source() (of target, version string, err error) {
	text := q.Header.Get(headerSource)
	path, version, _ := strings.Cut(text, "?versionId=")
	decoded, err := url.PathUnescape(path)
	if err != nil {
		decoded = path // some clients do not encode it
	}
	bucket, key, found := strings.Cut(strings.TrimPrefix(decoded, "/"), "/")
	if !found || key == "" || !isBucketName(bucket) {
		return target{}, "", refuse(invalidArgument, "x-amz-copy-source is %.200q; want BUCKET/KEY, percent-encoded", text)
	}
	return target{bucket, key}, version, nil
}

// feed writes the bytes of what is to be stored.
type feed func(ctx context.Context, w io.Writer) error

// pour stores what comes of a feed. The first error is that of the feed, where it failed by itself.
func (s *Server) pour(ctx context.Context, from feed, to func(io.Reader) error) (fed, stored error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := from(ctx, in)
		_ = in.CloseWithError(err) // which never fails
		ended <- err
	}()
	stored = to(out)
	cancel()
	_ = out.Close() // which never fails
	fed = <-ended
	if errors.Is(fed, io.ErrClosedPipe) || stored != nil && errors.Is(fed, context.Canceled) {
		fed = nil
	}
	return fed, stored
}

// part is the feed of bytes of an object.
func part(reader *object.Reader, of span) feed {
	return func(ctx context.Context, w io.Writer) error { return reader.WriteTo(ctx, w, of.offset, of.length) }
}

// copied is what is to be copied.
type copied struct {
	reader   *object.Reader
	is       api.Object
	isTarget bool // it is what the target is now
}

// openSource opens what is to be copied, which the user may read, if the conditions hold.
func (s *Server) openSource(ctx context.Context, q *request) (of copied, err error) {
	from, version, err := q.source()
	if err != nil {
		return of, err
	}
	if owner := q.Header.Get("X-Amz-Source-Expected-Bucket-Owner"); owner != "" && owner != ownerID {
		return of, refuse(accessDenied, "the bucket of the source is of the owner %s, as all are here, and not of %.80q", ownerID, owner)
	}
	if of.reader, _, err = s.open(ctx, q, from, version); err != nil {
		return of, err
	}
	of.is = of.reader.Object()
	if of.isTarget = from == q.target; of.isTarget && version != "" { // else it is an earlier version that is to come back
		there, err := s.options.Objects.Find(ctx, q.object())
		if err != nil {
			return of, err
		}
		of.isTarget = there != nil && there.Revision == of.is.Revision
	}
	conditions := readConditions(q.Header, headerSource+"-")
	return of, conditions.check(&of.is)
}

// copyObject stores the bytes of another object, or those of the same one with other metadata.
func copyObject(ctx context.Context, q *request) error {
	s := q.server
	options, err := s.mayPut(ctx, q)
	if err != nil {
		return err
	}
	if options.IfRevision, err = q.over(); err != nil {
		return err
	}
	return q.slowly(ctx, func(ctx context.Context) (result any, err error) {
		for range getTries {
			var again bool
			if result, again, err = s.copyOnce(ctx, q, options); !again {
				break
			}
		}
		return result, err
	})
}

// copyOnce copies one version of an object; again says that it was another one before the copy was made.
func (s *Server) copyOnce(ctx context.Context, q *request, options api.PutOptions) (result any, again bool, err error) {
	of, err := s.openSource(ctx, q)
	if err != nil {
		return nil, false, err
	}
	is := &of.is
	if options.Metadata, err = copiedMetadata(q, is, of.isTarget && options.Class == "" && options.Scheme == ""); err != nil {
		return nil, false, err
	}
	chosen, err := copiedChecksum(q, is)
	if err != nil {
		return nil, false, err
	}
	isOver := options.IfRevision != nil
	if of.isTarget && !isOver { // else a put between could be lost
		options.IfRevision = &is.Revision
	}
	options.Size = is.Size
	var body *body
	var stored api.Object
	fed, err := s.pour(ctx, part(of.reader, span{0, is.Size, false}), func(from io.Reader) (err error) {
		body = bodyOf(from, is.Size, chosen)
		options.Digests = body.digests
		stored, err = s.options.Objects.Put(ctx, q.object(), body, options)
		return err
	})
	switch {
	case fed != nil:
		return nil, errors.Is(fed, api.ErrConflict), fed
	case err != nil && isOver:
		return nil, false, conditional(err)
	case err != nil:
		return nil, of.isTarget && errors.Is(err, api.ErrConflict), err
	}
	return &message.CopyResult{
		XMLName: xml.Name{Space: namespace, Local: "CopyObjectResult"}, LastModified: stored.Modified.Format(timeFormat),
		Sums: body.sums(),
	}, false, nil
}

const namespace = "http://s3.amazonaws.com/doc/2006-03-01/"

// directive reads whether something of the copied object is to be replaced.
func directive(q *request, header string) (replace bool, err error) {
	switch value := q.Header.Get(header); value {
	case "", "COPY":
		return false, nil
	case "REPLACE":
		return true, nil
	default:
		return false, refuse(invalidArgument, "%s is %.40q; want COPY or REPLACE", strings.ToLower(header), value)
	}
}

// copiedMetadata is the metadata of a copy: that of the object, that of the request, or some of each.
func copiedMetadata(q *request, is *api.Object, toItself bool) (map[string]string, error) {
	given, err := metadataOf(q.Header)
	if err != nil {
		return nil, err
	}
	replace, err := directive(q, "X-Amz-Metadata-Directive")
	if err != nil {
		return nil, err
	}
	replaceTags, err := directive(q, "X-Amz-Tagging-Directive")
	if err != nil {
		return nil, err
	}
	if toItself && !replace && !replaceTags {
		return nil, refuse(invalidRequest,
			"the object would be copied to itself as it is; give other metadata (x-amz-metadata-directive: REPLACE) or another storage class")
	}
	metadata := map[string]string{}
	maps.Copy(metadata, block.WithoutDigests(is.Metadata))
	tags := metadata[metaTags]
	const to = metaOwn + "x-amz-website-redirect-location" // which is of one object, and is never copied
	if metadata[to] = given[to]; given[to] == "" {
		delete(metadata, to)
	}
	if replace {
		metadata = maps.Clone(given)
	}
	if replaceTags {
		tags = given[metaTags]
	}
	if metadata[metaTags] = tags; tags == "" {
		delete(metadata, metaTags)
	}
	return metadata, nil
}

// copiedChecksum is the algorithm of the checksum that is known of a copy: the one that is asked for, else that of the object.
func copiedChecksum(q *request, is *api.Object) (*checksum, error) {
	if asked := q.Header.Get("X-Amz-Checksum-Algorithm"); asked != "" {
		chosen := checksumNamed(asked)
		if chosen == nil {
			return nil, unknownChecksum(asked)
		}
		return chosen, nil
	}
	for i := range checksums {
		if is.Metadata[metaSum+checksums[i].name] != "" {
			return &checksums[i], nil
		}
	}
	return nil, nil
}

// remake writes an object anew with other metadata, of the same bytes.
func (s *Server) remake(ctx context.Context, q *request, change func(metadata map[string]string)) error {
	for range getTries {
		again, err := s.remakeOnce(ctx, q, change)
		if !again {
			return err
		}
	}
	return refuse(operationAborted, "others changed the object first %d times; try again", getTries)
}

func (s *Server) remakeOnce(ctx context.Context, q *request, change func(metadata map[string]string)) (again bool, err error) {
	reader, err := s.options.Objects.Open(ctx, q.object())
	if isGone(err) {
		if err := q.inBucket(ctx, q.bucket); err != nil {
			return false, err
		}
		return false, noKey(q.key)
	}
	if err != nil {
		return false, err
	}
	is := reader.Object()
	metadata := map[string]string{}
	maps.Copy(metadata, block.WithoutDigests(is.Metadata))
	change(metadata)
	options := api.PutOptions{
		Class: is.Class, Scheme: s.schemeOf(&is), Size: is.Size, IfRevision: &is.Revision, Expires: is.Expires, Metadata: metadata,
		Digests: func() (map[string]string, error) { return digestsOf(is.Metadata), nil },
	}
	fed, err := s.pour(ctx, part(reader, span{0, is.Size, false}), func(from io.Reader) error {
		_, err := s.options.Objects.Put(ctx, q.object(), bodyOf(from, is.Size, nil), options)
		return err
	})
	if fed != nil {
		err = fed
	}
	return errors.Is(err, api.ErrConflict), err
}

// schemeOf is the scheme to ask for so that an object that is written anew stays under its own; empty where that is what the class says.
func (s *Server) schemeOf(is *api.Object) string {
	class := s.options.Classes.Named(is.Class)
	scheme, err := stripe.ParseScheme(is.Scheme)
	if class == nil || err != nil || !class.Ladder.Contains(scheme) || scheme == class.Default {
		return ""
	}
	return is.Scheme
}

// digestsOf is what metadata says of the bytes.
func digestsOf(metadata map[string]string) map[string]string {
	digests := map[string]string{}
	for name, value := range metadata {
		if strings.HasPrefix(name, block.DigestPrefix) {
			digests[name] = value
		}
	}
	return digests
}

// copySpan reads which bytes of an object a part is to be a copy of.
func copySpan(text string, size int64) (span, error) {
	if text == "" {
		return span{0, size, false}, nil
	}
	from, to, _ := strings.Cut(strings.TrimPrefix(text, "bytes="), "-")
	first, err := strconv.ParseUint(from, 10, 63)
	last, failed := strconv.ParseUint(to, 10, 63)
	if err != nil || failed != nil || !strings.HasPrefix(text, "bytes=") || last < first {
		return span{}, refuse(invalidArgument, "x-amz-copy-source-range is %.80q; want bytes=FIRST-LAST", text)
	}
	if int64(last) >= size {
		return span{}, refuse(invalidArgument, "x-amz-copy-source-range is %.80q, and the object has %d bytes", text, size)
	}
	return span{int64(first), int64(last) - int64(first) + 1, true}, nil
}
