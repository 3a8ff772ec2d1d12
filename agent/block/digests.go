package block

import "strings"

// DigestPrefix begins the names of metadata that say what the bytes of an object are: digests of them. They come with the bytes
// alone, and are gone once the bytes are changed in any other way.
const DigestPrefix = "digest:"

// WithoutDigests returns metadata without what is said of the bytes; the same map where nothing is.
func WithoutDigests(metadata map[string]string) map[string]string {
	some := false
	for name := range metadata {
		some = some || strings.HasPrefix(name, DigestPrefix)
	}
	if !some {
		return metadata
	}
	var rest map[string]string
	for name, value := range metadata {
		if strings.HasPrefix(name, DigestPrefix) {
			continue
		}
		if rest == nil {
			rest = map[string]string{}
		}
		rest[name] = value
	}
	return rest
}
