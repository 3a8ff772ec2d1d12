package s3

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// target is what a request is for: a key of a bucket, a bucket, or all of them.
type target struct{ bucket, key string }

// object is the key that the object of a target has among all of the gateway.
func (t target) object() string { return objectOf(t.bucket, t.key) }

func objectOf(bucket, key string) string { return bucket + "/" + key }

// readTarget reads a host and a path that is percent-encoded. The bucket is a name below one of the domains, else the first part of the
// path. Keys stay as they are, with whatever slashes and dots they have.
func readTarget(host, path string, domains []string) (target, error) {
	bucket, rest := bucketOfHost(host, domains), strings.TrimPrefix(path, "/")
	if bucket == "" {
		first, key, _ := strings.Cut(rest, "/")
		decoded, err := url.PathUnescape(first)
		if err != nil {
			return target{}, refuse(invalidURI, "the path has %.40q, which is not percent-encoded", first)
		}
		bucket, rest = decoded, key
	}
	key, err := url.PathUnescape(rest)
	if err != nil {
		return target{}, refuse(invalidURI, "the path has %.40q, which is not percent-encoded", rest)
	}
	switch {
	case bucket == "" && key != "":
		return target{}, refuse(invalidURI, "the path %.80q has a key and no bucket", path)
	case bucket != "" && !isBucketName(bucket):
		return target{}, refuse(invalidBucketName, "%.80q is no name of a bucket: want 3 to 63 of a-z, 0-9, dots and dashes, "+
			"beginning and ending with a letter or a digit", bucket)
	}
	return target{bucket, key}, nil
}

// bucketOfHost is the name that a host has below one of the domains; empty where it is below none.
func bucketOfHost(host string, domains []string) string {
	host = strings.ToLower(withoutPort(host))
	longest, bucket := 0, ""
	for _, domain := range domains {
		if name, below := strings.CutSuffix(host, "."+domain); below && len(domain) > longest {
			longest, bucket = len(domain), name
		}
	}
	return bucket
}

func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// isBucketName reports whether a name is one of a bucket, by the rules of S3 for those of all purposes.
func isBucketName(name string) bool {
	if !bucketName.MatchString(name) || strings.Contains(name, "..") {
		return false
	}
	for _, prefix := range []string{"xn--", "sthree-", "amzn-s3-demo-"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	for _, suffix := range []string{"-s3alias", "--ol-s3", ".mrap", "--x-s3"} {
		if strings.HasSuffix(name, suffix) {
			return false
		}
	}
	_, err := netip.ParseAddr(name)
	return err != nil
}
