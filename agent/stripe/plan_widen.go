package stripe

import (
	"fmt"
	"slices"
)

// Widening says which columns a group gets that it did not have, or that were empty, and where that lies which comes into them.
type Widening struct {
	Columns []int      // of the layout afterwards, ascending
	Sources []Position // of each: that of one of them, whose node has it; that of a parity row of the group, whose node has it; else Outside
}

// Outside is the position of a node that has nothing of a group itself: the i-th of those that what comes into it lies on.
func (l *Layout) Outside(scheme Scheme, i int) Position {
	return Position(l.Columns + scheme.M + 1 + i)
}

// NewWidenPlan returns a proved plan that gives a group further columns, whose cells are those of columns of other groups
// (SourceCopy): they are copied to the nodes of the new columns, or stay on these, and what they change of the parities is added to
// them, which are read and written once. The group is one of layout l afterwards, and has the same scheme before with these columns
// empty: as the coefficients of a cell depend on its column alone, columns that are zeros change no parity, however many there are.
//
// One node gathers what the parities change by, sums it up for each parity row, and sends them their sums: the one of those that it
// could be by which the fewest blocks cross the network. Where all columns come from one node (Scale-RS, Policy 1), it is that one, and
// the d new columns cost d + m blocks for each row, d + m - 1 where it has a parity of the group itself or keeps one of them. Each further
// node that they come from costs as many more as come from it, or m. Errors wrap ErrPlan or ErrLayout.
func NewWidenPlan(l *Layout, scheme Scheme, w Widening) (*Plan, error) {
	key := planKey{layout: l.Whole(), empty: l.empty, from: scheme, to: scheme, planner: plannerWiden, units: fmt.Sprint(w)}
	if plan, found := plans.get(key); found {
		return plan, nil
	}
	plan, err := buildWidenPlan(l, scheme, w)
	if err != nil {
		return nil, fmt.Errorf("planning columns %v more under %s: %w", w.Columns, scheme, err)
	}
	return plans.add(key, plan, plan.weight()), nil
}

func buildWidenPlan(l *Layout, scheme Scheme, w Widening) (*Plan, error) {
	partition, err := l.Partition(scheme.K)
	if err != nil {
		return nil, err
	}
	if len(w.Columns) == 0 || len(w.Sources) != len(w.Columns) || !distinctWithin(w.Columns, l.Columns) ||
		slices.ContainsFunc(w.Columns, l.IsEmpty) {
		return nil, fmt.Errorf("%w: it needs distinct columns from 0 to %d, and a source of each", ErrPlan, l.Columns-1)
	}
	for at, source := range w.Sources {
		if source >= 0 && slices.Contains(w.Columns, int(source)) {
			continue
		}
		if source < Position(l.Columns) || source == l.Outside(scheme, -1) || source >= l.Outside(scheme, l.Columns) {
			return nil, fmt.Errorf("%w: position %d, from which column %d comes, is neither that of a new column, nor of a parity row, nor outside",
				ErrPlan, source, w.Columns[at])
		}
	}
	b := newPlanBuilder(l, scheme, scheme, plannerWiden, "")
	b.plan.Before = l.Without(w.Columns)
	gatherer := w.gatherer(l, scheme)
	for stripe, cells := range partition.Stripes {
		w.widen(b, gatherer, stripe, cells)
	}
	return b.finish()
}

// widen brings the cells of one stripe that lie in new columns.
func (w *Widening) widen(b *planBuilder, gatherer Position, stripe int, cells []int32) {
	l, m := b.plan.Layout, b.plan.To.M
	sums := make(map[Position][]expression) // by source: what its columns change of each parity
	gathered := make([]expression, m)
	for at, column := range w.Columns {
		cell := slices.IndexFunc(cells, func(cell int32) bool { return int(cell)%l.Columns == column })
		if cell < 0 {
			continue
		}
		row, source := int(cells[cell])/l.Columns, w.Sources[at]
		copied := expression{{b.at(source).input(Input{Kind: SourceCopy, Slot: column, Unit: row}), 1}}
		home := Position(column)
		arrived := copied
		if source != home {
			arrived = b.send(source, home, copied)
		}
		b.stage(home, column, row, arrived)
		switch {
		case gatherer == home:
			copied = arrived
		case gatherer != source && !w.isSummed(source, gatherer, m):
			copied = b.send(source, gatherer, copied)
		case gatherer != source:
			if sums[source] == nil {
				sums[source] = make([]expression, m)
			}
			for parity := range m {
				sums[source][parity] = sums[source][parity].plus(Coefficient(parity, column), copied)
			}
			continue
		}
		for parity := range m {
			gathered[parity] = gathered[parity].plus(Coefficient(parity, column), copied)
		}
	}
	for _, source := range slices.Compact(slices.Sorted(slices.Values(w.Sources))) {
		for parity, sum := range sums[source] {
			gathered[parity] = append(gathered[parity], b.send(source, gatherer, sum)...)
		}
	}
	for parity, sum := range gathered {
		if len(sum) == 0 {
			continue
		}
		home := Position(l.Columns + parity)
		if home != gatherer {
			sum = b.send(gatherer, home, sum)
		}
		b.stage(home, l.Columns+parity, stripe, append(b.parity(parity, stripe), sum...))
	}
}

// brings is how many columns a source brings that a gatherer does not get anyway.
func (w *Widening) brings(source, gatherer Position) (columns int) {
	for at, column := range w.Columns {
		if w.Sources[at] == source && Position(column) != gatherer {
			columns++
		}
	}
	return columns
}

// isSummed reports whether a source sends the gatherer the sums of its columns, as they are fewer than these.
func (w *Widening) isSummed(source, gatherer Position, parities int) bool {
	return w.brings(source, gatherer) > parities
}

// gatherer is the position by which the fewest blocks cross the network: one that columns come from, else one with a parity, else a new
// column's.
func (w *Widening) gatherer(l *Layout, scheme Scheme) Position {
	sources := slices.Compact(slices.Sorted(slices.Values(w.Sources)))
	candidates := slices.Clone(sources)
	for parity := range scheme.M {
		candidates = append(candidates, Position(l.Columns+parity))
	}
	for _, column := range w.Columns {
		candidates = append(candidates, Position(column))
	}
	return slices.MinFunc(candidates, func(a, b Position) int {
		return w.gathering(l, scheme, sources, a) - w.gathering(l, scheme, sources, b)
	})
}

// gathering is how many blocks cross the network for a stripe, beside the columns themselves, with this gatherer.
func (w *Widening) gathering(l *Layout, scheme Scheme, sources []Position, gatherer Position) int {
	blocks := scheme.M
	if gatherer >= Position(l.Columns) && gatherer < Position(l.Columns+scheme.M) {
		blocks--
	}
	for _, source := range sources {
		if source != gatherer {
			blocks += min(scheme.M, w.brings(source, gatherer))
		}
	}
	return blocks
}

func explainWidening(plan *Plan) []string {
	return []string{
		crossings(plan.Cost.BlocksSent) +
			": columns of other groups are copied to new nodes, and one node sums up what they add to the parities.",
		readsAndWrites(plan.Cost), busiest(plan.Cost), "No other data block moves.",
	}
}
