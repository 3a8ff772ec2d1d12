package listing

import (
	"context"
	"strings"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
)

// recordsPage is how many records are read together.
const recordsPage = 1000

// skipPage is how many objects are read together where those of a common prefix are passed by: there may be many of them.
const skipPage = 100

// Listing is what one of a bucket asks for.
type Listing struct {
	Prefix, Delimiter string // empty: all, and each by itself
	After             string // the key, or the common prefix, that it goes on after; empty: from the first
	Most              int    // how many keys and common prefixes are listed, at most
}

// Item is what a listing has one of: an object, or a common prefix of several.
type Item struct {
	Name   string      // the key in the bucket, or the prefix
	Object *api.Object // nil: a common prefix
}

// Objects returns what a user sees of a bucket, by name, and whether there is more. Those of a common prefix are passed by without being
// looked at one by one.
func Objects(
	ctx context.Context, objects *object.Objects, bucket string, what Listing, sees func(key, class string) bool,
) (items []Item, more bool, err error) {
	if what.Most == 0 {
		return nil, false, nil
	}
	base := bucket + "/"
	after := what.start(base)
	limit := min(what.Most+2, recordsPage) // one is the marker of the bucket
	if what.Delimiter != "" {
		limit = min(limit, skipPage)
	}
	for {
		page, err := object.Records(ctx, objects, base+what.Prefix, after, limit)
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
			one := Item{Name: key[len(base):], Object: &page[i]}
			if common, is := what.Common(one.Name); is {
				one = Item{Name: common}
				after = api.AfterPrefix(base + common)
			}
			if len(items) == what.Most {
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
func (l *Listing) start(base string) string {
	if l.After == "" {
		return ""
	}
	if common, is := l.Common(l.After); is && common == l.After {
		return api.AfterPrefix(base + common)
	}
	return base + l.After
}

// Common is the common prefix that a name is shown as, if it is.
func (l *Listing) Common(name string) (prefix string, is bool) {
	if l.Delimiter == "" || !strings.HasPrefix(name, l.Prefix) {
		return "", false
	}
	at := strings.Index(name[len(l.Prefix):], l.Delimiter)
	if at < 0 {
		return "", false
	}
	return name[:len(l.Prefix)+at+len(l.Delimiter)], true
}

// keyOf is the key of an object, byte by byte.
func keyOf(object *api.Object) (string, error) { return api.DecodeKey(object.Key64) }
