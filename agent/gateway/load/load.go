package load

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// Window remembers the latencies of the last seconds, and the bytes of transitions. It allocates nothing and takes a
// lock once a second.
type Window struct {
	turning sync.Mutex // held to begin a new second
	slots   [windowSeconds + 1]loadSlot
}

// windowSeconds is how many whole seconds a window has; the present one comes on top.
const windowSeconds = 10

// loadSlot is one second.
type loadSlot struct {
	second    atomic.Int64 // Unix; 0: unused
	moved     atomic.Int64 // bytes
	latencies [latencyClasses]atomic.Uint32
}

// Latencies fall into classes of an octave of nanoseconds cut in eight.
const (
	latencyBits    = 3
	latencyClasses = 40 << latencyBits // up to 2^40 ns, a quarter of an hour
)

func latencyClass(latency time.Duration) int {
	n := uint64(max(latency, 1<<latencyBits))
	octave := bits.Len64(n) - 1
	return min(octave<<latencyBits|int(n>>(octave-latencyBits))&(1<<latencyBits-1), latencyClasses-1)
}

// latencyOf returns the middle of a class.
func latencyOf(class int) time.Duration {
	octave, eighth := class>>latencyBits, class&(1<<latencyBits-1)
	width := 1 << octave >> latencyBits
	return time.Duration(1<<octave + eighth*width + width/2)
}

// slot returns the counters of the second of now.
func (w *Window) slot(now time.Time) *loadSlot {
	second := now.Unix()
	s := &w.slots[uint64(second)%uint64(len(w.slots))]
	if s.second.Load() == second {
		return s
	}
	w.turning.Lock()
	defer w.turning.Unlock()
	if s.second.Load() != second {
		s.moved.Store(0)
		for i := range s.latencies {
			s.latencies[i].Store(0)
		}
		s.second.Store(second)
	}
	return s
}

// Request notes a client's request that ended now.
func (w *Window) Request(now time.Time, latency time.Duration) {
	w.slot(now).latencies[latencyClass(latency)].Add(1)
}

// Move notes what a transition cost.
func (w *Window) Move(now time.Time, bytes int64) { w.slot(now).moved.Add(bytes) }

// Sum returns what happened in the window before now.
func (w *Window) Sum(now time.Time) api.Load {
	var latencies [latencyClasses]int64
	var moved int64
	load := api.Load{WindowSeconds: windowSeconds}
	for i := range w.slots {
		s := &w.slots[i]
		if age := now.Unix() - s.second.Load(); age < 0 || age > windowSeconds {
			continue
		}
		moved += s.moved.Load()
		for class := range s.latencies {
			count := int64(s.latencies[class].Load())
			latencies[class] += count
			load.Requests += count
		}
	}
	load.TransitionBytesPerSecond = float64(moved) / windowSeconds
	percentile := func(part int64) float64 {
		below := int64(0)
		for class, count := range latencies {
			if below += count; count > 0 && below*100 >= load.Requests*part {
				return latencyOf(class).Seconds()
			}
		}
		return 0
	}
	load.P50Seconds, load.P99Seconds = percentile(50), percentile(99)
	return load
}
