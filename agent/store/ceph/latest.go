//go:build ceph

package ceph

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/store"
)

// longUnanswered is how long the caller of an operation has waited before it gave it up, if the operation may have gone to an
// address where no OSD is any more. One that is given up sooner says nothing: its answer was not needed any more. The latest map
// is fetched then, but no other operation waits for it: without monitors OSDs still answer.
const longUnanswered = 500 * time.Millisecond

// latest is the wait for the latest map of the OSDs. librados asks for a map when it sees reason to, which may be never: it
// goes on asking an OSD that has moved to another address.
type latest struct {
	mutex   sync.Mutex
	behind  bool          // an operation timed out, and none has succeeded since
	waiting chan struct{} // closed with the end of a wait under way; nil: none
	err     error         // of the last wait
}

// fallBehind says that an operation has timed out.
func (l *latest) fallBehind() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.behind = true
}

// succeed says that an operation was answered.
func (l *latest) succeed() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.behind = false
}

// awaitLatest waits for the latest map if an operation timed out and none has succeeded since.
func (s *Store) awaitLatest(ctx context.Context) error {
	s.latest.mutex.Lock()
	behind := s.latest.behind
	s.latest.mutex.Unlock()
	if !behind {
		return nil
	}
	return s.fetchLatest(ctx)
}

// fetchLatest waits for the latest map. librados has no time-out for that, so this one gives up the wait and leaves it to
// go on.
func (s *Store) fetchLatest(ctx context.Context) error {
	waiting := s.beginLatest()
	timer := time.NewTimer(s.options.Timeout)
	defer timer.Stop()
	select {
	case <-waiting:
		s.latest.mutex.Lock()
		defer s.latest.mutex.Unlock()
		if s.latest.err != nil {
			return fmt.Errorf("%w: waiting for the latest map of the OSDs: %w", store.ErrDown, s.latest.err)
		}
		return nil
	case <-timer.C:
		return fmt.Errorf("%w: waiting for the latest map of the OSDs: the monitors do not answer within %v", store.ErrDown, s.options.Timeout)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// beginLatest begins to wait for the latest map, unless that is under way, and returns what is closed at the end.
func (s *Store) beginLatest() <-chan struct{} {
	l := &s.latest
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.waiting != nil {
		return l.waiting
	}
	waiting := make(chan struct{})
	l.waiting = waiting
	go func() {
		err := s.connection.WaitForLatestOSDMap()
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.waiting, l.err = nil, err
		close(waiting)
	}()
	return waiting
}
