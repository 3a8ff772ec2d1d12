package upload

import (
	"context"
	"strings"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
)

// listPage is how many objects are read together: there may be many parts between one upload and the next.
const listPage = 100

// Listing says which uploads of a bucket are listed.
type Listing struct {
	Bucket, Prefix string
	After          string                                    // the key, or the common prefix, that it goes on after; empty: from the first
	AfterID        string                                    // the upload of that key that it goes on after; none: after all of them
	Most           int                                       // how many are listed at most, one or more
	Common         func(key string) (prefix string, is bool) // the common prefix that a key is listed as, if it is
	Sees           func(key, class string) bool              // whether an upload is listed that is for an object of the gateway
}

// Entry is one of a listing: an upload, or a common prefix of the keys of several.
type Entry struct {
	*Upload        // nil: a common prefix
	Common  string // empty: an upload
}

// List returns uploads that are under way, by key and then by when they began, and whether there are more.
func (s Uploads) List(ctx context.Context, of *Listing) (found []Entry, more bool, err error) {
	base, after := within(of.Bucket), of.start()
	for {
		page, err := object.Records(ctx, s.objects, base+of.Prefix, after, listPage)
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
			if !isOne || number > 0 || !strings.HasPrefix(key, of.Prefix) {
				continue
			}
			after = api.AfterPrefix(name)
			u, err := read(Name{of.Bucket, key, id}, &page[i])
			if err != nil || u.Completed != nil || !of.Sees(of.Bucket+"/"+key, u.Class) {
				continue // it is none, or no longer, or not for this user
			}
			one := Entry{Upload: u}
			if common, is := of.Common(key); is {
				one = Entry{Common: common}
				after = api.AfterPrefix(base + common)
			}
			if len(found) == of.Most {
				return found, true, nil
			}
			found = append(found, one)
		}
		if len(page) < listPage {
			return found, false, nil
		}
	}
}

// start is the key after which the listing begins. What is after a common prefix is after all that have it.
func (l *Listing) start() string {
	base := within(l.Bucket)
	switch common, is := l.Common(l.After); {
	case l.After == "":
		return ""
	case is && common == l.After:
		return api.AfterPrefix(base + common)
	case validID.MatchString(l.AfterID):
		return api.AfterPrefix(Name{l.Bucket, l.After, l.AfterID}.record())
	default:
		return api.AfterPrefix(base + l.After + keyEnd)
	}
}
