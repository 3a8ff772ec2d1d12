package gateway_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
)

// s3Version is one of a listing of versions.
type s3Version struct {
	Key       string
	VersionID string `xml:"VersionId"`
	IsLatest  bool
	Size      int
	ETag      string
}

// versions are those of a listing, page by page; its common prefixes have no ID.
func (s *s3Client) versions(bucket, query string) (all []s3Version) {
	s.t.Helper()
	for marker := ""; ; {
		var list struct {
			Version             []s3Version
			CommonPrefixes      []struct{ Prefix string }
			IsTruncated         bool
			NextKeyMarker       string
			NextVersionIDMarker string `xml:"NextVersionIdMarker"`
		}
		s.into(s.want(200, "GET", "/"+bucket, "versions&"+query+marker, nil), &list)
		all = append(all, list.Version...)
		for _, one := range list.CommonPrefixes {
			all = append(all, s3Version{Key: one.Prefix})
		}
		if !list.IsTruncated {
			return all
		}
		marker = "&key-marker=" + s3Escape(list.NextKeyMarker, "") + "&version-id-marker=" + list.NextVersionIDMarker
	}
}

// Where a class keeps versions they are read, described, copied and listed by their IDs, and none is deleted by itself.
func TestS3Versions(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	_, err := c.gateway.PutClass(t.Context(), api.ClassSpec{
		Name: "kept", Ladder: "rep(3),rs(3,2)", Prefixes: []string{"kept/"}, PackBelow: "4KiB", GroupBytes: "64KiB", KeepVersions: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := c.serveS3()
	s.want(200, "PUT", "/kept", "", nil)
	s.want(200, "PUT", "/photos", "", nil)
	var ids []string
	bodies := [][]byte{noise(100, 0), noise(70_000, 1), noise(3000, 2), noise(10, 3)}
	for i, data := range bodies {
		reply := s.want(200, "PUT", "/kept/a", "", data, "X-Amz-Meta-Number", fmt.Sprint(i))
		id := reply.header.Get("X-Amz-Version-Id")
		if _, err := block.ParseStamp(id); err != nil {
			t.Fatalf("version %q: %v", id, err)
		}
		ids = append(ids, id)
	}
	for i := 1; i < len(ids); i++ {
		for _, method := range []string{"GET", "HEAD"} {
			reply := s.want(200, method, "/kept/a", "versionId="+ids[i], nil)
			if reply.header.Get("X-Amz-Version-Id") != ids[i] || reply.header.Get("X-Amz-Meta-Number") != fmt.Sprint(i) ||
				method == "GET" && !bytes.Equal(reply.body, bodies[i]) {
				t.Errorf("%s of version %d: %d bytes, %v", method, i, len(reply.body), reply.header)
			}
		}
	}
	part := s.want(206, "GET", "/kept/a", "versionId="+ids[1], nil, "Range", "bytes=69990-")
	if !bytes.Equal(part.body, bodies[1][69_990:]) {
		t.Errorf("%d bytes", len(part.body))
	}
	if reply := s.want(200, "GET", "/kept/a", "", nil); reply.header.Get("X-Amz-Version-Id") != ids[3] {
		t.Errorf("the current version is %v", reply.header)
	}
	var described struct{ ObjectSize int }
	s.into(s.want(200, "GET", "/kept/a", "attributes&versionId="+ids[2], nil, "X-Amz-Object-Attributes", "ObjectSize"), &described)
	if described.ObjectSize != len(bodies[2]) {
		t.Errorf("%+v", described)
	}
	for _, id := range []string{ids[0], "null", "x", strings.Repeat("0", 16) + "." + strings.Repeat("1", 16)} {
		s.refused("NoSuchVersion", "GET", "/kept/a", "versionId="+id, nil)
		s.refused("NoSuchVersion", "GET", "/kept/a", "tagging&versionId="+id, nil)
	}
	s.refused("NoSuchKey", "GET", "/kept/none", "", nil)
	s.refused("NotImplemented", "PUT", "/kept/a", "versionId="+ids[1], nil)
	s.refused("NotImplemented", "PUT", "/kept/a", "tagging&versionId="+ids[1], nil)
	s.refused("NotImplemented", "GET", "/kept/a", "acl&versionId="+ids[1], nil)

	s.want(200, "PUT", "/kept/b/1", "", []byte("one"))
	s.want(200, "PUT", "/kept/b/1", "", []byte("eleven"))
	s.want(200, "PUT", "/kept/c", "", []byte("c"))
	whole := s.versions("kept", "")
	var got []string
	for _, one := range whole {
		got = append(got, fmt.Sprintf("%s %d %t", one.Key, one.Size, one.IsLatest))
	}
	want := []string{"a 10 true", "a 3000 false", "a 70000 false", "b/1 6 true", "b/1 3 false", "c 1 true"}
	if !slices.Equal(got, want) || whole[0].VersionID != ids[3] || whole[1].VersionID != ids[2] || whole[2].VersionID != ids[1] {
		t.Errorf("%q, want %q", got, want)
	}
	for most := 1; most < 8; most++ {
		if paged := s.versions("kept", fmt.Sprint("max-keys=", most)); !slices.Equal(paged, whole) {
			t.Errorf("%d at a time they are %+v", most, paged)
		}
		if paged := s.versions("kept", fmt.Sprint("delimiter=/&max-keys=", most)); len(paged) != 5 || paged[0] != whole[0] {
			t.Errorf("%d at a time, with a delimiter, they are %+v", most, paged)
		}
	}
	s.refused("InvalidArgument", "GET", "/kept", "versions&version-id-marker="+ids[3], nil)

	// A version comes back by being copied over the object, or to elsewhere.
	s.want(200, "PUT", "/photos/a", "", nil, "X-Amz-Copy-Source", "/kept/a?versionId="+ids[2])
	c.check("photos/a", bodies[2])
	s.want(200, "PUT", "/kept/a", "", nil, "X-Amz-Copy-Source", "/kept/a?versionId="+ids[2])
	c.check("kept/a", bodies[2])
	s.refused("NoSuchVersion", "PUT", "/photos/a", "", nil, "X-Amz-Copy-Source", "/kept/a?versionId="+ids[0])
	s.refused("NoSuchVersion", "PUT", "/photos/a", "", nil, "X-Amz-Copy-Source", "/kept/a?versionId=null")

	// A version is deleted where it is the only one.
	current := s.want(200, "HEAD", "/kept/a", "", nil).header.Get("X-Amz-Version-Id")
	for _, id := range []string{current, ids[3]} {
		s.refused("NotImplemented", "DELETE", "/kept/a", "versionId="+id, nil)
	}
	for _, id := range []string{"null", ids[0]} {
		s.refused("NoSuchVersion", "DELETE", "/kept/a", "versionId="+id, nil)
	}
	var result struct {
		Deleted []struct{ Key string }
		Error   []struct{ Key, Code string }
	}
	only := whole[5].VersionID
	list := "<Delete><Object><Key>a</Key><VersionId>" + current + "</VersionId></Object><Object><Key>c</Key><VersionId>" + only +
		"</VersionId></Object></Delete>"
	s.into(s.want(200, "POST", "/kept", "delete", []byte(list)), &result)
	if fmt.Sprint(result) != "{[{c}] [{a NotImplemented}]}" {
		t.Errorf("%+v", result)
	}
	s.refused("NoSuchKey", "GET", "/kept/c", "", nil)
	s.want(204, "DELETE", "/kept/a", "", nil)
	s.refused("NoSuchVersion", "GET", "/kept/a", "versionId="+ids[3], nil)

	// Elsewhere there is one, null.
	if reply := s.want(200, "PUT", "/photos/b", "", []byte("x")); reply.header.Get("X-Amz-Version-Id") != "" {
		t.Errorf("%v", reply.header)
	}
	s.want(200, "GET", "/photos/b", "versionId=null", nil)
	s.refused("NoSuchVersion", "GET", "/photos/b", "versionId="+ids[1], nil)
	if list := s.versions("photos", "prefix=b"); len(list) != 1 || list[0].VersionID != "null" || !list[0].IsLatest {
		t.Errorf("%+v", list)
	}
	s.want(204, "DELETE", "/photos/b", "versionId=null", nil)
	s.refused("NoSuchKey", "GET", "/photos/b", "", nil)
}
