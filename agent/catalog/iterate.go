package catalog

import (
	"context"
	"iter"
	"math"
	"time"

	"github.com/restripe/restripe/agent/block"
)

// pageRecords is how many records an iterator reads at a time.
const pageRecords = 1000

// Forever is later than any time at which a grave falls due.
var Forever = time.UnixMilli(math.MaxInt64 / int64(time.Millisecond))

// pages walks page by page: read returns the next page and whether it was the last. An error is the last thing yielded.
// No walk is a snapshot: each page is as of its own moment.
func pages[T any](read func() (page []T, last bool, err error)) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		for {
			page, last, err := read()
			if err != nil {
				yield(nil, err)
				return
			}
			if len(page) > 0 && !yield(page, nil) || last {
				return
			}
		}
	}
}

// each takes the pages of a walk apart. What it yields may be kept.
func each[T any](walk iter.Seq2[[]T, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for page, err := range walk {
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page {
				if !yield(&page[i], nil) {
					return
				}
			}
		}
	}
}

// AllObjects walks the objects whose keys begin with prefix, in the order of their keys.
func (o *objects) AllObjects(ctx context.Context, prefix string) iter.Seq2[*Object, error] {
	after := ""
	return each(pages(func() ([]Object, bool, error) {
		page, err := o.ListObjects(ctx, prefix, after, pageRecords)
		if len(page) > 0 {
			after = page[len(page)-1].Key
		}
		return page, len(page) < pageRecords, err
	}))
}

// AllGroups walks the groups after the given one, in the order of their creation.
func (o *objects) AllGroups(ctx context.Context, after block.GroupID) iter.Seq2[*GroupView, error] {
	return each(pages(func() ([]GroupView, bool, error) {
		page, err := o.ListGroups(ctx, after, pageRecords) // fewer than asked for where groups were freed meanwhile
		if len(page) > 0 {
			after = page[len(page)-1].Group.ID
		}
		return page, len(page) == 0, err
	}))
}

// GroupSummaries walks the summaries of the groups after the given one, page by page.
func (o *objects) GroupSummaries(ctx context.Context, after block.GroupID) iter.Seq2[[]GroupSummary, error] {
	return recordPages[GroupSummary](ctx, o.engine, prefixGroup, groupKey(after))
}

// GroupRecords walks the records of all groups, page by page. It is AllGroups for those who do not ask how many extents live.
func (o *objects) GroupRecords(ctx context.Context) iter.Seq2[[]Group, error] {
	return recordPages[Group](ctx, o.engine, prefixGroup, prefixGroup)
}

// ObjectSummaries walks the summaries of all objects, page by page.
func (o *objects) ObjectSummaries(ctx context.Context) iter.Seq2[[]ObjectSummary, error] {
	return recordPages[ObjectSummary](ctx, o.engine, prefixObject, prefixObject)
}

// AllIntents walks the attempts that are active.
func (l *ledger) AllIntents(ctx context.Context) iter.Seq2[*Intent, error] {
	var after block.Stamp
	return each(pages(func() ([]Intent, bool, error) {
		page, err := l.Intents(ctx, after, pageRecords)
		if len(page) > 0 {
			after = page[len(page)-1].Stamp
		}
		return page, len(page) < pageRecords, err
	}))
}

// AllGraves walks the dead blocks that are due at the given time, after a place in the order of their addresses, page by
// page.
func (g *graveyard) AllGraves(ctx context.Context, now time.Time, after string) iter.Seq2[[]Grave, error] {
	return pages(func() ([]Grave, bool, error) {
		page, err := g.Graves(ctx, now, after, pageRecords)
		if len(page) > 0 {
			after = page[len(page)-1].Address.String()
		}
		return page, len(page) < pageRecords, err
	})
}
