package listing

import (
	"context"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
)

// Bucket is one that is there.
type Bucket struct {
	Name  string
	Since time.Time // when the first of its objects was modified
}

// Buckets returns up to most buckets that a user sees whose names begin with a prefix and come after one of a name, and whether there are
// more. It goes from one to the next, whatever they have in them.
func Buckets(
	ctx context.Context, objects *object.Objects, prefix, after string, most int, sees func(name string) bool,
) (found []Bucket, more bool, err error) {
	if after != "" {
		after = api.AfterPrefix(after + "/")
	}
	for limit := 1; ; {
		page, err := object.Records(ctx, objects, prefix, after, limit)
		if err != nil {
			return nil, false, err
		}
		full := len(page) == limit
		limit = recordsPage // of keys that are in no bucket
		for i := range page {
			key, err := keyOf(&page[i])
			if err != nil {
				return nil, false, err
			}
			if key <= after {
				continue // it was passed with its bucket
			}
			name, _, isIn := strings.Cut(key, "/")
			if after = key; !isIn {
				continue
			}
			after, limit = api.AfterPrefix(name+"/"), 1
			if !sees(name) {
				continue
			}
			if len(found) == most {
				return found, true, nil
			}
			found = append(found, Bucket{name, page[i].Modified})
		}
		if !full {
			return found, false, nil
		}
	}
}
