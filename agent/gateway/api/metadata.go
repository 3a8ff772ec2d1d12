package api

import (
	"net/url"
	"strings"
	"time"
)

// MetadataHeader begins the names of the headers that carry metadata, one for each name of it, with a value that is percent-encoded.
const MetadataHeader = "Restripe-Meta-"

// MetadataIn returns the metadata that a header carries, with names in lower case; nil for none.
func MetadataIn(header map[string][]string) map[string]string {
	var metadata map[string]string
	for name, values := range header {
		if !strings.HasPrefix(name, MetadataHeader) || len(name) == len(MetadataHeader) {
			continue
		}
		value, err := url.PathUnescape(values[0])
		if err != nil {
			value = values[0] // it was not encoded
		}
		if metadata == nil {
			metadata = map[string]string{}
		}
		metadata[strings.ToLower(name[len(MetadataHeader):])] = value
	}
	return metadata
}

// SetMetadata has a header carry metadata.
func SetMetadata(header interface{ Set(name, value string) }, metadata map[string]string) {
	for name, value := range metadata {
		header.Set(MetadataHeader+name, url.PathEscape(value))
	}
}

// ParseExpires reads when an object expires: a time as in RFC 3339, or how long from now, such as 90m. Empty is never.
func ParseExpires(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if span, err := time.ParseDuration(text); err == nil && span > 0 {
		return now.Add(span), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.UnixMilli() <= 0 {
		return time.Time{}, Refuse(ErrBadRequest,
			"expires %.40q: want how long from now, such as 90m, or a time such as 2027-01-31T12:00:00Z", text)
	}
	return at, nil
}
