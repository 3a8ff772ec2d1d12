package s3

import (
	"context"
	"net/http"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/gateway/s3/listing"
	"github.com/restripe/restripe/agent/gateway/s3/message"
)

// A class may keep earlier versions of its objects. There the ID of a version is its revision; elsewhere an object has one version, null.

// nullVersion names the version of an object of which no others are kept.
const nullVersion = "null"

const headerVersion = "X-Amz-Version-Id"

// version is the ID of the version that an object is.
func (s *Server) version(is *api.Object) string {
	if class := s.options.Classes.Named(is.Class); len(is.Earlier) > 0 || class != nil && class.Keep != 0 {
		return is.Revision.String()
	}
	return nullVersion
}

// setVersion has an answer say which version it is about, where there may be several.
func setVersion(q *request, id string) {
	if id != nullVersion {
		q.w.Header().Set(headerVersion, id)
	}
}

// checkVersion refuses what would change one of several versions, or asks something of it that is known of the object alone.
func (q *request) checkVersion() error {
	id := q.query.get("versionId")
	isRead := q.Method == http.MethodGet || q.Method == http.MethodHead
	is := q.subresource()
	switch {
	case id == "" || id == nullVersion:
	case isRead && (is == "" || is == "attributes" || is == "tagging"):
	case q.Method == http.MethodDelete && is == "":
	default:
		return refuse(notImplemented, "a version of an object, here %.80q, can be read, and is otherwise as it was put", id)
	}
	return nil
}

func noVersion(key, id string) error {
	return refuse(noSuchVersion, "of the object with the key %.200q no version %.80q is kept", key, id)
}

// openVersion opens the version of an ID, or the current one where that is empty, and returns which it is.
func (s *Server) openVersion(ctx context.Context, of target, id string) (*object.Reader, string, error) {
	if id == "" || id == nullVersion {
		reader, err := s.options.Objects.Open(ctx, of.object())
		if err != nil {
			return nil, "", err
		}
		is := reader.Object()
		current := s.version(&is)
		if id != "" && id != current {
			return nil, "", noVersion(of.key, id)
		}
		return reader, current, nil
	}
	revision, err := block.ParseStamp(id)
	if err != nil {
		return nil, "", noVersion(of.key, id)
	}
	reader, err := object.OpenRevision(ctx, s.options.Objects, of.object(), revision)
	if isGone(err) {
		return nil, "", noVersion(of.key, id)
	}
	return reader, id, err
}

// checkDelete refuses to delete a version of an ID that is not all of an object.
func (s *Server) checkDelete(there *api.Object, key, id string) error {
	isCurrent := s.version(there) == id
	isEarlier := slices.ContainsFunc(there.Earlier, func(one block.Stamp) bool { return one.String() == id })
	switch {
	case id == "" || isCurrent && len(there.Earlier) == 0:
		return nil
	case isCurrent || isEarlier:
		return refuse(notImplemented, "the object has %d versions, which are deleted together: delete it without a version",
			len(there.Earlier)+1)
	}
	return noVersion(key, id)
}

// listVersions answers the versions of each object, the latest first.
func listVersions(ctx context.Context, q *request) error {
	s := q.server
	what := listing.Listing{Prefix: q.query.get("prefix"), Delimiter: q.query.get("delimiter"), After: q.query.get("key-marker")}
	var err error
	if what.Most, err = q.number("max-keys", listMost); err != nil {
		return err
	}
	encoded, err := encoder(q.query.get("encoding-type"))
	if err != nil {
		return err
	}
	marker := q.query.get("version-id-marker")
	if marker != "" && what.After == "" {
		return refuse(invalidArgument.saying("A version-id marker cannot be specified without a key marker."),
			"version-id-marker is %.80q, and key-marker is missing", marker)
	}
	sees, err := q.mayList(ctx, what.Prefix)
	if err != nil {
		return err
	}
	items, more, err := listing.Versions(ctx, s.options.Objects, q.bucket, what, marker, sees, s.version)
	if err != nil {
		return err
	}
	result := message.VersionsResult{
		Name: q.bucket, Prefix: encoded(what.Prefix), KeyMarker: encoded(what.After), VersionIDMarker: marker,
		MaxKeys: what.Most, Delimiter: encoded(what.Delimiter), EncodingType: q.query.get("encoding-type"), IsTruncated: more,
	}
	for i := range items {
		if items[i].Object == nil {
			result.CommonPrefixes = append(result.CommonPrefixes, message.CommonPrefix{Prefix: encoded(items[i].Name)})
			continue
		}
		one := message.ListedVersion{
			ListedObject: s.listed(items[i].Object, encoded(items[i].Name)), VersionID: items[i].ID, IsLatest: items[i].IsLatest,
		}
		one.Owner = &theOwner
		result.Version = append(result.Version, one)
	}
	if more {
		last := &items[len(items)-1]
		result.NextKeyMarker, result.NextVersionIDMarker = encoded(last.Name), last.ID
	}
	return q.reply(&result)
}
