package gateway

import (
	"time"

	"github.com/restripe/restripe/agent/block"
)

// healthState is what a gateway thinks of a node by the answers to its probes.
type healthState string

// The states of health. A node nobody has asked yet has none of them.
const (
	healthUp      healthState = "up"
	healthSuspect healthState = "suspect" // it missed a few probes: asked last, given nothing new
	healthDown    healthState = "down"    // it has not answered for long
)

const (
	missesToSuspect  = 2           // in a row
	missesToGiveUp   = 3           // in a row, beside the silence that is waited for
	answersToTrust   = 2           // in a row, after it was suspect
	answersAtMost    = 8           // what that number grows to for a node that comes and goes
	calmAfter        = time.Minute // up for so long, a node counts as steady again
	countedApart     = time.Second / 2
	standstill       = 10 * time.Second // without a counted probe, which comes every second: it is the gateway that stood still
	leastPatience    = time.Second      // bounds on the wait for one answer
	greatestPatience = 3 * time.Second
)

// health is the failure detector of one node: a value that the outcomes of probes turn into the next one. It does not
// flap: one lost probe says nothing, a suspect must answer several times in a row to be trusted again, and twice as often
// each time it turns suspect soon after. How long an answer is waited for follows the round trips seen, as
// retransmission timers do (RFC 6298), and doubles with every miss.
type health struct {
	state    healthState
	since    time.Time // of state
	known    time.Time // when it was first asked
	answered time.Time // when it last answered; zero: never
	quiet    time.Time // from when its silence counts: its last answer or, after a standstill, the first probe
	counted  time.Time // when an outcome was last counted: probes that others ask for in between prove nothing more
	misses   int       // in a row
	answers  int       // in a row
	wanted   int       // answers in a row before it is trusted again

	smooth    time.Duration // round trips, exponentially smoothed
	deviation time.Duration
}

// timeout is how long the next answer is waited for.
func (h health) timeout() time.Duration {
	patience := max(h.smooth+4*h.deviation, leastPatience)
	return min(patience<<min(h.misses, 4), greatestPatience)
}

// silence is for how long its probes were missed. Time in which this gateway did not ask says nothing of the node.
func (h health) silence() time.Duration {
	if h.misses == 0 {
		return 0
	}
	return h.counted.Sub(h.quiet)
}

// answer is the health after a probe that was answered in time.
func (h health) answer(now time.Time, took time.Duration) health {
	if h.answered.IsZero() {
		h.smooth, h.deviation = took, took/2
	} else {
		h.deviation += ((h.smooth - took).Abs() - h.deviation) / 4
		h.smooth += (took - h.smooth) / 8
	}
	if h.counts(now) {
		h.answers++
	}
	h.misses, h.answered, h.quiet = 0, now, now
	switch {
	case h.state == healthUp && now.Sub(h.since) >= calmAfter:
		h.wanted = answersToTrust
	case h.state == "", h.state != healthUp && h.answers >= h.wanted:
		h.state, h.since = healthUp, now
	}
	return h
}

// miss is the health after a probe that was not answered in time.
func (h health) miss(now time.Time, downAfter time.Duration) health {
	if h.quiet.IsZero() || now.Sub(h.counted) > standstill {
		h.quiet, h.misses = now, 0
	}
	if h.counts(now) {
		h.misses++
	}
	h.answers = 0
	switch {
	case h.state == "":
		h.state, h.since = healthSuspect, now
	case h.state == healthUp && h.misses >= missesToSuspect:
		h.wanted = min(h.wanted*2, answersAtMost)
		if h.since == h.known || now.Sub(h.since) >= calmAfter { // its first time, or it was steady
			h.wanted = answersToTrust
		}
		h.state, h.since = healthSuspect, now
	}
	if h.state == healthSuspect && h.silence() >= downAfter {
		h.state, h.since = healthDown, now
	}
	return h
}

// counts reports whether an outcome is far enough from the last one, and takes note of it.
func (h *health) counts(now time.Time) bool {
	if h.known.IsZero() {
		h.known, h.wanted = now, answersToTrust
	}
	if !h.counted.IsZero() && now.Sub(h.counted) < countedApart {
		return false
	}
	h.counted = now
	return true
}

func (a *agents) answers(id block.NodeID) bool {
	target, err := a.get(id)
	if err != nil {
		return false
	}
	reachable, _, _ := target.state()
	return reachable
}

// isGone reports whether a node that does not answer is not expected back, by its record.
func (a *agents) isGone(id block.NodeID) bool {
	target, err := a.get(id)
	return err != nil || target.node.IsGone()
}

func (a *agents) takesBlocks(id block.NodeID) bool {
	target, err := a.get(id)
	if err != nil {
		return false
	}
	reachable, _, _ := target.state()
	return reachable && target.node.TakesBlocks()
}
