package stripe

import "slices"

// direct as the gatherer of a task means that its cells go straight to every row that needs them.
const direct Position = -1

// searchPasses bounds the local search over gatherers.
const searchPasses = 6

// deliveries chooses, for every task, where its cells are gathered, and keeps the load of every position.
type deliveries struct {
	transition     *transition
	set            taskSet
	chosen         []Position
	sent, received []int
	total          int
	squares        int // sum of squares of sent and received
}

func newDeliveries(t *transition, set taskSet) *deliveries {
	positions := t.layout.Columns + max(t.from.M, t.to.M)
	return &deliveries{
		transition: t, set: set, chosen: make([]Position, len(set.tasks)),
		sent: make([]int, positions), received: make([]int, positions),
	}
}

// saved returns the cell of old stripe i that the node of an old parity row does not need, as its parity gives it: one that is stored,
// if any is.
func (t *transition) saved(i int) int32 {
	for next := range t.from.K {
		if cell := t.a.Stripes[i][(i+next)%t.from.K]; !t.layout.IsEmpty(t.column(cell)) {
			return cell
		}
	}
	return t.a.Stripes[i][i%t.from.K]
}

// holdsParity reports whether position is the node of an old parity row.
func (t *transition) holdsParity(position Position) bool {
	return int(position) >= t.layout.Columns && int(position) < t.layout.Columns+t.from.M
}

// options lists the gatherers worth trying. A gatherer that is a parity node of the rows in need saves one message per
// row it serves itself, a data node the message of its own cell; both need t+m-1 messages for t cells and m rows. The
// node of an old parity row saves a cell per old stripe that lies within the task, even if it needs nothing itself.
// Data nodes are tried where they hold several of the cells, and for the bottleneck.
func (d *deliveries) options(work task, objective Objective) []Position {
	var options []Position
	t := d.transition
	for row := range max(t.from.M, t.to.M) {
		inNeed := func(want demand) bool { return row >= want.first && row < want.end }
		if position := Position(t.layout.Columns + row); slices.ContainsFunc(work.demands, inNeed) ||
			len(work.whole) > 0 && t.holdsParity(position) {
			options = append(options, position)
		}
	}
	if len(work.demands) == 1 && (len(work.cells) == 1 || objective == LeastBottleneck) {
		options = append(options, direct)
	}
	var seen, offered [MaxData]bool
	for _, cell := range work.cells {
		column := t.column(cell)
		if t.layout.IsEmpty(column) {
			continue
		}
		if (seen[column] || objective == LeastBottleneck) && !offered[column] {
			options = append(options, Position(column))
			offered[column] = true
		}
		seen[column] = true
	}
	return options
}

// gather sends the cells of a task to the gatherer and returns the expression of every cell there; nil for direct.
func (d *deliveries) gather(b *planBuilder, work task, gatherer Position) map[int32]expression {
	if gatherer == direct {
		return nil
	}
	t := d.transition
	known := make(map[int32]expression, len(work.cells))
	skipped := d.skipped(work, gatherer)
	for _, cell := range work.cells {
		column := Position(t.column(cell))
		switch {
		case slices.Contains(skipped, cell):
		case column == gatherer:
			known[cell] = b.cell(cell)
		default:
			known[cell] = b.send(column, gatherer, b.cell(cell))
		}
	}
	for at, cell := range skipped {
		if t.layout.IsEmpty(t.column(cell)) {
			continue // as all of its stripe
		}
		row := int(gatherer) - t.layout.Columns
		i := work.whole[at]
		inverse := Inverse(Coefficient(row, t.column(cell)))
		value := expression{}.plus(inverse, b.parity(row, i))
		for _, other := range t.a.Stripes[i] {
			if other != cell {
				value = value.plus(Multiply(inverse, Coefficient(row, t.column(other))), known[other])
			}
		}
		known[cell] = value
	}
	return known
}

// skipped returns the cells a gatherer need not receive because an old parity of its own gives them.
func (d *deliveries) skipped(work task, gatherer Position) []int32 {
	if !d.transition.holdsParity(gatherer) {
		return nil
	}
	cells := make([]int32, len(work.whole))
	for at, i := range work.whole {
		cells[at] = d.transition.saved(i)
	}
	return cells
}

// apply adds (sign 1) or removes (sign -1) the messages of a task.
func (d *deliveries) apply(work task, gatherer Position, sign int) {
	t := d.transition
	if gatherer == direct {
		for _, want := range work.demands {
			for row := want.first; row < want.end; row++ {
				for _, cell := range want.cells {
					d.message(t.column(cell), t.layout.Columns+row, sign)
				}
			}
		}
		return
	}
	at := int(gatherer)
	for _, cell := range work.cells {
		if column := t.column(cell); column != at {
			d.message(column, at, sign)
		}
	}
	for _, cell := range d.skipped(work, gatherer) {
		d.message(t.column(cell), at, -sign)
	}
	for _, want := range work.demands {
		for row := want.first; row < want.end; row++ {
			if home := t.layout.Columns + row; home != at && !t.layout.isZero(want.cells) {
				d.message(at, home, sign)
			}
		}
	}
}

func (d *deliveries) message(from, to, sign int) {
	if d.transition.layout.IsEmpty(from) {
		return
	}
	d.total += sign
	d.squares += 2*sign*(d.sent[from]+d.received[to]) + 2
	d.sent[from] += sign
	d.received[to] += sign
}

// rank orders deliveries; the lesser is better.
type rank [3]int

func (r rank) less(other rank) bool { return slices.Compare(r[:], other[:]) < 0 }

func (d *deliveries) bottleneck() int { return max(slices.Max(d.sent), slices.Max(d.received)) }

func (d *deliveries) networkRank() rank { return rank{d.total, d.bottleneck(), d.squares} }

// smoothRank prefers evenness to few messages: what leads out of a state in which several nodes are equally loaded.
func (d *deliveries) smoothRank() rank { return rank{d.bottleneck(), d.squares, d.total} }

func (d *deliveries) bottleneckRank() rank { return rank{d.bottleneck(), d.total, d.squares} }

// better reports whether d serves the objective better than other.
func (d *deliveries) better(other *deliveries, objective Objective) bool {
	if objective == LeastBottleneck {
		return d.bottleneckRank().less(other.bottleneckRank())
	}
	return d.networkRank().less(other.networkRank())
}

// choose picks the gatherers: greedily for the fewest messages and an even load, then by local search; for the
// bottleneck it goes on from there, so that the result never has a busier node than the least network has.
func (d *deliveries) choose(objective Objective) {
	for at, work := range d.set.tasks {
		d.chosen[at] = d.pick(work, d.options(work, LeastNetwork), d.networkRank)
		d.apply(work, d.chosen[at], 1)
	}
	d.improve(LeastNetwork, d.networkRank)
	if objective == LeastBottleneck {
		d.improve(LeastBottleneck, d.smoothRank)
		d.improve(LeastBottleneck, d.bottleneckRank)
	}
}

// pick returns the best option for a task that is not applied.
func (d *deliveries) pick(work task, options []Position, rankOf func() rank) Position {
	best, bestRank := options[0], rank{}
	for i, option := range options {
		d.apply(work, option, 1)
		if now := rankOf(); i == 0 || now.less(bestRank) {
			best, bestRank = option, now
		}
		d.apply(work, option, -1)
	}
	return best
}

// improve moves tasks to better gatherers one at a time until nothing changes.
func (d *deliveries) improve(objective Objective, rankOf func() rank) {
	for range searchPasses {
		changed := false
		for at, work := range d.set.tasks {
			before := rankOf()
			d.apply(work, d.chosen[at], -1)
			option := d.pick(work, d.options(work, objective), rankOf)
			d.apply(work, option, 1)
			if rankOf().less(before) {
				d.chosen[at], changed = option, true
				continue
			}
			d.apply(work, option, -1)
			d.apply(work, d.chosen[at], 1)
		}
		if !changed {
			return
		}
	}
}
