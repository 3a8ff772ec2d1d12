package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// maxUpdate bounds one update; more is a put.
const maxUpdate = 64 << 20

// updateTries is how often an update starts over, with a new attempt, because other commits touched its groups first.
const updateTries = 20

// Update replaces bytes [offset, offset+len(data)) of an object. Only the touched cells and the parities over them are
// written: data nodes send differences to the parity nodes. data is the caller's memory. Where a node of a group does not
// answer or takes nothing, the whole object is written anew instead.
func (g *Gateway) Update(ctx context.Context, key string, offset int64, data []byte, ifRevision *block.Stamp) (api.Object, error) {
	if err := api.CheckKey(key); err != nil {
		return api.Object{}, err
	}
	if len(data) > maxUpdate {
		return api.Object{}, api.Refuse(api.ErrBadRequest, "an update has at most %d bytes, this one %d; put the object anew", maxUpdate, len(data))
	}
	var cause error
	for try := range updateTries {
		snapshot, err := g.catalog.Snapshot(ctx, key)
		if err != nil {
			return api.Object{}, err
		}
		size := snapshot.Object.Size
		if offset < 0 || offset > size-int64(len(data)) {
			return api.Object{}, api.Refuse(api.ErrBadRequest, "%d bytes at %d are outside the object's %d; an update does not change the size, put the object anew", len(data), offset, size)
		}
		if ifRevision != nil && snapshot.Object.Revision != *ifRevision {
			return api.Object{}, api.Refuse(api.ErrConflict, "the object is at revision %s, not %s", snapshot.Object.Revision, *ifRevision)
		}
		if len(data) == 0 {
			return publicObject(&snapshot.Object), nil
		}
		object, err := g.updateOnce(ctx, snapshot, offset, data)
		if err == nil {
			return object, nil
		}
		if ctx.Err() != nil || errors.Is(err, api.ErrUnknownOutcome) {
			return api.Object{}, err
		}
		cause = err
		if unanswered(err) || takesNothing(err) || goneBlock(err) || errors.Is(err, errNotWhole) {
			object, err := g.rewrite(ctx, snapshot, offset, data)
			if err == nil || !(errors.Is(err, api.ErrConflict) || errors.Is(err, errNotWhole)) {
				return object, err
			}
			cause = err
		} else if !errors.Is(err, api.ErrConflict) && !errors.Is(err, wire.ErrBusy) {
			return api.Object{}, err
		}
		if err := pause(ctx, try); err != nil {
			return api.Object{}, err
		}
	}
	return api.Object{}, api.Refuse(api.ErrConflict, "other writes came first %d times; try again: %w", updateTries, cause)
}

// touched is what an update does to one group: for every cell, the runs of new bytes.
type touched struct {
	group   *catalog.Group
	patches map[int][]cellPatch
}

func (t *touched) cells() []int {
	cells := make([]int, 0, len(t.patches))
	for cell := range t.patches {
		cells = append(cells, cell)
	}
	slices.Sort(cells)
	return cells
}

func (g *Gateway) updateOnce(ctx context.Context, snapshot *catalog.Snapshot, offset int64, data []byte) (api.Object, error) {
	parts := map[block.GroupID]*touched{}
	rest := data
	for _, f := range fragments(snapshot, offset, int64(len(data))) {
		part := parts[f.group]
		if part == nil {
			part = &touched{group: snapshot.Groups[f.group], patches: map[int][]cellPatch{}}
			parts[f.group] = part
		}
		part.patches[f.cell] = append(part.patches[f.cell], cellPatch{offset: f.offset, data: rest[:f.length]})
		rest = rest[f.length:]
	}
	ids := make([]block.GroupID, 0, len(parts))
	for id := range parts {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b block.GroupID) int { return cmp.Compare(a.String(), b.String()) })
	runs := make([]*run, 0, len(ids))
	basis := []catalog.Basis{snapshot}
	for _, id := range ids {
		basis = append(basis, snapshot.View(id))
		part := parts[id]
		code, err := g.codeOf(part.group)
		if err != nil {
			return api.Object{}, err
		}
		plan, err := stripe.NewUpdatePlan(code.layout, code.scheme, part.cells())
		if err != nil {
			return api.Object{}, fmt.Errorf("planning the update of group %s: %w", id, err)
		}
		run, err := g.newRun(part.group, plan)
		if err != nil {
			return api.Object{}, err
		}
		run.patches = part.patches
		runs = append(runs, run)
	}
	attempt, err := g.catalog.Begin(ctx, catalog.KindUpdate, g.deadline(), func(block.Stamp) []catalog.BlockSet {
		sets := make([]catalog.BlockSet, len(runs))
		for i, run := range runs {
			sets[i] = run.blocks()
		}
		return sets
	}, basis...)
	if err != nil {
		if errors.Is(err, catalog.ErrStale) {
			return api.Object{}, fmt.Errorf("%w: %w", api.ErrConflict, err)
		}
		return api.Object{}, fmt.Errorf("announcing the update: %w", err)
	}
	change := catalog.Change{Update: &catalog.ObjectUpdate{Snapshot: snapshot, Size: snapshot.Object.Size, Modified: time.Now().UnixMilli()}}
	for _, run := range runs {
		run.revised, run.span = snapshot.Object.Key, spanOf(ids)
		result, err := g.carryOut(ctx, attempt, run)
		if err != nil {
			return api.Object{}, g.abandon(ctx, attempt, err)
		}
		change.Groups = append(change.Groups, catalog.GroupChange{
			Was: snapshot.View(run.group.ID), Slots: result.slots, Scheme: run.group.Scheme, NewEpoch: true,
		})
	}
	if err := g.commit(ctx, attempt, change); err != nil {
		return api.Object{}, err
	}
	for _, run := range runs {
		g.heat.used(run.group)
	}
	record := snapshot.Object
	record.Revision = attempt.Stamp()
	return publicObject(&record), nil
}

// spanOf lists the groups of an update by their indices, so that whoever finds the blocks of one of them knows of the
// others; nil for one group alone. All groups of an object are of one put.
func spanOf(ids []block.GroupID) []uint32 {
	var span []uint32
	for _, id := range ids {
		if id.Stamp != ids[0].Stamp {
			return nil
		}
		span = append(span, id.Index)
	}
	if len(span) < 2 {
		return nil
	}
	slices.Sort(span)
	return span
}

// rewrite is the update out of place: the whole object, patched, as a put over exactly the revision read.
func (g *Gateway) rewrite(ctx context.Context, snapshot *catalog.Snapshot, offset int64, data []byte) (_ api.Object, err error) {
	// One at a time, with memory of its own: what it has read waits for the group it is read into.
	release, err := g.memory.rewrites.reserve(ctx, g.memory.rewrites.bytes)
	if err != nil {
		return api.Object{}, err
	}
	defer release()
	reader := &Reader{gateway: g, memory: newBudget(g.memory.rewrites.bytes), current: snapshot}
	pipe, feed := io.Pipe()
	g.background(func(context.Context) {
		err := reader.WriteTo(ctx, feed, 0, offset)
		if err == nil {
			_, err = feed.Write(data)
		}
		if err == nil {
			end := offset + int64(len(data))
			err = reader.WriteTo(ctx, feed, end, snapshot.Object.Size-end)
		}
		feed.CloseWithError(err) // nil closes with io.EOF; CloseWithError never fails
	})
	defer func() { err = errors.Join(err, pipe.Close()) }()
	scheme := snapshot.Object.Scheme
	if class, err := g.classFor(snapshot.Object.Key, snapshot.Object.Class); err == nil && scheme != "" {
		if parsed, err := stripe.ParseScheme(scheme); err != nil || !class.Ladder.Contains(parsed) {
			scheme = "" // the class's ladder has changed since: its default
		}
	}
	return g.Put(ctx, snapshot.Object.Key, pipe, api.PutOptions{
		Class: snapshot.Object.Class, Scheme: scheme, Size: snapshot.Object.Size, IfRevision: &snapshot.Object.Revision,
	})
}
