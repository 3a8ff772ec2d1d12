package s3

import (
	"context"
	"encoding/xml"
	"net/http"
	"slices"
	"strings"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/gateway/s3/message"
)

// attributeNames are what can be asked for of an object.
var attributeNames = []string{"ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"}

// find describes the version of an object that a request names, with which the user may do something.
func (s *Server) find(ctx context.Context, q *request, verb access.Verb) (*api.Object, error) {
	if err := q.may(ctx, verb, q.object()); err != nil {
		return nil, err
	}
	is, err := s.options.Objects.Find(ctx, q.object())
	if err == nil && is == nil {
		if err = q.inBucket(ctx, q.bucket); err == nil {
			err = noKey(q.key)
		}
	}
	if err != nil {
		return nil, err
	}
	id := q.query.get("versionId")
	if id != "" && id != s.version(is) {
		of := is
		is = nil
		for _, revision := range of.Earlier {
			if revision.String() == id {
				is, err = object.FindEarlier(ctx, s.options.Objects, q.object(), revision)
			}
		}
		if err == nil && is == nil {
			err = noVersion(q.key, id)
		}
	}
	return is, err
}

// getAttributes answers what is known of an object, as far as it is asked for.
func getAttributes(ctx context.Context, q *request) error {
	s := q.server
	asked := strings.Join(q.Header.Values("X-Amz-Object-Attributes"), ",")
	if asked == "" {
		return refuse(invalidRequest,
			"x-amz-object-attributes is missing; want some of ETag, Checksum, ObjectParts, StorageClass, ObjectSize")
	}
	for name := range strings.SplitSeq(asked, ",") {
		if !slices.Contains(attributeNames, strings.TrimSpace(name)) {
			return refuse(invalidArgument, "x-amz-object-attributes is %.80q; want some of %s", asked, strings.Join(attributeNames, ", "))
		}
	}
	is, err := s.find(ctx, q, access.Read)
	if err != nil {
		return err
	}
	var result message.Attributes
	for name := range strings.SplitSeq(asked, ",") {
		switch strings.TrimSpace(name) {
		case "ETag":
			result.ETag = etagOf(is)
		case "Checksum":
			if known := sumsOf(is.Metadata, ""); known.ChecksumType != "" {
				result.Checksum = &known
			}
		case "ObjectParts":
			if strings.Contains(is.Metadata[metaETag], "-") {
				parts, _ := partsOf(is)
				result.ObjectParts = &message.PartsCount{TotalPartsCount: parts}
			}
		case "StorageClass":
			result.StorageClass = s.storageClass(is)
		case "ObjectSize":
			result.ObjectSize = &is.Size
		}
	}
	q.w.Header().Set("Last-Modified", is.Modified.Format(http.TimeFormat))
	return q.reply(&result)
}

type tagging struct {
	XMLName xml.Name `xml:"Tagging"`
	TagSet  struct {
		Tag []message.Tag
	}
}

// encode are the tags as a query has them.
func (t *tagging) encode() (string, error) {
	tags := map[string]string{}
	for _, one := range t.TagSet.Tag {
		if _, twice := tags[one.Key]; twice {
			return "", refuse(invalidTag, "the tag %.80q is given twice", one.Key)
		}
		tags[one.Key] = one.Value
	}
	return encodeTags(tags)
}

func getTagging(ctx context.Context, q *request) error {
	s := q.server
	is, err := s.find(ctx, q, access.Read)
	if err != nil {
		return err
	}
	list, err := readQuery(is.Metadata[metaTags])
	if err != nil {
		return err
	}
	var result message.TaggingResult
	for _, one := range list {
		result.TagSet.Tag = append(result.TagSet.Tag, message.Tag{Key: one.name, Value: one.value})
	}
	return q.reply(&result)
}

// putTagging writes the object anew: its tags lie with it.
func putTagging(ctx context.Context, q *request) error {
	s := q.server
	if err := q.may(ctx, access.Write, q.object()); err != nil {
		return err
	}
	var asked tagging
	if err := q.readXML(&asked, q.Header); err != nil {
		return err
	}
	text, err := asked.encode()
	if err != nil {
		return err
	}
	err = s.remake(ctx, q, func(metadata map[string]string) {
		if metadata[metaTags] = text; text == "" {
			delete(metadata, metaTags)
		}
	})
	if err != nil {
		return err
	}
	return q.done(http.StatusOK)
}

func deleteTagging(ctx context.Context, q *request) error {
	s := q.server
	is, err := s.find(ctx, q, access.Write)
	if err != nil {
		return err
	}
	if is.Metadata[metaTags] != "" {
		err = s.remake(ctx, q, func(metadata map[string]string) { delete(metadata, metaTags) })
	}
	if err != nil {
		return err
	}
	return q.done(http.StatusNoContent)
}
