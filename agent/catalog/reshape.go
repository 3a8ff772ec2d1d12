package catalog

import (
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// isReshaping reports whether the attempt dissolves groups into columns of others, or takes them out again.
func (t *transaction) isReshaping() bool {
	return t.attempt.kind == KindWiden || t.attempt.kind == KindNarrow
}

// reshape checks that an attempt that widens or narrows groups leaves all of their columns where its records say, and counts those that lie
// in other groups. All records that it changes are among those that are compared: so columns come from groups that are as they were.
func (t *transaction) reshape(change *Change) error {
	if !t.isReshaping() {
		return nil
	}
	if len(change.NewGroups)+len(change.RepairedSlots)+len(change.Put)+len(change.Delete)+len(change.Move) > 0 || change.Update != nil {
		return fmt.Errorf("%s of groups changes other things: %w", t.attempt.kind, ErrBadChange)
	}
	if len(t.violated) > 0 {
		return nil // the records are not as they were read
	}
	before := map[block.GroupID]*Group{}
	for i := range change.Groups {
		before[change.Groups[i].Was.ID] = &change.Groups[i].Was.Group
	}
	narrow, wide, sign := before, t.results, int64(1)
	if t.attempt.kind == KindNarrow {
		narrow, wide, sign = t.results, before, -1
	}
	err := schema.CheckRegion(narrow, wide, func(id block.GroupID) bool {
		raw, asked := t.values[schema.GroupKey(id)]
		t.checks = append(t.checks, kv.Check{Key: schema.GroupKey(id)})
		return asked && raw == nil && t.attempt.kind == KindNarrow
	})
	if err != nil {
		return fmt.Errorf("%s: %w: %w", t.attempt.kind, err, ErrBadChange)
	}
	for _, group := range wide {
		t.lives.Lie(group, sign)
	}
	return nil
}

// goneOrigins are the groups whose columns a change takes out of others without bringing them back: they have to be gone.
func (change *Change) goneOrigins() (ids []block.GroupID) {
	changed := map[block.GroupID]bool{}
	for i := range change.Groups {
		changed[change.Groups[i].Was.ID] = true
	}
	for i := range change.Groups {
		was, width := change.Groups[i].Was, change.Groups[i].Width
		if width == nil {
			continue
		}
		for _, origin := range was.Brought[min(len(was.Brought), len(width.Brought)):] {
			if origin != (Column{}) && !changed[origin.Group] {
				changed[origin.Group] = true
				ids = append(ids, origin.Group)
			}
		}
	}
	return ids
}
