package s3

import (
	"context"
	"encoding/base64"
	"encoding/xml"
	"strconv"
	"strings"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
)

// listMost is how many keys and common prefixes an answer has at most.
const listMost = 1000

// listBytes is the memory that a listing holds.
const listBytes = 2 << 20

// skipPage is how many objects are read together where those of a common prefix are passed by: there may be many of them.
const skipPage = 100

// listing is what a listing of a bucket asks for.
type listing struct {
	prefix, delimiter, after string
	most                     int
}

// item is what a listing has one of: an object, or a common prefix of several.
type item struct {
	name   string      // the key in the bucket, or the prefix
	object *api.Object // nil: a common prefix
}

// list returns what a user sees of a bucket, by name, and whether there is more.
func (s *Server) list(
	ctx context.Context, bucket string, what listing, sees func(key, class string) bool,
) (items []item, more bool, err error) {
	if what.most == 0 {
		return nil, false, nil
	}
	base := bucket + "/"
	after := what.start(base)
	limit := min(what.most+2, listMost) // one is the marker of the bucket
	if what.delimiter != "" {
		limit = min(limit, skipPage)
	}
	for {
		page, err := object.Records(ctx, s.options.Objects, base+what.prefix, after, limit)
		if err != nil {
			return nil, false, err
		}
		for i := range page {
			key, err := keyOf(&page[i])
			if err != nil {
				return nil, false, err
			}
			if key <= after || key == base { // passed with a common prefix, or the marker
				after = max(after, key)
				continue
			}
			if after = key; !sees(key, page[i].Class) {
				continue
			}
			one := item{name: key[len(base):], object: &page[i]}
			if common, is := what.common(one.name); is {
				one = item{name: common}
				after = api.AfterPrefix(base + common)
			}
			if len(items) == what.most {
				return items, true, nil
			}
			items = append(items, one)
		}
		if len(page) < limit {
			return items, false, nil
		}
	}
}

// start is the key after which a listing begins. What is after a common prefix is after all that have it.
func (l *listing) start(base string) string {
	if l.after == "" {
		return ""
	}
	if common, is := l.common(l.after); is && common == l.after {
		return api.AfterPrefix(base + common)
	}
	return base + l.after
}

// common is the common prefix that a name is shown as, if it is.
func (l *listing) common(name string) (prefix string, is bool) {
	if l.delimiter == "" || !strings.HasPrefix(name, l.prefix) {
		return "", false
	}
	at := strings.Index(name[len(l.prefix):], l.delimiter)
	if at < 0 {
		return "", false
	}
	return name[:len(l.prefix)+at+len(l.delimiter)], true
}

type listResult struct {
	XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
	Name                  string
	Prefix                string
	Marker                *string
	NextMarker            string  `xml:",omitempty"`
	StartAfter            string  `xml:",omitempty"`
	ContinuationToken     *string // as it was given
	NextContinuationToken string  `xml:",omitempty"`
	KeyCount              *int
	MaxKeys               int
	Delimiter             string `xml:",omitempty"`
	EncodingType          string `xml:",omitempty"`
	IsTruncated           bool
	Contents              []listedObject
	CommonPrefixes        []commonPrefix
}

type listedObject struct {
	Key               string
	LastModified      string
	ETag              string
	ChecksumAlgorithm []string `xml:",omitempty"`
	ChecksumType      string   `xml:",omitempty"`
	Size              int64
	Owner             *owner
	StorageClass      string
}

type commonPrefix struct{ Prefix string }

// listObjects answers either of the two listings.
func listObjects(ctx context.Context, q *request) error {
	s := q.server
	isSecond := q.query.get("list-type") == "2"
	if version := q.query.get("list-type"); version != "" && !isSecond {
		return refuse(invalidArgument, "list-type is %.20q; want 2", version)
	}
	what := listing{prefix: q.query.get("prefix"), delimiter: q.query.get("delimiter"), after: q.query.get("marker")}
	var err error
	if what.most, err = q.number("max-keys", listMost); err != nil {
		return err
	}
	result := listResult{
		Name: q.bucket, Prefix: what.prefix, MaxKeys: what.most, Delimiter: what.delimiter, EncodingType: q.query.get("encoding-type"),
	}
	if isSecond {
		result.StartAfter = q.query.get("start-after")
		what.after = result.StartAfter
		if q.query.has("continuation-token") {
			given := q.query.get("continuation-token")
			result.ContinuationToken = &given
			if what.after, err = readToken(given); err != nil {
				return err
			}
		}
	} else {
		result.Marker = &what.after
	}
	encoded, err := encoder(result.EncodingType)
	if err != nil {
		return err
	}
	sees, err := q.mayList(ctx, what.prefix)
	if err != nil {
		return err
	}
	items, more, err := s.list(ctx, q.bucket, what, sees)
	if err != nil {
		return err
	}
	withOwner := !isSecond || q.query.get("fetch-owner") == "true"
	for i := range items {
		if items[i].object == nil {
			result.CommonPrefixes = append(result.CommonPrefixes, commonPrefix{encoded(items[i].name)})
			continue
		}
		one := s.listed(items[i].object, encoded(items[i].name))
		if withOwner {
			one.Owner = &theOwner
		}
		result.Contents = append(result.Contents, one)
	}
	if result.IsTruncated = more; more {
		last := items[len(items)-1].name
		if isSecond {
			result.NextContinuationToken = token(last)
		} else {
			result.NextMarker = encoded(last)
		}
	}
	if isSecond {
		count := len(items)
		result.KeyCount = &count
	}
	for _, text := range []*string{&result.Prefix, &result.Delimiter, &result.StartAfter, result.Marker} {
		if text != nil {
			*text = encoded(*text)
		}
	}
	return q.reply(&result)
}

func (s *Server) listed(is *api.Object, name string) listedObject {
	one := listedObject{
		Key: name, LastModified: is.Modified.Format(timeFormat), ETag: strconv.Quote(etagOf(is)), Size: is.Size,
		StorageClass: s.storageClass(is),
	}
	for i := range checksums {
		if sum := is.Metadata[metaSum+checksums[i].name]; sum != "" {
			one.ChecksumAlgorithm = append(one.ChecksumAlgorithm, checksums[i].label())
			one.ChecksumType = checksumType(sum)
		}
	}
	return one
}

// mayList refuses a listing to those who see nothing of it, and returns what they see. The bucket has to be there.
func (q *request) mayList(ctx context.Context, prefix string) (sees func(key, class string) bool, err error) {
	in := q.caller.user.Scope(access.List)
	every, some := in.HasKey(q.bucket + "/" + prefix)
	if !some {
		return nil, q.lacks("list on objects is missing for prefix %.80q of bucket %s", prefix, q.bucket)
	}
	if err := q.hold(ctx, listBytes); err != nil {
		return nil, err
	}
	if err := q.inBucket(ctx, q.bucket); err != nil {
		return nil, err
	}
	if every {
		return func(string, string) bool { return true }, nil
	}
	return in.Has, nil
}

// encoder returns how names are written.
func encoder(kind string) (func(string) string, error) {
	switch kind {
	case "":
		return func(name string) string { return name }, nil
	case "url":
		return func(name string) string { return encode(name, true) }, nil
	}
	return nil, refuse(invalidArgument, "encoding-type is %.20q; want url, or nothing", kind)
}

// token and readToken are how a listing says where it goes on.
func token(after string) string { return base64.RawURLEncoding.EncodeToString([]byte(after)) }

func readToken(text string) (string, error) {
	after, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return "", refuse(invalidArgument, "the continuation token is none of this server")
	}
	return string(after), nil
}

type versionsResult struct {
	XMLName             xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListVersionsResult"`
	Name                string
	Prefix              string
	KeyMarker           string
	VersionIDMarker     string `xml:"VersionIdMarker"`
	NextKeyMarker       string `xml:",omitempty"`
	NextVersionIDMarker string `xml:"NextVersionIdMarker,omitempty"`
	MaxKeys             int
	Delimiter           string `xml:",omitempty"`
	EncodingType        string `xml:",omitempty"`
	IsTruncated         bool
	Version             []listedVersion
	CommonPrefixes      []commonPrefix
}

type listedVersion struct {
	listedObject
	VersionID string `xml:"VersionId"`
	IsLatest  bool
}

// nullVersion names the one version that an object has.
const nullVersion = "null"

// listVersions answers the one version of each object.
func listVersions(ctx context.Context, q *request) error {
	s := q.server
	what := listing{prefix: q.query.get("prefix"), delimiter: q.query.get("delimiter"), after: q.query.get("key-marker")}
	var err error
	if what.most, err = q.number("max-keys", listMost); err != nil {
		return err
	}
	encoded, err := encoder(q.query.get("encoding-type"))
	if err != nil {
		return err
	}
	sees, err := q.mayList(ctx, what.prefix)
	if err != nil {
		return err
	}
	items, more, err := s.list(ctx, q.bucket, what, sees)
	if err != nil {
		return err
	}
	result := versionsResult{
		Name: q.bucket, Prefix: encoded(what.prefix), KeyMarker: encoded(what.after), VersionIDMarker: q.query.get("version-id-marker"),
		MaxKeys: what.most, Delimiter: encoded(what.delimiter), EncodingType: q.query.get("encoding-type"), IsTruncated: more,
	}
	for i := range items {
		if items[i].object == nil {
			result.CommonPrefixes = append(result.CommonPrefixes, commonPrefix{encoded(items[i].name)})
			continue
		}
		one := listedVersion{s.listed(items[i].object, encoded(items[i].name)), nullVersion, true}
		one.Owner = &theOwner
		result.Version = append(result.Version, one)
	}
	if more {
		result.NextKeyMarker, result.NextVersionIDMarker = encoded(items[len(items)-1].name), nullVersion
	}
	return q.reply(&result)
}
