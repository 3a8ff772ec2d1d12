package stripe

import (
	"cmp"
	"fmt"
	"slices"
)

// NewRepairPlan returns a proved plan that rebuilds whole slots of a group under scheme at their own positions (the
// caller binds these to the nodes that take over). k survivors of every stripe send each lost position their block times
// its coefficient; the lost position adds up and stages (TriEC Section 3.2). Survivors are chosen so that they send
// evenly. lost are distinct slots, data columns or parity rows of scheme; away are other slots that cannot be asked now
// and are not rebuilt. With more than m of both together the error wraps ErrLost, other errors wrap ErrPlan or ErrLayout.
func NewRepairPlan(l *Layout, scheme Scheme, lost, away []int) (*Plan, error) {
	lost, away = slices.Clone(lost), slices.Clone(away)
	slices.Sort(lost)
	slices.Sort(away)
	key := planKey{layout: l, from: scheme, to: scheme, planner: plannerRepair, units: fmt.Sprint(lost, away)}
	if plan, found := plans.get(key); found {
		return plan, nil
	}
	plan, err := buildRepairPlan(l, scheme, lost, away)
	if err != nil {
		return nil, fmt.Errorf("planning the repair of slots %v under %s: %w", lost, scheme, err)
	}
	return plans.add(key, plan, plan.weight()), nil
}

func buildRepairPlan(l *Layout, scheme Scheme, lost, away []int) (*Plan, error) {
	t, err := newTransition(l, scheme, scheme)
	if err != nil {
		return nil, err
	}
	slots := l.Columns + scheme.M
	missing := slices.Concat(lost, away)
	slices.Sort(missing)
	if len(lost) == 0 || !distinctWithin(missing, slots) {
		return nil, fmt.Errorf("%w: it needs distinct slots from 0 to %d", ErrPlan, slots-1)
	}
	if len(missing) > scheme.M {
		return nil, fmt.Errorf("%w: %d slots are lost or away and %s survives %d; bring nodes back or restore from a copy elsewhere",
			ErrLost, len(missing), scheme, scheme.M)
	}
	r := &repair{transition: t, b: newPlanBuilder(l, scheme, scheme, plannerRepair, ""), sent: make([]int, slots)}
	for stripe := range t.a.Stripes {
		if err := r.rebuild(stripe, lost, missing); err != nil {
			return nil, err
		}
	}
	return r.b.finish()
}

type repair struct {
	*transition
	b    *planBuilder
	sent []int // messages of each slot so far
}

// rebuild adds the lost units of one stripe, from slots that are not missing.
func (r *repair) rebuild(stripe int, lost, missing []int) error {
	w := r.layout.Columns
	cellOf := make(map[int]int32, r.from.K) // by column
	var columns, wanted, survivors []int
	for _, cell := range r.a.Stripes[stripe] {
		column := r.column(cell)
		columns = append(columns, column)
		cellOf[column] = cell
	}
	for _, slot := range lost {
		if _, ours := cellOf[slot]; ours || slot >= w {
			wanted = append(wanted, slot)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	for _, column := range columns {
		if !slices.Contains(missing, column) {
			survivors = append(survivors, column)
		}
	}
	for slot := w; slot < w+r.from.M; slot++ {
		if !slices.Contains(missing, slot) {
			survivors = append(survivors, slot)
		}
	}
	slices.SortStableFunc(survivors, func(a, b int) int { return cmp.Compare(r.sent[a], r.sent[b]) })
	var data, rows []int
	for _, slot := range survivors[:r.from.K] {
		if slot < w {
			data = append(data, slot)
		} else {
			rows = append(rows, slot-w)
		}
	}
	for _, slot := range wanted {
		functional := make([]byte, len(columns))
		for i, column := range columns {
			if slot == column {
				functional[i] = 1
			} else if slot >= w {
				functional[i] = Coefficient(slot-w, column)
			}
		}
		parts, err := express(columns, functional, data, rows)
		if err != nil {
			return err
		}
		unit := stripe
		if slot < w {
			unit = int(cellOf[slot]) / w
		}
		for _, part := range parts {
			source := part.Index
			var value expression
			if part.Parity {
				source += w
				value = r.b.parity(part.Index, stripe)
			} else {
				value = r.b.cell(cellOf[part.Index])
			}
			r.sent[source]++
			scaled := expression{}.plus(part.Coefficient, value)
			r.b.stage(Position(slot), slot, unit, r.b.send(Position(source), Position(slot), scaled))
		}
	}
	return nil
}
