package decorate

import (
	"context"

	"github.com/restripe/restripe/agent/store"
)

// visitor is what a listing calls for each key.
type visitor = func(key string, size int64) error

// listing is a decorated store whose inner store can list.
type listing struct {
	store.Store
	list func(ctx context.Context, prefix string, visit visitor) error
}

// List implements store.Lister.
func (l listing) List(ctx context.Context, prefix string, visit func(key string, size int64) error) error {
	return l.list(ctx, prefix, visit)
}

// keepLister returns outer, which decorates inner, with the capability to list if inner has it. list is the decorated
// listing, given the inner one.
func keepLister(inner, outer store.Store, list func(inner store.Lister, ctx context.Context, prefix string, visit visitor) error) store.Store {
	lister, found := inner.(store.Lister)
	if !found {
		return outer
	}
	return listing{Store: outer, list: func(ctx context.Context, prefix string, visit visitor) error {
		return list(lister, ctx, prefix, visit)
	}}
}
