package stripe

import "fmt"

// NewSplicePlan returns a proved plan that writes a new group whose data is there already: the node of each column puts its cells
// together from what it stores (SourceCopy), and the node of the first parity row gathers them, computes all parities, and sends
// the others theirs. So each cell crosses the network once, and each parity of the other rows once: 1 + (m-1)/k blocks for a cell,
// where writing the group from elsewhere takes 1 + m/k, after reading each cell. From and To are scheme. Errors wrap ErrPlan or ErrLayout.
func NewSplicePlan(l *Layout, scheme Scheme) (*Plan, error) {
	key := planKey{layout: l.Whole(), empty: l.empty, from: scheme, to: scheme, planner: plannerSplice}
	if plan, found := plans.get(key); found {
		return plan, nil
	}
	plan, err := buildSplicePlan(l, scheme)
	if err != nil {
		return nil, fmt.Errorf("planning a splice under %s: %w", scheme, err)
	}
	return plans.add(key, plan, plan.weight()), nil
}

func buildSplicePlan(l *Layout, scheme Scheme) (*Plan, error) {
	partition, err := l.Partition(scheme.K)
	if err != nil {
		return nil, err
	}
	b := newPlanBuilder(l, scheme, scheme, plannerSplice, "")
	gatherer := Position(l.Columns)
	for stripe, cells := range partition.Stripes {
		parities := make([]expression, scheme.M)
		for _, cell := range cells {
			column, row := int(cell)%l.Columns, int(cell)/l.Columns
			if l.IsEmpty(column) {
				continue
			}
			home := Position(column)
			copied := expression{{b.at(home).input(Input{Kind: SourceCopy, Slot: column, Unit: row}), 1}}
			b.stage(home, column, row, copied)
			if scheme.M == 0 {
				continue
			}
			gathered := b.send(home, gatherer, copied)
			for parity := range parities {
				parities[parity] = parities[parity].plus(Coefficient(parity, column), gathered)
			}
		}
		for parity, sum := range parities {
			home := Position(l.Columns + parity)
			if home != gatherer {
				sum = b.send(gatherer, home, sum)
			}
			b.stage(home, l.Columns+parity, stripe, sum)
		}
	}
	return b.finish()
}

func explainSplice(plan *Plan) []string {
	how := ": each node puts its column together from what it stores."
	if plan.To.M > 0 {
		how = ": each node puts its column together from what it stores, and one parity node gathers the columns and computes all parities."
	}
	return []string{crossings(plan.Cost.BlocksSent) + how, readsAndWrites(plan.Cost), busiest(plan.Cost)}
}
