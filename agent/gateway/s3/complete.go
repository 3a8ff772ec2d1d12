package s3

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/s3/message"
	"github.com/restripe/restripe/agent/gateway/s3/upload"
)

// metaUploadID names the upload that the bytes of an object came by.
const metaUploadID = block.DigestPrefix + "upload"

// completeBytes is the memory that the records of all parts of an upload have, about.
const completeBytes = 8 << 20

// completion is an upload that is being completed.
type completion struct {
	*upload.Upload
	server *Server
	q      *request
	list   string // a digest of the parts that are asked for
	parts  []upload.Part
	size   int64
	etag   string
	sum    string // of the object; empty until it is known
	known  map[string]string
}

// completeUpload puts the parts of an upload together as one object. To ask again is to be told the same.
func completeUpload(ctx context.Context, q *request) error {
	s := q.server
	if err := q.checkUnknown(); err != nil {
		return err
	}
	var asked message.CompleteRequest
	// The checksum that this request has is of the object, and not of its body.
	if err := q.readXML(&asked, http.Header{"Content-Md5": q.Header.Values("Content-Md5")}); err != nil {
		return err
	}
	if len(asked.Part) == 0 || len(asked.Part) > upload.PartsMost {
		return refuse(malformedXML, "the upload is to be of %d parts; want 1 to %d", len(asked.Part), upload.PartsMost)
	}
	if err := checkParts(asked.Part); err != nil {
		return err
	}
	c := &completion{server: s, q: q, list: digestOf(fmt.Sprint(asked.Part))}
	leave, err := s.uploads.enter(ctx, q.query.get("uploadId"))
	if err != nil {
		return err
	}
	defer leave()
	if c.Upload, err = s.upload(ctx, q); err != nil {
		return err
	}
	if c.Completed != nil {
		if c.Completed.List != c.list {
			return noUpload(q)
		}
		return q.reply(c.result(c.Completed))
	}
	if err := c.checkSums(); err != nil {
		return err
	}
	return q.slowly(ctx, func(ctx context.Context) (any, error) {
		came, err := c.complete(ctx, asked.Part)
		if err == nil {
			return c.result(came), nil
		}
		if now, failed := s.upload(ctx, q); failed == nil && now.Completed != nil && now.Completed.List == c.list {
			return c.result(now.Completed), nil // another gateway was faster
		}
		return nil, err
	})
}

func (c *completion) result(came *upload.Completed) *message.CompleteResult {
	result := &message.CompleteResult{
		Location: locationOf(c.q), Bucket: c.Bucket, Key: c.Key, Sums: message.Sums{ETag: strconv.Quote(came.ETag)},
	}
	if came.Sum != "" {
		result.Set(c.Algorithm, came.Sum, checksumType(came.Sum))
	}
	return result
}

// checkParts refuses a list that no parts can be.
func checkParts(asked []message.CompletePart) error {
	for i := range asked {
		one := &asked[i]
		switch {
		case one.PartNumber < 0:
			return refuse(invalidArgument.saying("PartNumber must be >= 1"), "a part has the number %d", one.PartNumber)
		case one.PartNumber == 0 || one.ETag == "":
			return refuse(malformedXML, "of a part the PartNumber or the ETag is missing")
		case i > 0 && one.PartNumber <= asked[i-1].PartNumber:
			return refuse(invalidPartOrder, "part %d is named after part %d; want them in order", one.PartNumber, asked[i-1].PartNumber)
		}
		given := 0
		for k := range checksums {
			text := *one.Of(checksums[k].name)
			if text == "" {
				continue
			}
			if _, valid := decodeSum(text, checksums[k].make().Size()); !valid || given > 0 {
				return refuse(invalidArgument.saying("Invalid Base64 or multiple checksums present in request"),
					"part %d has several checksums, or one that is none: %.80q", one.PartNumber, text)
			}
			given++
		}
	}
	return nil
}

// checkSums refuses checksums of the object that cannot be compared with it. One of the whole is compared also where the upload began
// without.
func (c *completion) checkSums() error {
	header := c.q.Header
	if kind := header.Get("X-Amz-Checksum-Type"); kind != "" {
		switch upper := strings.ToUpper(kind); {
		case upper != typeWhole && upper != typeComposite:
			return badHeader("x-amz-checksum-type", kind, typeComposite+" or "+typeWhole)
		case c.Type != "" && upper != c.Type:
			return refuse(invalidRequest.saying(
				"The upload was created using the %s checksum mode. The complete request must use the same checksum mode.", c.Type),
				"x-amz-checksum-type is %s", upper)
		}
	}
	if err := checkSums(header); err != nil {
		return err
	}
	var given *checksum
	for i := range checksums {
		one := &checksums[i]
		values := header.Values(one.header())
		if len(values) == 0 {
			continue
		}
		if given != nil || len(values) > 1 {
			return severalSums()
		}
		sum, count, hasCount := strings.Cut(values[0], "-")
		_, err := strconv.ParseUint(count, 10, 31)
		if _, valid := decodeSum(sum, one.make().Size()); !valid || hasCount && err != nil {
			return badSum(one.header(), values[0])
		}
		given = one
	}
	switch {
	case given == nil || given.name == c.Algorithm:
	case c.Algorithm == "" && given.parts != partsOnly:
		c.Algorithm, c.Type = given.name, typeWhole
	default:
		began := "null"
		if c.Algorithm != "" {
			began = checksumNamed(c.Algorithm).label()
		}
		return refuse(invalidRequest.saying("Checksum Type mismatch occurred, expected checksum Type: %s, actual checksum Type: %s", began,
			given.label()), "give the checksum that the upload began with, or none")
	}
	return nil
}

// locationOf is where the object of a request is.
func locationOf(q *request) string {
	scheme, path := "http", "/"+encode(q.key, true)
	if q.TLS != nil {
		scheme = "https"
	}
	if bucketOfHost(q.Host, q.server.options.Domains) == "" {
		path = "/" + q.bucket + path
	}
	return scheme + "://" + q.Host + path
}

func (c *completion) complete(ctx context.Context, asked []message.CompletePart) (*upload.Completed, error) {
	objects := c.server.options.Objects
	if there, err := objects.Find(ctx, c.objectKey()); err != nil {
		return nil, err
	} else if there != nil && there.Metadata[metaUploadID] == c.ID { // all but the note of it was done before
		return c.note(ctx, there.Metadata)
	}
	if err := c.choose(ctx, asked); err != nil {
		return nil, err
	}
	over, err := c.q.over()
	if err != nil {
		return nil, err
	}
	options := api.PutOptions{
		Class: c.Class, Scheme: c.Scheme, Size: c.size, IfRevision: over, Metadata: c.Metadata(),
	}
	fed, err := c.server.pour(ctx, c.feed, func(from io.Reader) error {
		body := bodyOf(from, c.size, c.whole())
		options.Digests = func() (map[string]string, error) { return c.digests(body) }
		_, err := objects.Put(ctx, c.objectKey(), body, options)
		return err
	})
	if fed != nil {
		return nil, fed
	}
	if err != nil {
		if over != nil {
			err = conditional(err)
		}
		return nil, err
	}
	return c.note(ctx, c.known)
}

// objectKey is the key that the object will have.
func (c *completion) objectKey() string { return objectOf(c.Bucket, c.Key) }

// whole is the algorithm of a checksum that is of the whole object; nil: there is none.
func (c *completion) whole() *checksum {
	if c.Type == typeWhole {
		return checksumNamed(c.Algorithm)
	}
	return nil
}

// choose finds the parts that are asked for.
func (c *completion) choose(ctx context.Context, asked []message.CompletePart) error {
	if err := c.q.hold(ctx, completeBytes); err != nil {
		return err
	}
	stored, err := c.server.parted().Parts(ctx, c.Upload, 0, upload.PartsMost)
	if err != nil {
		return err
	}
	byNumber := make(map[int]*upload.Part, len(stored))
	for i := range stored {
		byNumber[stored[i].Number] = &stored[i]
	}
	tags, algorithm := newMD5(), checksumNamed(c.Algorithm)
	sumOfSums := newMD5()
	if algorithm != nil {
		sumOfSums = algorithm.make()
	}
	for i := range asked {
		part := byNumber[asked[i].PartNumber]
		if part == nil || bare(asked[i].ETag) != etagOf(&part.Object) {
			return refuse(invalidPart, "part %d, with the tag %.80q, was not put; put it, or name the tag that it was answered with",
				asked[i].PartNumber, asked[i].ETag)
		}
		is := &part.Object
		if i < len(asked)-1 && is.Size < c.server.options.LeastPart {
			return refuse(entityTooSmall, "part %d has %d bytes; all but the last have %d at least",
				part.Number, is.Size, c.server.options.LeastPart)
		}
		for k := range checksums {
			name := checksums[k].name
			given, known := *asked[i].Of(name), is.Metadata[metaSum+name]
			switch {
			case given == "" || given == known:
			case known == "":
				return refuse(badDigest.saying("The %s you specified for part %d did not match what we received.", name, part.Number),
					"the part was put without one of that kind")
			default:
				return refuse(invalidPart, "part %d has not the checksum %.80q", part.Number, given)
			}
		}
		tag, err := hex.DecodeString(etagOf(is))
		if err != nil {
			return fmt.Errorf("the tag of part %d: %w", part.Number, err)
		}
		_, _ = tags.Write(tag) // of hashes, which never fails
		if algorithm != nil {
			sum, err := base64.StdEncoding.DecodeString(is.Metadata[metaSum+c.Algorithm])
			if err != nil {
				return fmt.Errorf("the checksum of part %d: %w", part.Number, err)
			}
			_, _ = sumOfSums.Write(sum) // likewise
		}
		c.parts, c.size = append(c.parts, *part), c.size+is.Size
	}
	c.etag = fmt.Sprintf("%x-%d", tags.Sum(nil), len(c.parts))
	if c.Type == typeComposite {
		c.sum = fmt.Sprintf("%s-%d", encodeSum(sumOfSums.Sum(nil)), len(c.parts))
	}
	return c.checkSize()
}

// checkSize refuses what the client expects to be another object.
func (c *completion) checkSize() error {
	if text := c.q.Header.Get("X-Amz-Mp-Object-Size"); text != "" && text != strconv.FormatInt(c.size, 10) {
		return refuse(invalidRequest, "x-amz-mp-object-size is %.40q, and the parts have %d bytes", text, c.size)
	}
	return nil
}

// digests are what is known of the object once its bytes were read.
func (c *completion) digests(body *body) (map[string]string, error) {
	own, err := body.digests()
	if err != nil {
		return nil, err
	}
	if c.whole() != nil {
		c.sum = own[metaSum+c.Algorithm]
	}
	if c.Algorithm != "" {
		given := c.q.Header.Get("X-Amz-Checksum-" + c.Algorithm)
		if wanted, _, _ := strings.Cut(c.sum, "-"); given != "" && given != c.sum && given != wanted {
			return nil, refuse(badDigest, "the object has the checksum %s, and the request says %.80s", c.sum, given)
		}
	}
	c.known = map[string]string{metaETag: c.etag, metaUploadID: c.ID}
	if c.sum != "" {
		c.known[metaSum+c.Algorithm] = c.sum
	}
	if each := c.each(); each > 0 {
		c.known[metaPartSize] = strconv.FormatInt(each, 10)
	}
	return c.known, nil
}

// each is how large every part is but the last; 0 where they differ.
func (c *completion) each() int64 {
	each := c.parts[0].Object.Size
	for i := range c.parts {
		size := c.parts[i].Object.Size
		if isLast := i == len(c.parts)-1; !isLast && size != each || isLast && size > each {
			return 0
		}
	}
	return each
}

// feed writes the bytes of the parts, one after the other.
func (c *completion) feed(ctx context.Context, w io.Writer) error {
	err := c.server.parted().Write(ctx, c.Upload, c.parts, w)
	var replaced *upload.ReplacedError
	switch {
	case errors.Is(err, upload.ErrGone):
		return noUpload(c.q)
	case errors.As(err, &replaced):
		return &refusal{invalidPart, err}
	}
	return err
}

// note keeps what came of the upload for those who ask again, and deletes its parts. The object is there already: what fails here leaves
// parts that expire, and an upload that can be completed again.
func (c *completion) note(ctx context.Context, known map[string]string) (*upload.Completed, error) {
	came := &upload.Completed{List: c.list, ETag: known[metaETag]}
	if c.Algorithm != "" {
		came.Sum = known[metaSum+c.Algorithm]
	}
	err := c.server.parted().Finish(ctx, c.Upload, came)
	if err != nil && !errors.Is(err, context.Canceled) {
		c.server.log.Warn("an upload was completed, and its parts stay until they expire", "cause", err)
	}
	return came, nil
}
