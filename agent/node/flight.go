package node

import (
	"context"
	"sync"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/wire"
)

// flights shares readings of units: many small reads of one unit at a time cost one read of the store.
type flights struct {
	mutex sync.Mutex
	units map[unitName]*flight
}

type unitName struct {
	address block.Address
	unit    int
}

// flight is one reading under way. data and err are set before landed is closed.
type flight struct {
	landed chan struct{}
	cancel context.CancelFunc
	users  int // under flights.mutex; at zero the flight is over and its buffer free
	data   []byte
	err    error
}

// readShared returns what is stored of a unit, verified, which the caller must not change, and lets go of with done.
func (r *reader) readShared(ctx context.Context, found stored, unit int) (data []byte, done func(), err error) {
	name := unitName{found.Header.Address(), unit}
	f := r.join(found, name)
	done = func() { r.leave(name, f) }
	select {
	case <-f.landed:
	case <-ctx.Done():
		done()
		return nil, nil, ctx.Err()
	}
	if f.err != nil {
		done()
		return nil, nil, f.err
	}
	return f.data, done, nil
}

// join becomes a user of the present flight, or starts one.
func (r *reader) join(found stored, name unitName) *flight {
	r.flights.mutex.Lock()
	defer r.flights.mutex.Unlock()
	if f, flying := r.flights.units[name]; flying {
		f.users++
		return f
	}
	if r.flights.units == nil {
		r.flights.units = map[unitName]*flight{}
	}
	ctx, cancel := context.WithCancel(r.ctx)
	f := &flight{landed: make(chan struct{}), cancel: cancel, users: 1}
	r.flights.units[name] = f
	r.work.Add(1)
	go func() {
		defer r.work.Done()
		data := r.pool.Get(found.Length(name.unit))
		err := r.readExactly(ctx, found, data, found.Offset(name.unit))
		if err == nil {
			err = found.CheckUnit(name.unit, data)
		}
		if err == nil {
			r.counters.add(wire.Counters{BlocksRead: 1, BytesRead: int64(found.Header.UnitBytes)})
		}
		f.data, f.err = data, err
		close(f.landed)
	}()
	return f
}

// leave ends one use. The last user takes the flight off the board, so a later read looks at the store again.
func (r *reader) leave(name unitName, f *flight) {
	r.flights.mutex.Lock()
	f.users--
	last := f.users == 0
	if last {
		delete(r.flights.units, name)
	}
	r.flights.mutex.Unlock()
	if !last {
		return
	}
	f.cancel()
	r.work.Add(1)
	go func() { // the reading may be under way still, into the buffer
		defer r.work.Done()
		<-f.landed
		r.pool.Put(f.data)
	}()
}
