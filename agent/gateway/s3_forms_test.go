package gateway_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/s3"
)

// s3Form is a form by which an object is put.
type s3Form struct {
	fields     map[string]string
	conditions []any
	expires    time.Time
	file       []byte
	header     http.Header // of the request
}

// post sends a form, which has a policy that allows its fields and is signed, unless the client has no secret.
func (s *s3Client) post(bucket string, f s3Form) *s3Reply {
	s.t.Helper()
	fields := map[string]string{"key": "a"}
	if s.secret != "" {
		at := s.now()
		key, scope := s.key(at)
		if f.expires.IsZero() {
			f.expires = at.Add(time.Hour)
		}
		fields["x-amz-algorithm"], fields["x-amz-credential"] = "AWS4-HMAC-SHA256", s.id+"/"+scope
		fields["x-amz-date"] = at.UTC().Format("20060102T150405Z")
		conditions := append([]any{map[string]string{"bucket": bucket}}, f.conditions...)
		for _, name := range []string{"x-amz-algorithm", "x-amz-credential", "x-amz-date"} {
			conditions = append(conditions, map[string]string{name: fields[name]})
		}
		if f.conditions == nil {
			conditions = append(conditions, []string{"starts-with", "$key", ""})
			for name := range f.fields {
				conditions = append(conditions, []string{"starts-with", "$" + name, ""})
			}
		}
		text, err := json.Marshal(map[string]any{"expiration": f.expires.UTC().Format(time.RFC3339), "conditions": conditions})
		if err != nil {
			s.t.Fatal(err)
		}
		fields["policy"] = base64.StdEncoding.EncodeToString(text)
		fields["x-amz-signature"] = hex.EncodeToString(s3MAC(key, fields["policy"]))
	}
	maps.Copy(fields, f.fields)
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if err := w.WriteField(name, fields[name]); err != nil {
			s.t.Fatal(err)
		}
	}
	part, err := w.CreateFormFile("file", "b c.jpg")
	if err == nil {
		_, err = part.Write(f.file)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		s.t.Fatal(err)
	}
	r := s.request("POST", "/"+bucket, "", body.Bytes(), "Content-Type", w.FormDataContentType())
	for name := range f.header {
		r.Header.Set(name, f.header.Get(name))
	}
	return s.send(r)
}

// A form puts what it says where its policy allows that, and nothing that was not signed counts.
func TestS3Forms(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	users := s3Users(t)
	all := c.serveS3(func(o *s3.Options) { o.Users = users }).as("ALL/1", keySecret)
	all.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	all.want(200, "PUT", "/photos", "", nil)
	data := noise(200_000, 1)
	reply := all.post("photos", s3Form{file: data, fields: map[string]string{
		"key": "up/${filename}", "Content-Type": "image/x", "x-amz-meta-color": "red", "Cache-Control": "no-store",
		"tagging": "<Tagging><TagSet><Tag><Key>a</Key><Value>b c</Value></Tag></TagSet></Tagging>", "acl": "private", "x-ignore-me": "x",
	}, header: http.Header{"X-Amz-Meta-Unsigned": {"x"}}})
	if reply.status != 204 || !strings.HasSuffix(reply.header.Get("Location"), "/photos/up/b%20c.jpg") {
		t.Fatalf("%d %s %v", reply.status, reply.body, reply.header)
	}
	c.check("photos/up/b c.jpg", data)
	get := all.want(200, "HEAD", "/photos/up/b c.jpg", "", nil)
	if h := get.header; h.Get("Content-Type") != "image/x" || h.Get("X-Amz-Meta-Color") != "red" || h.Get("Cache-Control") != "no-store" ||
		h.Get("X-Amz-Tagging-Count") != "1" || h.Get("X-Amz-Meta-Unsigned") != "" || h.Get("ETag") != reply.header.Get("ETag") {
		t.Errorf("%v", h)
	}
	for status, want := range map[string]int{"200": 200, "201": 201, "204": 204, "400": 204} {
		reply := all.post("photos", s3Form{fields: map[string]string{"success_action_status": status}})
		if reply.status != want || (status == "201") != strings.Contains(string(reply.body), "<Key>a</Key>") {
			t.Errorf("%s: %d %s", status, reply.status, reply.body)
		}
	}
	c.check("photos/a", nil)
	reply = all.post("photos", s3Form{fields: map[string]string{"success_action_redirect": "https://example.org/done?x=1"}})
	to, err := url.Parse(reply.header.Get("Location"))
	if err != nil || reply.status != 303 || to.Host != "example.org" || to.Query().Get("key") != "a" || to.Query().Get("x") != "1" {
		t.Errorf("%d %v", reply.status, reply.header)
	}
	const helloCRC = "NhCmhg=="
	hello := s3Form{file: []byte("hello"), fields: map[string]string{"x-amz-checksum-crc32": helloCRC}}
	if reply := all.post("photos", hello); reply.status != 204 {
		t.Errorf("%d %s", reply.status, reply.body)
	}

	sizes := []any{[]any{"content-length-range", 2, 5}, []string{"starts-with", "$key", "up/"}}
	for _, test := range []struct {
		client *s3Client
		form   s3Form
		code   string
	}{
		{all.as("ALL/1", "another"), s3Form{}, "SignatureDoesNotMatch"},
		{all.as("NOBODY", keySecret), s3Form{}, "InvalidAccessKeyId"},
		{all.as("READER", keySecret), s3Form{}, "AccessDenied"},
		{all.as("", ""), s3Form{}, "AccessDenied"},
		{all, s3Form{expires: time.Now().Add(-time.Minute)}, "AccessDenied"},
		{all, s3Form{fields: map[string]string{"policy": "e30="}}, "SignatureDoesNotMatch"},
		{all, s3Form{fields: map[string]string{"x-amz-signature": ""}}, "InvalidArgument"},
		{all, s3Form{fields: map[string]string{"x-amz-algorithm": "AWS"}}, "InvalidArgument"},
		{all, s3Form{fields: map[string]string{"key": ""}}, "InvalidArgument"},
		{all, s3Form{conditions: sizes, file: []byte("12")}, "AccessDenied"},
		{all, s3Form{conditions: sizes, file: []byte("1"), fields: map[string]string{"key": "up/x"}}, "EntityTooSmall"},
		{all, s3Form{conditions: sizes, file: []byte("123456"), fields: map[string]string{"key": "up/x"}}, "EntityTooLarge"},
		{all, s3Form{conditions: sizes, file: []byte("12"), fields: map[string]string{"key": "up/x", "acl": "private"}}, "AccessDenied"},
		{all, s3Form{fields: map[string]string{"acl": "public-read"}}, "NotImplemented"},
		{all, s3Form{fields: map[string]string{"tagging": "x"}}, "MalformedXML"},
		{all, s3Form{fields: map[string]string{"x-amz-checksum-crc32": "AAAAAA=="}, file: []byte("hello")}, "BadDigest"},
		{all, s3Form{fields: map[string]string{"x-amz-meta-a": strings.Repeat("x", 30_000)}}, "MaxPostPreDataLengthExceeded"},
	} {
		if reply := test.client.post("photos", test.form); reply.code() != test.code {
			t.Errorf("%v: %d %s, want %s", test.form.fields, reply.status, reply.body, test.code)
		}
	}
	old := *all
	old.now = func() time.Time { return time.Now().Add(-8 * 24 * time.Hour) }
	if reply := old.post("photos", s3Form{expires: time.Now().Add(time.Hour)}); reply.code() != "AccessDenied" {
		t.Errorf("%d %s", reply.status, reply.body)
	}
	if reply := all.post("nobody", s3Form{}); reply.code() != "NoSuchBucket" {
		t.Errorf("%d %s", reply.status, reply.body)
	}
	all.refused("NoSuchKey", "GET", "/photos/up/x", "", nil)
	c.check("photos/a", []byte("hello"))
	all.refused("MethodNotAllowed", "POST", "/photos", "", nil)
	nobody := all.as("", "")
	nobody.refused("PreconditionFailed", "POST", "/photos", "", []byte("x"), "Content-Type", "application/json")
	nobody.refused("MalformedPOSTRequest", "POST", "/photos", "", []byte("x"), "Content-Type", "multipart/form-data")
	nobody.refused("MalformedPOSTRequest", "POST", "/photos", "", []byte("x"), "Content-Type", "multipart/form-data; boundary=x")
}

// Where nobody is asked who they are a form needs no policy, and keeps to one that it has. Pages of other sites are kept out.
func TestS3FormsOfAnybody(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	if reply := s.post("photos", s3Form{file: []byte("hello")}); reply.status != 204 {
		t.Fatalf("%d %s", reply.status, reply.body)
	}
	c.check("photos/a", []byte("hello"))
	if reply := s.post("photos", s3Form{fields: map[string]string{"policy": "e30="}}); reply.code() != "InvalidPolicyDocument" {
		t.Errorf("%d %s", reply.status, reply.body)
	}
	reply := s.post("photos", s3Form{file: []byte("theirs"), header: http.Header{"Origin": {"https://example.org"}}})
	if reply.code() != "AccessDenied" {
		t.Errorf("%d %s", reply.status, reply.body)
	}
	c.check("photos/a", []byte("hello"))

	// A form that breaks off puts nothing.
	r := s.request("POST", "/photos", "", nil, "Content-Type", "multipart/form-data; boundary=x")
	text := "--x\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nb\r\n--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nhel"
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	if reply := s.send(r); reply.code() != "IncompleteBody" {
		t.Errorf("%d %s", reply.status, reply.body)
	}
	s.refused("NoSuchKey", "GET", "/photos/b", "", nil)
}
