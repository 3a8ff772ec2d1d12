package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/serve"
)

// getTries is how often a read starts over because the object was overwritten before a byte was sent.
const getTries = 10

// open opens a version of an object that the user may read, and returns which it is; the current one where none is named.
func (s *Server) open(ctx context.Context, q *request, of target, id string) (*object.Reader, string, error) {
	if err := q.may(ctx, access.Read, of.object()); err != nil {
		return nil, "", err
	}
	reader, version, err := s.openVersion(ctx, of, id)
	if isGone(err) {
		if err := q.inBucket(ctx, of.bucket); err != nil {
			return nil, "", err
		}
		return nil, "", noKey(of.key)
	}
	return reader, version, err
}

// getObject answers the bytes of an object, or what is known of it.
func getObject(ctx context.Context, q *request) error {
	s := q.server
	if q.query.has("partNumber") {
		if _, err := q.partNumber(); err != nil {
			return err
		}
		if q.Header.Get("Range") != "" {
			return refuse(invalidRequest, "Cannot specify both Range header and partNumber query parameter")
		}
	}
	for try := 0; ; try++ {
		err := s.getVersion(ctx, q)
		if q.w.Sent || try == getTries || !errors.Is(err, api.ErrConflict) {
			return err
		}
	}
}

// getVersion answers one version of an object.
func (s *Server) getVersion(ctx context.Context, q *request) error {
	reader, version, err := s.open(ctx, q, q.target, q.query.get("versionId"))
	if err != nil {
		return err
	}
	is := reader.Object()
	header := q.w.Header()
	setVersion(q, version)
	header.Set("ETag", strconv.Quote(etagOf(&is)))
	header.Set("Last-Modified", is.Modified.Format(http.TimeFormat))
	conditions := readConditions(q.Header, "")
	if err := conditions.check(&is); err != nil {
		return err
	}
	span, err := q.span(&is)
	if err != nil {
		header.Del("ETag")
		header.Del("Last-Modified")
		header.Set("Content-Range", fmt.Sprintf("bytes */%d", is.Size))
		return err
	}
	s.describe(header, &is)
	if err := override(q, header); err != nil {
		return err
	}
	status := http.StatusOK
	switch {
	case span.isPart:
		header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", span.offset, span.offset+span.length-1, is.Size))
		status = http.StatusPartialContent
	case strings.EqualFold(q.Header.Get("X-Amz-Checksum-Mode"), "ENABLED"):
		setChecksums(header, is.Metadata)
	}
	header.Set("Content-Length", strconv.FormatInt(span.length, 10))
	if q.Method == http.MethodHead {
		return q.done(status)
	}
	answer := &lazy{w: q.w, status: status}
	err = reader.WriteTo(ctx, answer, span.offset, span.length)
	if q.w.Sent { // the connection may be kept for later requests
		err = errors.Join(err, http.NewResponseController(q.w).SetWriteDeadline(time.Time{}))
	}
	if err == nil {
		answer.begin()
		return nil
	}
	if !q.w.Sent {
		clear(header)
		header.Set("X-Amz-Request-Id", q.id)
	}
	return err
}

// describe has the headers of an answer say what an object is.
func (s *Server) describe(header http.Header, is *api.Object) {
	header.Set("Accept-Ranges", "bytes")
	if class := s.storageClass(is); class != standard { // which S3 leaves out
		header.Set("X-Amz-Storage-Class", class)
	}
	header.Set("Restripe-Class", is.Class)
	header.Set("Restripe-Scheme", is.Scheme)
	if !is.Expires.IsZero() {
		header.Set("Restripe-Expires", is.Expires.Format(time.RFC3339Nano))
	}
	setMetadata(header, is.Metadata)
}

// override has an answer have the headers that the request asks for.
func override(q *request, header http.Header) error {
	for _, name := range kept {
		if value := q.query.get("response-" + strings.ToLower(name)); value != "" {
			if !isFieldValue(value) {
				return refuse(invalidArgument, "response-%s is %.80q, which is no value of a header", strings.ToLower(name), value)
			}
			header.Set(name, value)
		}
	}
	return nil
}

// lazy sends the status with the first byte, so that a read that fails before it can still answer an error.
type lazy struct {
	w      *serve.Answer
	status int
}

func (l *lazy) begin() {
	if !l.w.Sent {
		l.w.WriteHeader(l.status)
	}
}

// Write sends the status first.
func (l *lazy) Write(p []byte) (int, error) {
	l.begin()
	return l.w.Write(p)
}

var _ io.Writer = (*lazy)(nil)

// span is which bytes of an object are asked for.
type span struct {
	offset, length int64
	isPart         bool
}

// span reads which bytes a request is for.
func (q *request) span(is *api.Object) (span, error) {
	text := q.Header.Get("Range")
	if q.query.has("partNumber") {
		number, err := q.partNumber()
		if err != nil {
			return span{}, err
		}
		return partSpan(q.w.Header(), int64(number), is)
	}
	if condition := q.Header.Get("If-Range"); condition != "" && text != "" {
		at, err := http.ParseTime(condition)
		if err != nil && !matches(condition, etagOf(is)) || err == nil && !is.Modified.Truncate(time.Second).Equal(at) {
			text = ""
		}
	}
	return readSpan(text, is.Size)
}

// readSpan reads a Range header with one range. What it does not know is ignored, as HTTP allows.
func readSpan(text string, size int64) (span, error) {
	whole := span{0, size, false}
	spec, ok := strings.CutPrefix(text, "bytes=")
	from, to, dash := strings.Cut(spec, "-")
	if !ok || !dash || strings.Contains(spec, ",") {
		return whole, nil
	}
	outside := refuse(invalidRange, "the range %.80q has no byte of an object of %d bytes", text, size)
	if from == "" {
		n, err := strconv.ParseUint(to, 10, 63)
		switch {
		case err == nil && n == 0:
			return span{}, outside
		case err != nil || size == 0: // all of nothing is nothing
			return whole, nil
		}
		length := min(int64(n), size)
		return span{size - length, length, true}, nil
	}
	first, err := strconv.ParseUint(from, 10, 63)
	if err != nil {
		return whole, nil
	}
	last := size - 1
	if to != "" {
		n, err := strconv.ParseUint(to, 10, 63)
		if err != nil || n < first {
			return whole, nil
		}
		last = min(int64(n), last)
	}
	if int64(first) >= size {
		return span{}, outside
	}
	return span{int64(first), last - int64(first) + 1, true}, nil
}

// partSpan is where a part lies of an object that was put in parts, which can be told where all have one size but the last.
func partSpan(header http.Header, number int64, is *api.Object) (span, error) {
	parts, each := partsOf(is)
	if number > parts {
		return span{}, refuse(invalidPartNumber, "the object has %d parts", parts)
	}
	if parts > 1 {
		header.Set("X-Amz-Mp-Parts-Count", strconv.FormatInt(parts, 10))
	}
	if parts > 1 && each == 0 {
		return span{}, refuse(notImplemented, "the parts of the object had different sizes, which are not kept; read it by ranges")
	}
	if is.Size == 0 {
		return span{0, 0, false}, nil
	}
	offset := (number - 1) * each
	return span{offset, min(each, is.Size-offset), true}, nil
}

var invalidPartNumber = code{
	"InvalidPartNumber", http.StatusRequestedRangeNotSatisfiable, "The requested partnumber is not satisfiable",
}

// metaPartSize is how large the parts of an object were but for the last, where all had one size.
const metaPartSize = metaSum + "part-size"

// partsOf is how many parts an object was put in, and how large each was but the last: 0 where that is not known.
func partsOf(is *api.Object) (parts, each int64) {
	_, count, found := strings.Cut(is.Metadata[metaETag], "-")
	parts, err := strconv.ParseInt(count, 10, 32)
	if !found || err != nil || parts < 1 {
		return 1, is.Size
	}
	each, err = strconv.ParseInt(is.Metadata[metaPartSize], 10, 64)
	if err != nil || each < 1 {
		return parts, 0
	}
	return parts, each
}
