package sketch

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// most is how many sketches a Set has at most.
const most = 4

// Set has a sketch for every half-life, as far as there is room. Its methods are safe for concurrent use.
type Set struct {
	start    time.Time
	making   sync.Mutex
	sketches atomic.Pointer[[]lived] // immutable
}

// lived is a sketch and its half-life.
type lived struct {
	halfLife time.Duration
	*Sketch
}

// NewSet returns a set without sketches. start is at or before the first time handed in.
func NewSet(start time.Time) *Set {
	s := &Set{start: start}
	s.sketches.Store(new([]lived))
	return s
}

// For returns the sketch of a half-life, which is above 0: a new one where there is room, and otherwise the one whose own is nearest.
func (s *Set) For(halfLife time.Duration) *Sketch {
	if near, exactly := nearest(*s.sketches.Load(), halfLife); exactly {
		return near
	}
	s.making.Lock()
	defer s.making.Unlock()
	known := *s.sketches.Load()
	near, exactly := nearest(known, halfLife)
	if exactly {
		return near
	}
	fresh := lived{halfLife, New(halfLife, s.start)}
	list := append(append([]lived{}, known...), fresh)
	s.sketches.Store(&list)
	return fresh.Sketch
}

// nearest returns the sketch of the half-life that differs by the smallest factor, and whether that is the one to use.
func nearest(known []lived, halfLife time.Duration) (near *Sketch, use bool) {
	least := math.Inf(1)
	for _, one := range known {
		factor := math.Abs(math.Log(float64(one.halfLife) / float64(halfLife)))
		if factor < least {
			near, least = one.Sketch, factor
		}
	}
	return near, least == 0 || len(known) >= most
}

// Bytes is how much memory the sketches take.
func (s *Set) Bytes() int64 { return int64(len(*s.sketches.Load())) * Bytes }
