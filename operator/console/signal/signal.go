// Package signal wakes those who wait for a change.
package signal

import (
	"context"
	"sync"
	"time"
)

// Signal tells any number of listeners that something changed.
type Signal struct {
	mutex sync.Mutex
	next  chan struct{}
}

// Wait returns a channel that is closed at the next Notify.
func (s *Signal) Wait() <-chan struct{} {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

// Notify wakes everybody who waits.
func (s *Signal) Notify() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}

// Wanted says to one loop that it is to go round now. However often it is told while it is busy, it goes round once more.
type Wanted chan struct{}

// NewWanted returns one that nobody has told yet.
func NewWanted() Wanted { return make(Wanted, 1) }

// Notify has the loop go round.
func (w Wanted) Notify() {
	select {
	case w <- struct{}{}:
	default: // it is told already
	}
}

// Pause waits for a while, or for the end of the context.
func Pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
