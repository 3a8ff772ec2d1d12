package decide

import (
	"slices"
	"time"
)

// ETA is how long the rest takes.
type ETA struct{ Middle, Low, High time.Duration }

// Rates are the recent rates of a transition. The zero Rates knows none. A Rates is a value: Add returns another.
type Rates struct {
	at     time.Time
	done   int64
	recent []advance // oldest first
}

// advance is what was moved between two visits.
type advance struct {
	bytes   int64
	elapsed time.Duration
}

// rate is in bytes per second.
func (a advance) rate() float64 { return float64(a.bytes) / a.elapsed.Seconds() }

const (
	mostRates     = 20
	shortestVisit = time.Second // of two visits whose difference says anything
)

// Add returns the rates with one more visit. Time in which nothing was to move is left out by calling Skip.
func (r Rates) Add(at time.Time, done int64) Rates {
	elapsed := at.Sub(r.at)
	switch {
	case r.at.IsZero() || elapsed < 0 || done < r.done:
		return Rates{at: at, done: done, recent: r.recent}
	case elapsed < shortestVisit:
		return r
	}
	recent := append(slices.Clone(r.recent), advance{done - r.done, elapsed})
	return Rates{at: at, done: done, recent: recent[max(0, len(recent)-mostRates):]}
}

// Skip returns the rates without the time since the last visit.
func (r Rates) Skip(at time.Time, done int64) Rates {
	return Rates{at: at, done: done, recent: r.recent}
}

// longestETA is from where on an estimate says nothing.
const longestETA = 10 * 365 * 24 * time.Hour

// Rate is what was moved of late over the time it took: a budget is granted in lumps, so that most visits may find none.
func (r Rates) Rate() (bytesPerSecond float64, known bool) {
	if len(r.recent) == 0 {
		return 0, false
	}
	var all advance
	for _, one := range r.recent {
		all.bytes, all.elapsed = all.bytes+one.bytes, all.elapsed+one.elapsed
	}
	return all.rate(), true
}

// ETA estimates how long left bytes take: at the median rate, with the range from the slowest to the fastest fifth. It
// is unknown before three visits that found progress.
func (r Rates) ETA(left int64) (ETA, bool) {
	if left <= 0 {
		return ETA{}, true
	}
	sorted := make([]float64, len(r.recent))
	for i, one := range r.recent {
		sorted[i] = one.rate()
	}
	slices.Sort(sorted)
	moving := sorted[min(len(sorted), countZeros(sorted)):]
	if len(moving) < 3 {
		return ETA{}, false
	}
	at := func(rate float64) time.Duration {
		seconds := float64(left) / rate
		if seconds > longestETA.Seconds() {
			return longestETA
		}
		return time.Duration(seconds * float64(time.Second))
	}
	// Visits without progress slow the estimate down rather than making it endless.
	slowed := float64(len(moving)) / float64(len(sorted))
	last := len(moving) - 1
	eta := ETA{Middle: at(moving[len(moving)/2] * slowed), Low: at(moving[last-last/5]), High: at(moving[last/5] * slowed)}
	eta.Low, eta.High = min(eta.Low, eta.Middle), max(eta.High, eta.Middle)
	return eta, true
}

func countZeros(sorted []float64) int {
	n := 0
	for n < len(sorted) && sorted[n] <= 0 {
		n++
	}
	return n
}
