package stripe

import "slices"

// restripe plans with the parities where they are. The node of parity row p holds the old parities of the row; for every
// old stripe it keeps the parity in the main new stripe and needs, from outside, only the loose cells: it adds their
// products to the new stripe they join and to the one they leave. How cells reach the parity nodes is a set of tasks,
// each carried out in one of several ways (plan_deliver.go).
//
// An old stripe may also be recomputed: its old parity is left alone and all its cells are fetched. That reads less
// where the overlap is smaller than the number of parities, and where parities are added every cell is needed anyway.
func (t *transition) restripe(b *planBuilder, objective Objective) {
	var best *deliveries
	for _, tasks := range t.taskSets(objective) {
		d := newDeliveries(t, tasks)
		d.choose(objective)
		if best == nil || d.better(best, objective) {
			best = d
		}
	}
	t.emit(b, best)
}

// keptRows returns how many old parity rows go on living.
func (t *transition) keptRows() int { return min(t.from.M, t.to.M) }

// noStripe as a target or main stripe means none.
const noStripe = -1

// demand asks for sum over cells of U[row][column]*D, for every row of first..end-1, to be added to new stripes.
type demand struct {
	first, end int // parity rows
	cells      []int32
	joined     int // new stripe
	left       int // the other new stripe, or noStripe
}

// task is a set of cells that one position can gather to meet all demands.
type task struct {
	cells   []int32
	demands []demand
	whole   []int // old stripes that lie within cells
}

// taskSet is one way to divide the work.
type taskSet struct {
	tasks []task
	main  []int // per old stripe: the new stripe that keeps its parity, noStripe where the old stripe is recomputed
}

// taskSets returns the ways worth comparing for an objective.
func (t *transition) taskSets(objective Objective) []taskSet {
	if t.to.M > t.from.M {
		afresh := t.rebuild(false)
		if objective == LeastReads || t.keptRows() == 0 {
			return []taskSet{afresh}
		}
		kept := t.rebuild(true)
		if t.keeps {
			return []taskSet{kept}
		}
		return []taskSet{kept, afresh}
	}
	fewReads := slices.Clone(t.main)
	for i, overlap := range t.overlap {
		if overlap < t.keptRows() {
			fewReads[i] = noStripe
		}
	}
	var sets []taskSet
	if objective != LeastReads {
		sets = t.mendings(t.main)
	}
	if objective == LeastReads || !slices.Equal(fewReads, t.main) {
		sets = append(sets, t.mendings(fewReads)...)
	}
	return sets
}

// mendings returns the tasks of mend and, if pairs of new stripes form circles, also those of joinCircles.
func (t *transition) mendings(main []int) []taskSet {
	pairs := t.mend(main)
	circles, found := t.joinCircles(pairs)
	if !found {
		return []taskSet{pairs}
	}
	return []taskSet{pairs, circles}
}

// mend makes one task for every pair of new stripes that exchange loose cells: what moves between them enters both as
// one sum. Recomputed old stripes only join, with one task per new stripe.
func (t *transition) mend(main []int) taskSet {
	type pair struct{ low, high int }
	index := make(map[pair]int)
	set := taskSet{main: main}
	for i, cells := range t.a.Stripes {
		for _, cell := range cells {
			joined := int(t.b.StripeOf[cell])
			if joined == main[i] {
				continue
			}
			key := pair{min(joined, main[i]), max(joined, main[i])}
			at, found := index[key]
			if !found {
				at = len(set.tasks)
				index[key] = at
				set.tasks = append(set.tasks, task{
					demands: []demand{{end: t.keptRows(), joined: joined, left: main[i]}},
				})
			}
			set.tasks[at].cells = append(set.tasks[at].cells, cell)
		}
	}
	for at := range set.tasks {
		set.tasks[at].demands[0].cells = set.tasks[at].cells
	}
	t.findWhole(&set)
	return set
}

// joinCircles joins the tasks of new stripes that exchange cells in a circle, and reports whether there are any. Whoever
// has all cells of n such stripes need not send a sum per pair: the changes of all but one stripe suffice, as they add up
// to the change of the last; with recomputed old stripes among them, the changes of all n.
func (t *transition) joinCircles(pairs taskSet) (taskSet, bool) {
	parent := make([]int, len(t.b.Stripes))
	for j := range parent {
		parent[j] = j
	}
	root := func(j int) int {
		for parent[j] != j {
			parent[j] = parent[parent[j]]
			j = parent[j]
		}
		return j
	}
	for _, work := range pairs.tasks {
		if want := work.demands[0]; want.left != noStripe {
			parent[root(want.joined)] = root(want.left)
		}
	}
	members := make(map[int][]int) // tasks by root
	stripes := make(map[int]int)   // new stripes by root
	open := make(map[int]bool)     // roots with recomputed old stripes
	for j := range parent {
		stripes[root(j)]++
	}
	for at, work := range pairs.tasks {
		want := work.demands[0]
		members[root(want.joined)] = append(members[root(want.joined)], at)
		open[root(want.joined)] = open[root(want.joined)] || want.left == noStripe
	}
	joined := taskSet{main: pairs.main}
	found := false
	for at, work := range pairs.tasks {
		top := root(work.demands[0].joined)
		sums := stripes[top] - 1
		if open[top] {
			sums++
		}
		if len(members[top]) <= sums {
			joined.tasks = append(joined.tasks, task{cells: work.cells, demands: work.demands})
			continue
		}
		found = true
		if members[top][0] == at {
			joined.tasks = append(joined.tasks, t.joinCircle(pairs, members[top], top, open[top]))
		}
	}
	t.findWhole(&joined)
	return joined, found
}

// joinCircle makes one task of several; the last stripe, whose change the others give, is top.
func (t *transition) joinCircle(pairs taskSet, members []int, top int, open bool) task {
	var circle task
	last := top
	if open {
		last = noStripe
	}
	at := make(map[int]int) // demand by new stripe
	for _, member := range members {
		work := pairs.tasks[member]
		circle.cells = append(circle.cells, work.cells...)
		for _, j := range []int{work.demands[0].joined, work.demands[0].left} {
			if j == last || j == noStripe {
				continue
			}
			if _, found := at[j]; !found {
				at[j] = len(circle.demands)
				circle.demands = append(circle.demands, demand{end: t.keptRows(), joined: j, left: last})
			}
			circle.demands[at[j]].cells = append(circle.demands[at[j]].cells, work.cells...)
		}
	}
	return circle
}

// rebuild makes one task per new stripe, for parities that are added: whoever has all its cells computes the new rows
// and, if old parities are kept, also the sums of loose cells for the old rows; if not, all rows are computed afresh.
func (t *transition) rebuild(keep bool) taskSet {
	set := taskSet{main: make([]int, len(t.main))}
	for i := range set.main {
		set.main[i] = noStripe
		if keep {
			set.main[i] = t.main[i]
		}
	}
	for j, cells := range t.b.Stripes {
		work := task{cells: cells}
		first := 0
		if keep || t.keeps {
			first = t.from.M
		}
		work.demands = append(work.demands, demand{first: first, end: t.to.M, cells: cells, joined: j, left: noStripe})
		if keep {
			at := make(map[int]int)
			for _, cell := range cells {
				left := set.main[t.a.StripeOf[cell]]
				if left == j {
					continue
				}
				if _, found := at[left]; !found {
					at[left] = len(work.demands)
					work.demands = append(work.demands, demand{end: t.from.M, joined: j, left: left})
				}
				work.demands[at[left]].cells = append(work.demands[at[left]].cells, cell)
			}
		}
		set.tasks = append(set.tasks, work)
	}
	t.findWhole(&set)
	return set
}

// findWhole notes the old stripes that lie within each task's cells: an old parity node can do without one of their
// cells, which its own parity gives.
func (t *transition) findWhole(set *taskSet) {
	counts := make([]int, len(t.a.Stripes))
	for at := range set.tasks {
		work := &set.tasks[at]
		for _, cell := range work.cells {
			i := t.a.StripeOf[cell]
			if counts[i]++; counts[i] == t.from.K {
				work.whole = append(work.whole, int(i))
			}
		}
		for _, cell := range work.cells {
			counts[t.a.StripeOf[cell]] = 0
		}
	}
}

// emit turns the chosen deliveries into programs.
func (t *transition) emit(b *planBuilder, d *deliveries) {
	w := t.layout.Columns
	if !t.keeps {
		for row := range t.keptRows() {
			for i, j := range d.set.main {
				if j != noStripe {
					b.stage(Position(w+row), w+row, j, b.parity(row, i))
				}
			}
		}
	}
	for at, work := range d.set.tasks {
		gathered := d.gather(b, work, d.chosen[at])
		for _, want := range work.demands {
			for row := want.first; row < want.end; row++ {
				home := Position(w + row)
				var sum expression
				if d.chosen[at] == direct {
					for _, cell := range want.cells {
						sum = sum.plus(Coefficient(row, t.column(cell)), b.send(Position(t.column(cell)), home, b.cell(cell)))
					}
				} else {
					for _, cell := range want.cells {
						sum = sum.plus(Coefficient(row, t.column(cell)), gathered[cell])
					}
					if d.chosen[at] != home {
						sum = b.send(d.chosen[at], home, expression(sum.reduced()))
					}
				}
				b.stage(home, w+row, want.joined, sum)
				if want.left != noStripe {
					b.stage(home, w+row, want.left, sum)
				}
			}
		}
	}
}
