package s3

import (
	"net/url"
	"strings"
	"testing"
)

func TestTargets(t *testing.T) {
	domains := []string{"s3.example.org", "example.org"}
	for _, test := range []struct {
		host, path, bucket, key string
		want                    code
	}{
		{"h", "/", "", "", code{}},
		{"h", "", "", "", code{}},
		{"h", "/photos", "photos", "", code{}},
		{"h", "/photos/", "photos", "", code{}},
		{"h", "/photos/a/b", "photos", "a/b", code{}},
		{"h", "/photos//a", "photos", "/a", code{}},
		{"h", "/photos/../a/./b//", "photos", "../a/./b//", code{}},
		{"h", "/photos/a%2Fb%20%25", "photos", "a/b %", code{}},
		{"h", "/photos/a+b", "photos", "a+b", code{}},
		{"photos.s3.example.org:80", "/a/b", "photos", "a/b", code{}},
		{"a.b.S3.example.org", "//a", "a.b", "/a", code{}},
		{"s3.example.org", "/photos/a", "s3", "photos/a", invalidBucketName}, // of the shorter domain, where s3 is too short
		{"example.org", "/photos/a", "photos", "a", code{}},
		{"h", "/Photos/a", "", "", invalidBucketName},
		{"h", "/ph/a", "", "", invalidBucketName},
		{"h", "/192.168.1.1/a", "", "", invalidBucketName},
		{"h", "/a..b/c", "", "", invalidBucketName},
		{"h", "/.multipart/photos/a", "", "", invalidBucketName},
		{"h", "//photos/a", "", "", invalidURI},
		{"h", "/photos/%zz", "", "", invalidURI},
	} {
		got, err := readTarget(test.host, test.path, domains)
		switch {
		case test.want != code{}:
			if err == nil || codeOf(err) != test.want {
				t.Errorf("%s%s: %+v, %v; want %s", test.host, test.path, got, err, test.want.name)
			}
		case err != nil || got != target{test.bucket, test.key}:
			t.Errorf("%s%s: %+v, %v", test.host, test.path, got, err)
		}
	}
}

// A path that has a bucket and a key is these and nothing else.
func FuzzTarget(f *testing.F) {
	f.Add("h", "/photos/a//../b%2F")
	f.Add("photos.example.org", "/a")
	f.Fuzz(func(t *testing.T, host, path string) {
		got, err := readTarget(host, path, []string{"example.org"})
		if err != nil {
			if as := codeOf(err); as != invalidURI && as != invalidBucketName {
				t.Fatalf("%q is refused by %s", path, as.name)
			}
			return
		}
		decoded, err := url.PathUnescape(strings.TrimPrefix(path, "/"))
		if err != nil {
			t.Fatalf("%q is taken: %v", path, err)
		}
		whole := got.key
		if bucketOfHost(host, []string{"example.org"}) == "" {
			if whole = got.bucket; got.key != "" || strings.HasSuffix(decoded, "/") {
				whole += "/" + got.key
			}
		}
		if whole != decoded {
			t.Fatalf("%q is %+v", path, got)
		}
		if got.bucket != "" && !isBucketName(got.bucket) {
			t.Fatalf("%q is in the bucket %q", path, got.bucket)
		}
	})
}

func TestRanges(t *testing.T) {
	for _, test := range []struct {
		text string
		size int64
		want span
		out  bool
	}{
		{"", 10, span{0, 10, false}, false},
		{"bytes=0-0", 10, span{0, 1, true}, false},
		{"bytes=2-", 10, span{2, 8, true}, false},
		{"bytes=-3", 10, span{7, 3, true}, false},
		{"bytes=-30", 10, span{0, 10, true}, false},
		{"bytes=5-100", 10, span{5, 5, true}, false},
		{"bytes=10-", 10, span{}, true},
		{"bytes=-0", 10, span{}, true},
		{"bytes=0-", 0, span{}, true},
		{"bytes=-1", 0, span{0, 0, false}, false},
		{"bytes=3-2", 10, span{0, 10, false}, false},
		{"bytes=0-1,3-4", 10, span{0, 10, false}, false},
		{"bytes= -1", 10, span{0, 10, false}, false},
		{"lines=0-1", 10, span{0, 10, false}, false},
		{"bytes=99999999999999999999-", 10, span{0, 10, false}, false},
	} {
		got, err := readSpan(test.text, test.size)
		if (err != nil) != test.out || err == nil && got != test.want || err != nil && codeOf(err) != invalidRange {
			t.Errorf("%q of %d: %+v, %v", test.text, test.size, got, err)
		}
	}
}

// The bytes of a range are bytes of the object.
func FuzzRange(f *testing.F) {
	f.Add("bytes=0-5", int64(10))
	f.Fuzz(func(t *testing.T, text string, size int64) {
		if size < 0 {
			return // no object has such a size
		}
		got, err := readSpan(text, size)
		if err == nil && (got.offset < 0 || got.length < 0 || got.offset > size-got.length || got.isPart && got.length == 0) {
			t.Fatalf("%q of %d bytes is %+v", text, size, got)
		}
	})
}
