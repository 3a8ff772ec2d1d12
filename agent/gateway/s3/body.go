package s3

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/serve"
)

// expectation is a digest that a client gave, or will give behind the body.
type expectation struct {
	name   string // as clients know it
	sum    hash.Hash
	want   []byte // nil: what it is, is to be known
	wrong  code
	behind string // the trailer that has it; empty: it is known
}

// body is that of a request, without what it is wrapped in, of known size but for those of forms. It fails at its end, with the last byte
// where the size is known, unless all is as the client said.
type body struct {
	from     io.Reader
	size     int64
	left     int64
	md5      hash.Hash
	chosen   *checksum // that the client chose for the object; nil: none
	expected []expectation
	chunks   *chunks // that the bytes come in; nil: they come as they are
	ended    bool
	err      error
}

// openBody returns the body of a request. It is read and verified as the caller reads it.
func (q *request) openBody() (*body, error) { return q.openWith(q.Header) }

// openWith is openBody with the digests that a header has.
func (q *request) openWith(digests http.Header) (*body, error) {
	from := serve.PatientBody(q.w, q.Request, errSlow)
	b := &body{from: from, size: q.ContentLength, md5: newMD5()}
	payload := q.payload()
	switch payload {
	case streamingSigned, streamingSignedTrailer, streamingTrailer:
		b.chunks = newChunks(from, payload)
		if q.caller.key != nil {
			b.chunks.verifies(q.caller.by, q.caller.key)
		}
		b.from = b.chunks
		size, err := strconv.ParseInt(q.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64)
		if err != nil || size < 0 {
			return nil, refuse(missingLength, "a body in chunks has a header x-amz-decoded-content-length with its length")
		}
		b.size = size
	case unsignedPayload, "":
	default:
		sum, err := hex.DecodeString(payload)
		if failed := checkPayload(payload); failed != nil || err != nil {
			return nil, cmp.Or(failed, err)
		}
		b.expected = append(b.expected, expectation{name: "SHA-256", sum: sha256.New(), want: sum, wrong: contentHashMismatch})
	}
	if b.size < 0 {
		return nil, refuse(missingLength, "the request says no length of its body; send a Content-Length")
	}
	b.left = b.size
	if err := b.expect(digests); err != nil {
		return nil, err
	}
	return b, nil
}

// unknownSize is that of a body that ends where it ends.
const unknownSize = -1

// bodyOf is a body that comes from elsewhere, and of which the client wants to know a checksum, unless it is nil.
func bodyOf(from io.Reader, size int64, chosen *checksum) *body {
	b := &body{from: from, size: size, left: size, md5: newMD5()}
	b.choose(chosen)
	return b
}

// choose has a checksum be known of a body for which the client has given none.
func (b *body) choose(chosen *checksum) {
	if chosen != nil && b.chosen == nil {
		b.chosen = chosen
		b.expected = append(b.expected, expectation{name: chosen.label(), sum: chosen.make()})
	}
}

// add adds bytes to all digests.
func (b *body) add(came []byte) {
	_, _ = b.md5.Write(came) // which never fails, as that of no hash does
	for i := range b.expected {
		if sum := b.expected[i].sum; sum != b.md5 {
			_, _ = sum.Write(came) // likewise
		}
	}
}

// mismatch is the error of a digest that is another one.
func mismatch(name, of string) code {
	return badDigest.saying("The %s you specified did not match %s.", name, of)
}

// expect takes the digests that the headers have or announce.
func (b *body) expect(header http.Header) error {
	if values := header.Values("Content-Md5"); len(values) > 0 {
		sum, valid := decodeSum(values[0], b.md5.Size())
		if !valid {
			return refuse(invalidDigest, "Content-MD5 is %.40q; want an MD5 in base64", values[0])
		}
		b.expected = append(b.expected, expectation{name: "MD5", sum: b.md5, want: sum, wrong: mismatch("Content-MD5",
			"what we received")})
	}
	if err := checkSums(header); err != nil {
		return err
	}
	announced := strings.ToLower(strings.TrimSpace(header.Get("X-Amz-Trailer")))
	for i := range checksums {
		c := &checksums[i]
		text := header.Get(c.header())
		isGiven, isBehind := len(header.Values(c.header())) > 0, announced == strings.ToLower(c.header())
		if !isGiven && !isBehind {
			continue
		}
		if b.chosen != nil || isGiven && isBehind || len(header.Values(c.header())) > 1 {
			return severalSums()
		}
		one := expectation{name: c.label(), sum: c.make(), wrong: mismatch(c.label(), "the calculated checksum")}
		if isBehind {
			one.behind = announced
		} else {
			sum, valid := decodeSum(text, one.sum.Size())
			if !valid {
				return badSum(c.header(), text)
			}
			one.want = sum
		}
		b.chosen = c
		b.expected = append(b.expected, one)
	}
	if asked := header.Get("X-Amz-Sdk-Checksum-Algorithm"); asked != "" && b.chosen != nil && !strings.EqualFold(asked, b.chosen.name) {
		return refuse(invalidRequest.saying("Value for x-amz-sdk-checksum-algorithm header is invalid."),
			"x-amz-sdk-checksum-algorithm is %.40q, and the request has a checksum of the kind %s", asked, b.chosen.label())
	}
	if announced != "" && b.chosen == nil {
		if kind, is := strings.CutPrefix(announced, "x-amz-checksum-"); is {
			return unknownChecksum(kind)
		}
		return refuse(invalidRequest, "x-amz-trailer announces %.40q; want the name of a checksum", announced)
	}
	if announced != "" && (b.chunks == nil || !b.chunks.trailing) {
		return refuse(invalidRequest, "x-amz-trailer announces %.40q, and no trailers can come with this body", announced)
	}
	return nil
}

// Read reads the body, and verifies it with its last byte.
func (b *body) Read(into []byte) (int, error) {
	if b.ended {
		return 0, b.err
	}
	if b.size == unknownSize {
		n, err := b.from.Read(into)
		b.add(into[:n])
		if err == io.EOF { //nolint:errorlint // only the bare value is the end; an error that wraps it is a failure
			if failed := b.compare(); failed != nil {
				err = failed
			}
		}
		b.ended, b.err = err != nil, err
		return n, err
	}
	n := 0
	var err error
	if b.left > 0 {
		n, err = b.from.Read(into[:min(int64(len(into)), b.left)])
		b.add(into[:n])
		b.left -= int64(n)
		if b.left > 0 {
			if err == io.EOF { //nolint:errorlint // only the bare value is the end; an error that wraps it is a failure
				err = refuse(incompleteBody, "the body ended %d bytes before the length that was announced", b.left)
			}
			if err != nil {
				b.ended, b.err = true, err
			}
			return n, err
		}
	}
	b.ended, b.err = true, b.end(err)
	if b.err == nil {
		b.err = io.EOF
	}
	return n, b.err
}

// end reads what follows the last byte, and compares the digests.
func (b *body) end(err error) error {
	var more [1]byte
	for err == nil {
		var n int
		if n, err = b.from.Read(more[:]); n > 0 {
			return refuse(incompleteBody, "the body is longer than the %d bytes that were announced", b.size)
		}
	}
	if err != io.EOF { //nolint:errorlint // only the bare value is the end; an error that wraps it is a failure
		return err
	}
	return b.compare()
}

// compare compares the digests.
func (b *body) compare() error {
	if b.chunks != nil {
		for name := range b.chunks.trailers {
			if !slices.ContainsFunc(b.expected, func(one expectation) bool { return one.behind == name }) {
				return refuse(malformedTrailer, "the body is followed by %.80s, which x-amz-trailer does not announce", name)
			}
		}
	}
	for i := range b.expected {
		one := &b.expected[i]
		if one.behind != "" {
			text := b.chunks.trailers[one.behind]
			sum, valid := decodeSum(text, one.sum.Size())
			if !valid {
				return refuse(malformedTrailer, "the trailer %s is %.80q; want a checksum in base64", one.behind, text)
			}
			one.want = sum
		}
		got := one.sum.Sum(nil)
		if one.want == nil {
			one.want = got
		}
		if !bytes.Equal(got, one.want) {
			return refuse(one.wrong, "the body is not what was sent: its %s is %s, and the request says %s; send it again",
				one.name, encodeSum(got), encodeSum(one.want))
		}
	}
	return nil
}

// etag is the tag of an object that has the bytes of the body, which was read.
func (b *body) etag() string { return hex.EncodeToString(b.md5.Sum(nil)) }

// sum is the checksum that the client chose.
func (b *body) sum() string {
	for i := range b.expected {
		if b.chosen != nil && b.expected[i].name == b.chosen.label() {
			return encodeSum(b.expected[i].want)
		}
	}
	return ""
}

// digests are what is known of the body once it was read, as metadata.
func (b *body) digests() (map[string]string, error) {
	if !b.ended || b.err != io.EOF { //nolint:errorlint // only the bare value is the end
		return nil, fmt.Errorf("the body is not known before its end: %w", b.err)
	}
	known := map[string]string{metaETag: b.etag()}
	if b.chosen != nil {
		known[metaSum+b.chosen.name] = b.sum()
	}
	return known, nil
}

// readAll reads a body that is no object, which is small, and has the digests of a header.
func (q *request) readAll(digests http.Header) ([]byte, error) {
	b, err := q.openWith(digests)
	if err != nil {
		return nil, err
	}
	if b.size > smallBody {
		return nil, refuse(entityTooLarge, "the body has %d bytes; of this request it has %d at most", b.size, smallBody)
	}
	came, err := group.ReadBody(q.Context(), q.server.memory, b, b.size+1)
	q.frees = append(q.frees, came.Release)
	if err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	return came.Bytes, nil
}

// smallBody is how large the body of a request is at most that is no object.
const smallBody = 1 << 20
