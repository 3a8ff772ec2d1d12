package stripe

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

const cellBytes = 3

// group is a group's stored units, for running plans on real bytes.
type group map[unitKey][]byte

func randomCells(l *Layout, seed uint64) [][]byte {
	random := rand.New(rand.NewPCG(seed, seed))
	cells := make([][]byte, l.Cells())
	for i := range cells {
		cells[i] = make([]byte, cellBytes)
		for j := range cells[i] {
			cells[i][j] = byte(random.Uint32())
		}
	}
	return cells
}

// encode stores cells and all their parities.
func encode(l *Layout, scheme Scheme, cells [][]byte) group {
	g := make(group)
	for cell, content := range cells {
		g[unitKey{cell % l.Columns, cell / l.Columns}] = content
	}
	for index, stripe := range l.partitions[scheme.K].Stripes {
		for row := range scheme.M {
			parity := make([]byte, cellBytes)
			for _, cell := range stripe {
				addScaledRow(parity, cells[cell], Coefficient(row, int(cell)%l.Columns))
			}
			g[unitKey{l.Columns + row, index}] = parity
		}
	}
	return g
}

// execute runs a plan and returns what it stages. patches are differences by data unit.
func execute(t testing.TB, plan *Plan, stored, patches group) group {
	t.Helper()
	messages := make([][]byte, len(plan.Messages))
	combine := func(program Program, terms []Term) []byte {
		sum := make([]byte, cellBytes)
		for _, term := range terms {
			input := program.Inputs[term.Input]
			var content []byte
			switch input.Kind {
			case SourceBlock:
				content = stored[unitKey{input.Slot, input.Unit}]
			case SourcePatch, SourceCopy:
				content = patches[unitKey{input.Slot, input.Unit}]
			case SourceMessage:
				content = messages[input.Message]
			}
			if content == nil {
				return nil
			}
			addScaledRow(sum, content, term.Coefficient)
		}
		return sum
	}
	for missing := len(messages); missing > 0; {
		before := missing
		for _, program := range plan.Programs {
			for _, row := range program.Rows {
				if row.Message >= 0 && messages[row.Message] == nil {
					if messages[row.Message] = combine(program, row.Terms); messages[row.Message] != nil {
						missing--
					}
				}
			}
		}
		if missing == before {
			t.Fatal("the plan is stuck")
		}
	}
	staged := make(group)
	for _, program := range plan.Programs {
		for _, row := range program.Rows {
			if row.Message < 0 {
				staged[unitKey{row.Slot, row.Unit}] = combine(program, row.Terms)
			}
		}
	}
	return staged
}

// transit runs a transition plan and returns the group after it.
func transit(t testing.TB, plan *Plan, before group) group {
	t.Helper()
	after := make(group)
	w := plan.Layout.Columns
	for key, content := range before {
		if key.slot < w || plan.KeepsStripes() && key.slot < w+plan.To.M {
			after[key] = content
		}
	}
	for key, content := range execute(t, plan, before, nil) {
		after[key] = content
	}
	return after
}

func (g group) difference(other group) string {
	if len(g) != len(other) {
		return fmt.Sprintf("%d units, want %d", len(g), len(other))
	}
	for key, content := range g {
		if !bytes.Equal(content, other[key]) {
			return fmt.Sprintf("unit %d of slot %d is %x, want %x", key.unit, key.slot, content, other[key])
		}
	}
	return ""
}

var smallWidths = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12}

// drawLadder draws up to six schemes of small widths whose group stays small.
func drawLadder(t *rapid.T) Ladder {
	var ladder Ladder
	cells := 1
	for range rapid.IntRange(1, MaxSchemes).Draw(t, "schemes") {
		k := rapid.SampledFrom(smallWidths).Draw(t, "k")
		scheme := RS(k, rapid.IntRange(1, 5).Draw(t, "m"))
		if k == 1 {
			scheme.M--
		}
		if next := lcm(cells, k); next <= 360 && !ladder.Contains(scheme) {
			ladder = append(ladder, scheme)
			cells = next
		}
	}
	return ladder
}

func drawLayout(t *rapid.T) *Layout {
	ladder := drawLadder(t)
	columns := 0
	if rapid.Bool().Draw(t, "wider") {
		columns = ladder.Width() + rapid.IntRange(0, 3).Draw(t, "spare columns")
	}
	mode := rapid.SampledFrom([]Mode{ModeFree, ModeAdj, ModeAll, ModeRow}).Draw(t, "mode")
	layout, err := NewLayout(ladder, columns, mode)
	if err != nil {
		t.Fatal(err)
	}
	return layout
}

// Any path through a ladder, by any planner and objective, ends in the bytes of encoding afresh.
func TestAnyPathEqualsEncodingAfresh(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		layout := drawLayout(r)
		cells := randomCells(layout, rapid.Uint64().Draw(r, "seed"))
		now := rapid.SampledFrom(layout.Ladder).Draw(r, "start")
		state := encode(layout, now, cells)
		for range rapid.IntRange(1, 4).Draw(r, "steps") {
			next := rapid.SampledFrom(layout.Ladder).Draw(r, "next")
			planner := rapid.SampledFrom(append(Planners(), PlannerRestripe, PlannerRestripe, PlannerRestripe)).Draw(r, "planner")
			objective := rapid.SampledFrom(Objectives()).Draw(r, "objective")
			if !papersApply(now, next) && (planner == PlannerERS1 || planner == PlannerERS2 || planner == PlannerSRS) {
				planner = PlannerRestripe
			}
			plan, err := NewPlan(layout, now, next, planner, objective)
			if err != nil {
				r.Fatal(err)
			}
			state = transit(t, plan, state)
			if problem := state.difference(encode(layout, next, cells)); problem != "" {
				r.Fatalf("%s to %s by %s, %s: %s", now, next, planner, objective, problem)
			}
			bound := LowerBound(layout, now, next)
			if planner == PlannerRestripe && (plan.Cost.BlocksRead < bound.BlocksRead || plan.Cost.BlocksSent < bound.BlocksSent) {
				r.Fatalf("%s to %s: %+v is under the bound %+v", now, next, plan.Cost, bound)
			}
			now = next
		}
	})
}

func TestUpdateEqualsEncodingAfresh(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		layout := drawLayout(r)
		scheme := rapid.SampledFrom(layout.Ladder).Draw(r, "scheme")
		cells := randomCells(layout, rapid.Uint64().Draw(r, "seed"))
		before := encode(layout, scheme, cells)
		patched := rapid.SliceOfNDistinct(rapid.IntRange(0, layout.Cells()-1), 1, min(9, layout.Cells()), rapid.ID).Draw(r, "cells")
		plan, err := NewUpdatePlan(layout, scheme, patched)
		if err != nil {
			r.Fatal(err)
		}
		patches := make(group)
		for i, cell := range patched {
			difference := []byte{byte(i), 7, byte(3 * i)}
			patches[unitKey{cell % layout.Columns, cell / layout.Columns}] = difference
			changed := bytes.Clone(cells[cell])
			addScaledRow(changed, difference, 1)
			cells[cell] = changed
		}
		after := make(group)
		for key, content := range before {
			after[key] = content
		}
		for key, content := range execute(t, plan, before, patches) {
			after[key] = content
		}
		if problem := after.difference(encode(layout, scheme, cells)); problem != "" {
			r.Fatal(problem)
		}
		if want := len(patched) * scheme.M; plan.Cost.BlocksSent != want {
			r.Fatalf("%d differences sent, want %d", plan.Cost.BlocksSent, want)
		}
	})
}

func TestRepairRestoresLostSlots(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		layout := drawLayout(r)
		scheme := rapid.SampledFrom(layout.Ladder).Draw(r, "scheme")
		slots := layout.Columns + scheme.M
		lost := rapid.SliceOfNDistinct(rapid.IntRange(0, slots-1), 1, min(slots, 2*scheme.M+2), rapid.ID).Draw(r, "lost")
		plan, err := NewRepairPlan(layout, scheme, lost, nil)
		determined := determines(layout, scheme, lost)
		if layout.Survives(scheme, lost) != determined {
			r.Fatalf("lost %v of %s: that they survive it is not %t", lost, scheme, !determined)
		}
		if !determined {
			if !errors.Is(err, ErrLost) {
				r.Fatalf("lost %v of %s: %v", lost, scheme, err)
			}
			return
		}
		if err != nil {
			r.Fatal(err)
		}
		whole := encode(layout, scheme, randomCells(layout, rapid.Uint64().Draw(r, "seed")))
		damaged := make(group)
		wanted := make(group)
		for key, content := range whole {
			gone := false
			for _, slot := range lost {
				gone = gone || slot == key.slot
			}
			if gone {
				wanted[key] = content
			} else {
				damaged[key] = content
			}
		}
		if problem := execute(t, plan, damaged, nil).difference(wanted); problem != "" {
			r.Fatal(problem)
		}
	})
}

// determines reports by rank whether what is left of a group without the slots lost determines every cell.
func determines(l *Layout, scheme Scheme, lost []int) bool {
	for _, stripe := range l.partitions[scheme.K].Stripes {
		var left [][]byte // a row of the generator matrix of the stripe for each block that is left
		for i, cell := range stripe {
			if !slices.Contains(lost, int(cell)%l.Columns) {
				row := make([]byte, scheme.K)
				row[i] = 1
				left = append(left, row)
			}
		}
		for p := range scheme.M {
			if slices.Contains(lost, l.Columns+p) {
				continue
			}
			row := make([]byte, scheme.K)
			for i, cell := range stripe {
				row[i] = Coefficient(p, int(cell)%l.Columns)
			}
			left = append(left, row)
		}
		if rankOf(left) < scheme.K {
			return false
		}
	}
	return true
}

// rankOf eliminates the rows in place.
func rankOf(rows [][]byte) (pivots int) {
	for column := 0; len(rows) > 0 && column < len(rows[0]); column++ {
		pivot := slices.IndexFunc(rows[pivots:], func(row []byte) bool { return row[column] != 0 })
		if pivot < 0 {
			continue
		}
		rows[pivots], rows[pivots+pivot] = rows[pivots+pivot], rows[pivots]
		for _, row := range rows[pivots+1:] {
			addScaledRow(row, rows[pivots], Multiply(row[column], Inverse(rows[pivots][column])))
		}
		if pivots++; pivots == len(rows) {
			break
		}
	}
	return pivots
}

// Each stripe of a replicated group is one column and its copies: the loss of any columns is survived while a copy is left.
func TestLossesOfDifferentStripesAreRepaired(t *testing.T) {
	layout := mustLayout(t, Ladder{Replicas(3), RS(6, 2)}, 0, "")
	for _, c := range []struct {
		lost, away []int
		survives   bool
	}{
		{[]int{0, 1, 2}, nil, true},
		{[]int{0, 1, 2, 3, 4, 5}, nil, true},
		{[]int{0, 1}, []int{2, 3, 6}, true},
		{[]int{0, 1, 6, 7}, nil, false}, // no copy is left
		{[]int{0, 6}, []int{5, 7}, false},
	} {
		if _, err := NewRepairPlan(layout, Replicas(3), c.lost, c.away); (err == nil) != c.survives || err != nil && !errors.Is(err, ErrLost) {
			t.Errorf("lost %v, away %v: %v", c.lost, c.away, err)
		}
	}
}

func TestDecodeYieldsAnyCell(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		k := rapid.IntRange(1, 12).Draw(r, "k")
		scheme := RS(k, rapid.IntRange(1, MaxParity).Draw(r, "m"))
		columns := rapid.SliceOfNDistinct(rapid.IntRange(0, MaxData-1), k, k, rapid.ID).Draw(r, "columns")
		blocks := make(map[int]byte) // by column, parity row p as -1-p
		for _, column := range columns {
			blocks[column] = rapid.Byte().Draw(r, "cell")
			for row := range scheme.M {
				blocks[-1-row] ^= Multiply(Coefficient(row, column), blocks[column])
			}
		}
		all := append([]int(nil), columns...)
		for row := range scheme.M {
			all = append(all, -1-row)
		}
		at := rapid.Permutation(all).Draw(r, "at hand")[:rapid.IntRange(0, len(all)).Draw(r, "count")]
		var data, rows []int
		for _, block := range at {
			if block < 0 {
				rows = append(rows, -1-block)
			} else {
				data = append(data, block)
			}
		}
		wanted := rapid.SampledFrom(columns).Draw(r, "wanted")
		parts, err := Decode(scheme, columns, wanted, data, rows)
		if err != nil {
			if len(at) >= k {
				r.Fatal(err)
			}
			return
		}
		sum := byte(0)
		for _, part := range parts {
			block := part.Index
			if part.Parity {
				block = -1 - block
			}
			sum ^= Multiply(part.Coefficient, blocks[block])
		}
		if sum != blocks[wanted] || len(parts) > k {
			r.Fatalf("%d parts yield %#x, want %#x", len(parts), sum, blocks[wanted])
		}
	})
}
