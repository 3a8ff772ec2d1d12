package upload

import (
	"context"
	"strings"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/gateway/s3/listing"
)

// listPage is how many objects are read together: there may be many parts between one upload and the next.
const listPage = 100

// Entry is one of a listing: an upload, or a common prefix of the keys of several.
type Entry struct {
	*Upload        // nil: a common prefix
	Common  string // empty: an upload
}

// List returns uploads that are under way, by key and then by when they began, and whether there are more.
// It goes on after an upload of the key that it goes on after, or else after all of that key.
func (s Uploads) List(
	ctx context.Context, bucket string, what listing.Listing, afterID string, sees func(key, class string) bool,
) (found []Entry, more bool, err error) {
	if what.Most == 0 {
		return nil, false, nil
	}
	base, after := within(bucket), start(bucket, &what, afterID)
	for {
		page, err := object.Records(ctx, s.objects, base+what.Prefix, after, listPage)
		if err != nil {
			return nil, false, err
		}
		for i := range page {
			name, err := api.DecodeKey(page[i].Key64)
			if err != nil {
				return nil, false, err
			}
			if name <= after { // passed with its upload, or a common prefix
				continue
			}
			after = name
			key, id, number, isOne := readName(name[len(base):])
			if !isOne || number > 0 || !strings.HasPrefix(key, what.Prefix) {
				continue
			}
			after = api.AfterPrefix(name)
			u, err := read(Name{bucket, key, id}, &page[i])
			if err != nil || u.Completed != nil || !sees(bucket+"/"+key, u.Class) {
				continue // it is none, or no longer, or not for this user
			}
			one := Entry{Upload: u}
			if common, is := what.Common(key); is {
				one = Entry{Common: common}
				after = api.AfterPrefix(base + common)
			}
			if len(found) == what.Most {
				return found, true, nil
			}
			found = append(found, one)
		}
		if len(page) < listPage {
			return found, false, nil
		}
	}
}

// start is the key after which a listing begins. What is after a common prefix is after all that have it.
func start(bucket string, what *listing.Listing, afterID string) string {
	base := within(bucket)
	switch common, is := what.Common(what.After); {
	case what.After == "":
		return ""
	case is && common == what.After:
		return api.AfterPrefix(base + common)
	case validID.MatchString(afterID):
		return api.AfterPrefix(Name{bucket, what.After, afterID}.record())
	default:
		return api.AfterPrefix(base + what.After + keyEnd)
	}
}
