package s3

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
)

// An upload in parts is an empty object that says what becomes of it, and an object for each part. Their keys begin with uploadsPrefix,
// the bucket and the key that the upload is for, so that no bucket has them; all expire together if the upload is not completed.

const (
	uploadsPrefix = ".multipart/"
	uploadEnd     = "\x00" // after the key
	uploadKept    = 7 * 24 * time.Hour
	completedKept = 24 * time.Hour // so that a request that is sent again is answered as before
	partDigits    = 5
)

// metaUpload is what is known of an upload, in JSON, beside the metadata that its object will have.
const metaUpload = metaOwn + "upload"

// upload is what is known of one.
type upload struct {
	target
	id string

	object *api.Object // that says so
	uploadKeep
}

// uploadKeep is what is kept of an upload.
type uploadKeep struct {
	Class     string     `json:"class"`
	Scheme    string     `json:"scheme,omitempty"`
	Algorithm string     `json:"algorithm,omitempty"` // of checksums, as in the names of headers
	Type      string     `json:"type,omitempty"`
	Completed *completed `json:"completed,omitempty"` // nil: it is under way
}

// completed is what came of an upload.
type completed struct {
	List string `json:"list"` // a digest of the parts that were asked for
	ETag string `json:"etag"`
	Sum  string `json:"sum,omitempty"`
}

// newUploadID is in the order in which uploads begin.
func newUploadID(now time.Time) string {
	var random [10]byte
	_, _ = rand.Read(random[:]) // which never fails
	return fmt.Sprintf("%012x%s", now.UnixMilli(), hex.EncodeToString(random[:]))
}

var uploadID = regexp.MustCompile(`^[0-9a-f]{32}$`)

const uploadIDLength = 32

// uploadName is the key of the object that says what is known of an upload. Those of its parts begin with it.
func uploadName(of target, id string) string {
	return uploadsOf(of.bucket) + of.key + uploadEnd + id + "/"
}

func uploadsOf(bucket string) string { return uploadsPrefix + bucket + "/" }

func partName(of target, id string, number int) string {
	return fmt.Sprintf("%s%0*d", uploadName(of, id), partDigits, number)
}

// readUploadName takes the key of an object of an upload apart, behind the prefix of those of its bucket. The number is 0 for the one
// that says what is known.
func readUploadName(name string) (key, id string, number int, isOne bool) {
	rest, last := name, name[strings.LastIndexByte(name, '/')+1:]
	if last != "" {
		n, err := strconv.Atoi(last)
		if err != nil || len(last) != partDigits || n < 1 {
			return "", "", 0, false
		}
		number = n
	}
	rest = strings.TrimSuffix(rest[:len(rest)-len(last)], "/")
	if len(rest) < uploadIDLength+len(uploadEnd) {
		return "", "", 0, false
	}
	id, rest = rest[len(rest)-uploadIDLength:], rest[:len(rest)-uploadIDLength]
	key, isOne = strings.CutSuffix(rest, uploadEnd)
	return key, id, number, isOne && uploadID.MatchString(id)
}

type createUploadResult struct {
	XMLName  xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ InitiateMultipartUploadResult"`
	Bucket   string
	Key      string
	UploadID string `xml:"UploadId"`
}

// createUpload begins an upload.
func createUpload(ctx context.Context, q *request) error {
	s := q.server
	options, err := s.mayPut(ctx, q)
	if err != nil {
		return err
	}
	metadata, err := metadataOf(q.Header)
	if err != nil {
		return err
	}
	kept, err := q.newUpload(&options)
	if err != nil {
		return err
	}
	if metadata[metaUpload], err = kept.encode(); err != nil {
		return err
	}
	now := time.Now()
	id := newUploadID(now)
	_, err = s.options.Objects.Put(ctx, uploadName(q.target, id), http.NoBody, api.PutOptions{
		Class: kept.Class, Expires: now.Add(uploadKept), Metadata: metadata,
	})
	if err != nil {
		return err
	}
	if kept.Algorithm != "" {
		q.w.Header().Set("X-Amz-Checksum-Algorithm", strings.ToUpper(kept.Algorithm))
		q.w.Header().Set("X-Amz-Checksum-Type", kept.Type)
	}
	return q.reply(&createUploadResult{Bucket: q.bucket, Key: q.key, UploadID: id})
}

// newUpload is what a request says of an upload that begins.
func (q *request) newUpload(options *api.PutOptions) (kept uploadKeep, err error) {
	class, err := q.server.options.Classes.For(q.object(), options.Class)
	if err != nil {
		return kept, err
	}
	kept.Class, kept.Scheme = class.Name, options.Scheme
	asked, kind := q.Header.Get("X-Amz-Checksum-Algorithm"), q.Header.Get("X-Amz-Checksum-Type")
	if asked == "" {
		if kind != "" {
			return kept, refuse(invalidRequest, "x-amz-checksum-type is given without x-amz-checksum-algorithm")
		}
		return kept, nil
	}
	chosen := checksumNamed(asked)
	if chosen == nil {
		return kept, unknownChecksum(asked)
	}
	kept.Algorithm, kept.Type = chosen.name, typeWhole
	if chosen.composite && kind != typeWhole {
		kept.Type = typeComposite
	}
	isSHA := strings.HasPrefix(chosen.name, "sha")
	if kind != "" && kind != kept.Type || isSHA && kept.Type == typeWhole {
		return kept, refuse(invalidRequest, "the checksum type is %.40q, which those of %s cannot have", kind, chosen.label())
	}
	return kept, nil
}

func (u *uploadKeep) encode() (string, error) {
	text, err := json.Marshal(u)
	return string(text), err
}

// upload returns the upload that a request names, whose object the user may write.
func (s *Server) upload(ctx context.Context, q *request) (*upload, error) {
	id := q.query.get("uploadId")
	u := &upload{target: q.target, id: id}
	if err := q.may(ctx, access.Write, q.object()); err != nil {
		return nil, err
	}
	if uploadID.MatchString(id) {
		is, err := s.options.Objects.Find(ctx, uploadName(q.target, id))
		if err != nil {
			return nil, err
		}
		u.object = is
	}
	if u.object == nil {
		if err := q.inBucket(ctx, q.bucket); err != nil {
			return nil, err
		}
		return nil, u.gone()
	}
	if err := json.Unmarshal([]byte(u.object.Metadata[metaUpload]), &u.uploadKeep); err != nil {
		return nil, fmt.Errorf("reading what is kept of upload %s: %w", id, err)
	}
	return u, q.may(ctx, access.Write, q.object(), u.Class)
}

// underWay is upload for what can be done with one that is not completed.
func (s *Server) underWay(ctx context.Context, q *request) (*upload, error) {
	u, err := s.upload(ctx, q)
	if err == nil && u.Completed != nil {
		err = u.gone()
	}
	return u, err
}

func (u *upload) gone() error {
	return refuse(noSuchUpload,
		"there is no upload %.80q for the key %.200q: it was completed or given up, or began more than %d days ago",
		u.id, u.key, uploadKept/(24*time.Hour))
}

// metadata is what the object of the upload will have.
func (u *upload) metadata() map[string]string {
	metadata := map[string]string{}
	for name, value := range u.object.Metadata {
		if name != metaUpload {
			metadata[name] = value
		}
	}
	return metadata
}

// storedPart is a part that was put.
type storedPart struct {
	number int
	object api.Object
}

// parts returns up to limit parts of an upload after one of a number.
func (s *Server) parts(ctx context.Context, u *upload, after, limit int) ([]storedPart, error) {
	name := uploadName(u.target, u.id)
	from := name
	if after > 0 {
		from = partName(u.target, u.id, after)
	}
	var parts []storedPart
	for len(parts) < limit {
		wanted := min(limit-len(parts), listMost)
		page, err := object.Records(ctx, s.options.Objects, name, from, wanted)
		if err != nil {
			return nil, err
		}
		for i := range page {
			key, err := keyOf(&page[i])
			if err != nil {
				return nil, err
			}
			from = key
			if number, err := strconv.Atoi(key[len(name):]); err == nil {
				parts = append(parts, storedPart{number, page[i]})
			}
		}
		if len(page) < wanted {
			break
		}
	}
	return parts, nil
}

// putPart stores a part.
func putPart(ctx context.Context, q *request) error {
	s := q.server
	number, err := q.partNumber()
	if err != nil {
		return err
	}
	u, err := s.underWay(ctx, q)
	if err != nil {
		return err
	}
	body, err := q.openBody()
	if err != nil {
		return err
	}
	if err := u.choose(body); err != nil {
		return err
	}
	if _, err := s.options.Objects.Put(ctx, partName(u.target, u.id, number), body, u.part(body)); err != nil {
		return err
	}
	q.setSums(body)
	return q.done(http.StatusOK)
}

// choose has the checksum be known of a part that the upload asks for.
func (u *upload) choose(of *body) error {
	chosen := checksumNamed(u.Algorithm)
	if of.chosen != nil && chosen != nil && of.chosen != chosen {
		return refuse(invalidRequest, "the part has a checksum of the kind %s, and the upload is one of %s", of.chosen.label(),
			chosen.label())
	}
	of.choose(chosen)
	return nil
}

// part is how a part is kept.
func (u *upload) part(of *body) api.PutOptions {
	return api.PutOptions{Class: u.Class, Scheme: u.Scheme, Size: of.size, Expires: u.object.Expires, Digests: of.digests}
}

func (q *request) partNumber() (int, error) {
	text := q.query.get("partNumber")
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 || number > partsMost {
		return 0, refuse(invalidArgument, "partNumber is %.20q; want 1 to %d", text, partsMost)
	}
	return number, nil
}

// copyPart stores bytes of an object as a part.
func copyPart(ctx context.Context, q *request) error {
	s := q.server
	number, err := q.partNumber()
	if err != nil {
		return err
	}
	u, err := s.underWay(ctx, q)
	if err != nil {
		return err
	}
	return q.slowly(ctx, func(ctx context.Context) (any, error) {
		reader, is, _, err := s.openSource(ctx, q)
		if err != nil {
			return nil, err
		}
		of, err := copySpan(q.Header.Get(headerSource+"-Range"), is.Size)
		if err != nil {
			return nil, err
		}
		var body *body
		var stored api.Object
		fed, err := s.pour(ctx, part(reader, of), func(from io.Reader) (err error) {
			body = bodyOf(from, of.length, checksumNamed(u.Algorithm))
			stored, err = s.options.Objects.Put(ctx, partName(u.target, u.id, number), body, u.part(body))
			return err
		})
		if fed != nil {
			err = fed
		}
		if err != nil {
			return nil, err
		}
		return &copyResult{
			XMLName: xml.Name{Space: namespace, Local: "CopyPartResult"}, LastModified: stored.Modified.Format(timeFormat),
			sums: body.sums(),
		}, nil
	})
}

// abortUpload gives an upload up. Parts that come later expire.
func abortUpload(ctx context.Context, q *request) error {
	s := q.server
	u, err := s.underWay(ctx, q)
	if err != nil {
		return err
	}
	if err := s.options.Objects.Delete(ctx, uploadName(u.target, u.id), &u.object.Revision); err != nil {
		if isGone(err) {
			return u.gone()
		}
		return err
	}
	if err := s.dropParts(ctx, u); err != nil {
		return err
	}
	return q.done(http.StatusNoContent)
}

// dropParts deletes the parts of an upload.
func (s *Server) dropParts(ctx context.Context, u *upload) error {
	parts, err := s.parts(ctx, u, 0, partsMost)
	if err != nil {
		return err
	}
	var work errgroup.Group
	work.SetLimit(deleteAtOnce)
	for i := range parts {
		work.Go(func() error {
			err := s.options.Objects.Delete(ctx, partName(u.target, u.id, parts[i].number), nil)
			if isGone(err) {
				return nil
			}
			return err
		})
	}
	return work.Wait()
}

type listPartsResult struct {
	XMLName              xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListPartsResult"`
	Bucket               string
	Key                  string
	UploadID             string `xml:"UploadId"`
	PartNumberMarker     int
	NextPartNumberMarker int
	MaxParts             int
	IsTruncated          bool
	Part                 []listedPart
	Initiator            owner
	Owner                owner
	StorageClass         string
	ChecksumAlgorithm    string `xml:",omitempty"`
	ChecksumType         string `xml:",omitempty"`
}

type listedPart struct {
	PartNumber   int
	LastModified string
	Size         int64
	sums
}

func listParts(ctx context.Context, q *request) error {
	s := q.server
	u, err := s.underWay(ctx, q)
	if err != nil {
		return err
	}
	result := listPartsResult{
		Bucket: q.bucket, Key: q.key, UploadID: u.id, Initiator: theOwner, Owner: theOwner, StorageClass: u.storageClass(),
		ChecksumAlgorithm: strings.ToUpper(u.Algorithm), ChecksumType: u.Type,
	}
	if result.MaxParts, err = q.number("max-parts", listMost); err != nil {
		return err
	}
	if q.query.get("part-number-marker") != "" {
		if result.PartNumberMarker, err = q.number("part-number-marker", partsMost); err != nil {
			return err
		}
	}
	if err := q.hold(ctx, listBytes); err != nil {
		return err
	}
	parts, err := s.parts(ctx, u, result.PartNumberMarker, result.MaxParts+1)
	if err != nil {
		return err
	}
	if len(parts) > result.MaxParts {
		result.IsTruncated, parts = true, parts[:result.MaxParts]
	}
	for i := range parts {
		is := &parts[i].object
		known := sumsOf(is.Metadata, strconv.Quote(etagOf(is)))
		known.ChecksumType = ""
		result.Part = append(result.Part, listedPart{parts[i].number, is.Modified.Format(timeFormat), is.Size, known})
		result.NextPartNumberMarker = parts[i].number
	}
	return q.reply(&result)
}

// storageClass is that of the object that an upload will be.
func (u *uploadKeep) storageClass() string {
	if u.Scheme != "" {
		return u.Scheme
	}
	return standard
}

type listUploadsResult struct {
	XMLName            xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListMultipartUploadsResult"`
	Bucket             string
	KeyMarker          string
	UploadIDMarker     string `xml:"UploadIdMarker"`
	NextKeyMarker      string `xml:",omitempty"`
	NextUploadIDMarker string `xml:"NextUploadIdMarker,omitempty"`
	Delimiter          string `xml:",omitempty"`
	Prefix             string
	MaxUploads         int
	EncodingType       string `xml:",omitempty"`
	IsTruncated        bool
	Upload             []listedUpload
	CommonPrefixes     []commonPrefix
}

type listedUpload struct {
	Key               string
	UploadID          string `xml:"UploadId"`
	Initiator         owner
	Owner             owner
	StorageClass      string
	Initiated         string
	ChecksumAlgorithm string `xml:",omitempty"`
	ChecksumType      string `xml:",omitempty"`
}

// listUploads answers which uploads of a bucket are under way, by key and then by when they began.
func listUploads(ctx context.Context, q *request) error {
	s := q.server
	what := listing{prefix: q.query.get("prefix"), delimiter: q.query.get("delimiter"), after: q.query.get("key-marker")}
	marker := q.query.get("upload-id-marker")
	encoded, err := encoder(q.query.get("encoding-type"))
	if err != nil {
		return err
	}
	if what.most, err = q.number("max-uploads", listMost); err != nil {
		return err
	}
	sees, err := q.mayList(ctx, what.prefix)
	if err != nil {
		return err
	}
	result := listUploadsResult{
		Bucket: q.bucket, KeyMarker: encoded(what.after), UploadIDMarker: marker, Delimiter: encoded(what.delimiter),
		Prefix: encoded(what.prefix), MaxUploads: what.most, EncodingType: q.query.get("encoding-type"),
	}
	found, more, err := s.uploadsIn(ctx, q.bucket, what, marker, sees)
	if err != nil {
		return err
	}
	for i := range found {
		one := &found[i]
		if one.object == nil {
			result.CommonPrefixes = append(result.CommonPrefixes, commonPrefix{encoded(one.key)})
			continue
		}
		result.Upload = append(result.Upload, listedUpload{
			Key: encoded(one.key), UploadID: one.id, Initiator: theOwner, Owner: theOwner, StorageClass: one.storageClass(),
			Initiated: one.object.Modified.Format(timeFormat), ChecksumAlgorithm: strings.ToUpper(one.Algorithm), ChecksumType: one.Type,
		})
	}
	if result.IsTruncated = more; more {
		last := &found[len(found)-1]
		result.NextKeyMarker, result.NextUploadIDMarker = encoded(last.key), last.id
	}
	return q.reply(&result)
}

// uploadsIn returns uploads of a bucket that are under way, and common prefixes of their keys, which have no object.
func (s *Server) uploadsIn(
	ctx context.Context, bucket string, what listing, marker string, sees func(key, class string) bool,
) (found []upload, more bool, err error) {
	if what.most == 0 {
		return nil, false, nil
	}
	base, after := uploadsOf(bucket), ""
	switch common, is := what.common(what.after); {
	case what.after == "":
	case is && common == what.after:
		after = behind(base + common)
	case uploadID.MatchString(marker):
		after = behind(uploadName(target{bucket, what.after}, marker))
	default:
		after = behind(base + what.after + uploadEnd)
	}
	for {
		page, err := object.Records(ctx, s.options.Objects, base+what.prefix, after, skipPage)
		if err != nil {
			return nil, false, err
		}
		for i := range page {
			name, err := keyOf(&page[i])
			if err != nil {
				return nil, false, err
			}
			if name <= after { // passed with its upload, or a common prefix
				continue
			}
			after = name
			key, id, number, isOne := readUploadName(name[len(base):])
			if !isOne || number > 0 || !strings.HasPrefix(key, what.prefix) {
				continue
			}
			after = behind(name)
			one := upload{target: target{bucket, key}, id: id, object: &page[i]}
			if err := json.Unmarshal([]byte(page[i].Metadata[metaUpload]), &one.uploadKeep); err != nil || one.Completed != nil {
				continue // it is none, or is no longer
			}
			if !sees(one.target.object(), one.Class) {
				continue
			}
			if common, is := what.common(key); is {
				one = upload{target: target{bucket, common}}
				after = behind(base + common)
			}
			if len(found) == what.most {
				return found, true, nil
			}
			found = append(found, one)
		}
		if len(page) < skipPage {
			return found, false, nil
		}
	}
}
