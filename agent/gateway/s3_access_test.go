package gateway_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/s3"
)

// Requests are of who signed them, for what was signed, and for now.
func TestS3Signatures(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	nobody := c.serveS3(func(o *s3.Options) { o.Users = s3Users(t) })
	s := nobody.as("ALL/1", keySecret)
	s.want(200, "PUT", "/photos", "", nil)
	data := noise(100_000, 1)
	s.want(200, "PUT", "/photos/a b/ä?+", "", data, "X-Amz-Meta-Color", "  red   blue ")
	if got := s.want(200, "GET", "/photos/a b/ä?+", "response-content-type=a%2Bb%20c", nil); !bytes.Equal(got.body, data) {
		t.Errorf("%v", got.header)
	}
	nobody.refused("AccessDenied", "GET", "/photos/a b/ä?+", "", nil)
	nobody.refused("AccessDenied", "GET", "/", "", nil)
	s.as("ALL/1", "another secret, as long").refused("SignatureDoesNotMatch", "GET", "/", "", nil)
	s.as("NONE", keySecret).refused("InvalidAccessKeyId", "GET", "/", "", nil)
	s.as("PAST", keySecret).refused("InvalidAccessKeyId", "GET", "/", "", nil)
	for _, region := range []string{"eu-west-1", "", "auto"} {
		other := s.as("ALL/1", keySecret)
		other.region = region
		other.want(200, "GET", "/", "", nil)
	}
	for off, code := range map[time.Duration]string{20 * time.Minute: "RequestTimeTooSkewed", -20 * time.Minute: "RequestTimeTooSkewed",
		10 * time.Minute: ""} {
		other := s.as("ALL/1", keySecret)
		other.now = func() time.Time { return time.Now().Add(off) }
		other.refused(code, "GET", "/", "", nil)
	}
	for _, change := range []func(r *http.Request){
		func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/photos/b", "" },
		func(r *http.Request) { r.URL.RawQuery = "acl" },
		func(r *http.Request) { r.Header.Set("X-Amz-Meta-Color", "blue") },
		func(r *http.Request) { r.Method = "DELETE" },
	} {
		r := s.request("GET", "/photos/a", "", nil, "X-Amz-Meta-Color", "red")
		s.sign(r, "UNSIGNED-PAYLOAD")
		change(r)
		if reply := s.send(r); reply.status != 403 {
			t.Errorf("%d %s", reply.status, reply.body)
		}
	}
	r := s.request("PUT", "/photos/a", "", nil)
	s.sign(r, "UNSIGNED-PAYLOAD")
	r.Header.Set("X-Amz-Copy-Source", "photos/b")
	if reply := s.send(r); reply.code() != "AccessDenied" {
		t.Errorf("a header that nobody signed: %d %s", reply.status, reply.body)
	}
	r = s.request("PUT", "/photos/b", "", []byte("hello"))
	s.sign(r, s3Hash([]byte("hellO")))
	if reply := s.send(r); reply.code() != "XAmzContentSHA256Mismatch" {
		t.Errorf("another body: %d %s", reply.status, reply.body)
	}
	s.refused("InvalidToken", "GET", "/", "", nil, "X-Amz-Security-Token", "x")
	s.refused("NoSuchKey", "GET", "/photos/b", "", nil)
}

// presign is a URL that whoever has it may use for a while.
func (s *s3Client) presign(method, path string, at time.Time, expires time.Duration, more ...string) *http.Request {
	s.t.Helper()
	_, scope := s.key(at)
	query := url.Values{
		"X-Amz-Algorithm": {"AWS4-HMAC-SHA256"}, "X-Amz-Credential": {s.id + "/" + scope},
		"X-Amz-Date":    {at.UTC().Format("20060102T150405Z")},
		"X-Amz-Expires": {strconv.Itoa(int(expires.Seconds()))}, "X-Amz-SignedHeaders": {"host"},
	}
	for i := 0; i < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	r := s.request(method, path, "", nil)
	r.Host = r.URL.Host
	signature := s.signature(r, at, query, []string{"host"}, "UNSIGNED-PAYLOAD")
	query.Set("X-Amz-Signature", signature)
	r.URL.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	return r
}

// A URL that was signed can be used by whoever has it, for what it was signed, until it expires.
func TestS3PresignedURLs(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	nobody := c.serveS3(func(o *s3.Options) { o.Users = s3Users(t) })
	s := nobody.as("ALL/1", keySecret)
	s.want(200, "PUT", "/photos", "", nil)
	s.want(200, "PUT", "/photos/a b", "", []byte("hello"))
	now := time.Now()
	for _, test := range []struct {
		request *http.Request
		code    string
	}{
		{s.presign("GET", "/photos/a b", now, time.Hour, "response-content-type", "a b"), ""},
		{s.presign("GET", "/photos/a b", now.Add(-2*time.Hour), time.Hour), "AccessDenied"},
		{s.presign("GET", "/photos/a b", now.Add(time.Hour), time.Hour), "AccessDenied"},
		{s.presign("GET", "/photos/a b", now, 8*24*time.Hour), "AuthorizationQueryParametersError"},
		{s.as("ALL/1", "another secret").presign("GET", "/photos/a b", now, time.Hour), "SignatureDoesNotMatch"},
		{s.as("READER", keySecret).presign("GET", "/photos/a b", now, time.Hour), "AccessDenied"},
	} {
		reply := nobody.send(test.request)
		if reply.code() != test.code || test.code == "" && (string(reply.body) != "hello" || reply.header.Get("Content-Type") != "a b") {
			t.Errorf("%s: %d %s, want %q", test.request.URL, reply.status, reply.body, test.code)
		}
	}
	put := s.presign("PUT", "/photos/b", now, time.Hour, "x-amz-meta-color", "red")
	put.Body, put.ContentLength = http.NoBody, 0
	if reply := nobody.send(put); reply.status != 200 {
		t.Errorf("%d %s", reply.status, reply.body)
	}
	if got := s.want(200, "HEAD", "/photos/b", "", nil); got.header.Get("X-Amz-Meta-Color") != "red" {
		t.Errorf("%v", got.header)
	}
	wrong := s.presign("GET", "/photos/a b", now, time.Hour)
	wrong.Method = "DELETE"
	if reply := nobody.send(wrong); reply.code() != "SignatureDoesNotMatch" {
		t.Errorf("%d %s", reply.status, reply.body)
	}
}

// s3Chunks is a body in two chunks that are signed.
func (s *s3Client) s3Chunks(data []byte, signature string, at time.Time) []byte {
	key, scope := s.key(at)
	empty := sha256.Sum256(nil)
	var out bytes.Buffer
	half := len(data) / 2
	for _, chunk := range [][]byte{data[:half], data[half:], nil} {
		text := "AWS4-HMAC-SHA256-PAYLOAD\n" + at.UTC().Format("20060102T150405Z") + "\n" + scope + "\n" + signature + "\n" +
			hex.EncodeToString(empty[:]) + "\n" + s3Hash(chunk)
		signature = hex.EncodeToString(s3MAC(key, text))
		fmt.Fprintf(&out, "%x;chunk-signature=%s\r\n%s\r\n", len(chunk), signature, chunk)
	}
	return out.Bytes()
}

// Of a body that comes in chunks each is as it was signed, or nothing is stored.
func TestS3Chunks(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3(func(o *s3.Options) { o.Users = s3Users(t) }).as("ALL/1", keySecret)
	s.want(200, "PUT", "/photos", "", nil)
	for _, size := range []int{2, 9000, 200_000} {
		data := noise(size, 7)
		for name, change := range map[string]func(body []byte) []byte{
			"as it was":    func(body []byte) []byte { return body },
			"the last bit": func(body []byte) []byte { body[bytes.LastIndex(body, []byte("\r\n0;"))-1] ^= 1; return body },
			"a bit":        func(body []byte) []byte { body[bytes.IndexByte(body, '\n')+1] ^= 1; return body },
			"the end":      func(body []byte) []byte { return body[:bytes.LastIndex(body, []byte("0;"))] },
		} {
			s.want(204, "DELETE", "/photos/a", "", nil)
			r := s.request("PUT", "/photos/a", "", nil, "X-Amz-Decoded-Content-Length", strconv.Itoa(size), "Content-Encoding",
				"aws-chunked")
			signature, at := s.sign(r, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")
			body := change(s.s3Chunks(data, signature, at))
			sent := s.request("PUT", "/photos/a", "", body)
			sent.Header, sent.Host = r.Header, r.Host
			reply := s.send(sent)
			if name == "as it was" {
				if got := s.want(200, "GET", "/photos/a", "", nil); reply.status != 200 || !bytes.Equal(got.body, data) ||
					got.header.Get("Content-Encoding") != "" {
					t.Errorf("%d bytes: %d %s", size, reply.status, reply.body)
				}
				continue
			}
			if reply.status != 403 && reply.status != 400 {
				t.Errorf("%d bytes, %s: %d %s", size, name, reply.status, reply.body)
			}
			s.refused("NoSuchKey", "GET", "/photos/a", "", nil)
		}
	}
}

// Users do with objects what they have a right to, and see what they may list.
func TestS3Rights(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	nobody := c.serveS3(func(o *s3.Options) { o.Users = s3Users(t) })
	all, reader, odd := nobody.as("ALL/1", keySecret), nobody.as("READER", keySecret), nobody.as("ODD", keySecret)
	all.want(200, "PUT", "/photos", "", nil)
	for _, key := range []string{"a/1", "b/1"} {
		c.put("photos/"+key, []byte("x"), api.PutOptions{})
	}
	c.put("photos/odd", []byte("x"), api.PutOptions{Class: "odd"})
	c.put("music/a", []byte("x"), api.PutOptions{})
	buckets := func(s *s3Client) string {
		text := string(s.want(200, "GET", "/", "", nil).body)
		return fmt.Sprint(strings.Contains(text, "<Name>photos<"), strings.Contains(text, "<Name>music<"))
	}
	if got := buckets(all) + buckets(reader) + buckets(odd); got != "true truetrue falsetrue false" {
		t.Error(got)
	}
	reader.want(200, "GET", "/photos/a/1", "", nil)
	reader.want(200, "HEAD", "/photos", "", nil)
	if keys, _, _ := reader.keys("photos", "prefix=a/"); len(keys) != 1 {
		t.Error(keys)
	}
	if keys, _, _ := odd.keys("photos", ""); len(keys) != 1 || keys[0] != "odd" {
		t.Error(keys)
	}
	upload := all.upload("/photos/a/upload")
	for _, request := range []struct{ method, path, query, header, value string }{
		{method: "GET", path: "/photos/b/1"}, {method: "HEAD", path: "/music"}, {method: "GET", path: "/photos"}, {method: "GET",
			path: "/photos/b/none"},
		{method: "PUT", path: "/photos/a/1"}, {method: "DELETE", path: "/photos/a/1"}, {method: "PUT", path: "/others"},
		{method: "DELETE", path: "/photos"},
		{method: "POST", path: "/photos/a/1", query: "uploads"}, {method: "PUT", path: "/photos/a/upload", query: upload.query(1)},
		{method: "GET", path: "/photos/a/upload", query: "uploadId=" + upload.id}, {method: "DELETE", path: "/photos/a/upload",
			query: "uploadId=" + upload.id},
		{method: "PUT", path: "/photos/a/2", header: "X-Amz-Copy-Source", value: "photos/a/1"}, {method: "GET", path: "/photos",
			query: "uploads"},
		{method: "PUT", path: "/photos/a/1", query: "tagging"}, {method: "GET", path: "/music", query: "acl"}, {method: "GET",
			path: "/photos", query: "versions"},
	} {
		var headers []string
		if request.header != "" {
			headers = []string{request.header, request.value}
		}
		if reply := reader.do(request.method, request.path, request.query, nil, headers...); reply.status != 403 {
			t.Errorf("%+v: %d %s", request, reply.status, reply.body)
		}
	}
	odd.refused("AccessDenied", "PUT", "/photos/a/1", "", []byte("y"), "X-Amz-Storage-Class", "odd") // of another class now
	odd.refused("AccessDenied", "PUT", "/photos/new", "", []byte("y"))
	odd.want(200, "PUT", "/photos/new", "", []byte("y"), "X-Amz-Storage-Class", "odd")
	odd.refused("AccessDenied", "PUT", "/photos/new", "", nil, "X-Amz-Copy-Source", "photos/a/1", "X-Amz-Storage-Class", "odd")
	text := []byte("<Delete><Object><Key>new</Key></Object><Object><Key>a/1</Key></Object></Delete>")
	if reply := odd.want(200, "POST", "/photos", "delete", text); !strings.Contains(string(reply.body),
		"<Deleted><Key>new</Key></Deleted>") ||
		!strings.Contains(string(reply.body), "<Error><Key>a/1</Key><Code>AccessDenied</Code>") {
		t.Errorf("%s", reply.body)
	}
	c.check("photos/a/1", []byte("x"))
}
