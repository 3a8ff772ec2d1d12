package console

import (
	"context"
	"sync"
	"time"
)

// signal tells any number of listeners that something changed.
type signal struct {
	mutex sync.Mutex
	next  chan struct{}
}

// wait returns a channel that is closed at the next notify.
func (s *signal) wait() <-chan struct{} {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

func (s *signal) notify() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}

// wanted says to one loop that it is to go round now. However often it is told while it is busy, it goes round once more.
type wanted chan struct{}

func newWanted() wanted { return make(wanted, 1) }

func (w wanted) notify() {
	select {
	case w <- struct{}{}:
	default: // it is told already
	}
}

// pause waits for a while, or for the end of the context.
func pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
