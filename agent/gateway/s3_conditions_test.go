package gateway_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/s3"
)

// What a client asks for of an object that it deletes is held: its tag, its size and when it was put.
func TestS3ConditionsOfDeletes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	const size, when = "X-Amz-If-Match-Size", "X-Amz-If-Match-Last-Modified-Time"
	put := func(key string) (tag, modified string) {
		t.Helper()
		s.want(200, "PUT", "/photos/"+key, "", []byte("hello"))
		head := s.want(200, "HEAD", "/photos/"+key, "", nil)
		return head.header.Get("ETag"), head.header.Get("Last-Modified")
	}
	tag, modified := put("a")
	past := time.Now().Add(-24 * time.Hour).UTC().Format(http.TimeFormat)
	for _, headers := range [][]string{
		{"If-Match", `"x"`}, {size, "4"}, {when, past}, {when, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)},
		{"If-Match", tag, size, "6"}, {"If-Match", tag, size, "5", when, past}, {"If-Match", `"x"`, size, "5", when, modified},
	} {
		s.refused("PreconditionFailed", "DELETE", "/photos/a", "", nil, headers...)
	}
	for _, headers := range [][]string{{size, "five"}, {size, "-5"}, {when, "yesterday"}} {
		s.refused("InvalidArgument", "DELETE", "/photos/a", "", nil, headers...)
	}
	s.refused("NoSuchKey", "DELETE", "/photos/none", "", nil, size, "5")
	s.refused("NoSuchBucket", "DELETE", "/nobody/none", "", nil, size, "5")
	s.want(200, "GET", "/photos/a", "", nil)
	for i, headers := range [][]string{{size, "5"}, {when, modified}, {"If-Match", tag, size, "5"}} {
		key := strconv.Itoa(i)
		if _, modified := put(key); headers[0] == when {
			headers[1] = modified
		}
		s.want(204, "DELETE", "/photos/"+key, "", nil, headers...)
		s.refused("NoSuchKey", "GET", "/photos/"+key, "", nil)
	}

	var list strings.Builder
	for i, condition := range []string{
		"<ETag>x</ETag>", "<Size>4</Size>", "<LastModifiedTime>" + past + "</LastModifiedTime>", "<Size>many</Size>",
		"<ETag>" + tag + "</ETag><Size>5</Size>",
	} {
		key := fmt.Sprint("several", i)
		put(key)
		list.WriteString("<Object><Key>" + key + "</Key>" + condition + "</Object>")
	}
	list.WriteString("<Object><Key>none</Key><Size>5</Size></Object><Object><Key>none</Key></Object>")
	var result struct {
		Deleted []struct{ Key string }
		Error   []struct{ Key, Code string }
	}
	s.into(s.want(200, "POST", "/photos", "delete", []byte("<Delete>"+list.String()+"</Delete>")), &result)
	if got, want := fmt.Sprint(result), "{[{several4} {none}] [{several0 PreconditionFailed} {several1 PreconditionFailed} "+
		"{several2 PreconditionFailed} {several3 InvalidArgument} {none NoSuchKey}]}"; got != want {
		t.Errorf("%s, want %s", got, want)
	}

	u := s.upload("/photos/u")
	u.refused("PreconditionFailed", "DELETE", u.path, "uploadId="+u.id, nil, "X-Amz-If-Match-Initiated-Time", past)
	u.refused("InvalidArgument", "DELETE", u.path, "uploadId="+u.id, nil, "X-Amz-If-Match-Initiated-Time", "x")
	var uploads struct {
		Upload []struct{ Initiated time.Time }
	}
	s.into(s.want(200, "GET", "/photos", "uploads", nil), &uploads)
	s.want(204, "DELETE", u.path, "uploadId="+u.id, nil, "X-Amz-If-Match-Initiated-Time",
		uploads.Upload[0].Initiated.Format(http.TimeFormat))
}

// A client that expects a bucket of somebody else is refused, be it the one of a request or the one that a copy is from.
func TestS3OwnersThatAreExpected(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	s.want(200, "PUT", "/photos/a", "", []byte("hello"))
	const of, ofSource, from = "X-Amz-Expected-Bucket-Owner", "X-Amz-Source-Expected-Bucket-Owner", "X-Amz-Copy-Source"
	u := s.upload("/photos/u")
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
		if reply := s.do(method, "/photos/a", "", nil, of, "somebody"); reply.status != 403 {
			t.Errorf("%s: %d %s", method, reply.status, reply.body)
		}
	}
	s.refused("AccessDenied", "PUT", "/photos/b", "", nil, from, "/photos/a", ofSource, "somebody")
	u.refused("AccessDenied", "PUT", u.path, u.query(1), nil, from, "/photos/a", ofSource, "somebody")
	s.refused("NoSuchKey", "GET", "/photos/b", "", nil)
	s.want(200, "PUT", "/photos/b", "", nil, from, "/photos/a", ofSource, "restripe", of, "restripe")
	s.want(200, "GET", "/photos/b", "", nil, of, "restripe")
}

// Where a completed upload is has the host that the client asked, however that names the bucket.
func TestS3LocationOfUploads(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3(func(o *s3.Options) { o.Domains = []string{"s3.example.org"} })
	s.want(200, "PUT", "/photos", "", nil)
	for host, want := range map[string]string{
		"": "http://" + s.address + "/photos/a%20b/c", "photos.s3.example.org": "http://photos.s3.example.org/a%20b/c",
	} {
		u := s.upload("/photos/a b/c")
		u.part(1, []byte("x"))
		r := s.request("POST", u.path, "uploadId="+u.id, u.list(1))
		if host != "" {
			r.Host, r.URL.Path, r.URL.RawPath = host, "/a b/c", "/a%20b/c"
		}
		var result struct{ Location string }
		s.into(s.send(r), &result)
		if result.Location != want {
			t.Errorf("the location is %q, want %q", result.Location, want)
		}
	}
}

// Where a page is that a website would show is of one object: a copy has what its own request says.
func TestS3CopiesHaveNoRedirection(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	const to, from = "X-Amz-Website-Redirect-Location", "X-Amz-Copy-Source"
	s.want(200, "PUT", "/photos/a", "", []byte("hello"), to, "/there", "X-Amz-Meta-Color", "red")
	s.want(200, "PUT", "/photos/b", "", nil, from, "/photos/a")
	s.want(200, "PUT", "/photos/c", "", nil, from, "/photos/a", to, "/elsewhere")
	for key, want := range map[string]string{"a": "/there", "b": "", "c": "/elsewhere"} {
		header := s.want(200, "HEAD", "/photos/"+key, "", nil).header
		if header.Get(to) != want || header.Get("X-Amz-Meta-Color") != "red" {
			t.Errorf("%s: %v", key, header)
		}
	}
}
