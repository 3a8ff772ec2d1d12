package gateway_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/gateway/s3"
)

// s3Client sends requests of S3, signed unless it has no secret.
type s3Client struct {
	t          *testing.T
	address    string
	id, secret string
	region     string
	now        func() time.Time
	client     *http.Client
}

// serveS3 serves the gateway of a cluster to clients of S3 until the test ends, and returns one that is not signed.
func (c *cluster) serveS3(changes ...func(*s3.Options)) *s3Client {
	c.t.Helper()
	options := s3.Options{Objects: c.gateway.Objects, Classes: c.gateway.Registry, Logger: slog.New(slog.DiscardHandler), LeastPart: 1000}
	for _, change := range changes {
		change(&options)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s3.New(options).Serve(ctx, listener) }()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	c.t.Cleanup(func() {
		client.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
	})
	return &s3Client{t: c.t, address: listener.Addr().String(), region: "us-east-1", now: time.Now, client: client}
}

// as is the same client with an access key.
func (s *s3Client) as(id, secret string) *s3Client {
	other := *s
	other.id, other.secret = id, secret
	return &other
}

// s3Reply is an answer, whole.
type s3Reply struct {
	status int
	header http.Header
	body   []byte
}

// code is that of an error.
func (r *s3Reply) code() string {
	var body struct{ Code string }
	if r.status < 300 || xml.Unmarshal(r.body, &body) != nil {
		return ""
	}
	return body.Code
}

// into reads the answer.
func (s *s3Client) into(r *s3Reply, value any) {
	s.t.Helper()
	if err := xml.Unmarshal(r.body, value); err != nil {
		s.t.Fatalf("%s: %v", r.body, err)
	}
}

// s3Escape percent-encodes a path as clients of S3 do.
func s3Escape(text string, keep string) string {
	var out strings.Builder
	for i := range len(text) {
		c := text[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~"+keep, c) >= 0 {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

func s3MAC(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func s3Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// key is what is signed with, and its scope.
func (s *s3Client) key(at time.Time) (key []byte, scope string) {
	day := at.UTC().Format("20060102")
	key = []byte("AWS4" + s.secret)
	for _, part := range []string{day, s.region, "s3", "aws4_request"} {
		key = s3MAC(key, part)
	}
	return key, day + "/" + s.region + "/s3/aws4_request"
}

// signature is that of a request of a time.
func (s *s3Client) signature(r *http.Request, at time.Time, query url.Values, names []string, payload string) string {
	slices.Sort(names)
	var headers strings.Builder
	for _, name := range names {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		headers.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	canonical := r.Method + "\n" + r.URL.EscapedPath() + "\n" + strings.ReplaceAll(query.Encode(), "+", "%20") + "\n" +
		headers.String() + "\n" +
		strings.Join(names, ";") + "\n" + payload
	key, scope := s.key(at)
	return hex.EncodeToString(s3MAC(key,
		"AWS4-HMAC-SHA256\n"+at.UTC().Format("20060102T150405Z")+"\n"+scope+"\n"+s3Hash([]byte(canonical))))
}

// request is one to a path of bucket and key, with a query and headers in pairs.
func (s *s3Client) request(method, path, query string, body []byte, headers ...string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.address, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = path, s3Escape(path, "/"), query
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// sign signs a request by its header.
func (s *s3Client) sign(r *http.Request, payload string) (signature string, at time.Time) {
	s.t.Helper()
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		s.t.Fatal(err)
	}
	at = s.now()
	r.Header.Set("X-Amz-Date", at.UTC().Format("20060102T150405Z"))
	r.Header.Set("X-Amz-Content-Sha256", payload)
	names := []string{"host"}
	for name := range r.Header {
		names = append(names, strings.ToLower(name))
	}
	r.Host = r.URL.Host
	signature = s.signature(r, at, query, names, payload)
	_, scope := s.key(at)
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+s.id+"/"+scope+", SignedHeaders="+strings.Join(names,
		";")+", Signature="+signature)
	return signature, at
}

// do sends a request and returns its answer.
func (s *s3Client) do(method, path, query string, body []byte, headers ...string) *s3Reply {
	s.t.Helper()
	r := s.request(method, path, query, body, headers...)
	if s.secret != "" {
		s.sign(r, s3Hash(body))
	}
	return s.send(r)
}

func (s *s3Client) send(r *http.Request) *s3Reply {
	s.t.Helper()
	reply, err := s.trySend(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	return reply
}

// trySend is send for requests that may find nobody, or half an answer.
func (s *s3Client) trySend(r *http.Request) (*s3Reply, error) {
	reply, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(reply.Body)
	if err := reply.Body.Close(); err != nil {
		return nil, err
	}
	return &s3Reply{reply.StatusCode, reply.Header, body}, err
}

// want sends a request whose status has to be this.
func (s *s3Client) want(status int, method, path, query string, body []byte, headers ...string) *s3Reply {
	s.t.Helper()
	reply := s.do(method, path, query, body, headers...)
	if reply.status != status {
		s.t.Fatalf("%s %s?%s: %d %.300s, want %d", method, path, query, reply.status, reply.body, status)
	}
	return reply
}

// refused sends a request that has to be refused by an error of that name.
func (s *s3Client) refused(code, method, path, query string, body []byte, headers ...string) {
	s.t.Helper()
	if reply := s.do(method, path, query, body, headers...); reply.code() != code {
		s.t.Errorf("%s %s?%s %v: %d %.400s, want %s", method, path, query, headers, reply.status, reply.body, code)
	}
}

// s3Users writes a file of users: one who may do everything, and one who may read and list below photos/a/.
func s3Users(t *testing.T) access.Authority {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users.yaml")
	text := `users:
- {name: all, accessKey: {id: ALL/1, secret: ` + keySecret + `}, objects: [{may: [admin]}]}
- {name: reader, accessKey: {id: READER, secret: ` + keySecret + `}, objects: [{may: [read, list], prefix: photos/a/}]}
- {name: odd, accessKey: {id: ODD, secret: ` + keySecret + `}, objects: [{may: [admin], prefix: photos/, class: odd}]}
- {name: past, accessKey: {id: PAST, secret: ` + keySecret + `}, objects: [{may: [admin]}], expires: 2020-01-01T00:00:00Z}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	users, err := access.Users(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return users
}

// s3Keys are the keys, and then the common prefixes, of a listing.
func (s *s3Client) keys(bucket, query string) (names []string, more bool, next string) {
	s.t.Helper()
	var list struct {
		Contents              []struct{ Key string }
		CommonPrefixes        []struct{ Prefix string }
		IsTruncated           bool
		NextMarker            string
		NextContinuationToken string
	}
	s.into(s.want(200, "GET", "/"+bucket, query, nil), &list)
	for _, one := range list.Contents {
		names = append(names, one.Key)
	}
	for _, one := range list.CommonPrefixes {
		names = append(names, one.Prefix)
	}
	return names, list.IsTruncated, list.NextMarker + list.NextContinuationToken
}

func sha1Of(data []byte) []byte {
	sum := sha1.Sum(data)
	return sum[:]
}
