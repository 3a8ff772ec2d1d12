package stripe

import (
	"fmt"
	"slices"
)

// cachedUnits is the largest number of cells or slots in the name of a cached update or repair.
const cachedUnits = 16

// NewUpdatePlan returns a proved plan that changes cells of a group under scheme. The node of each cell combines its old
// unit with the difference new-old, which the caller supplies there (SourcePatch), stages the new cell, and sends the
// difference once to every parity node; parity row p stages P + sum of U[p][column]*difference for the touched stripes.
// What a slot stages is one run of units, so that it fits one block: untouched units between touched ones are staged as
// they are. cells are distinct cell indices in any order. From and To are scheme. Errors wrap ErrPlan or ErrLayout.
func NewUpdatePlan(l *Layout, scheme Scheme, cells []int) (*Plan, error) {
	cells = slices.Clone(cells)
	slices.Sort(cells)
	key := planKey{layout: l.Whole(), empty: l.empty, from: scheme, to: scheme, planner: plannerUpdate, units: fmt.Sprint(cells)}
	if plan, found := plans.get(key); found {
		return plan, nil
	}
	plan, err := buildUpdatePlan(l, scheme, cells)
	if err != nil {
		return nil, fmt.Errorf("planning an update under %s: %w", scheme, err)
	}
	if len(cells) > cachedUnits {
		return plan, nil
	}
	return plans.add(key, plan, plan.weight()), nil
}

func buildUpdatePlan(l *Layout, scheme Scheme, cells []int) (*Plan, error) {
	t, err := newTransition(l, l, scheme, scheme)
	if err != nil {
		return nil, err
	}
	if len(cells) == 0 || len(slices.Compact(slices.Clone(cells))) != len(cells) || cells[0] < 0 || cells[len(cells)-1] >= l.Cells() {
		return nil, fmt.Errorf("%w: it needs distinct cells from 0 to %d", ErrPlan, l.Cells()-1)
	}
	b := newPlanBuilder(l, scheme, scheme, plannerUpdate, "")
	w := l.Columns
	touched := make(map[int32]bool)
	for _, cell := range cells {
		column, row := cell%w, cell/w
		if l.IsEmpty(column) {
			return nil, fmt.Errorf("%w: nothing is stored of column %d, so there is nothing to change in it", ErrPlan, column)
		}
		home := Position(column)
		patch := expression{{b.at(home).input(Input{Kind: SourcePatch, Slot: column, Unit: row}), 1}}
		b.stage(home, column, row, b.cell(int32(cell)).plus(1, patch))
		stripe := t.a.StripeOf[cell]
		for parity := range scheme.M {
			target := Position(w + parity)
			if !touched[stripe] {
				b.stage(target, w+parity, int(stripe), b.parity(parity, int(stripe)))
			}
			difference := b.send(home, target, patch)
			b.stage(target, w+parity, int(stripe), expression{}.plus(Coefficient(parity, column), difference))
		}
		touched[stripe] = true
	}
	for _, key := range gaps(cells, l, t.a, scheme.M) {
		if key.slot < w {
			b.stage(Position(key.slot), key.slot, key.unit, b.cell(int32(l.CellIndex(key.unit, key.slot))))
		} else {
			b.stage(Position(key.slot), key.slot, key.unit, b.parity(key.slot-w, key.unit))
		}
	}
	return b.finish()
}

// gaps lists the units between touched ones of the same slot that an update of cells leaves as they are.
func gaps(cells []int, l *Layout, partition *Partition, parities int) []unitKey {
	touched := make(map[int][]int) // units by slot; parity rows touch the same stripes
	for _, cell := range cells {
		touched[cell%l.Columns] = append(touched[cell%l.Columns], cell/l.Columns)
		touched[l.Columns] = append(touched[l.Columns], int(partition.StripeOf[cell]))
	}
	var keys []unitKey
	for slot := range l.Columns + 1 {
		units := touched[slot]
		if len(units) == 0 {
			continue
		}
		for unit := slices.Min(units) + 1; unit < slices.Max(units); unit++ {
			if slices.Contains(units, unit) {
				continue
			}
			if slot < l.Columns {
				keys = append(keys, unitKey{slot, unit})
				continue
			}
			for row := range parities {
				keys = append(keys, unitKey{l.Columns + row, unit})
			}
		}
	}
	return keys
}
