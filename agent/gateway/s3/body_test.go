package s3

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/restripe/restripe/agent/serve"
)

// The check values of the algorithms, of the digits 1 to 9: those of the catalogue of parametrised CRC algorithms, and of the RFCs.
func TestChecksums(t *testing.T) {
	for name, want := range map[string]string{
		"crc32": "cbf43926", "crc32c": "e3069283", "crc64nvme": "ae8b14860a799888", "md5": "25f9e794323b453885f5181f1b624d0b",
		"sha1": "f7c3bc1d808e04732adf679965ccc34ca7ae3441",
	} {
		sum := checksumNamed(strings.ToUpper(name)).make()
		_, _ = sum.Write([]byte("123456789")) // which never fails
		if got := strings.ToLower(encodeHex(sum.Sum(nil))); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	// Those of nothing, as the specification of xxHash has them.
	for name, want := range map[string]string{
		"xxhash64": "ef46db3751d8e999", "xxhash3": "2d06800538d394c2", "xxhash128": "99aa06d3014798d86001c324468d497f",
	} {
		if got := strings.ToLower(encodeHex(checksumNamed(name).make().Sum(nil))); got != want {
			t.Errorf("%s of nothing is %s, want %s", name, got, want)
		}
	}
}

// bodyWith is the body of a request.
func bodyWith(t *testing.T, text string, header map[string]string) (*body, error) {
	t.Helper()
	r := httptest.NewRequest("PUT", "/photos/a", strings.NewReader(text))
	for name, value := range header {
		r.Header.Set(name, value)
	}
	q := &request{Request: r, w: serve.NewAnswer(deadlines{httptest.NewRecorder()})}
	return q.openBody()
}

// deadlines takes deadlines, which a recorder does not.
type deadlines struct{ http.ResponseWriter }

// SetReadDeadline does nothing.
func (deadlines) SetReadDeadline(time.Time) error { return nil }

// A body that is not what the request says fails with its last byte, and one that is has its digests.
func TestBodies(t *testing.T) {
	const helloCRC, helloSHA, helloMD5 = "NhCmhg==", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=", "XUFAKrxLKna5cZ2REBfFkg=="
	trailer := "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:" + helloCRC + "\r\n\r\n"
	in := func(kind string, more ...string) map[string]string {
		header := map[string]string{headerPayload: kind, "X-Amz-Decoded-Content-Length": "5"}
		for i := 0; i < len(more); i += 2 {
			header[more[i]] = more[i+1]
		}
		return header
	}
	const digest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	for _, test := range []struct {
		name, text string
		header     map[string]string
		want       code
	}{
		{"plain", "hello", nil, code{}},
		{"digest", "hello", map[string]string{headerPayload: digest}, code{}},
		{"another digest", "hellO", map[string]string{headerPayload: digest}, contentHashMismatch},
		{"no digest", "hello", map[string]string{headerPayload: "x"}, invalidArgument},
		{"MD5", "hello", map[string]string{"Content-Md5": helloMD5}, code{}},
		{"another MD5", "hellO", map[string]string{"Content-Md5": helloMD5}, badDigest},
		{"no MD5", "hello", map[string]string{"Content-Md5": "eA=="}, invalidDigest},
		{"CRC", "hello", map[string]string{"X-Amz-Checksum-Crc32": helloCRC}, code{}},
		{"another CRC", "hellO", map[string]string{"X-Amz-Checksum-Crc32": helloCRC}, badDigest},
		{"SHA-256", "hello", map[string]string{"X-Amz-Checksum-Sha256": helloSHA}, code{}},
		{"two", "hello", map[string]string{"X-Amz-Checksum-Sha256": helloSHA, "X-Amz-Checksum-Crc32": helloCRC}, invalidRequest},
		{"one that nobody knows", "hello", map[string]string{"X-Amz-Checksum-Crc16": "x"}, invalidRequest},
		{"none in base64", "hello", map[string]string{"X-Amz-Checksum-Crc32": "x"}, invalidRequest},
		{"one of another length", "hello", map[string]string{"X-Amz-Checksum-Xxhash64": helloCRC}, invalidRequest},
		{"an empty one", "hello", map[string]string{"X-Amz-Checksum-Crc32": ""}, invalidRequest},
		{"one in the header and one behind", trailer,
			in(streamingTrailer, "X-Amz-Trailer", "x-amz-checksum-crc32", "X-Amz-Checksum-Sha256", helloSHA), invalidRequest},
		{"trailer", trailer, in(streamingTrailer, "X-Amz-Trailer", "x-amz-checksum-crc32"), code{}},
		{"another body", strings.Replace(trailer, "hello", "hellO", 1), in(streamingTrailer, "X-Amz-Trailer", "x-amz-checksum-crc32"),
			badDigest},
		{"a trailer that is missing", "5\r\nhello\r\n0\r\n\r\n", in(streamingTrailer, "X-Amz-Trailer", "x-amz-checksum-crc32"),
			malformedTrailer},
		{"a trailer that was not announced", trailer, in(streamingTrailer), malformedTrailer},
		{"another trailer", strings.Replace(trailer, "crc32", "crc32c", 1), in(streamingTrailer, "X-Amz-Trailer", "x-amz-checksum-crc32"),
			malformedTrailer},
		{"chunks too short", "4\r\nhell\r\n0\r\n\r\n", in(streamingTrailer), incompleteBody},
		{"chunks too long", "6\r\nhello!\r\n0\r\n\r\n", in(streamingTrailer), incompleteBody},
		{"no length", trailer, map[string]string{headerPayload: streamingTrailer}, missingLength},
		{"a trailer that cannot come", "hello", map[string]string{"X-Amz-Trailer": "x-amz-checksum-crc32"}, invalidRequest},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, err := bodyWith(t, test.text, test.header)
			var got []byte
			if err == nil {
				got, err = io.ReadAll(iotest.OneByteReader(b))
			}
			if test.want != (code{}) {
				if err == nil || codeOf(err).name != test.want.name {
					t.Errorf("%q, %v; want %s", got, err, test.want.name)
				}
				return
			}
			if err != nil || string(got) != "hello" {
				t.Fatalf("%q, %v", got, err)
			}
			digests, err := b.digests()
			if err != nil || digests[metaETag] != "5d41402abc4b2a76b9719d911017c592" {
				t.Errorf("%v, %v", digests, err)
			}
		})
	}
}

// The error of a body comes with its last byte, so that whoever reads just as many bytes as were announced learns of it.
func TestTheLastByteBringsTheError(t *testing.T) {
	b, err := bodyWith(t, "hellO", map[string]string{"Content-Md5": "XUFAKrxLKna5cZ2REBfFkg=="})
	if err != nil {
		t.Fatal(err)
	}
	n, err := b.Read(make([]byte, 5))
	if n != 5 || err == nil || codeOf(err).name != badDigest.name {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := b.digests(); err == nil {
		t.Error("a body that is wrong has digests")
	}
}

// A body that breaks off is no whole one.
func TestBodiesThatBreakOff(t *testing.T) {
	for _, cause := range []error{io.ErrUnexpectedEOF, errors.New("gone")} {
		b := bodyOf(io.MultiReader(strings.NewReader("hel"), iotest.ErrReader(cause)), 5, nil)
		if got, err := io.ReadAll(b); !errors.Is(err, cause) {
			t.Errorf("%q, %v", got, err)
		}
	}
	b := bodyOf(strings.NewReader("hel"), 5, nil)
	if got, err := io.ReadAll(b); codeOf(err) != incompleteBody {
		t.Errorf("%q, %v", got, err)
	}
	empty := bodyOf(bytes.NewReader(nil), 0, checksumNamed("crc32"))
	if got, err := io.ReadAll(empty); err != nil || len(got) > 0 || empty.sum() != "AAAAAA==" {
		t.Errorf("%q, %v, %s", got, err, empty.sum())
	}
}

// Metadata comes back as it was given, and what no header can have is counted.
func TestMetadata(t *testing.T) {
	given := http.Header{
		"X-Amz-Meta-Color": {"red", "blue"}, "X-Amz-Meta-Latin": {"caf\xe9"}, "X-Amz-Meta-Text": {"ü"}, "Content-Type": {"text/plain"},
		"Content-Encoding": {"aws-chunked, gzip"}, "X-Amz-Tagging": {"b=2&a=1"},
	}
	metadata, err := metadataOf(given)
	if err != nil {
		t.Fatal(err)
	}
	metadata["line"], metadata["of others:"] = "a\nb", "x"
	metadata["digest:etag"], metadata["na me"] = "x", "y"
	header := http.Header{}
	setMetadata(header, metadata)
	for name, want := range map[string]string{
		"x-amz-meta-color": "red,blue", "x-amz-meta-latin": "café", "x-amz-meta-text": "ü", "Content-Type": "text/plain",
		"Content-Encoding": "gzip", "X-Amz-Tagging-Count": "2", "X-Amz-Missing-Meta": "2",
	} {
		if got := strings.Join(header[name], "|"); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if metadata[metaTags] != "a=1&b=2" || len(header) != 7 {
		t.Errorf("%v, %v", metadata, header)
	}
	for _, wrong := range []http.Header{
		{"X-Amz-Meta-A": {strings.Repeat("x", userMost)}}, {"X-Amz-Tagging": {"a=1&a=2"}}, {"X-Amz-Tagging": {"%zz"}},
		{"X-Amz-Tagging": {"=1"}}, {headerRedirect: {"x"}}, {"Content-Type": {strings.Repeat("x", metadataMost)}},
	} {
		if metadata, err := metadataOf(wrong); err == nil {
			t.Errorf("%v is taken as %v", wrong, metadata)
		}
	}
	many := make([]string, tagsMost+1)
	for i := range many {
		many[i] = strconv.Itoa(i) + "=x"
	}
	if _, err := metadataOf(http.Header{"X-Amz-Tagging": {strings.Join(many, "&")}}); err == nil || codeOf(err) != tooManyTags {
		t.Error(err)
	}
}
