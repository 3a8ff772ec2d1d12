package object

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
)

// Write is what becomes of one object among several.
type Write struct {
	Key     string
	Delete  bool
	Data    []byte         // nobody changes it any more
	Options api.PutOptions // but for Size and IfRevision
}

// Apply makes several changes, of one object each, at one instant, or none of them: it is ErrConflict if an object, one of these or
// another, has not the revision that it must have, the zero stamp for none. Objects that are put together are packed into groups
// of their own, small or not.
func (o *Objects) Apply(ctx context.Context, writes []Write, expected map[string]block.Stamp) (err error) {
	for try := range batchTries {
		if err = o.apply(ctx, writes, expected); !errors.Is(err, group.ErrNotWhole) || group.Pause(ctx, try) != nil {
			break
		}
	}
	return err
}

func (o *Objects) apply(ctx context.Context, writes []Write, expected map[string]block.Stamp) error {
	change := catalog.Change{IfRevision: expected}
	var kinds []batchKey
	var over []catalog.Basis
	entries := map[batchKey]map[string]entry{}
	for i := range writes {
		write := &writes[i]
		if write.Delete {
			if err := api.CheckKey(write.Key); err != nil {
				return err
			}
			change.Delete = append(change.Delete, write.Key)
			continue
		}
		if err := o.checkPut(write.Key, &write.Options); err != nil {
			return err
		}
		class, scheme, err := o.schemeFor(write.Key, &write.Options)
		if err != nil {
			return err
		}
		over = append(over, catalog.Over(write.Key))
		kind, object := o.entryOf(write.Key, class, scheme, write.Data, &write.Options)
		if entries[kind] == nil {
			entries[kind] = map[string]entry{}
			kinds = append(kinds, kind)
		}
		entries[kind][write.Key] = object
		o.heat.Popularity.Wrote(class, write.Key)
	}
	attempt, err := o.catalog.Begin(ctx, catalog.KindPut, o.groups.Deadline(), func(block.Stamp) []catalog.BlockSet { return nil }, over...)
	if err != nil {
		return fmt.Errorf("announcing several changes: %w", err)
	}
	defer o.groups.KeepAlive(ctx, attempt)()
	for i, kind := range kinds {
		if err := o.stageTogether(ctx, attempt, uint32(i), kind, entries[kind], &change); err != nil {
			return o.groups.Abandon(ctx, attempt, err)
		}
	}
	if err := o.commit(ctx, attempt, change); err != nil {
		return err
	}
	for i := range change.NewGroups {
		o.heat.Used(&change.NewGroups[i])
	}
	if len(change.NewGroups) == 0 {
		return o.witnessDelete(ctx)
	}
	return nil
}

// stageTogether stages objects of one kind in a group of their own, which it adds to the change of their attempt.
func (o *Objects) stageTogether(
	ctx context.Context, attempt *catalog.Attempt, index uint32, kind batchKey, entries map[string]entry, change *catalog.Change,
) error {
	contents := map[string]content{}
	for key, object := range entries {
		if len(object.data) > 0 {
			contents[key] = object.content
		}
	}
	extents := map[string]catalog.Extent{}
	if len(contents) > 0 {
		revision := func(*catalog.Attempt, string) block.Stamp { return attempt.Stamp() }
		announce := func(code *group.Code) (*catalog.Attempt, []block.NodeID, error) {
			home, err := o.agents.Place(kind.class, o.agents.Turns.Add(1), index)
			if err != nil {
				return nil, nil, err
			}
			set := group.Announce(block.GroupID{Stamp: attempt.Stamp(), Index: index}, code, home)
			return attempt, home, attempt.Extend(ctx, []catalog.BlockSet{set}, o.groups.Deadline())
		}
		_, packed, err := o.stagePacked(ctx, kind, index, contents, revision, announce)
		if err != nil {
			return err
		}
		change.NewGroups = append(change.NewGroups, *packed.group)
		extents = packed.extents
	}
	now := time.Now().UnixMilli()
	for key, object := range entries {
		record := recordOf(kind, attempt, key, object, now)
		if extent, has := extents[key]; has {
			record.Extents = []catalog.Extent{extent}
		}
		change.Put = append(change.Put, record)
	}
	return nil
}
