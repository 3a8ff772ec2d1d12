package gateway_test

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/s3"
)

func s3Tag(data []byte) string {
	sum := md5.Sum(data)
	return strconv.Quote(hex.EncodeToString(sum[:]))
}

// A bucket is there from when it was made, or has something in it, until it is deleted.
func TestS3Buckets(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	names := func() (list []string) {
		var result struct {
			Buckets struct{ Bucket []struct{ Name string } }
		}
		s.into(s.want(200, "GET", "/", "", nil), &result)
		for _, one := range result.Buckets.Bucket {
			list = append(list, one.Name)
		}
		return list
	}
	if got := names(); len(got) != 0 {
		t.Error(got)
	}
	s.refused("NoSuchBucket", "GET", "/photos", "", nil)
	if got := s.do("HEAD", "/photos", "", nil); got.status != 404 {
		t.Error(got.status)
	}
	s.refused("NoSuchBucket", "PUT", "/photos/a", "", []byte("x"))
	s.refused("NoSuchBucket", "GET", "/photos/a", "", nil)
	s.refused("NoSuchBucket", "DELETE", "/photos/a", "", nil)
	s.refused("NoSuchBucket", "DELETE", "/photos", "", nil)
	s.want(200, "PUT", "/photos", "",
		[]byte("<CreateBucketConfiguration><LocationConstraint>eu-west-1</LocationConstraint></CreateBucketConfiguration>"))
	s.refused("BucketAlreadyOwnedByYou", "PUT", "/photos", "", nil)
	s.refused("MalformedXML", "PUT", "/others", "", []byte("<x"))
	s.refused("InvalidBucketName", "PUT", "/Others", "", nil)
	s.want(200, "HEAD", "/photos", "", nil)
	if keys, _, _ := s.keys("photos", ""); len(keys) != 0 {
		t.Errorf("an empty bucket has %q", keys)
	}
	c.put("music/a.ogg", []byte("x"), api.PutOptions{})
	c.put("Music/a.ogg", []byte("x"), api.PutOptions{})
	c.put("a key in no bucket", []byte("x"), api.PutOptions{})
	c.put("no-bucket", []byte("x"), api.PutOptions{})
	for i := range 5 {
		c.put(fmt.Sprintf("music/b/%d", i), []byte("x"), api.PutOptions{})
	}
	if got := names(); !slices.Equal(got, []string{"music", "photos"}) {
		t.Errorf("buckets %q", got)
	}
	var page struct {
		ContinuationToken string
	}
	s.into(s.want(200, "GET", "/", "max-buckets=1", nil), &page)
	if reply := s.want(200, "GET", "/", "continuation-token="+page.ContinuationToken, nil); !strings.Contains(string(reply.body),
		"<Name>photos<") ||
		strings.Contains(string(reply.body), "<Name>music<") {
		t.Errorf("%s", reply.body)
	}
	s.want(200, "PUT", "/photos/a", "", []byte("x"))
	s.refused("BucketNotEmpty", "DELETE", "/photos", "", nil)
	s.want(204, "DELETE", "/photos/a", "", nil)
	s.want(204, "DELETE", "/photos/a", "", nil)
	s.want(204, "DELETE", "/photos", "", nil)
	s.refused("NoSuchBucket", "DELETE", "/photos", "", nil)
	s.refused("BucketNotEmpty", "DELETE", "/music", "", nil)
}

// Objects of all sizes come back as they were put, with what was said of them, and are those of the gateway.
func TestS3Objects(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	for i, size := range []int{0, 1, 4095, 4096, 65536, 65537, 300_000} {
		data, path := noise(size, uint64(i)), fmt.Sprintf("/photos/%d", i)
		put := s.want(200, "PUT", path, "", data, "Content-Type", "text/x", "X-Amz-Meta-Color", "red", "Cache-Control", "no-store",
			"Content-Md5", base64.StdEncoding.EncodeToString(func() []byte { sum := md5.Sum(data); return sum[:] }()))
		get := s.want(200, "GET", path, "", nil)
		if tag := s3Tag(data); !bytes.Equal(get.body, data) || put.header.Get("ETag") != tag || get.header.Get("ETag") != tag {
			t.Fatalf("%d bytes: %d come back, with %s, %s", size, len(get.body), put.header.Get("ETag"), get.header.Get("ETag"))
		}
		head := s.want(200, "HEAD", path, "", nil)
		for _, h := range []http.Header{get.header, head.header} {
			if h.Get("Content-Type") != "text/x" || h.Get("X-Amz-Meta-Color") != "red" || h.Get("Cache-Control") != "no-store" ||
				h.Get("Content-Length") != strconv.Itoa(size) || h.Get("Restripe-Class") != "default" {
				t.Errorf("%v", h)
			}
		}
		c.check(fmt.Sprintf("photos/%d", i), data)
	}
	c.put("photos/of others", []byte("hello"), api.PutOptions{Metadata: map[string]string{"by": "ada"}})
	get := s.want(200, "GET", "/photos/of others", "response-content-type=text%2Fcsv", nil)
	if string(get.body) != "hello" || get.header.Get("X-Amz-Meta-By") != "ada" || !strings.HasSuffix(get.header.Get("ETag"), `-0"`) ||
		get.header.Get("Content-Type") != "text/csv" {
		t.Errorf("%s, %v", get.body, get.header)
	}
	s.refused("NoSuchKey", "GET", "/photos/none", "", nil)
	s.refused("NoSuchVersion", "GET", "/photos/1", "versionId=x", nil)
	s.want(200, "GET", "/photos/1", "versionId=null", nil)
	s.refused("InvalidStorageClass", "PUT", "/photos/x", "", nil, "X-Amz-Storage-Class", "GLACIER")
	s.want(200, "PUT", "/photos/x", "", noise(10_000, 1), "X-Amz-Storage-Class", "rs(3,2)")
	if got := s.want(200, "HEAD", "/photos/x", "", nil).header; got.Get("X-Amz-Storage-Class") != "rs(3,2)" ||
		got.Get("Restripe-Scheme") != "rs(3,2)" {
		t.Error(got)
	}
	s.want(200, "PUT", "/photos/x", "", noise(10_000, 1), "X-Amz-Storage-Class", "odd")
	if got := s.want(200, "HEAD", "/photos/x", "", nil).header; got.Get("X-Amz-Storage-Class") != "" ||
		got.Get("Restripe-Class") != "odd" {
		t.Error(got)
	}
}

// What changes the bytes of an object in another way than a client of S3 gives it another tag.
func TestS3TagsAreOfTheBytes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	for _, size := range []int{100, 300_000} {
		data := noise(size, 1)
		put := s.want(200, "PUT", "/photos/a", "", data, "X-Amz-Meta-Color", "red", "X-Amz-Checksum-Algorithm", "CRC32")
		if _, err := c.gateway.Update(t.Context(), "photos/a", 7, []byte("hello"), nil); err != nil {
			t.Fatal(err)
		}
		copy(data[7:], "hello")
		get := s.want(200, "GET", "/photos/a", "", nil)
		if !bytes.Equal(get.body, data) || get.header.Get("ETag") == put.header.Get("ETag") ||
			!strings.HasSuffix(get.header.Get("ETag"), `-0"`) ||
			get.header.Get("X-Amz-Meta-Color") != "red" {
			t.Errorf("%d bytes: %v", size, get.header)
		}
	}
	// Other faces that keep metadata as it was do not keep digests.
	s.want(200, "PUT", "/photos/b", "", []byte("one"), "X-Amz-Meta-Color", "red")
	is, err := c.gateway.Find(t.Context(), "photos/b")
	if err != nil || is.Metadata["digest:etag"] == "" {
		t.Fatal(is, err)
	}
	c.put("photos/b", []byte("two"), api.PutOptions{Metadata: is.Metadata})
	if got := s.want(200, "GET", "/photos/b", "", nil).header; !strings.HasSuffix(got.Get("ETag"), `-0"`) ||
		got.Get("X-Amz-Meta-Color") != "red" {
		t.Error(got)
	}
}

// Keys are whatever bytes they are: nothing is cleaned.
func TestS3OddKeys(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	keys := []string{
		"/", "//", "a//b", "a/", "/a", ".", "..", "../a", "a/../b", "a/./b", "ä ö", "a+b", "a b", "a%2Fb", "a%b", "a?b", "a#b", "a&b=c",
		"\"'<>`",
		"a\\b", "日本語", "a\tb", "~-_.!*'()", "a;b", "\x01", "?versions", "acl", strings.Repeat("k", 1024),
	}
	for i, key := range keys {
		data := []byte(fmt.Sprint("value ", i))
		s.want(200, "PUT", "/photos/"+key, "", data)
		if got := s.want(200, "GET", "/photos/"+key, "", nil); !bytes.Equal(got.body, data) {
			t.Errorf("%q: %q", key, got.body)
		}
		c.check("photos/"+key, data)
	}
	encoded, _, _ := s.keys("photos", "encoding-type=url&list-type=2")
	want := slices.Clone(keys)
	slices.Sort(want)
	for i := range want {
		want[i] = s3Escape(want[i], "/")
	}
	if !slices.Equal(encoded, want) {
		t.Errorf("%q, want %q", encoded, want)
	}
	s.refused("KeyTooLongError", "PUT", "/photos/"+strings.Repeat("k", 1025), "", nil)
	type named struct{ Key string }
	var all struct {
		XMLName xml.Name `xml:"Delete"`
		Object  []named
	}
	for _, key := range keys {
		if key != "\x01" { // which XML cannot have
			all.Object = append(all.Object, named{key})
		}
	}
	all.Object = append(all.Object, named{"none"})
	text, err := xml.Marshal(&all)
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Deleted []named
		Error   []struct{ Key, Code string }
	}
	s.into(s.want(200, "POST", "/photos", "delete", text), &result)
	if len(result.Deleted) != len(keys) || len(result.Error) != 0 {
		t.Errorf("%+v", result)
	}
	s.want(204, "DELETE", "/photos/\x01", "", nil)
	s.want(204, "DELETE", "/photos", "", nil)
	s.refused("MalformedXML", "POST", "/photos", "delete", []byte("<Delete></Delete>"))
}

// Reads and changes are made where their conditions hold, and of those that want to be the first one is.
func TestS3Conditions(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	data := []byte("hello")
	tag := s.want(200, "PUT", "/photos/a", "", data, "If-None-Match", "*").header.Get("ETag")
	past, future := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for _, test := range []struct {
		status  int
		headers []string
	}{
		{200, []string{"If-Match", tag}},
		{200, []string{"If-Match", "*"}},
		{200, []string{"If-Match", `"x", ` + tag}},
		{412, []string{"If-Match", `"x"`}},
		{304, []string{"If-None-Match", tag}},
		{200, []string{"If-None-Match", `"x"`}},
		{304, []string{"If-Modified-Since", future}},
		{200, []string{"If-Modified-Since", past}},
		{412, []string{"If-Unmodified-Since", past}},
		{200, []string{"If-Unmodified-Since", future}},
		{200, []string{"If-Match", tag, "If-Unmodified-Since", past}},
		{200, []string{"If-None-Match", `"x"`, "If-Modified-Since", future}},
		{206, []string{"Range", "bytes=1-2", "If-Range", tag}},
		{200, []string{"Range", "bytes=1-2", "If-Range", `"x"`}},
		{416, []string{"Range", "bytes=5-"}},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			if reply := s.do(method, "/photos/a", "", nil, test.headers...); reply.status != test.status {
				t.Errorf("%s with %q: %d, want %d", method, test.headers, reply.status, test.status)
			}
		}
	}
	if reply := s.want(206, "GET", "/photos/a", "", nil, "Range", "bytes=1-2"); string(reply.body) != "el" ||
		reply.header.Get("Content-Range") != "bytes 1-2/5" {
		t.Errorf("%q, %v", reply.body, reply.header)
	}
	s.refused("PreconditionFailed", "PUT", "/photos/a", "", data, "If-None-Match", "*")
	s.refused("PreconditionFailed", "PUT", "/photos/a", "", data, "If-Match", `"x"`)
	s.refused("NoSuchKey", "PUT", "/photos/b", "", data, "If-Match", `"x"`)
	s.refused("NotImplemented", "PUT", "/photos/b", "", data, "If-None-Match", `"x"`)
	s.want(200, "PUT", "/photos/a", "", []byte("again"), "If-Match", tag)
	s.refused("PreconditionFailed", "DELETE", "/photos/a", "", nil, "If-Match", tag)
	s.want(204, "DELETE", "/photos/a", "", nil, "If-Match", "*")

	for _, size := range []int{10, 100_000} {
		var won atomic.Int64
		var work sync.WaitGroup
		for i := range 8 {
			r := s.request("PUT", fmt.Sprintf("/photos/race %d", size), "", noise(size, uint64(i)), "If-None-Match", "*")
			work.Go(func() {
				reply, err := s.trySend(r)
				switch {
				case err != nil:
					t.Error(err)
				case reply.status == 200:
					won.Add(1)
				case reply.code() != "PreconditionFailed":
					t.Errorf("%d %s", reply.status, reply.body)
				}
			})
		}
		if work.Wait(); won.Load() != 1 {
			t.Errorf("of 8 first puts of %d bytes %d are told that they were", size, won.Load())
		}
	}
}

// A body that is not what its request says is not stored, nor is half of one.
func TestS3BodiesThatAreWrongAreNotStored(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	for _, size := range []int{0, 10, 5000, 70_000, 200_000} {
		data := noise(size, 3)
		s.want(200, "PUT", "/photos/a", "", []byte("before"))
		for _, header := range [][]string{
			{"Content-Md5", "XUFAKrxLKna5cZ2REBfFkg=="}, {"X-Amz-Content-Sha256", s3Hash([]byte("hello"))}, {"X-Amz-Checksum-Crc32",
				"NhCmhg=="},
			{"X-Amz-Checksum-Sha256", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="}, {"X-Amz-Checksum-Crc64nvme", "AAAAAAAAAAE="},
		} {
			if reply := s.do("PUT", "/photos/a", "", data, header...); reply.code() != "BadDigest" &&
				reply.code() != "XAmzContentSHA256Mismatch" {
				t.Errorf("%d bytes with %q: %d %s", size, header, reply.status, reply.body)
			}
			c.check("photos/a", []byte("before"))
		}
		conn, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(conn, "PUT /photos/half-%d HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", size, s.address, size+1,
			data)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// Requests that broke off are over once the server has none.
	c.await("nothing of halves is there", func() bool {
		keys, _, _ := s.keys("photos", "")
		return slices.Equal(keys, []string{"a"})
	})
}

// An answer that was begun is broken off where the rest of the object cannot be read, and one that was not says so.
func TestS3WhatCannotBeRead(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	s.want(200, "PUT", "/photos/a", "", noise(200_000, 1))
	for _, agent := range c.agents {
		agent.stop()
	}
	if reply := s.do("GET", "/photos/a", "", nil); reply.code() != "ServiceUnavailable" && reply.code() != "InternalError" {
		t.Errorf("%d %s", reply.status, reply.body)
	}
	if reply := s.do("PUT", "/photos/b", "", noise(200_000, 1)); reply.code() != "ServiceUnavailable" {
		t.Errorf("%d %s", reply.status, reply.body)
	}
}

// Copies have the bytes, and the metadata that is asked for.
func TestS3Copies(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	s.want(200, "PUT", "/others", "", nil)
	for _, size := range []int{0, 10, 200_000} {
		data := noise(size, 5)
		tag := s.want(200, "PUT", "/photos/a b", "", data, "X-Amz-Meta-Color", "red", "Content-Type", "text/x", "X-Amz-Tagging",
			"a=1").header.Get("ETag")
		var result struct{ ETag string }
		s.into(s.want(200, "PUT", "/others/c", "", nil, "X-Amz-Copy-Source", "/photos/a%20b"), &result)
		get := s.want(200, "GET", "/others/c", "", nil)
		if !bytes.Equal(get.body, data) || get.header.Get("X-Amz-Meta-Color") != "red" || get.header.Get("Content-Type") != "text/x" ||
			result.ETag != tag || get.header.Get("ETag") != tag || get.header.Get("X-Amz-Tagging-Count") != "1" {
			t.Errorf("%d bytes: %v, %s", size, get.header, result.ETag)
		}
		s.refused("InvalidRequest", "PUT", "/photos/a b", "", nil, "X-Amz-Copy-Source", "photos/a%20b")
		s.want(200, "PUT", "/photos/a b", "", nil, "X-Amz-Copy-Source", "photos/a%20b", "X-Amz-Metadata-Directive", "REPLACE",
			"X-Amz-Meta-Size", "10",
			"X-Amz-Tagging-Directive", "REPLACE")
		get = s.want(200, "GET", "/photos/a b", "", nil)
		if !bytes.Equal(get.body, data) || get.header.Get("X-Amz-Meta-Color") != "" || get.header.Get("X-Amz-Meta-Size") != "10" ||
			get.header.Get("X-Amz-Tagging-Count") != "" {
			t.Errorf("%d bytes: %v", size, get.header)
		}
		s.refused("PreconditionFailed", "PUT", "/others/c", "", nil, "X-Amz-Copy-Source", "photos/a%20b", "X-Amz-Copy-Source-If-Match",
			`"x"`)
		s.refused("PreconditionFailed", "PUT", "/others/c", "", nil, "X-Amz-Copy-Source", "photos/a%20b",
			"X-Amz-Copy-Source-If-None-Match", tag)
		s.refused("PreconditionFailed", "PUT", "/others/c", "", nil, "X-Amz-Copy-Source", "photos/a%20b", "If-None-Match", "*")
	}
	s.refused("NoSuchKey", "PUT", "/others/c", "", nil, "X-Amz-Copy-Source", "photos/none")
	s.refused("NoSuchBucket", "PUT", "/others/c", "", nil, "X-Amz-Copy-Source", "nobucket/none")
	s.refused("InvalidArgument", "PUT", "/others/c", "", nil, "X-Amz-Copy-Source", "photos")
	s.refused("InvalidArgument", "PUT", "/others/c", "", nil, "X-Amz-Copy-Source", "photos/a%20b", "X-Amz-Metadata-Directive", "X")
}

// A copy that takes long begins its answer before it is made, and ends it with what came of it.
func TestS3SlowAnswers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3(func(o *s3.Options) { o.Patience = time.Nanosecond })
	s.want(200, "PUT", "/photos", "", nil)
	data := noise(300_000, 1)
	s.want(200, "PUT", "/photos/a", "", data)
	var result struct{ ETag string }
	s.into(s.want(200, "PUT", "/photos/b", "", nil, "X-Amz-Copy-Source", "/photos/a"), &result)
	if result.ETag != s3Tag(data) {
		t.Error(result)
	}
	c.check("photos/b", data)
	reply := s.do("PUT", "/photos/c", "", nil, "X-Amz-Copy-Source", "/photos/none")
	if !strings.Contains(string(reply.body), "<Code>NoSuchKey</Code>") {
		t.Errorf("%d %s", reply.status, reply.body)
	}
}

// Tags and attributes.
func TestS3TagsAndAttributes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	data := noise(100_000, 1)
	s.want(200, "PUT", "/photos/a", "", data, "X-Amz-Checksum-Sha1", base64.StdEncoding.EncodeToString(sha1Of(data)),
		"X-Amz-Meta-Color", "red")
	s.want(200, "PUT", "/photos/a", "tagging",
		[]byte("<Tagging><TagSet><Tag><Key>a b</Key><Value>c&amp;d</Value></Tag></TagSet></Tagging>"))
	if got := s.want(200, "GET", "/photos/a", "tagging", nil); !strings.Contains(string(got.body),
		"<Key>a b</Key><Value>c&amp;d</Value>") {
		t.Errorf("%s", got.body)
	}
	get := s.want(200, "GET", "/photos/a", "", nil, "X-Amz-Checksum-Mode", "ENABLED")
	if !bytes.Equal(get.body, data) || get.header.Get("ETag") != s3Tag(data) || get.header.Get("X-Amz-Checksum-Sha1") == "" ||
		get.header.Get("X-Amz-Meta-Color") != "red" || get.header.Get("X-Amz-Tagging-Count") != "1" {
		t.Errorf("%v", get.header)
	}
	s.want(204, "DELETE", "/photos/a", "tagging", nil)
	s.want(204, "DELETE", "/photos/a", "tagging", nil)
	if got := s.want(200, "GET", "/photos/a", "tagging", nil); strings.Contains(string(got.body), "<Key>") {
		t.Errorf("%s", got.body)
	}
	s.refused("NoSuchKey", "GET", "/photos/b", "tagging", nil)
	s.refused("NoSuchKey", "PUT", "/photos/b", "tagging", []byte("<Tagging><TagSet></TagSet></Tagging>"))
	s.refused("InvalidTag", "PUT", "/photos/a", "tagging",
		[]byte("<Tagging><TagSet><Tag><Key></Key><Value>x</Value></Tag></TagSet></Tagging>"))
	got := s.want(200, "GET", "/photos/a", "attributes", nil, "X-Amz-Object-Attributes",
		"ETag,Checksum,ObjectSize,StorageClass,ObjectParts")
	for _, want := range []string{
		"<ETag>" + strings.Trim(s3Tag(data), `"`) + "<", "<ChecksumSHA1>", "<ObjectSize>100000<", "<StorageClass>STANDARD<",
		"<ChecksumType>FULL_OBJECT<",
	} {
		if !strings.Contains(string(got.body), want) {
			t.Errorf("%s is not in %s", want, got.body)
		}
	}
	s.refused("InvalidRequest", "GET", "/photos/a", "attributes", nil)
	s.refused("InvalidArgument", "GET", "/photos/a", "attributes", nil, "X-Amz-Object-Attributes", "Colour")
}

// What is not part of the server is refused, and never taken for the object.
func TestS3WhatThereIsNot(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	s.want(200, "PUT", "/photos/a", "", []byte("x"))
	for query, code := range map[string]string{
		"lifecycle": "NoSuchLifecycleConfiguration", "policy": "NoSuchBucketPolicy", "cors": "NoSuchCORSConfiguration",
		"tagging":    "NoSuchTagSet",
		"encryption": "ServerSideEncryptionConfigurationNotFoundError", "object-lock": "ObjectLockConfigurationNotFoundError",
		"website": "NoSuchWebsiteConfiguration", "replication": "ReplicationConfigurationNotFoundError", "inventory": "NotImplemented",
		"analytics": "NotImplemented", "publicAccessBlock": "NoSuchPublicAccessBlockConfiguration", "session": "InvalidRequest",
	} {
		s.refused(code, "GET", "/photos", query, nil)
		if query != "session" {
			s.refused("NoSuchBucket", "GET", "/none", query, nil)
			s.refused("NotImplemented", "PUT", "/photos", query, []byte("<x/>"))
		}
	}
	for _, query := range []string{"versioning", "acl", "location", "logging", "notification", "requestPayment", "accelerate",
		"versions", "uploads"} {
		s.want(200, "GET", "/photos", query, nil)
	}
	for _, query := range []string{"lifecycle", "policy", "cors", "tagging", "encryption"} {
		s.want(204, "DELETE", "/photos", query, nil)
	}
	for _, request := range []struct{ method, query, code string }{
		{"PUT", "retention", "NotImplemented"}, {"PUT", "legal-hold", "NotImplemented"}, {"PUT", "acl", "NotImplemented"}, {"GET",
			"torrent", "NotImplemented"},
		{"PUT", "partNumber=1", "InvalidRequest"}, {"GET", "uploads", "InvalidRequest"}, {"GET", "versions", "InvalidRequest"},
		{"POST", "", "MethodNotAllowed"}, {"POST", "restore", "NotImplemented"}, {"POST", "select&select-type=2", "NotImplemented"},
		{"PATCH", "", "MethodNotAllowed"},
		{"PUT", "renameObject", "InvalidRequest"}, {"OPTIONS", "", "MethodNotAllowed"}, {"DELETE", "website", "InvalidRequest"},
	} {
		s.refused(request.code, request.method, "/photos/a", request.query, []byte("y"))
	}
	for _, header := range [][]string{
		{"X-Amz-Acl", "public-read"}, {"X-Amz-Grant-Read", "id=x"}, {"X-Amz-Server-Side-Encryption", "AES256"},
		{"X-Amz-Object-Lock-Mode", "GOVERNANCE"},
		{"X-Amz-Write-Offset-Bytes", "1"}, {"X-Amz-Server-Side-Encryption-Customer-Algorithm", "AES256"},
	} {
		s.refused("NotImplemented", "PUT", "/photos/a", "", []byte("y"), header...)
	}
	c.check("photos/a", []byte("x"))
	s.want(200, "PUT", "/photos/a", "", []byte("y"), "X-Amz-Acl", "private")
	s.want(200, "PUT", "/photos/a", "acl", nil, "X-Amz-Acl", "private")
	s.refused("MethodNotAllowed", "PUT", "/", "", nil)
	if reply := s.want(200, "GET", "/photos", "versions", nil); !strings.Contains(string(reply.body), "<VersionId>null</VersionId>") {
		t.Errorf("%s", reply.body)
	}
}

// The names of hosts are those of buckets, below the names of the gateway.
func TestS3Hosts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3(func(o *s3.Options) { o.Domains = []string{"s3.example.org"} })
	s.want(200, "PUT", "/photos", "", nil)
	at := func(host, method, path string, body []byte) *s3Reply {
		r := s.request(method, path, "", body)
		r.Host = host
		return s.send(r)
	}
	if reply := at("photos.s3.example.org", "PUT", "/a/b", []byte("hello")); reply.status != 200 {
		t.Errorf("%d %s", reply.status, reply.body)
	}
	c.check("photos/a/b", []byte("hello"))
	if reply := at("photos.s3.example.org:80", "GET", "/", nil); !strings.Contains(string(reply.body), "<Key>a/b</Key>") {
		t.Errorf("%s", reply.body)
	}
	// Where nobody is asked who they are, a page may have a browser ask by a name of its own that leads here.
	if reply := at("evil.example.com", "GET", "/photos/a/b", nil); reply.code() != "AccessDenied" {
		t.Errorf("%d %s", reply.status, reply.body)
	}
	if reply := s.do("GET", "/photos/a/b", "", nil, "Origin", "http://evil.example.com"); reply.code() != "AccessDenied" {
		t.Errorf("%d %s", reply.status, reply.body)
	}
}

// A record of what is known of the bytes is not kept where they are put by others.
func TestDigestsComeWithTheBytes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	digests := func() (map[string]string, error) { return map[string]string{block.DigestPrefix + "x": "1"}, nil }
	for _, size := range []int{0, 10, 4096, 65536, 200_000} {
		for _, announced := range []int64{int64(size), -1} {
			object, err := c.gateway.Put(t.Context(), "a", bytes.NewReader(noise(size, 1)), api.PutOptions{
				Size: announced, Metadata: map[string]string{"color": "red", block.DigestPrefix + "y": "2"}, Digests: digests,
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(object.Metadata) != 2 || object.Metadata["color"] != "red" || object.Metadata[block.DigestPrefix+"x"] != "1" {
				t.Errorf("%d bytes of %d: %v", size, announced, object.Metadata)
			}
			if is, err := c.gateway.Find(t.Context(), "a"); err != nil || len(is.Metadata) != 2 {
				t.Errorf("%d bytes of %d: %v, %v", size, announced, is, err)
			}
		}
	}
	failing := func() (map[string]string, error) { return nil, api.Refuse(api.ErrBadRequest, "wrong") }
	for _, size := range []int{0, 10, 200_000} {
		if _, err := c.gateway.Put(t.Context(), "b", bytes.NewReader(noise(size, 1)), api.PutOptions{Size: int64(size),
			Digests: failing}); err == nil {
			t.Errorf("%d bytes are put whose digests are not known", size)
		}
	}
	if is, err := c.gateway.Find(t.Context(), "b"); err != nil || is != nil {
		t.Errorf("%v, %v", is, err)
	}
}
