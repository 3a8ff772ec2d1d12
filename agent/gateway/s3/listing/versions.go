package listing

import (
	"context"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
)

// Version is an item of a listing of versions.
type Version struct {
	Item
	ID       string // empty: a common prefix
	IsLatest bool
}

// Versions returns what a user sees of the versions of a bucket, by name and then the latest first, and whether there is more. It goes on
// after the version of the marker, which is one of the key that it goes on after; or else after all of that key. idOf says which version
// an object is.
func Versions(
	ctx context.Context, objects *object.Objects, bucket string, what Listing, marker string, sees func(key, class string) bool,
	idOf func(*api.Object) string,
) (items []Version, more bool, err error) {
	most := what.Most
	if most == 0 {
		return nil, false, nil
	}
	if _, err := block.ParseStamp(marker); err == nil { // else all versions of the key were listed
		is, err := objects.Find(ctx, bucket+"/"+what.After)
		if err != nil {
			return nil, false, err
		}
		if is != nil && sees(bucket+"/"+what.After, is.Class) {
			items, more, err = earlier(ctx, objects, bucket, &Item{what.After, is}, marker, most, nil)
		}
		if err != nil || more {
			return items, more, err
		}
	}
	what.Most = most - len(items) + 1 // one more says whether there is more
	page, more, err := Objects(ctx, objects, bucket, what, sees)
	if err != nil {
		return nil, false, err
	}
	for i := range page {
		one := &page[i]
		if len(items) == most {
			return items, true, nil
		}
		if one.Object == nil {
			items = append(items, Version{Item: *one})
			continue
		}
		items = append(items, Version{*one, idOf(one.Object), true})
		var cut bool
		if items, cut, err = earlier(ctx, objects, bucket, one, "", most, items); cut || err != nil {
			return items, cut, err
		}
	}
	return items, more, nil
}

// earlier adds the versions of an object before the current one, those after a version where one is named, as long as there are not too
// many; more says that there are.
func earlier(
	ctx context.Context, objects *object.Objects, bucket string, of *Item, after string, most int, items []Version,
) (list []Version, more bool, err error) {
	for _, revision := range of.Object.Earlier {
		if after != "" && revision.String() >= after { // they come the last one first
			continue
		}
		is, err := object.FindEarlier(ctx, objects, bucket+"/"+of.Name, revision)
		if err != nil {
			return nil, false, err
		}
		if is == nil {
			continue // it was dropped meanwhile
		}
		if len(items) == most {
			return items, true, nil
		}
		items = append(items, Version{Item{of.Name, is}, revision.String(), false})
	}
	return items, false, nil
}
