package stripe

import (
	"cmp"
	"fmt"
	"slices"
)

// RepairShape says along which ways the survivors' blocks reach the positions that rebuild.
type RepairShape string

// The shapes of a repair. In the first three a survivor sends its block times its coefficient, added to what it was sent
// for the same unit, so that one block crosses the network for each survivor of a lost block; they differ in who adds.
const (
	RepairStar      RepairShape = "star"      // every survivor sends to the lost position, which adds (TriEC Section 3.2)
	RepairChain     RepairShape = "chain"     // each survivor adds its part and forwards: no link carries a unit twice
	RepairTree      RepairShape = "tree"      // sums of two, of four and so on: a logarithm of steps (partial-parallel repair)
	RepairInitiator RepairShape = "initiator" // a proxy gathers, decodes and writes back (BiEC); for comparison
)

// RepairShapes lists the shapes, those that ChooseRepairPlan weighs first.
func RepairShapes() []RepairShape {
	return []RepairShape{RepairStar, RepairChain, RepairTree, RepairInitiator}
}

// planner is the name of plans of this shape.
func (s RepairShape) planner() (string, bool) {
	switch s {
	case RepairStar:
		return plannerRepair, true
	case RepairChain:
		return plannerRepairChain, true
	case RepairTree:
		return plannerRepairTree, true
	case RepairInitiator:
		return plannerInitiator, true
	}
	return "", false
}

// NewRepairPlan returns a proved plan that rebuilds whole slots of a group under scheme at their own positions (the
// caller binds these to the nodes that take over), in the shape of a star. k survivors of every stripe send each lost
// position their block times its coefficient; the lost position adds up and stages. Survivors are chosen so that they
// send evenly. lost are distinct slots, data columns or parity rows of scheme; away are other slots that cannot be asked
// now and are not rebuilt. Where they do not survive that both are missing, as Survives tells, the error wraps ErrLost;
// other errors wrap ErrPlan or ErrLayout.
func NewRepairPlan(l *Layout, scheme Scheme, lost, away []int) (*Plan, error) {
	return NewShapedRepairPlan(l, scheme, RepairStar, lost, away)
}

// NewShapedRepairPlan is NewRepairPlan for any shape.
func NewShapedRepairPlan(l *Layout, scheme Scheme, shape RepairShape, lost, away []int) (*Plan, error) {
	planner, known := shape.planner()
	if !known {
		return nil, fmt.Errorf("planning a repair: %w: no shape is called %q; use one of %v", ErrPlan, shape, RepairShapes())
	}
	lost, away = slices.Clone(lost), slices.Clone(away)
	slices.Sort(lost)
	slices.Sort(away)
	key := planKey{layout: l.Whole(), empty: l.empty, from: scheme, to: scheme, planner: planner, units: fmt.Sprint(lost, away)}
	if plan, found := plans.get(key); found {
		return plan, nil
	}
	plan, err := buildRepairPlan(l, scheme, shape, lost, away)
	if err != nil {
		return nil, fmt.Errorf("planning the repair of slots %v under %s: %w", lost, scheme, err)
	}
	return plans.add(key, plan, plan.weight()), nil
}

func buildRepairPlan(l *Layout, scheme Scheme, shape RepairShape, lost, away []int) (*Plan, error) {
	t, err := newTransition(l, l, scheme, scheme)
	if err != nil {
		return nil, err
	}
	slots := l.Columns + scheme.M
	missing := slices.Concat(lost, away)
	slices.Sort(missing)
	if len(lost) == 0 || !distinctWithin(missing, slots) || slices.ContainsFunc(missing, l.IsEmpty) {
		return nil, fmt.Errorf("%w: it needs distinct slots from 0 to %d of which something is stored", ErrPlan, slots-1)
	}
	if !l.Survives(scheme, missing) {
		return nil, fmt.Errorf("%w: %d slots are lost or away, and %s survives %d in each stripe; bring nodes back or restore from a copy elsewhere",
			ErrLost, len(missing), scheme, scheme.M)
	}
	planner, _ := shape.planner()
	r := &repair{
		transition: t, b: newPlanBuilder(l, scheme, scheme, planner, ""), shape: shape,
		sent: make([]int, slots), received: make([]int, slots),
	}
	for stripe := range t.a.Stripes {
		if err := r.rebuild(stripe, lost, missing); err != nil {
			return nil, err
		}
	}
	return r.b.finish()
}

// Survives reports whether every stripe of a group under a scheme of the layout can be decoded without the slots missing:
// no more than m of a stripe's k data columns and m parity rows are among them. A group of several stripes side by side may
// survive the loss of more than m slots.
func (l *Layout) Survives(scheme Scheme, missing []int) bool {
	if len(missing) <= scheme.M {
		return true
	}
	isMissing := map[int]bool{}
	rows := 0
	for _, slot := range missing {
		isMissing[slot] = true
		if slot >= l.Columns {
			rows++
		}
	}
	partition := l.partitions[scheme.K]
	if partition == nil {
		return false
	}
	for _, cells := range partition.Stripes {
		lost := rows
		for _, cell := range cells {
			if isMissing[int(cell)%l.Columns] {
				lost++
			}
		}
		if lost > scheme.M {
			return false
		}
	}
	return true
}

type repair struct {
	*transition
	b              *planBuilder
	shape          RepairShape
	sent, received []int // messages of each slot so far
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
	load := func(slot int) int {
		if r.layout.IsEmpty(slot) {
			return -1 // its zeros are known without being sent
		}
		return r.sent[slot]
	}
	slices.SortStableFunc(survivors, func(a, b int) int { return cmp.Compare(load(a), load(b)) })
	var data, rows []int
	for _, slot := range survivors[:r.from.K] {
		if slot < w {
			data = append(data, slot)
		} else {
			rows = append(rows, slot-w)
		}
	}
	fetched := make(map[int]expression) // what the initiator has of each slot
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
		sources := make([]share, 0, len(parts))
		for _, part := range parts {
			source := share{slot: part.Index, coefficient: part.Coefficient}
			if part.Parity {
				source.slot += w
				source.value = r.b.parity(part.Index, stripe)
			} else {
				source.value = r.b.cell(cellOf[part.Index])
			}
			if len(source.value) > 0 {
				sources = append(sources, source)
			}
		}
		r.b.stage(Position(slot), slot, unit, r.bring(sources, slot, fetched))
	}
	return nil
}

// share is one block of a sum: coefficient times value, an expression at the position of its slot.
type share struct {
	slot        int
	coefficient byte
	value       expression
}

func (s share) scaled() expression { return expression{}.plus(s.coefficient, s.value) }

// bring has the sum of the sources reach a slot's position and returns it as an expression there.
func (r *repair) bring(sources []share, to int, fetched map[int]expression) expression {
	if len(sources) == 0 {
		return nil
	}
	switch r.shape {
	case RepairChain:
		return r.bringByChain(sources, to)
	case RepairTree:
		return r.bringByTree(sources, to)
	case RepairInitiator:
		return r.bringByInitiator(sources, to, fetched)
	}
	var sum expression
	for _, s := range sources {
		sum = append(sum, r.send(s.slot, to, s.scaled())...)
	}
	return sum
}

// send is one message between slots.
func (r *repair) send(from, to int, value expression) expression {
	r.sent[from]++
	r.received[to]++
	return r.b.send(Position(from), Position(to), value)
}

// bringByChain begins at the source that has received most: the first receives nothing.
func (r *repair) bringByChain(sources []share, to int) expression {
	slices.SortStableFunc(sources, func(a, b share) int { return cmp.Compare(r.received[b.slot], r.received[a.slot]) })
	at, sum := sources[0].slot, sources[0].scaled()
	for _, s := range sources[1:] {
		sum = append(r.send(at, s.slot, sum), s.scaled()...)
		at = s.slot
	}
	return r.send(at, to, sum)
}

// bringByTree adds up as a binomial tree does: in round i every place whose number has i trailing zeros sends what it has
// to the place 2^i before it. The slot the sum is for is place 0. Sources that have received least take the places that
// receive most.
func (r *repair) bringByTree(sources []share, to int) expression {
	slices.SortStableFunc(sources, func(a, b share) int { return cmp.Compare(r.received[a.slot], r.received[b.slot]) })
	places := make([]int, len(sources)) // numbers of places, those with the most trailing zeros first
	for i := range places {
		places[i] = i + 1
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(b&-b, a&-a) })
	slots, sums := make([]int, len(sources)+1), make([]expression, len(sources)+1)
	slots[0] = to
	for i, place := range places {
		slots[place], sums[place] = sources[i].slot, sources[i].scaled()
	}
	for step := 1; step < len(slots); step *= 2 {
		for place := step; place < len(slots); place += 2 * step {
			sums[place-step] = append(sums[place-step], r.send(slots[place], slots[place-step], sums[place])...)
		}
	}
	return sums[0]
}

// bringByInitiator fetches every block to the proxy once, as it is, and sends the decoded unit back.
func (r *repair) bringByInitiator(sources []share, to int, fetched map[int]expression) expression {
	var sum expression
	for _, s := range sources {
		there, have := fetched[s.slot]
		if !have {
			r.sent[s.slot]++
			there = r.b.send(Position(s.slot), r.b.proxy(), s.value)
			fetched[s.slot] = there
		}
		sum = sum.plus(s.coefficient, there)
	}
	r.received[to]++
	return r.b.send(r.b.proxy(), Position(to), sum)
}
