package catalog

import (
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// Forever is later than any time at which a grave falls due.
var Forever = time.UnixMilli(math.MaxInt64 / int64(time.Millisecond))

// AllObjects walks the objects whose keys begin with prefix, and the earlier versions of such, each in the order of their keys.
func (o *objects) AllObjects(ctx context.Context, prefix string) iter.Seq2[*Object, error] {
	ranges, after := []string{prefix}, ""
	if !block.IsEarlierKey(prefix) && prefix != "" { // else they are among them
		ranges = append(ranges, block.EarlierPrefix(prefix))
	}
	return codec.Items(codec.Pages(func() ([]Object, bool, error) {
		page, err := o.list(ctx, ranges[0], after, codec.PageRecords)
		if len(page) > 0 {
			after = page[len(page)-1].Key
		}
		if len(page) < codec.PageRecords && err == nil {
			ranges, after = ranges[1:], ""
		}
		return page, len(ranges) == 0, err
	}))
}

// AllGroups walks the groups after the given one that have columns of their own, in the order of their creation.
func (o *objects) AllGroups(ctx context.Context, after block.GroupID) iter.Seq2[*GroupView, error] {
	return codec.Items(codec.Pages(func() ([]GroupView, bool, error) {
		page, err := o.ListGroups(ctx, after, codec.PageRecords) // fewer than asked for where groups were freed meanwhile
		if len(page) > 0 {
			after = page[len(page)-1].Group.ID
		}
		return page, len(page) == 0, err
	}))
}

// GroupSummaries walks the summaries of the groups after the given one that have columns of their own, page by page.
func (o *objects) GroupSummaries(ctx context.Context, after block.GroupID) iter.Seq2[[]GroupSummary, error] {
	return without(codec.Records[GroupSummary](ctx, o.engine, schema.PrefixGroup, schema.GroupKey(after)),
		func(group GroupSummary) bool { return len(group.Lies) > 0 })
}

// GroupRecords walks the records of all groups that have columns of their own, page by page. It is AllGroups for those who do not ask how
// many extents live.
func (o *objects) GroupRecords(ctx context.Context) iter.Seq2[[]Group, error] {
	return without(codec.Records[Group](ctx, o.engine, schema.PrefixGroup, schema.PrefixGroup),
		func(group Group) bool { return group.IsDissolved() })
}

// without walks pages without some of what is on them.
func without[T any](pages iter.Seq2[[]T, error], is func(T) bool) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		for page, err := range pages {
			if !yield(slices.DeleteFunc(page, is), err) {
				return
			}
		}
	}
}

// ObjectSummaries walks the summaries of all objects, page by page.
func (o *objects) ObjectSummaries(ctx context.Context) iter.Seq2[[]ObjectSummary, error] {
	return codec.Records[ObjectSummary](ctx, o.engine, schema.PrefixObject, schema.PrefixObject)
}

// AllIntents walks the attempts that are active.
func (l *ledger) AllIntents(ctx context.Context) iter.Seq2[*Intent, error] {
	var after block.Stamp
	return codec.Items(codec.Pages(func() ([]Intent, bool, error) {
		page, err := l.Intents(ctx, after, codec.PageRecords)
		if len(page) > 0 {
			after = page[len(page)-1].Stamp
		}
		return page, len(page) < codec.PageRecords, err
	}))
}

// AllGraves walks the dead blocks that are due at the given time, after a place in the order of their addresses, page by
// page.
func (g *graveyard) AllGraves(ctx context.Context, now time.Time, after string) iter.Seq2[[]Grave, error] {
	return codec.Pages(func() ([]Grave, bool, error) {
		page, err := g.Graves(ctx, now, after, codec.PageRecords)
		if len(page) > 0 {
			after = page[len(page)-1].Address.String()
		}
		return page, len(page) < codec.PageRecords, err
	})
}
