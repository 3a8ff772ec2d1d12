package object

import (
	"bytes"
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

// MoveObjects takes small objects out of groups they share with others, into new groups under another scheme. Each keeps
// its revision: the bytes are the same. Objects that change meanwhile are left to the caller's next look.
func (o *Objects) MoveObjects(ctx context.Context, class *api.Class, to stripe.Scheme, snapshots []*catalog.Snapshot) error {
	entries := map[string][]byte{}
	byKey := map[string]*catalog.Snapshot{}
	basis := make([]catalog.Basis, 0, len(snapshots))
	var total int64
	for _, snapshot := range snapshots {
		total += snapshot.Object.Size
	}
	release, err := o.groups.Memory.Updates.Reserve(ctx, total)
	if err != nil {
		return err
	}
	defer release()
	for _, snapshot := range snapshots {
		var data bytes.Buffer
		reader := &Reader{objects: o, memory: o.groups.Memory.Reads, current: snapshot}
		if err := reader.WriteTo(ctx, &data, 0, snapshot.Object.Size); err != nil {
			return fmt.Errorf("reading an object to move: %w", err)
		}
		basis = append(basis, snapshot)
		entries[snapshot.Object.Key], byKey[snapshot.Object.Key] = data.Bytes(), snapshot
	}
	revision := func(_ *catalog.Attempt, key string) block.Stamp { return byKey[key].Object.Revision }
	attempt, group, extents, err := o.stagePacked(ctx, catalog.KindMove, class, to, entries, revision, basis...)
	if err != nil {
		return fmt.Errorf("moving small objects: %w", err)
	}
	change := catalog.Change{NewGroups: []catalog.Group{*group}}
	for key, snapshot := range byKey {
		change.Move = append(change.Move, catalog.ObjectMove{Snapshot: snapshot, Extents: []catalog.Extent{extents[key]}, Scheme: to.String()})
	}
	return o.groups.Commit(ctx, attempt, change)
}
