package object

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/budget"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// MaxUpdate bounds one update; more is a put.
const MaxUpdate = 64 << 20

// updateTries is how often an update starts over, with a new attempt, because other commits touched its groups first.
const updateTries = 20

// Update replaces bytes [offset, offset+len(data)) of an object. Only the touched cells and the parities over them are
// written: data nodes send differences to the parity nodes. data is the caller's memory. Where a node of a group does not
// answer or takes nothing, the whole object is written anew instead.
func (o *Objects) Update(ctx context.Context, key string, offset int64, data []byte, ifRevision *block.Stamp) (api.Object, error) {
	return update(ctx, o, key, offset, data, ifRevision, api.Request{})
}

func update(
	ctx context.Context, o *Objects, key string, offset int64, data []byte, ifRevision *block.Stamp, request api.Request,
) (api.Object, error) {
	if err := api.CheckKey(key); err != nil {
		return api.Object{}, err
	}
	return once(ctx, o, key, request, func() (api.Object, error) {
		return updateAgain(ctx, o, key, offset, data, ifRevision, request)
	})
}

// updateAgain tries until an update is committed, or refused for good.
func updateAgain(
	ctx context.Context, o *Objects, key string, offset int64, data []byte, ifRevision *block.Stamp, request api.Request,
) (api.Object, error) {
	if len(data) > MaxUpdate {
		return api.Object{}, api.Refuse(api.ErrBadRequest, "an update has at most %d bytes, this one %d; put the object anew", MaxUpdate, len(data))
	}
	var cause error
	for try := range updateTries {
		snapshot, err := o.look(ctx, key, offset, int64(len(data)))
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
		object, err := o.updateOnce(ctx, snapshot, offset, data, request)
		if errors.Is(err, errKept) {
			object, err = o.rewrite(ctx, snapshot, offset, data, request)
		}
		if err == nil {
			return object, nil
		}
		if ctx.Err() != nil || errors.Is(err, api.ErrUnknownOutcome) || isRepeated(err) {
			return api.Object{}, err
		}
		cause = err
		if member.Unanswered(err) || group.TakesNothing(err) || member.GoneBlock(err) || errors.Is(err, group.ErrNotWhole) {
			object, err := o.rewrite(ctx, snapshot, offset, data, request)
			if err == nil || !(errors.Is(err, api.ErrConflict) || errors.Is(err, group.ErrNotWhole)) {
				return object, err
			}
			cause = err
		} else if !errors.Is(err, api.ErrConflict) && !errors.Is(err, wire.ErrBusy) {
			return api.Object{}, err
		}
		if err := group.Pause(ctx, try); err != nil {
			return api.Object{}, err
		}
	}
	return api.Object{}, api.Refuse(api.ErrConflict, "other writes came first %d times; try again: %w", updateTries, cause)
}

// touched is what an update does to one group: for every cell, the runs of new bytes.
type touched struct {
	group   *catalog.Group
	patches map[int][]group.CellPatch
}

func (t *touched) cells() []int {
	cells := make([]int, 0, len(t.patches))
	for cell := range t.patches {
		cells = append(cells, cell)
	}
	slices.Sort(cells)
	return cells
}

// errKept says that the bytes of an object stay as they are when it is changed.
var errKept = errors.New("the class keeps versions")

func (o *Objects) updateOnce(
	ctx context.Context, snapshot *catalog.Snapshot, offset int64, data []byte, request api.Request,
) (api.Object, error) {
	if class := o.classes.Named(snapshot.Object.Class); class != nil && class.Keep != 0 {
		return api.Object{}, errKept
	}
	parts := map[block.GroupID]*touched{}
	rest := data
	for _, f := range fragments(snapshot, offset, int64(len(data))) {
		part := parts[f.group]
		if part == nil {
			part = &touched{group: snapshot.Groups[f.group], patches: map[int][]group.CellPatch{}}
			parts[f.group] = part
		}
		part.patches[f.cell] = append(part.patches[f.cell], group.CellPatch{Offset: f.offset, Data: rest[:f.length]})
		rest = rest[f.length:]
	}
	ids := make([]block.GroupID, 0, len(parts))
	for id := range parts {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b block.GroupID) int { return cmp.Compare(a.String(), b.String()) })
	runs := make([]*group.Execution, 0, len(ids))
	basis := []catalog.Basis{snapshot}
	for _, id := range ids {
		basis = append(basis, snapshot.View(id))
		part := parts[id]
		code, err := o.groups.CodeOf(part.group)
		if err != nil {
			return api.Object{}, err
		}
		plan, err := stripe.NewUpdatePlan(code.Layout, code.Scheme, part.cells())
		if err != nil {
			return api.Object{}, fmt.Errorf("planning the update of group %s: %w", id, err)
		}
		run, err := o.groups.NewExecution(part.group, plan)
		if err != nil {
			return api.Object{}, err
		}
		run.Patches = part.patches
		runs = append(runs, run)
	}
	attempt, err := o.catalog.Begin(ctx, catalog.KindUpdate, o.groups.Deadline(), func(block.Stamp) []catalog.BlockSet {
		sets := make([]catalog.BlockSet, len(runs))
		for i, run := range runs {
			sets[i] = run.Blocks()
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
	record := snapshot.Object
	record.Revision = attempt.Stamp()
	updated := publicObject(&record)
	change.Answers = answerOf(request, record.Key, &updated)
	for _, run := range runs {
		run.Revised, run.Span = snapshot.Object.Key, spanOf(ids)
		result, err := o.groups.Execute(ctx, attempt, run)
		if err != nil {
			return api.Object{}, o.groups.Abandon(ctx, attempt, err)
		}
		change.Groups = append(change.Groups, catalog.GroupChange{
			Was: snapshot.View(run.Group.ID), Slots: result.Slots, Scheme: run.Group.Scheme, NewEpoch: true, Seal: true,
		})
	}
	if err := o.commit(ctx, attempt, change); err != nil {
		return api.Object{}, err
	}
	for _, run := range runs {
		o.heat.Used(run.Group)
	}
	return updated, nil
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
func (o *Objects) rewrite(
	ctx context.Context, snapshot *catalog.Snapshot, offset int64, data []byte, request api.Request,
) (api.Object, error) {
	body, stop, err := reading(ctx, o, o.groups.Memory.Rewrites, snapshot, offset, data, func(context.Context, int64) error { return nil })
	if err != nil {
		return api.Object{}, err
	}
	defer stop()
	scheme := snapshot.Object.Scheme
	if class, err := o.classes.For(snapshot.Object.Key, snapshot.Object.Class); err == nil && scheme != "" {
		if parsed, err := stripe.ParseScheme(scheme); err != nil || !class.Ladder.Contains(parsed) {
			scheme = "" // the class's ladder has changed since: its default
		} else if parsed == class.Default {
			scheme = "" // which it is, unless the key is a hot one
		}
	}
	return o.Put(ctx, snapshot.Object.Key, body, api.PutOptions{
		Class: snapshot.Object.Class, Scheme: scheme, Size: snapshot.Object.Size, IfRevision: &snapshot.Object.Revision,
		Expires: publicObject(&snapshot.Object).Expires, Metadata: snapshot.Object.Metadata, Request: request,
	})
}

// reading has the bytes of an object read as they are in a snapshot, with data in place of what is at an offset, until stop is called.
// What it has read waits for the group it is read into, so it has memory of its own, and there is one such read of it at a time. pass is
// asked before bytes are handed on.
func reading(
	ctx context.Context, o *Objects, memory budget.Budget, snapshot *catalog.Snapshot, offset int64, data []byte,
	pass func(ctx context.Context, bytes int64) error,
) (body io.Reader, stop func(), err error) {
	release, err := memory.Reserve(ctx, memory.Bytes)
	if err != nil {
		return nil, nil, err
	}
	reader := &Reader{objects: o, memory: budget.New(memory.Bytes), current: snapshot}
	pipe, feed := io.Pipe()
	into := writing(func(bytes []byte) (int, error) {
		if err := pass(ctx, int64(len(bytes))); err != nil {
			return 0, err
		}
		return feed.Write(bytes)
	})
	o.background.Go(func(context.Context) {
		err := reader.WriteTo(ctx, into, 0, offset)
		if err == nil {
			_, err = feed.Write(data)
		}
		if err == nil {
			end := offset + int64(len(data))
			err = reader.WriteTo(ctx, into, end, snapshot.Object.Size-end)
		}
		feed.CloseWithError(err) // nil closes with io.EOF; CloseWithError never fails
	})
	return pipe, func() {
		pipe.CloseWithError(io.ErrClosedPipe) // never fails
		release()
	}, nil
}

// writing is a function that writes.
type writing func(bytes []byte) (int, error)

func (w writing) Write(bytes []byte) (int, error) { return w(bytes) }

// UpdateFrom is Update with the bytes of body, of that size, whose memory is held as they come.
func (o *Objects) UpdateFrom(
	ctx context.Context, key string, offset int64, body io.Reader, size int64, ifRevision *block.Stamp, request api.Request,
) (api.Object, error) {
	data, err := group.ReadBody(ctx, o.groups.Memory.Updates, body, min(size, MaxUpdate)+1)
	defer data.Release()
	if err != nil {
		return api.Object{}, fmt.Errorf("reading the new bytes: %w", err)
	}
	return update(ctx, o, key, offset, data.Bytes, ifRevision, request)
}
