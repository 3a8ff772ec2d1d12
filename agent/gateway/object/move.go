package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/stripe"
)

// readsPerMove is how many objects are read at once to be moved.
const readsPerMove = 8

// MoveObjects takes small objects out of groups they share with others, into a new group under another scheme. Each keeps
// its revision: the bytes are the same. It fails if one of them has changed since its snapshot.
func (o *Objects) MoveObjects(ctx context.Context, class *api.Class, to stripe.Scheme, snapshots []*catalog.Snapshot) error {
	basis := make([]catalog.Basis, len(snapshots))
	for i, snapshot := range snapshots {
		basis[i] = snapshot
	}
	return o.moveObjects(ctx, class, to, snapshots, catalog.Change{}, basis)
}

// MoveUnchanged is MoveObjects of those that have not changed since their snapshots, or cannot be read; others stay where they are. Their
// records keep the scheme that was asked for last.
func (o *Objects) MoveUnchanged(ctx context.Context, class *api.Class, to stripe.Scheme, snapshots []*catalog.Snapshot) error {
	basis := make([]catalog.Basis, len(snapshots))
	for i, snapshot := range snapshots {
		basis[i] = catalog.Over(snapshot.Object.Key)
	}
	return o.moveObjects(ctx, class, to, snapshots, catalog.Change{LeaveOut: true}, basis)
}

// MoveLarge copies the bytes of an object of any size into new groups of a class, under a scheme of its ladder, whatever the ladder of
// those is that they lie in. The object must be as in the snapshot until the end, and keeps its revision. pass is asked before bytes go on.
func MoveLarge(
	ctx context.Context, o *Objects, class *api.Class, to stripe.Scheme, snapshot *catalog.Snapshot,
	pass func(ctx context.Context, bytes int64) error,
) error {
	body, stop, err := reading(ctx, o, o.groups.Memory.Copies, snapshot, 0, nil, pass)
	if err != nil {
		return err
	}
	defer stop()
	object := snapshot.Object
	p := &put{objects: o, class: class, scheme: to, key: object.Key, size: object.Size, body: body, record: object, moves: snapshot}
	p.record.Size, p.record.Extents = 0, nil
	err = p.run(ctx, nil, func(change *catalog.Change) {
		change.Move = []catalog.ObjectMove{{Snapshot: snapshot, Extents: p.record.Extents}}
	})
	if err != nil {
		return fmt.Errorf("moving object %q: %w", object.Key, err)
	}
	return nil
}

func (o *Objects) moveObjects(
	ctx context.Context, class *api.Class, to stripe.Scheme, snapshots []*catalog.Snapshot, change catalog.Change, basis []catalog.Basis,
) error {
	var total int64
	for _, snapshot := range snapshots {
		total += snapshot.Object.Size
	}
	release, err := o.groups.Memory.Updates.Reserve(ctx, total)
	if err != nil {
		return err
	}
	defer release()
	entries, err := o.readToMove(ctx, snapshots, change.LeaveOut)
	if err != nil {
		return fmt.Errorf("reading an object to move: %w", err)
	}
	byKey := map[string]*catalog.Snapshot{}
	for _, snapshot := range snapshots {
		byKey[snapshot.Object.Key] = snapshot
	}
	revision := func(_ *catalog.Attempt, key string) block.Stamp { return byKey[key].Object.Revision }
	announce := func(code *group.Code) (*catalog.Attempt, []block.NodeID, error) {
		return o.announcePacked(ctx, catalog.KindMove, class, code, basis...)
	}
	attempt, packed, err := o.stagePacked(ctx, batchKey{class, to}, 0, entries, revision, announce)
	if err != nil {
		return fmt.Errorf("moving small objects: %w", err)
	}
	change.NewGroups = []catalog.Group{*packed.group}
	asked, name := to.String(), class.Name
	if change.LeaveOut {
		asked, name = "", "" // as before
	}
	for key := range entries {
		change.Move = append(change.Move, catalog.ObjectMove{
			Snapshot: byKey[key], Extents: []catalog.Extent{packed.extents[key]}, Scheme: asked, Class: name,
		})
	}
	if err := o.groups.Commit(ctx, attempt, change); err != nil {
		return err
	}
	moved := slices.DeleteFunc(slices.Clone(snapshots), func(s *catalog.Snapshot) bool {
		_, read := entries[s.Object.Key]
		return !read
	})
	o.heat.Carried(moved, packed.group)
	return nil
}

// readToMove reads objects as they were when their snapshots were taken, some at a time. With leaveOut those that cannot be read
// are left out, unless none can.
func (o *Objects) readToMove(ctx context.Context, snapshots []*catalog.Snapshot, leaveOut bool) (map[string]content, error) {
	var mutex sync.Mutex
	var failures []error
	entries := map[string]content{}
	readers, ctx := errgroup.WithContext(ctx)
	readers.SetLimit(readsPerMove)
	for _, snapshot := range snapshots {
		readers.Go(func() error {
			var data bytes.Buffer
			reader := &Reader{objects: o, memory: o.groups.Memory.Reads, current: snapshot}
			err := reader.WriteTo(ctx, &data, 0, snapshot.Object.Size)
			mutex.Lock()
			defer mutex.Unlock()
			switch {
			case err == nil:
				entries[snapshot.Object.Key] = contentOf(&snapshot.Object, data.Bytes())
			case !leaveOut || ctx.Err() != nil:
				return err
			default:
				failures = append(failures, err)
			}
			return nil
		})
	}
	if err := readers.Wait(); err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, errors.Join(failures...)
	}
	return entries, nil
}
