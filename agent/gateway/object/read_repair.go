package object

import (
	"context"
	"sync"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// RepairFirst has reads that meet a missing or wrong block wait until its group is rebuilt, by the nodes themselves, and
// then read it like any other (TriEC Section 3.2, receive and decode); a node that is slow is waited for. What cannot be
// rebuilt, and what lies on a node that does not answer, is decoded here. Without RepairFirst a read decodes what it
// misses, and the group is rebuilt after it. Call it before WriteTo.
func (r *Reader) RepairFirst() { r.repairs = true }

// rebuildForRead has a group rebuilt, if the reader wants that, and takes over its new record. It reports whether the fragment is
// worth another look.
func (r *Reader) rebuildForRead(ctx context.Context, id block.GroupID, seen *catalog.Snapshot) (bool, error) {
	if !r.repairs {
		return false, nil
	}
	whole, err := r.objects.mending.do(ctx, id, func() (bool, error) {
		if changed, err := r.refresh(ctx, id, seen); changed || err != nil {
			return true, err // somebody else had it rebuilt, before it was this reader's turn
		}
		return r.objects.repairs.RebuildNow(ctx, id), ctx.Err()
	})
	if !whole || err != nil {
		return false, err
	}
	return r.refresh(ctx, id, seen)
}

// mending is the rebuilding that reads wait for. Reads that meet the same group while it is rebuilt wait for one and the
// same rebuilding, which looks at every block of the group.
type mending struct {
	mutex   sync.Mutex
	flights map[block.GroupID]*mendingFlight
}

type mendingFlight struct {
	landed chan struct{} // closed when what follows is known
	whole  bool
	err    error
}

// do calls rebuild, or waits for the call that somebody else has under way for the group, and returns whether the group is
// whole now. Where that call failed for a reason of its caller, this one begins another.
func (m *mending) do(ctx context.Context, id block.GroupID, rebuild func() (whole bool, err error)) (bool, error) {
	for {
		m.mutex.Lock()
		flight := m.flights[id]
		if flight == nil {
			break
		}
		m.mutex.Unlock()
		select {
		case <-flight.landed:
			if flight.err == nil {
				return flight.whole, nil
			}
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	flight := &mendingFlight{landed: make(chan struct{})}
	if m.flights == nil {
		m.flights = map[block.GroupID]*mendingFlight{}
	}
	m.flights[id] = flight
	m.mutex.Unlock()
	defer func() {
		m.mutex.Lock()
		delete(m.flights, id)
		m.mutex.Unlock()
		close(flight.landed)
	}()
	flight.whole, flight.err = rebuild()
	return flight.whole, flight.err
}
