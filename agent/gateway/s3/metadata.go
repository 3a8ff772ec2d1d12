package s3

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

// metaOwn begins the names of metadata that clients of S3 know as headers of their own. No header can have such a name, so that nobody
// gives it as metadata.
const metaOwn = "s3:"

const metaTags = metaOwn + "tags"

// kept are the headers that are kept with an object and answered with it, but for those that begin with userPrefix.
var kept = []string{
	"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Type", "Expires", headerRedirect,
}

// headerRedirect says where a page is that a website would show. It is kept; there are no websites here.
const headerRedirect = "X-Amz-Website-Redirect-Location"

// userPrefix begins the headers that have metadata of the client's own.
const userPrefix = "X-Amz-Meta-"

// metadataMost bounds what a client gives: the digests have to fit in beside it.
const (
	userMost     = 2 << 10 // as S3 has it
	metadataMost = api.MaxMetadataBytes - 512
)

// metadataOf returns the metadata that headers of a request give.
func metadataOf(header http.Header) (map[string]string, error) {
	metadata := map[string]string{}
	for name, values := range header {
		if own, is := strings.CutPrefix(name, userPrefix); is && own != "" {
			metadata[strings.ToLower(own)] = text(strings.Join(values, ","))
		}
	}
	if bytes := api.MetadataBytes(metadata); bytes > userMost {
		return nil, refuse(metadataTooLarge,
			"the metadata has %d bytes, names and values together, of at most %d; keep more in the object",
			bytes, userMost)
	}
	for _, name := range kept {
		value := header.Get(name)
		if name == "Content-Encoding" {
			value = withoutChunked(value)
		}
		if value != "" {
			metadata[metaOwn+strings.ToLower(name)] = text(value)
		}
	}
	if to := header.Get(headerRedirect); to != "" && !redirect.MatchString(to) {
		return nil, refuse(invalidRedirect, "%s is %.80q; want a path, or an address of http or https", strings.ToLower(headerRedirect),
			to)
	}
	if tags := header.Get("X-Amz-Tagging"); tags != "" {
		canonical, err := canonicalTags(tags)
		if err != nil {
			return nil, err
		}
		if canonical != "" {
			metadata[metaTags] = canonical
		}
	}
	if bytes := api.MetadataBytes(metadata); bytes > metadataMost {
		return nil, refuse(metadataTooLarge,
			"the metadata has %d bytes, names and values together, of at most %d; keep more in the object",
			bytes, metadataMost)
	}
	return metadata, nil
}

// withoutChunked is a Content-Encoding without the way that the body was sent in.
func withoutChunked(value string) string {
	var rest []string
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part != "" && !strings.EqualFold(part, "aws-chunked") {
			rest = append(rest, part)
		}
	}
	return strings.Join(rest, ",")
}

// text is what a header has in UTF-8, which it may have in Latin-1 as well.
func text(value string) string {
	if utf8.ValidString(value) {
		return value
	}
	runes := make([]rune, 0, len(value))
	for i := range len(value) {
		runes = append(runes, rune(value[i]))
	}
	return string(runes)
}

// setMetadata has the headers of an answer say what was given with an object. What no header can have is counted.
func setMetadata(header http.Header, metadata map[string]string) {
	header.Set("Content-Type", "binary/octet-stream")
	for _, name := range kept {
		if value := metadata[metaOwn+strings.ToLower(name)]; value != "" {
			header.Set(name, value)
		}
	}
	missing := 0
	for name, value := range metadata {
		switch {
		case strings.Contains(name, ":"): // no metadata of a client
		case isToken(name) && isFieldValue(value):
			header["x-amz-meta-"+name] = []string{value} // in lower case, which clients take names from
		default:
			missing++
		}
	}
	if missing > 0 {
		header.Set("X-Amz-Missing-Meta", strconv.Itoa(missing))
	}
	if tags := metadata[metaTags]; tags != "" {
		header.Set("X-Amz-Tagging-Count", strconv.Itoa(strings.Count(tags, "&")+1))
	}
}

// isToken reports whether text can be in the name of a header.
func isToken(text string) bool {
	return text != "" && strings.IndexFunc(text, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, c)
	}) < 0
}

// isFieldValue reports whether text can be the value of a header, as it is.
func isFieldValue(text string) bool {
	return strings.Trim(text, " \t") == text && strings.IndexFunc(text, func(c rune) bool {
		return c < ' ' && c != '\t' ||
			c == 0x7f
	}) < 0
}

// etagOf is the tag of an object: that of its bytes where a client of S3 put it, else one that names its revision and, by its dash, is
// taken for no digest.
func etagOf(object *api.Object) string {
	if tag := object.Metadata[metaETag]; tag != "" {
		return tag
	}
	return strings.ReplaceAll(object.Revision.String(), ".", "") + "-0"
}

// setChecksums has the headers of an answer say the checksums of a whole object.
func setChecksums(header http.Header, metadata map[string]string) {
	for i := range checksums {
		c := &checksums[i]
		if sum := metadata[metaSum+c.name]; sum != "" {
			header.Set(c.header(), sum)
			header.Set("X-Amz-Checksum-Type", checksumType(sum))
		}
	}
}

// checksumType says what a checksum is of: that of parts says how many those are.
func checksumType(sum string) string {
	if strings.Contains(sum, "-") {
		return typeComposite
	}
	return typeWhole
}

const (
	typeComposite = "COMPOSITE"
	typeWhole     = "FULL_OBJECT"
)

// canonicalTags reads tags as a query has them (a=1&b=2) and returns them in order.
func canonicalTags(query string) (string, error) {
	list, err := readQuery(query)
	if err != nil {
		return "", refuse(invalidArgument, "x-amz-tagging is %.80q; want NAME=VALUE&NAME=VALUE, percent-encoded", query)
	}
	tags := map[string]string{}
	for _, one := range list {
		if _, twice := tags[one.name]; twice {
			return "", refuse(invalidArgument, "the tag %.80q is given twice", one.name)
		}
		tags[one.name] = one.value
	}
	return encodeTags(tags)
}

// Bounds on tags, as S3 has them.
const (
	tagsMost     = 10
	tagNameMost  = 128
	tagValueMost = 256
)

var redirect = regexp.MustCompile("^(/|https?://)")

var invalidRedirect = code{"InvalidRedirectLocation", http.StatusBadRequest, ""}

var tooManyTags = code{"BadRequest", http.StatusBadRequest, "Object tags cannot be greater than 10"}

var invalidTag = code{"InvalidTag", http.StatusBadRequest, ""}

// encodeTags are tags as a query has them.
func encodeTags(tags map[string]string) (string, error) {
	if len(tags) > tagsMost {
		return "", refuse(tooManyTags, "an object has at most %d tags, these are %d", tagsMost, len(tags))
	}
	parts := make([]string, 0, len(tags))
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		value := tags[name]
		if name == "" || utf8.RuneCountInString(name) > tagNameMost || utf8.RuneCountInString(value) > tagValueMost {
			return "", refuse(invalidTag, "the tag %.80q: its name has 1 to %d characters, its value %d at most", name, tagNameMost,
				tagValueMost)
		}
		parts = append(parts, encode(name, false)+"="+encode(value, false))
	}
	return strings.Join(parts, "&"), nil
}

// storageClass is what an object is under: a scheme, or standard where that is what its class says.
func (s *Server) storageClass(is *api.Object) string {
	if class := s.options.Classes.Named(is.Class); class != nil && class.Default.String() == is.Scheme {
		return standard
	}
	return is.Scheme
}

// standard is the storage class that asks for nothing special.
const standard = "STANDARD"

// place returns the class and the scheme that a request asks for by its storage class: none, which leaves it to the key, or the name of a
// class, or a scheme on the ladder of the key's class. into is the class that the object will be of.
func (q *request) place(key string) (options api.PutOptions, into string, err error) {
	asked := q.Header.Get("X-Amz-Storage-Class")
	classes := q.server.options.Classes
	if asked != "" && asked != standard {
		if classes.Named(asked) != nil {
			options.Class = asked
		} else {
			options.Scheme = asked
		}
	}
	class, err := classes.For(key, options.Class)
	if err != nil {
		return options, "", err
	}
	if options.Scheme != "" {
		scheme, err := stripe.ParseScheme(options.Scheme)
		if err != nil || !class.Ladder.Contains(scheme) {
			return options, "", refuse(invalidStorageClass,
				"the storage class %.40q is neither a class nor a scheme on the ladder %s of class %s, which the key belongs to; leave it out for "+
					"what the class says", asked, class.Ladder, class.Name)
		}
	}
	return options, class.Name, nil
}
