package decide

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/words"
)

// Place is what Moves looks at.
type Place struct {
	Backend string
	Class   *Class
	Rules   *Rules // nil: without temperature, or pinned
	Pin     *Pin   // in force; nil: none is
	Heat    *ClassHeat
	// Asked: something was declared since the class was last converged. Without temperature groups are moved to the
	// default only then; what a person moved away from it afterwards stays.
	Asked bool
	// Active are the selections of transitions that have not ended, whoever made them.
	Active []Selection
	// LastEnded is when a transition of the class last ended; a report begun before does not know yet what it did.
	LastEnded time.Time
}

// Unknown is why nothing can be said of what should move; nil if it can.
func (p *Place) Unknown() *Problem {
	switch {
	case p.Heat == nil:
		return problem(ReasonHeatUnknown, "the gateways have not reported the heat of class %s yet", p.Class.Name)
	case !p.Heat.Complete:
		return problem(ReasonHeatUnknown, "the gateways' first walk over the groups goes on; moves are decided when it has seen them all")
	case p.Heat.Began.Before(p.LastEnded):
		return problem(ReasonHeatUnknown, "waiting for a heat report from after the last transition ended")
	}
	return nil
}

// Moves returns the transitions that should exist beside the active ones, most urgent first. With temperature rules,
// those are the settled groups of every rung and range of heat whose rules, with hysteresis, want them elsewhere. Ranges
// are the gateways' buckets, whole: a bucket that a bound cuts belongs to the side that the groups are on already. So a
// group that has moved stays while its heat stays in its bucket, and a group never goes back before its heat was past
// both bounds. Without a complete and recent report nothing moves. What lies under a scheme that left the ladder, and belongs to no
// rule, goes to the default. While a pin is in force everything goes to its scheme, settled or not.
func Moves(p Place) []Move {
	if p.Unknown() != nil {
		return nil
	}
	var moves []Move
	for i := range p.Heat.Rungs {
		rung := &p.Heat.Rungs[i]
		if p.Rules == nil {
			moves = append(moves, p.toDefault(rung)...)
			continue
		}
		moves = append(moves, p.byHeat(rung)...)
	}
	moves = slices.DeleteFunc(moves, func(m Move) bool {
		return slices.ContainsFunc(p.Active, m.Touches)
	})
	slices.SortStableFunc(moves, compareUrgency)
	return moves
}

// Unsettled returns what would move besides if every group had been under its scheme for the dwell: what is left for later,
// at the latest when that has passed, as long as the groups are used as often as now.
func Unsettled(p Place) []Move {
	if p.Heat == nil {
		return nil
	}
	now := map[[2]stripe.Scheme]Move{}
	for _, m := range Moves(p) {
		sum := now[[2]stripe.Scheme{m.From, m.To}]
		sum.Groups, sum.Bytes = sum.Groups+m.Groups, sum.Bytes+m.Bytes
		now[[2]stripe.Scheme{m.From, m.To}] = sum
	}
	settled := *p.Heat
	settled.Rungs = slices.Clone(settled.Rungs)
	for i := range settled.Rungs {
		rung := &settled.Rungs[i]
		rung.Buckets = slices.Clone(rung.Buckets)
		for j := range rung.Buckets {
			rung.Buckets[j].SettledGroups, rung.Buckets[j].SettledBytes = rung.Buckets[j].Groups, rung.Buckets[j].Bytes
		}
	}
	p.Heat = &settled
	var later []Move
	for _, m := range Moves(p) {
		key := [2]stripe.Scheme{m.From, m.To}
		sum := now[key]
		groups, bytes := min(sum.Groups, m.Groups), min(sum.Bytes, m.Bytes)
		sum.Groups, sum.Bytes = sum.Groups-groups, sum.Bytes-bytes
		now[key] = sum
		if m.Groups, m.Bytes = m.Groups-groups, m.Bytes-bytes; m.Groups > 0 {
			later = append(later, m)
		}
	}
	return later
}

// compareUrgency puts what clients wait for first, then what saves most.
func compareUrgency(a, b Move) int {
	return cmp.Or(compareTrue(a.Heating(), b.Heating()), cmp.Compare(b.SavedBytes(), a.SavedBytes()), cmp.Compare(b.Bytes, a.Bytes),
		cmp.Compare(a.From.String(), b.From.String()), cmp.Compare(a.Heat.AtLeast, b.Heat.AtLeast))
}

func (p *Place) toDefault(rung *RungHeat) []Move {
	if !p.Asked && p.Pin == nil || rung.Scheme == p.Class.Default || rung.Groups == 0 {
		return nil
	}
	m := Move{
		Selection: Selection{Backend: p.Backend, Class: p.Class.Name, From: rung.Scheme, Heat: Everything()},
		To:        p.Class.Default, Groups: rung.Groups, Bytes: rung.Bytes, Pinned: p.Pin != nil,
	}
	why := "which is the default of class " + p.Class.Name
	if p.Pin != nil {
		why = "as class " + p.Class.Name + " is pinned to " + p.Pin.String()
	} else if !p.Class.Ladder.Contains(rung.Scheme) {
		why += " and " + rung.Scheme.String() + " is no longer on its ladder"
	}
	m.Reason = fmt.Sprintf("%s (%s) under %s belong under %s, %s", words.Count(m.Groups, "group"), words.Bytes(m.Bytes), m.From, m.To, why)
	return []Move{m}
}

// target is where a bucket of a rung belongs, if elsewhere.
func (p *Place) target(from stripe.Scheme, heat HeatRange) (stripe.Scheme, bool) {
	if to, leaves := p.Rules.Target(from, heat); leaves {
		return to, to != from
	}
	return p.Class.Default, !p.Class.Ladder.Contains(from)
}

func (p *Place) byHeat(rung *RungHeat) []Move {
	var moves []Move
	for _, bucket := range rung.Buckets {
		heat := HeatRange{AtLeast: bucket.AtLeast, Below: bucket.Below}
		to, leaves := p.target(rung.Scheme, heat.judged())
		if !leaves {
			continue
		}
		if last := len(moves) - 1; last < 0 || moves[last].To != to || moves[last].Heat.Below != heat.AtLeast {
			moves = append(moves, Move{
				Selection: Selection{Backend: p.Backend, Class: p.Class.Name, From: rung.Scheme, Heat: heat}, To: to,
				Settled: p.Rules.stay(rung.Scheme, to, p.Class.Dwell),
			})
		}
		m := &moves[len(moves)-1]
		m.Heat.Below = heat.Below
		m.Groups += bucket.SettledGroups
		m.Bytes += bucket.SettledBytes
	}
	moves = slices.DeleteFunc(moves, func(m Move) bool { return m.Groups == 0 })
	for i := range moves {
		moves[i].Reason = moves[i].byHeatReason()
	}
	return moves
}

func (m *Move) byHeatReason() string {
	groups, verb := words.Count(m.Groups, "group"), "are"
	if m.Groups == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%s (%s), under %s for at least %s, %s used %s: %s", groups, words.Bytes(m.Bytes), m.From, words.Span(m.Settled),
		verb, m.Heat, m.benefit())
}

// benefit says what the target does better.
func (m *Move) benefit() string {
	stored := m.To.Overhead() - m.From.Overhead()
	switch {
	case stored < 0:
		return fmt.Sprintf("%s stores %.2f bytes per byte less", m.To, -stored)
	case m.To.Replication():
		return fmt.Sprintf("%s keeps %s, for %.2f bytes per byte more", m.To, copies(m.To.M+1), stored)
	case m.To.K < m.From.K:
		return fmt.Sprintf("%s rebuilds a block from %d others instead of %d, for %.2f bytes per byte more", m.To, m.To.K, m.From.K, stored)
	}
	return fmt.Sprintf("%s stores %.2f bytes per byte more", m.To, math.Abs(stored))
}

func copies(n int) string {
	if n == 1 {
		return "1 whole copy"
	}
	return fmt.Sprintf("%d whole copies", n)
}
