package stripe

import (
	"fmt"
	"slices"
)

// NewNarrowPlan returns a proved plan by which a group loses its last columns, and comes from one layout (before) to another (l), of
// both of which each row is a stripe. What these columns add to the parities is taken from them; nothing else of the group is read. lost
// are those that are not empty: their cells are read where they are (SourceCopy, with the slots that they have before), those of the i-th
// at Outside(to, i). Positions and all other slots, also of the parities as they are before, are those of l.
//
// The nodes of the columns take turns at gathering: one gets the cells of a row and sends each parity its difference, so that d columns
// cost d - 1 + m blocks a row. Errors wrap ErrPlan or ErrLayout.
func NewNarrowPlan(before, l *Layout, from, to Scheme, lost []int) (*Plan, error) {
	key := planKey{
		before: before.Whole(), layout: l.Whole(), empty: l.empty, from: from, to: to, planner: plannerNarrow,
		units: fmt.Sprint(lost, before.empty),
	}
	if plan, found := plans.get(key); found {
		return plan, nil
	}
	plan, err := buildNarrowPlan(before, l, from, to, lost)
	if err != nil {
		return nil, fmt.Errorf("planning %d columns instead of %d under %s: %w", l.Columns, before.Columns, to, err)
	}
	return plans.add(key, plan, plan.weight()), nil
}

func buildNarrowPlan(before, l *Layout, from, to Scheme, lost []int) (*Plan, error) {
	if before.Columns <= l.Columns || before.Rows != l.Rows || from.M != to.M || !before.rowsAreStripes(from.K) || !l.rowsAreStripes(to.K) {
		return nil, fmt.Errorf("%w: rows of %d columns under %s do not become rows of %d under %s", ErrPlan, before.Columns, from, l.Columns, to)
	}
	for column := l.Columns; column < before.Columns; column++ {
		if before.IsEmpty(column) == slices.Contains(lost, column) {
			return nil, fmt.Errorf("%w: columns %v are not those from %d on that are not empty", ErrPlan, lost, l.Columns)
		}
	}
	b := newPlanBuilder(l, from, to, plannerNarrow, "")
	b.plan.Before = before
	b.programs = make([]*programBuilder, b.plan.positions())
	for row := range l.Rows {
		takeAway(b, lost, row)
	}
	return b.finish()
}

// takeAway takes the cells of one row that are in columns which a group loses from its parities.
func takeAway(b *planBuilder, lost []int, row int) {
	l, m := b.plan.Layout, b.plan.To.M
	differences := make([]expression, m)
	if len(lost) > 0 {
		gatherer := l.Outside(b.plan.To, row%len(lost))
		for i, column := range lost {
			at := l.Outside(b.plan.To, i)
			cell := expression{{b.at(at).input(Input{Kind: SourceCopy, Slot: column, Unit: row}), 1}}
			if at != gatherer {
				cell = b.send(at, gatherer, cell)
			}
			for parity := range m {
				differences[parity] = differences[parity].plus(Coefficient(parity, column), cell)
			}
		}
		for parity := range m {
			differences[parity] = b.send(gatherer, Position(l.Columns+parity), differences[parity])
		}
	}
	for parity := range m {
		home := Position(l.Columns + parity)
		b.stage(home, l.Columns+parity, row, append(b.parity(parity, row), differences[parity]...))
	}
}

func explainNarrowing(plan *Plan) []string {
	return []string{
		crossings(plan.Cost.BlocksSent) + ": what the last columns add to the parities is taken from them.",
		readsAndWrites(plan.Cost), busiest(plan.Cost), "No other data block is read.",
	}
}
