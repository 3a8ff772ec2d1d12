package decide

import (
	"time"
)

// Load is what clients and transitions did at the gateways in the window that ends now.
type Load struct {
	Window   time.Duration
	Requests int64
	P99      time.Duration // of clients' requests
	Moving   int64         // bytes per second of transitions
}

// Backoff is how far transitions give way to clients: additive increase, multiplicative decrease. The zero Backoff
// does not give way.
type Backoff struct {
	Ceiling int64     // bytes per second; 0: not lowered
	Changed time.Time // when it was last lowered or raised
}

// The shape of giving way.
const (
	fewestRequests = 20        // of a window whose 99th percentile says anything
	calmPercent    = 80        // of the latency limit: below, transitions get more
	raiseParts     = 16        // of the budget, given back with every calm window
	floorParts     = 32        // of the budget, which transitions keep whatever the latency
	freeFloor      = 256 << 10 // what they keep, and
	freeRaise      = 1 << 20   // get back at least, with every calm window, without a budget
	freeCeiling    = 1 << 40   // and from where on they are not held at all
	shortestWindow = time.Second
)

// Limit is the ceiling for Limits.Under.
func (b Backoff) Limit() int64 {
	if b.Ceiling <= 0 {
		return Unlimited
	}
	return b.Ceiling
}

// Next is the state after a look at the load. It changes at most once per window, since the same slow requests are in
// the percentile for that long; a clock that jumped back counts as a new window.
func (b Backoff) Next(limits Limits, load Load, now time.Time) Backoff {
	if limits.Latency <= 0 {
		return Backoff{}
	}
	if since := now.Sub(b.Changed); since >= 0 && since < max(load.Window, shortestWindow) {
		return b
	}
	busy := load.Requests >= fewestRequests
	switch {
	case busy && load.P99 > limits.Latency:
		return b.lower(limits, load, now)
	case b.Ceiling > 0 && (!busy || load.P99*100 < limits.Latency*calmPercent):
		return b.raise(limits, now)
	}
	return b
}

func (b Backoff) lower(limits Limits, load Load, now time.Time) Backoff {
	from := min(b.Limit(), limits.Total)
	if from == Unlimited {
		if load.Moving <= 0 {
			return b // what is slow is not the transitions' doing
		}
		from = load.Moving
	}
	floor := int64(freeFloor)
	if limits.Total != Unlimited {
		floor = max(1, limits.Total/floorParts)
	}
	return Backoff{Ceiling: max(floor, from/2), Changed: now}
}

func (b Backoff) raise(limits Limits, now time.Time) Backoff {
	step, end := max(int64(freeRaise), b.Ceiling/raiseParts*2), int64(freeCeiling)
	if limits.Total != Unlimited {
		step, end = max(1, limits.Total/raiseParts), limits.Total
	}
	if b.Ceiling+step >= end {
		return Backoff{Changed: now}
	}
	return Backoff{Ceiling: b.Ceiling + step, Changed: now}
}
