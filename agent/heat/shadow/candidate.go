package shadow

import (
	"fmt"
	"math"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// Candidate is a way to choose the rung of a group: always the same, or by how often it is used.
type Candidate struct {
	Always int // the rung of all groups; ByUse for those that go by their use

	HalfLife time.Duration // after which a use counts half
	Dwell    time.Duration // on one rung at least
	// A group gets colder when a rung further down would cost less, too, if it were used Slack times as often. It gets hotter when
	// one further up would if it were used only 1/(2 Slack) as often, and the move, which sends it, pays for itself within Pays times
	// the memory of the counter.
	Slack, Pays float64
	// Floor has every group count as used as often as those of the class are on average, at least: none gets colder than where it would
	// be best if all were used alike.
	Floor bool
}

// ByUse is Candidate.Always of a candidate that goes by use.
const ByUse = -1

// First is the index in Candidates of the one that rules while nothing is known: to it what the class is on average is the coldest
// that any group can be. That a group was not used yet says little, and to be wrong about it costs most.
const First = 0

// Name names a candidate, the same in every program whose candidate does the same: "always 1", or "72h0m0s 3h0m0s 4 0.5" by
// half-life, dwell, slack and pays, and "floor" after them.
func (c *Candidate) Name() string {
	if c.Always != ByUse {
		return fmt.Sprintf("always %d", c.Always)
	}
	name := fmt.Sprintf("%s %s %g %g", c.HalfLife, c.Dwell, c.Slack, c.Pays)
	if c.Floor {
		name += " floor"
	}
	return name
}

// Candidates returns those that are tried for a ladder of so many rungs.
func Candidates(rungs int) []Candidate {
	const week = 7 * 24 * time.Hour
	list := []Candidate{
		{ByUse, 72 * time.Hour, 3 * time.Hour, 1.4, 0.5, true},
		{ByUse, 72 * time.Hour, 3 * time.Hour, 4, 0.5, false},
		{ByUse, 72 * time.Hour, 3 * time.Hour, 2, 0.5, false},
		{ByUse, 72 * time.Hour, 3 * time.Hour, 2, 1, false},
		{ByUse, 72 * time.Hour, 3 * time.Hour, 2, 0.25, false},
		{ByUse, 2 * week, 6 * time.Hour, 2, 1, false},
		{ByUse, 2 * week, 6 * time.Hour, 4, 1, false},
	}
	for rung := range rungs {
		list = append(list, Candidate{Always: rung})
	}
	return list
}

// Next returns the rung of a group that is on one and used so many times a day. Rates are told apart as the buckets of heat
// reports do, so that what is done by those is what was reckoned with here.
func (c *Candidate) Next(prices *Prices, rung int, rate float64) int {
	if c.Always != ByUse {
		return c.Always
	}
	rate = Typical(api.HeatBucketOf(rate))
	if prices.Day(rung, rate) <= prices.Day(prices.Best(rate), rate) {
		return rung // as good as the best
	}
	best := prices.Best(rate)
	switch {
	case best > rung && prices.Best(rate*c.Slack) > rung:
		return best
	case best < rung && prices.Best(rate/(2*c.Slack)) < rung && c.pays(prices, rung, best, rate):
		return best
	}
	return rung
}

// pays reports whether a move to a hotter rung pays for itself soon enough.
func (c *Candidate) pays(prices *Prices, from, to int, rate float64) bool {
	saved := (prices.Day(from, rate) - prices.Day(to, rate)) * c.Within().Hours() / 24
	return saved >= prices.Move[from][to]
}

// Within is how soon a move to a hotter rung has to pay for itself.
func (c *Candidate) Within() time.Duration {
	return time.Duration(c.Pays / math.Ln2 * float64(c.HalfLife))
}

// Stay returns how long a group has to be on a rung before it goes to another: the dwell, and, where it gets colder, until it would
// have paid for the move. Whoever moves at once pays for groups that do not live long enough, or that are too small for the
// operations of a move; whoever waits so long pays at most twice what is needed.
//
// One that has everything on one rung waits for the dwell alone, as its books do.
func (c *Candidate) Stay(prices *Prices, from, to int) time.Duration {
	if c.Always != ByUse {
		return c.Dwell
	}
	return max(c.Dwell, prices.Payback(from, to))
}

// Typical returns the rate that stands for those of a bucket of heat reports.
func Typical(bucket int) float64 { return api.HeatEdge(bucket) * math.Sqrt2 }
