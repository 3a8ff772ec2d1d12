package decide

import (
	"math"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/heat/shadow"
	"github.com/restripe/restripe/agent/stripe"
)

// followed is a candidate whose choices are carried out.
type followed struct {
	shadow.Candidate
	ladder stripe.Ladder
	prices *shadow.Prices
	early  bool
}

// RulesOf returns the rules by which a candidate places groups on a ladder, hottest rung first, at the prices of its rungs. While
// it is early, and little is known, groups only get colder.
func RulesOf(candidate shadow.Candidate, ladder stripe.Ladder, prices *shadow.Prices, early bool) *Rules {
	return &Rules{candidate: &followed{candidate, ladder, prices, early}}
}

// target is where a bucket of heat belongs, as Rules.Target says it.
func (f *followed) target(from stripe.Scheme, heat HeatRange) (to stripe.Scheme, leaves bool) {
	rung := slices.Index(f.ladder, from)
	if rung < 0 {
		return stripe.Scheme{}, false
	}
	next := f.Next(f.prices, rung, shadow.Typical(api.HeatBucketOf(heat.AtLeast)))
	return f.ladder[next], next != rung && !(f.early && next < rung)
}

// stay is how long a group has to be under a scheme before it goes to another: the dwell, and under a candidate until it would have
// paid for the move.
func (r *Rules) stay(from, to stripe.Scheme, dwell time.Duration) time.Duration {
	if r.candidate == nil {
		return dwell
	}
	f := r.candidate
	old, next := slices.Index(f.ladder, from), slices.Index(f.ladder, to)
	if old < 0 || next < 0 {
		return dwell
	}
	return max(dwell, f.Stay(f.prices, old, next))
}

// A candidate takes the lead when what it would have saved since the last change is more than what the leader costs in leadMargin
// of a day and the way from where groups are to where it has them, and when it would have saved as large a part in the last day
// alone: what was saved once, and is no more, is no reason. Nobody takes it in the leadRest looks after a change, of which there is
// one each day, nor in the first ones. What was long ago counts less: half after leadMemory looks. All ways together are at most
// leadShare of what the class has cost, so that a workload that makes candidates change the lead again and again costs no more than
// that.
const (
	leadMargin = 0.4
	leadRest   = 3
	leadMemory = 14
	leadShare  = 0.1
)

// Lead is which candidate rules a class. The zero value has the first one lead, of a class of which nothing is known. Amounts
// are in the unit of the candidates' prices.
type Lead struct {
	Candidate int
	Paid      []float64 // by each candidate since this one leads; what is long ago counts less
	Days      float64   // in which Paid was
	Total     []float64 // by each candidate in all
	Cost      float64   // of those that led, all in all
	Ways      float64   // of the changes of leader, at most
	Seen      []float64 // what candidates had cost at the last look
	lately    []float64 // what they paid between the last two looks
}

// Look returns who leads after another day, by what every candidate has cost so far and what the way to it would.
func (l Lead) Look(costs, way []float64) Lead { return l.count(costs).elect(way) }

// count takes down what candidates paid since the last look.
func (l Lead) count(costs []float64) Lead {
	next := Lead{
		Candidate: l.Candidate, Paid: make([]float64, len(costs)), Total: make([]float64, len(costs)), Cost: l.Cost, Ways: l.Ways,
		Seen: slices.Clone(costs), lately: make([]float64, len(costs)),
	}
	for _, kept := range []*[]float64{&l.Paid, &l.Total, &l.Seen} {
		if len(*kept) != len(costs) {
			*kept = make([]float64, len(costs))
		}
	}
	keep := math.Exp2(-1.0 / leadMemory)
	next.Days = l.Days*keep + 1
	for i := range costs {
		paid := max(0, costs[i]-l.Seen[i])
		next.lately[i] = paid
		next.Paid[i], next.Total[i] = l.Paid[i]*keep+paid, l.Total[i]+paid
		if i == l.Candidate {
			next.Cost += paid
		}
	}
	return next
}

// elect has the candidate lead that is ahead by enough.
func (l Lead) elect(way []float64) Lead {
	next, most := l, 0.0
	if l.Days <= leadRest {
		return next
	}
	enough := 1 - leadMargin/l.Days
	for i := range l.Paid {
		ahead := l.Paid[l.Candidate]*enough - l.Paid[i] - way[i]
		if ahead > most && l.lately[i] < l.lately[l.Candidate]*enough && l.Ways+way[i] <= leadShare*l.Cost {
			next.Candidate, most = i, ahead
		}
	}
	if next.Candidate != l.Candidate {
		next.Ways += way[next.Candidate]
		next.Paid, next.Days = make([]float64, len(l.Paid)), 0
	}
	return next
}
