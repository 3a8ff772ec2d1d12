package decorate

import (
	"context"

	"github.com/restripe/restripe/agent/store"
)

// visitor is what a listing calls for each key.
type visitor = func(key string, size int64) error

// around carries out a listing, or a page of one, in the manner of a decorator.
type around func(ctx context.Context, prefix string, call func() error) error

// plainly is an around that adds nothing.
func plainly(_ context.Context, _ string, call func() error) error { return call() }

// listing is a decorated store whose inner store can list.
type listing struct {
	store.Store
	inner store.Lister
	list  func(ctx context.Context, inner store.Lister, prefix string, visit visitor) error
	page  around
}

// List implements store.Lister.
func (l listing) List(ctx context.Context, prefix string, visit func(key string, size int64) error) error {
	return l.list(ctx, l.inner, prefix, visit)
}

// Page implements store.Lister.
func (l listing) Page(ctx context.Context, prefix, after string, limit int) (keys []string, more bool, err error) {
	err = l.page(ctx, prefix, func() (err error) {
		keys, more, err = l.inner.Page(ctx, prefix, after, limit)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return keys, more, nil
}

// keepLister returns outer, which decorates inner, with the capability to list if inner has it. Listings and pages are carried
// out by each.
func keepLister(inner, outer store.Store, each around) store.Store {
	return keepListerAs(inner, outer, func(ctx context.Context, lister store.Lister, prefix string, visit visitor) error {
		return each(ctx, prefix, func() error { return lister.List(ctx, prefix, visit) })
	}, each)
}

// keepListerAs is keepLister with a way of its own to list all at once.
func keepListerAs(
	inner, outer store.Store, list func(ctx context.Context, inner store.Lister, prefix string, visit visitor) error, page around,
) store.Store {
	lister, found := inner.(store.Lister)
	if !found {
		return outer
	}
	return listing{Store: outer, inner: lister, list: list, page: page}
}
