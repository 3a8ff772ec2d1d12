package gateway_test

import (
	"bytes"
	"crypto/md5"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/s3"
)

// s3Upload is an upload in parts.
type s3Upload struct {
	*s3Client
	path, id string
	tags     map[int]string
}

func (s *s3Client) upload(path string, headers ...string) *s3Upload {
	s.t.Helper()
	var result struct {
		UploadID string `xml:"UploadId"`
	}
	s.into(s.want(200, "POST", path, "uploads", nil, headers...), &result)
	return &s3Upload{s, path, result.UploadID, map[int]string{}}
}

func (u *s3Upload) query(number int) string {
	return fmt.Sprintf("partNumber=%d&uploadId=%s", number, u.id)
}

func (u *s3Upload) part(number int, data []byte, headers ...string) {
	u.t.Helper()
	u.tags[number] = u.want(200, "PUT", u.path, u.query(number), data, headers...).header.Get("ETag")
}

// list is the body of the request that completes it with these parts.
func (u *s3Upload) list(numbers ...int) []byte {
	var text strings.Builder
	text.WriteString("<CompleteMultipartUpload>")
	for _, number := range numbers {
		fmt.Fprintf(&text, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", number, u.tags[number])
	}
	return []byte(text.String() + "</CompleteMultipartUpload>")
}

func (u *s3Upload) complete(numbers ...int) *s3Reply {
	u.t.Helper()
	return u.do("POST", u.path, "uploadId="+u.id, u.list(numbers...))
}

// leftOf are the keys of what uploads have, that nobody asked for.
func (c *cluster) leftOf() (keys []string) {
	c.t.Helper()
	names, err := c.gateway.Names(c.t.Context(), ".multipart/", "", 100)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, name := range names {
		keys = append(keys, name.Key)
	}
	return keys
}

// An upload in parts is one object once it is completed, however often that is asked for, and nothing before.
func TestS3Uploads(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	u := s.upload("/photos/a b/ä", "X-Amz-Meta-Color", "red", "Content-Type", "text/x")
	parts := [][]byte{noise(70_000, 1), noise(70_000, 2), noise(5000, 3), {}}
	sums := md5.New()
	for _, number := range []int{4, 2, 1, 3} {
		u.part(number, noise(2000, 9)) // which is put again
		u.part(number, parts[number-1])
	}
	for _, part := range parts[:3] {
		sum := md5.Sum(part)
		sums.Write(sum[:])
	}
	s.refused("NoSuchKey", "GET", u.path, "", nil)
	if keys, _, _ := s.keys("photos", ""); len(keys) != 0 {
		t.Errorf("parts are seen as %q", keys)
	}
	if reply := s.want(200, "GET", "/", "", nil); strings.Contains(string(reply.body), "multipart") {
		t.Errorf("%s", reply.body)
	}
	var listed struct {
		Part                 []struct{ PartNumber, Size int }
		IsTruncated          bool
		NextPartNumberMarker int
	}
	s.into(s.want(200, "GET", u.path, "max-parts=2&uploadId="+u.id, nil), &listed)
	if !listed.IsTruncated || len(listed.Part) != 2 || listed.NextPartNumberMarker != 2 || listed.Part[1].Size != 70_000 {
		t.Errorf("%+v", listed)
	}
	u.refused("InvalidPartOrder", "POST", u.path, "uploadId="+u.id, u.list(2, 1))
	u.refused("InvalidPartOrder", "POST", u.path, "uploadId="+u.id, u.list(1, 1))
	u.refused("InvalidPart", "POST", u.path, "uploadId="+u.id, u.list(1, 2, 5))
	u.refused("InvalidPart", "POST", u.path, "uploadId="+u.id, bytes.Replace(u.list(1, 2), []byte(u.tags[1]), []byte(`"x"`), 1))
	u.refused("MalformedXML", "POST", u.path, "uploadId="+u.id, u.list())
	u.refused("InvalidArgument", "PUT", u.path, u.query(0), nil)
	u.refused("InvalidArgument", "PUT", u.path, u.query(10_001), nil)
	u.refused("NoSuchUpload", "PUT", u.path, "partNumber=1&uploadId=x", nil)
	u.refused("NoSuchUpload", "PUT", "/photos/b", u.query(1), nil)
	u.refused("InvalidRequest", "POST", u.path, "uploadId="+u.id, u.list(1, 2, 3), "X-Amz-Mp-Object-Size", "1")

	tag := fmt.Sprintf("%x-3", sums.Sum(nil))
	for range 2 {
		reply := u.complete(1, 2, 3)
		if reply.status != 200 || !strings.Contains(string(reply.body), tag) {
			t.Fatalf("%d %s", reply.status, reply.body)
		}
	}
	data := slices.Concat(parts...)
	c.check("photos/a b/ä", data)
	get := s.want(200, "GET", u.path, "", nil)
	if get.header.Get("ETag") != `"`+tag+`"` || get.header.Get("X-Amz-Meta-Color") != "red" ||
		get.header.Get("Content-Type") != "text/x" {
		t.Errorf("%v", get.header)
	}
	if part := s.want(206, "GET", u.path, "partNumber=3", nil); !bytes.Equal(part.body, parts[2]) ||
		part.header.Get("X-Amz-Mp-Parts-Count") != "3" {
		t.Errorf("%d bytes, %v", len(part.body), part.header)
	}
	u.refused("InvalidPartNumber", "GET", u.path, "partNumber=4", nil)
	u.refused("NoSuchUpload", "POST", u.path, "uploadId="+u.id, u.list(1, 2))
	u.refused("NoSuchUpload", "PUT", u.path, u.query(1), nil)
	u.refused("NoSuchUpload", "DELETE", u.path, "uploadId="+u.id, nil)
	if left := c.leftOf(); len(left) != 1 {
		t.Errorf("%q is left", left)
	}
}

// Two who complete an upload at the same time are told the same.
func TestS3UploadsCompletedTwiceAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	// The requests of a client that tries again may come by another gateway.
	other := c.newGateway("other")
	second := *s
	second.address = c.serveS3(func(o *s3.Options) { o.Objects, o.Classes = other.Objects, other.Registry }).address
	s.want(200, "PUT", "/photos", "", nil)
	for round := range 5 {
		u := s.upload(fmt.Sprintf("/photos/%d", round))
		u.part(1, noise(70_000, 1))
		u.part(2, noise(10, 2))
		var work sync.WaitGroup
		for i := range 4 {
			by := s
			if i%2 == 1 {
				by = &second
			}
			r := by.request("POST", u.path, "uploadId="+u.id, u.list(1, 2))
			work.Go(func() {
				if reply, err := by.trySend(r); err != nil || reply.status != 200 || !strings.Contains(string(reply.body),
					"CompleteMultipartUploadResult") {
					t.Errorf("%v, %+v", err, reply)
				}
			})
		}
		work.Wait()
		c.check(fmt.Sprintf("photos/%d", round), append(noise(70_000, 1), noise(10, 2)...))
		s.want(200, "GET", u.path, "", nil)
	}
}

// All parts but the last have a least size.
func TestS3PartsThatAreTooSmall(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3(func(o *s3.Options) { o.LeastPart = 0 }) // what S3 has
	s.want(200, "PUT", "/photos", "", nil)
	u := s.upload("/photos/a")
	u.part(1, noise(5<<20-1, 1))
	u.part(2, noise(10, 2))
	if reply := u.complete(1, 2); reply.code() != "EntityTooSmall" {
		t.Errorf("%d %s", reply.status, reply.body)
	}
	u.part(1, noise(5<<20, 1))
	if reply := u.complete(1, 2); reply.status != 200 {
		t.Errorf("%d %s", reply.status, reply.body)
	}
	c.check("photos/a", append(noise(5<<20, 1), noise(10, 2)...))
}

// An upload that is given up is gone with its parts, and one that is forgotten expires with them.
func TestS3UploadsThatEnd(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	u := s.upload("/photos/a")
	u.part(1, noise(70_000, 1))
	u.part(2, noise(10, 1))
	s.want(204, "DELETE", u.path, "uploadId="+u.id, nil)
	s.refused("NoSuchUpload", "DELETE", u.path, "uploadId="+u.id, nil)
	if reply := u.complete(1, 2); reply.code() != "NoSuchUpload" {
		t.Errorf("%d %s", reply.status, reply.body)
	}
	if left := c.leftOf(); len(left) != 0 {
		t.Errorf("%q is left", left)
	}
	forgotten := s.upload("/photos/b")
	forgotten.part(1, noise(70_000, 1))
	forgotten.part(2, noise(10, 1))
	for _, days := range []int{6, 8} {
		want := map[int]int{6: 3, 8: 0}[days]
		later := func() time.Time { return time.Now().Add(time.Duration(days) * 24 * time.Hour) }
		records, err := catalog.Open(t.Context(), c.engine, catalog.Owner("later", fmt.Sprint(days)), catalog.WithClock(later))
		if err != nil {
			t.Fatal(err)
		}
		objects, err := records.ListObjects(t.Context(), ".multipart/", "", 10)
		if err != nil {
			t.Fatal(err)
		}
		objects = slices.DeleteFunc(objects, func(object catalog.Object) bool { return records.HasExpired(&object) })
		if len(objects) != want {
			t.Errorf("after %d days there are %d objects, want %d", days, len(objects), want)
		}
		if days == 8 {
			if removed, err := records.RemoveExpired(t.Context()); err != nil || removed != 3 {
				t.Errorf("%d were removed, %v", removed, err)
			}
		}
	}
}

// Parts may be copies, have checksums, and be put together on a condition.
func TestS3UploadsOfOtherKinds(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	source := noise(200_000, 1)
	s.want(200, "PUT", "/photos/source", "", source)
	u := s.upload("/photos/copy")
	for number, of := range []string{"bytes=0-99999", "bytes=100000-199999"} {
		var result struct{ ETag string }
		u.into(u.want(200, "PUT", u.path, u.query(number+1), nil, "X-Amz-Copy-Source", "/photos/source", "X-Amz-Copy-Source-Range", of),
			&result)
		u.tags[number+1] = result.ETag
	}
	u.refused("InvalidArgument", "PUT", u.path, u.query(3), nil, "X-Amz-Copy-Source", "/photos/source", "X-Amz-Copy-Source-Range",
		"bytes=0-200000")
	u.refused("InvalidArgument", "PUT", u.path, u.query(3), nil, "X-Amz-Copy-Source", "/photos/source", "X-Amz-Copy-Source-Range", "0-1")
	u.refused("NoSuchKey", "PUT", u.path, u.query(3), nil, "X-Amz-Copy-Source", "/photos/none")
	u.refused("NoSuchKey", "POST", u.path, "uploadId="+u.id, u.list(1, 2), "If-Match", "x")
	if reply := u.complete(1, 2); reply.status != 200 {
		t.Fatalf("%d %s", reply.status, reply.body)
	}
	c.check("photos/copy", source)

	first := s.upload("/photos/first")
	first.part(1, []byte("x"))
	second := s.upload("/photos/first")
	second.part(1, []byte("y"))
	for _, one := range []*s3Upload{first, first} { // the second time it is told as before, though there is an object now
		if reply := one.do("POST", one.path, "uploadId="+one.id, one.list(1), "If-None-Match", "*"); reply.status != 200 {
			t.Errorf("%d %s", reply.status, reply.body)
		}
	}
	second.refused("PreconditionFailed", "POST", second.path, "uploadId="+second.id, second.list(1), "If-None-Match", "*")
	c.check("photos/first", []byte("x"))

	for algorithm, kind := range map[string]string{"CRC32": "COMPOSITE", "SHA256": "COMPOSITE", "CRC64NVME": "FULL_OBJECT"} {
		u := s.upload("/photos/sum", "X-Amz-Checksum-Algorithm", algorithm)
		u.part(1, source[:100_000])
		u.part(2, source[100_000:])
		reply := u.complete(1, 2)
		if reply.status != 200 || !strings.Contains(string(reply.body), "<ChecksumType>"+kind) {
			t.Errorf("%s: %d %s", algorithm, reply.status, reply.body)
		}
		get := s.want(200, "GET", u.path, "", nil, "X-Amz-Checksum-Mode", "ENABLED")
		sum := get.header.Get("X-Amz-Checksum-" + algorithm)
		if isComposite := strings.HasSuffix(sum, "-2"); sum == "" || isComposite != (kind == "COMPOSITE") {
			t.Errorf("%s: %q", algorithm, sum)
		}
	}
	wrong := s.upload("/photos/wrong", "X-Amz-Checksum-Algorithm", "CRC64NVME")
	wrong.part(1, source)
	wrong.refused("BadDigest", "POST", wrong.path, "uploadId="+wrong.id, wrong.list(1), "X-Amz-Checksum-Crc64nvme", "AAAAAAAAAAE=")
	s.refused("NoSuchKey", "GET", wrong.path, "", nil)
	s.refused("InvalidRequest", "POST", "/photos/x", "uploads", nil, "X-Amz-Checksum-Algorithm", "SHA256", "X-Amz-Checksum-Type",
		"FULL_OBJECT")
}

// Uploads under way are listed by key, with prefixes, page by page.
func TestS3ListingsOfUploads(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	s := c.serveS3()
	s.want(200, "PUT", "/photos", "", nil)
	for _, key := range []string{"b", "a/1", "a/2", "a/2", "a/", "c\x00d", "a-b"} {
		u := s.upload("/photos/" + key)
		u.part(1, []byte("x"))
		u.part(2, []byte("x"))
	}
	done := s.upload("/photos/a/done")
	done.part(1, []byte("x"))
	done.complete(1)
	list := func(query string) (keys []string) {
		t.Helper()
		for marker := ""; ; {
			var result struct {
				XMLName            xml.Name
				Upload             []struct{ Key string }
				CommonPrefixes     []struct{ Prefix string }
				IsTruncated        bool
				NextKeyMarker      string
				NextUploadIDMarker string `xml:"NextUploadIdMarker"`
			}
			s.into(s.want(200, "GET", "/photos", "uploads&encoding-type=url&"+query+marker, nil), &result)
			for _, one := range result.Upload {
				keys = append(keys, one.Key)
			}
			for _, one := range result.CommonPrefixes {
				keys = append(keys, one.Prefix)
			}
			if !result.IsTruncated {
				return keys
			}
			marker = "&key-marker=" + result.NextKeyMarker + "&upload-id-marker=" + result.NextUploadIDMarker
		}
	}
	for query, want := range map[string][]string{
		"":                           {"a-b", "a/", "a/1", "a/2", "a/2", "b", "c%00d"},
		"max-uploads=1":              {"a-b", "a/", "a/1", "a/2", "a/2", "b", "c%00d"},
		"max-uploads=2":              {"a-b", "a/", "a/1", "a/2", "a/2", "b", "c%00d"},
		"prefix=a/":                  {"a/", "a/1", "a/2", "a/2"},
		"max-uploads=1&delimiter=/":  {"a-b", "a/", "b", "c%00d"},
		"delimiter=/":                {"a-b", "b", "c%00d", "a/"},
		"delimiter=/&prefix=a/":      {"a/", "a/1", "a/2", "a/2"},
		"prefix=none":                nil,
		"max-uploads=0":              nil,
		"key-marker=a/2&delimiter=x": {"b", "c%00d"},
	} {
		if got := list(query); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
}
