package member

import (
	"time"

	"github.com/restripe/restripe/agent/block"
)

// healthState is what a gateway thinks of a node by the answers to its probes.
type healthState string

// The states of health. A node nobody has asked yet has none of them.
const (
	HealthUp      healthState = "up"
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

// Health is the failure detector of one node: a value that the outcomes of probes turn into the next one. It does not
// flap: one lost probe says nothing, a suspect must answer several times in a row to be trusted again, and twice as often
// each time it turns suspect soon after. How long an answer is waited for follows the round trips seen, as
// retransmission timers do (RFC 6298), and doubles with every miss.
type Health struct {
	State    healthState
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
func (h Health) timeout() time.Duration {
	patience := max(h.smooth+4*h.deviation, leastPatience)
	return min(patience<<min(h.misses, 4), greatestPatience)
}

// silence is for how long its probes were missed. Time in which this gateway did not ask says nothing of the node.
func (h Health) silence() time.Duration {
	if h.misses == 0 {
		return 0
	}
	return h.counted.Sub(h.quiet)
}

// answer is the health after a probe that was answered in time.
func (h Health) answer(now time.Time, took time.Duration) Health {
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
	case h.State == HealthUp && now.Sub(h.since) >= calmAfter:
		h.wanted = answersToTrust
	case h.State == "", h.State != HealthUp && h.answers >= h.wanted:
		h.State, h.since = HealthUp, now
	}
	return h
}

// miss is the health after a probe that was not answered in time.
func (h Health) miss(now time.Time, downAfter time.Duration) Health {
	if h.quiet.IsZero() || now.Sub(h.counted) > standstill {
		h.quiet, h.misses = now, 0
	}
	if h.counts(now) {
		h.misses++
	}
	h.answers = 0
	switch {
	case h.State == "":
		h.State, h.since = healthSuspect, now
	case h.State == HealthUp && h.misses >= missesToSuspect:
		h.wanted = min(h.wanted*2, answersAtMost)
		if h.since == h.known || now.Sub(h.since) >= calmAfter { // its first time, or it was steady
			h.wanted = answersToTrust
		}
		h.State, h.since = healthSuspect, now
	}
	if h.State == healthSuspect && h.silence() >= downAfter {
		h.State, h.since = healthDown, now
	}
	return h
}

// counts reports whether an outcome is far enough from the last one, and takes note of it.
func (h *Health) counts(now time.Time) bool {
	if h.known.IsZero() {
		h.known, h.wanted = now, answersToTrust
	}
	if !h.counted.IsZero() && now.Sub(h.counted) < countedApart {
		return false
	}
	h.counted = now
	return true
}

// Answers reports whether a member is trusted to answer.
func (a *Agents) Answers(id block.NodeID) bool {
	target, err := a.Get(id)
	if err != nil {
		return false
	}
	reachable, _, _ := target.State()
	return reachable
}

// IsGone reports whether a node that does not answer is not expected back, by its record.
func (a *Agents) IsGone(id block.NodeID) bool {
	target, err := a.Get(id)
	return err != nil || target.Node.IsGone()
}

// TakesBlocks reports whether a member answers and new blocks may go to it.
func (a *Agents) TakesBlocks(id block.NodeID) bool {
	target, err := a.Get(id)
	if err != nil {
		return false
	}
	reachable, _, _ := target.State()
	return reachable && target.Node.TakesBlocks()
}
