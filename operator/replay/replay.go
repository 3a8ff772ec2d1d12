package replay

import (
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/heat/shadow"
	"github.com/restripe/restripe/operator/decide"
)

// Outcome is what a class would have cost, in the unit of the prices.
type Outcome struct {
	Days       float64
	Groups     int
	Bytes      int64
	Accesses   int
	Candidates []Candidate
	Written    []float64 // by rung: everything written on it and never moved
	Auto       float64   // following the candidate that leads, with the ways from one leader to the next
	Changes    []Change
}

// Candidate is one way to choose the rungs of groups, and what it would have cost.
type Candidate struct {
	shadow.Candidate
	Cost float64
}

// Change is when another candidate took the lead.
type Change struct {
	At     time.Duration // since the first access
	Leader int           // in Candidates
}

// looks is how many steps there are between two comparisons of the candidates.
const looks = int(24 * time.Hour / shadow.Step)

// Run replays a trace at the prices of a ladder, on whose first rung groups are written. Candidates are compared once a day, as
// operators do.
func Run(t *Trace, prices shadow.Prices) (*Outcome, error) {
	candidates := shadow.Candidates(len(prices.Stored))
	class, err := shadow.New(prices, candidates, len(t.Bytes))
	if err != nil {
		return nil, fmt.Errorf("replaying %s: %w", t.Name, err)
	}
	out := &Outcome{Groups: len(t.Bytes), Accesses: len(t.Accesses)}
	for _, bytes := range t.Bytes {
		out.Bytes += bytes
	}
	lead := decide.Lead{Candidate: shadow.First}
	steps := 0
	if last := len(t.Accesses) - 1; last >= 0 {
		steps = int(t.Accesses[last].At/shadow.Step) + 1
	}
	look := func() {
		leading := lead.Candidate
		lead = lead.Look(class.Costs(), class.Way(func(name uint64) int { return class.Rung(name, leading) }))
	}
	for step, next := 0, 0; step < steps; step++ {
		for end := time.Duration(step+1) * shadow.Step; next < len(t.Accesses) && t.Accesses[next].At < end; next++ {
			group := t.Accesses[next].Group
			class.Use(NameOf(group), shadow.Use{Bytes: float64(t.Bytes[group]), Times: 1})
		}
		class.Advance()
		if before := lead.Candidate; step%looks == looks-1 {
			if look(); lead.Candidate != before {
				out.Changes = append(out.Changes, Change{time.Duration(step+1) * shadow.Step, lead.Candidate})
			}
		}
	}
	out.Days = class.Passed().Hours() / 24
	if steps%looks != 0 { // what is left of the last day is paid, and decides nothing
		lead.Cost = lead.Look(class.Costs(), make([]float64, len(candidates))).Cost
	}
	out.Auto = lead.Cost + lead.Ways
	for i, cost := range class.Costs() {
		out.Candidates = append(out.Candidates, Candidate{candidates[i], cost})
		if rung := candidates[i].Always; rung != shadow.ByUse { // it moved everything there from the first one
			out.Written = append(out.Written, cost-float64(out.Bytes)*prices.Move[0][rung])
		}
	}
	return out, nil
}

// NameOf spreads the numbers of groups as hashes do: the finaliser of SplitMix64.
func NameOf(group int) uint64 {
	x := uint64(group+1) * 0x9e3779b97f4a7c15
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
