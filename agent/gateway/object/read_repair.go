package object

import (
	"context"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/repair"
)

// RepairFirst has reads that meet a missing or wrong block wait until its group is rebuilt, by the nodes themselves, and
// then read it like any other (TriEC Section 3.2, receive and decode); a node that is slow is waited for. What cannot be
// rebuilt, and what lies on a node that does not answer, is decoded here, and left to the repair. Call it before WriteTo.
func (r *Reader) RepairFirst() { r.first, r.repairs = true, api.RepairWake }

// RepairOnRead has reads do that about lost blocks, in place of what the class of the object says. Call it before WriteTo.
func (r *Reader) RepairOnRead(mode api.RepairOnRead) { r.repairs = mode }

// mend does about a group, which has lost what was to be read of it, what the reader is to do, and reports whether it is worth
// another look. Blocks are read whole with deep, as where one that a node has may be wrong.
func (r *Reader) mend(ctx context.Context, group *catalog.Group, seen *catalog.Snapshot, deep bool) (again bool, err error) {
	o, id := r.objects, group.ID
	if r.first && deep {
		if again, err := r.rebuildForRead(ctx, id, seen); again || err != nil {
			return again, err
		}
	}
	if r.repairs == api.RepairNever {
		return false, nil
	}
	if r.repairs == api.RepairWait {
		if m, began := o.mendings.join(o, r, id, deep); m != nil {
			if !began && (m.by == r || o.copies(group) || !o.mendings.wait(ctx, m)) {
				return false, ctx.Err()
			}
			return r.refresh(ctx, id, seen) // who began it may have come right after another one
		}
	}
	if deep { // what a node took with it shows in the records, and is repaired by them
		o.mendings.counts.Repair(r.repairs, repair.ReadWoken)
		o.groups.Reported.Add(id)
	}
	return false, nil
}

// copies reports whether a group is replicated: of a copy that is lost another one is read, which takes no longer.
func (o *Objects) copies(group *catalog.Group) bool {
	code, err := o.groups.CodeOf(group)
	return err == nil && code.Scheme.K == 1
}

// mendGone is mend where the node does not answer that the fragment lies on: its blocks are lost if it is not expected back.
func (r *Reader) mendGone(ctx context.Context, group *catalog.Group, f fragment, seen *catalog.Snapshot) (again bool, err error) {
	item, found := group.Find(f.cell%group.Columns, f.cell/group.Columns)
	if !found || !r.objects.agents.IsGone(item.Node) {
		return false, nil
	}
	return r.mend(ctx, group, seen, false)
}

// rebuildForRead has a group rebuilt and takes over its new record. It reports whether the fragment is worth another look. Reads
// that meet the same group while it is rebuilt wait for one and the same rebuilding, which looks at every block of the group, and
// which goes on when they leave: the group wants it whoever reads.
func (r *Reader) rebuildForRead(ctx context.Context, id block.GroupID, seen *catalog.Snapshot) (bool, error) {
	if changed, err := r.refresh(ctx, id, seen); changed || err != nil {
		return changed, err // somebody else had it rebuilt
	}
	objects := r.objects
	landed := objects.mending.DoChan(id.String(), func() (any, error) {
		whole := make(chan bool, 1)
		objects.background.Go(func(ctx context.Context) { whole <- objects.repairs.RebuildNow(ctx, id) })
		repaired := <-whole
		outcome := repair.ReadFailed
		if repaired {
			outcome = repair.ReadRepaired
		}
		objects.mendings.counts.Repair(repair.ReadFirst, outcome)
		return repaired, nil
	})
	select {
	case mended := <-landed:
		if whole, _ := mended.Val.(bool); !whole {
			return false, nil
		}
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return r.refresh(ctx, id, seen)
}

const (
	// mostMendings is how many groups one gateway rebuilds for reads at a time. What is met beyond them waits for the repair.
	mostMendings = 16
	// mendPatience is how long reads wait for the rebuilding of a group, counted from its beginning: after it all of them decode, so
	// that one that takes long costs the readers of its group one such moment and not one each.
	mendPatience = time.Second
)

// mendings are the groups that are rebuilt because a read met a loss there.
type mendings struct {
	counts   *repair.ReadRepairs
	patience time.Duration

	mutex sync.Mutex
	under map[block.GroupID]*mending
}

// mending is the rebuilding of one group. Whoever began it has its bytes decoded meanwhile.
type mending struct {
	by      *Reader
	ended   chan struct{}
	late    chan struct{} // closed when nobody should wait any longer
	outcome repair.ReadOutcome
}

// join returns the rebuilding of a group, and begins it for the reader where none is under way; nil where it is left to the repair, as
// there are too many, or as the group waits for the repair already, which may have tried it in vain.
func (s *mendings) join(o *Objects, by *Reader, id block.GroupID, deep bool) (under *mending, began bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if m := s.under[id]; m != nil {
		return m, false
	}
	switch {
	case o.groups.Reported.Has(id):
		return nil, false
	case len(s.under) >= mostMendings:
		s.counts.Repair(api.RepairWait, repair.ReadBusy)
		return nil, false
	}
	m := &mending{by: by, ended: make(chan struct{}), late: make(chan struct{})}
	if s.under == nil {
		s.under = map[block.GroupID]*mending{}
	}
	s.under[id] = m
	patience := time.AfterFunc(s.patience, func() { close(m.late) })
	o.background.Go(func(ctx context.Context) {
		defer patience.Stop()
		m.outcome = o.repairs.RebuildForRead(ctx, id, deep)
		s.counts.Repair(api.RepairWait, m.outcome)
		if m.outcome != repair.ReadRepaired {
			o.groups.Reported.Add(id)
		}
		s.mutex.Lock()
		delete(s.under, id)
		s.mutex.Unlock()
		close(m.ended)
	})
	return m, true
}

// wait waits for a group to be rebuilt, and reports whether it is whole now.
func (s *mendings) wait(ctx context.Context, m *mending) bool {
	began := time.Now()
	defer func() { s.counts.Waited(time.Since(began)) }()
	select {
	case <-m.ended:
		return m.outcome == repair.ReadRepaired
	case <-m.late:
		s.counts.Late()
	case <-ctx.Done():
	}
	return false
}
