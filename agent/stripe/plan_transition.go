package stripe

import "fmt"

type planKey struct {
	before    *Layout   // the whole one
	layout    *Layout   // the whole one afterwards
	empty     columnSet // of both
	from, to  Scheme
	planner   string
	objective Objective
	units     string // what an update patches or a repair rebuilds
}

// plans keeps about four million terms.
var plans = newBoundedCache[planKey, *Plan](4_000_000)

// weight is the plan's share of the cache.
func (p *Plan) weight() int {
	weight := len(p.Messages)
	for _, program := range p.Programs {
		weight += len(program.Inputs)
		for _, row := range program.Rows {
			weight += 1 + len(row.Terms)
		}
	}
	return weight
}

// NewPlan returns a proved plan that takes a group of layout l from one scheme of its ladder to another; an empty
// planner means PlannerRestripe, an empty objective LeastNetwork (baselines have no choice and ignore it). Data cells
// never move, except to the new pool of PlannerCopyPool. Where k stays and m does not grow, or m becomes 0, there is
// nothing to compute and the plan is empty. Equal arguments share one plan. Errors wrap ErrPlan or ErrLayout.
//
// A baseline runs on the layout given, which need not be the one its paper would use. The ERS and SRS baselines change
// k > 1 at equal m only.
func NewPlan(l *Layout, from, to Scheme, planner string, objective Objective) (*Plan, error) {
	return NewPlanBetween(l, l, from, to, planner, objective)
}

// NewPlanBetween is NewPlan for a group that also comes from one layout to another of equal rows, columns and empty columns, as
// WithLadder returns it: from is a scheme of the ladder of before, to of that of l.
func NewPlanBetween(before, l *Layout, from, to Scheme, planner string, objective Objective) (*Plan, error) {
	if planner == "" {
		planner = PlannerRestripe
	}
	if objective == "" {
		objective = LeastNetwork
	}
	key := planKey{before: before.Whole(), layout: l.Whole(), empty: l.empty, from: from, to: to, planner: planner, objective: objective}
	if plan, found := plans.get(key); found {
		return plan, nil
	}
	plan, err := buildPlan(before, l, from, to, planner, objective)
	if err != nil {
		return nil, fmt.Errorf("planning %s to %s with planner %s: %w", from, to, planner, err)
	}
	return plans.add(key, plan, plan.weight()), nil
}

func buildPlan(before, l *Layout, from, to Scheme, planner string, objective Objective) (*Plan, error) {
	t, err := newTransition(before, l, from, to)
	if err != nil {
		return nil, err
	}
	switch objective {
	case LeastNetwork, LeastReads, LeastBottleneck:
	default:
		return nil, fmt.Errorf("%w: no objective is called %q; use one of %v", ErrPlan, objective, Objectives())
	}
	b := newPlanBuilder(l, from, to, planner, objective)
	b.plan.Before = before
	idle := to.M == 0 || t.keeps && to.M <= from.M
	switch planner {
	case PlannerRestripe:
		if !idle {
			t.restripe(b, objective)
		}
	case PlannerERS1, PlannerERS2, PlannerSRS:
		if !papersApply(from, to) || before != l {
			return nil, fmt.Errorf("%w: it needs different k > 1, equal m and one ladder; use planner %s", ErrPlan, PlannerRestripe)
		}
		if planner == PlannerSRS {
			t.srsProxy(b)
		} else {
			t.ersProxy(b)
		}
	case PlannerReencode:
		if !idle {
			t.reencode(b)
		}
	case PlannerCopyPool:
		if from != to {
			t.copyPool(b)
		}
	default:
		return nil, fmt.Errorf("%w: there is no such planner; use one of %v", ErrPlan, Planners())
	}
	return b.finish()
}

// needsNoParity reports whether a transition computes nothing: the stripes stay and lose parity rows at most, or the new
// scheme has no parity.
func needsNoParity(from, to Scheme) bool { return to.M == 0 || from.K == to.K && to.M <= from.M }

// papersApply reports whether the ERS and SRS papers describe the transition.
func papersApply(from, to Scheme) bool {
	return from.M == to.M && from.K != to.K && from.K > 1 && to.K > 1
}

// transition is what all planners know of a change of scheme.
type transition struct {
	layout   *Layout // afterwards
	from, to Scheme
	a, b     *Partition // old and new
	keeps    bool       // they are the same
	main     []int      // per old stripe: the new stripe that shares most of its cells
	overlap  []int      // per old stripe: how many
}

func newTransition(before, l *Layout, from, to Scheme) (*transition, error) {
	if before.Columns != l.Columns || before.Rows != l.Rows || before.empty != l.empty {
		return nil, fmt.Errorf("%w: a group of %d rows and %d columns cannot become one of %d and %d where it is", ErrPlan,
			before.Rows, before.Columns, l.Rows, l.Columns)
	}
	for scheme, ladder := range map[Scheme]Ladder{from: before.Ladder, to: l.Ladder} {
		if !ladder.Contains(scheme) {
			return nil, fmt.Errorf("%w: %s is no step of the ladder %s; choose one of its steps", ErrPlan, scheme, ladder)
		}
	}
	a, err := before.Partition(from.K)
	if err != nil {
		return nil, err
	}
	b, err := l.Partition(to.K)
	if err != nil {
		return nil, err
	}
	t := &transition{
		layout: l, from: from, to: to, a: a, b: b, keeps: from.K == to.K && before.SameStripes(l, to.K),
		main: make([]int, len(a.Stripes)), overlap: make([]int, len(a.Stripes)),
	}
	counts := make([]int, len(b.Stripes))
	for i, cells := range a.Stripes {
		for _, cell := range cells {
			counts[b.StripeOf[cell]]++
		}
		for _, cell := range cells {
			if j := int(b.StripeOf[cell]); counts[j] > t.overlap[i] {
				t.main[i], t.overlap[i] = j, counts[j]
			}
		}
		for _, cell := range cells {
			counts[b.StripeOf[cell]] = 0
		}
	}
	return t, nil
}

func (t *transition) column(cell int32) int { return int(cell) % t.layout.Columns }
