package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// runName tells runs apart: one position of one group under one attempt.
type runName struct {
	stamp    block.Stamp
	group    block.GroupID
	position stripe.Position
}

func (r runName) String() string {
	return fmt.Sprintf("run %s of group %s at position %d", r.stamp, r.group, r.position)
}

// runs holds the runs under way and, bounded, the finished ones.
type runs struct {
	room       *semaphore.Weighted // bytes that runs gather into
	remembered int
	parkLimit  int64

	mutex    sync.Mutex
	named    map[runName]*run
	finished []runName // oldest first
	arrivals map[runName]*arrival
	parked   int64 // bytes of messages that wait for their run
}

// arrival is awaited by messages that came before their run.
type arrival struct {
	arrived chan struct{}
	waiting int
}

func newRuns(options *Options) *runs {
	return &runs{
		room: semaphore.NewWeighted(options.RunBytes), remembered: options.Remembered, parkLimit: options.ParkedBytes,
		named: map[runName]*run{}, arrivals: map[runName]*arrival{},
	}
}

// enter returns the run of that name; fresh says that it was made by this call, to live within ctx. The caller waits
// for it until leave.
func (s *runs) enter(ctx context.Context, name runName, p *program) (r *run, fresh bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if r = s.named[name]; r != nil {
		r.waiters++
		return r, false
	}
	r = newRun(ctx, name, p)
	r.waiters = 1
	s.named[name] = r
	if a := s.arrivals[name]; a != nil {
		close(a.arrived)
		delete(s.arrivals, name)
	}
	return r, true
}

// leave ends one caller's waiting; a run nobody waits for is cancelled.
func (s *runs) leave(r *run) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if r.waiters--; r.waiters == 0 {
		r.cancel(fmt.Errorf("%s: %w: nobody waits for it any more", r.name, wire.ErrCancelled))
	}
}

// finish records the outcome. A run that was refused for want of room did nothing and is forgotten, so that it can be
// asked for again.
func (s *runs) finish(r *run, reply wire.RunReply, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r.reply, r.err = reply, err
	r.over = true
	if errors.Is(err, wire.ErrBusy) {
		delete(s.named, r.name)
	} else if s.finished = append(s.finished, r.name); len(s.finished) > s.remembered {
		delete(s.named, s.finished[0])
		s.finished = s.finished[1:]
	}
	close(r.ended)
}

// outcome returns the result of a run that has ended.
func (s *runs) outcome(r *run) (wire.RunReply, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return r.reply, r.err
}

// void ends every run and takes the results of finished ones back: their receipts are for contents that are gone.
func (s *runs) void(cause error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, r := range s.named {
		if r.over {
			r.reply, r.err = wire.RunReply{}, cause
		} else {
			r.cancel(cause)
		}
	}
}

// await returns the run a message of that size is for, once it gathers or is over. It waits a bounded time.
func (s *runs) await(ctx context.Context, name runName, size int, patience time.Duration) (*run, error) {
	s.mutex.Lock()
	r := s.named[name]
	if r != nil && r.hasStarted() {
		s.mutex.Unlock()
		return r, nil
	}
	if s.parked+int64(size) > s.parkLimit {
		s.mutex.Unlock()
		return nil, fmt.Errorf("%s: %w: messages of %d bytes wait for runs that are not here yet", name, wire.ErrBusy, s.parkLimit)
	}
	s.parked += int64(size)
	var here *arrival
	if r == nil {
		here = s.arrivals[name]
		if here == nil {
			here = &arrival{arrived: make(chan struct{})}
			s.arrivals[name] = here
		}
		here.waiting++
	}
	s.mutex.Unlock()
	defer s.unpark(name, here, size)

	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if r == nil {
		select {
		case <-here.arrived:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: %w: it did not come within %s", name, wire.ErrNotFound, patience)
		}
		s.mutex.Lock()
		r = s.named[name]
		s.mutex.Unlock()
		if r == nil {
			return nil, fmt.Errorf("%s: %w: it was refused", name, wire.ErrNotFound)
		}
	}
	select {
	case <-r.started:
	case <-r.ended:
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w: it waits for room", name, wire.ErrBusy)
	}
	return r, nil
}

func (s *runs) unpark(name runName, here *arrival, size int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.parked -= int64(size)
	if here != nil {
		if here.waiting--; here.waiting == 0 && s.arrivals[name] == here {
			delete(s.arrivals, name)
		}
	}
}
