package stripe

import (
	"fmt"
	"slices"
)

const plannerRelocate = "relocate"

// NewRelocationPlan returns a proved plan that copies whole slots of a group under scheme to other nodes: slot x from its
// own position to the one Destination names. Nothing is decoded, each block crosses the network once, and no other slot
// takes part. slots are distinct, data columns or parity rows of scheme. Errors wrap ErrPlan or ErrLayout.
func NewRelocationPlan(l *Layout, scheme Scheme, slots []int) (*Plan, error) {
	slots = slices.Clone(slots)
	slices.Sort(slots)
	key := planKey{layout: l.Whole(), empty: l.empty, from: scheme, to: scheme, planner: plannerRelocate, units: fmt.Sprint(slots)}
	if plan, found := plans.get(key); found {
		return plan, nil
	}
	plan, err := buildRelocationPlan(l, scheme, slots)
	if err != nil {
		return nil, fmt.Errorf("planning the relocation of slots %v under %s: %w", slots, scheme, err)
	}
	return plans.add(key, plan, plan.weight()), nil
}

func buildRelocationPlan(l *Layout, scheme Scheme, slots []int) (*Plan, error) {
	partition, err := l.Partition(scheme.K)
	if err != nil {
		return nil, err
	}
	if count := l.Columns + scheme.M; len(slots) == 0 || !distinctWithin(slots, count) || slices.ContainsFunc(slots, l.IsEmpty) {
		return nil, fmt.Errorf("%w: it needs distinct slots from 0 to %d of which something is stored", ErrPlan, count-1)
	}
	b := newPlanBuilder(l, scheme, scheme, plannerRelocate, "")
	for _, slot := range slots {
		units := l.Rows
		if slot >= l.Columns {
			units = len(partition.Stripes)
		}
		to := b.plan.Destination(slot)
		for unit := range units {
			b.stage(to, slot, unit, b.send(Position(slot), to, b.block(Position(slot), slot, unit)))
		}
	}
	return b.finish()
}

// Destination is the position of a new pool that has the place of a slot's own: where a relocation stages the slot.
func (p *Plan) Destination(slot int) Position {
	return Position(p.Layout.Columns + p.Parities + 1 + slot)
}

func explainRelocation(plan *Plan) []string {
	return []string{
		crossings(plan.Cost.BlocksSent) + ": each is copied as it is from the node that holds it to the one that takes over, and nothing is decoded.",
		readsAndWrites(plan.Cost), busiest(plan.Cost),
	}
}
