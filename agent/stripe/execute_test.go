package stripe

import (
	"bytes"
	"fmt"
	"math/rand/v2"
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
			case SourcePatch:
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
		if key.slot < w || plan.From.K == plan.To.K && key.slot < w+plan.To.M {
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
		lost := rapid.SliceOfNDistinct(rapid.IntRange(0, slots-1), 1, min(slots, scheme.M+1), rapid.ID).Draw(r, "lost")
		plan, err := NewRepairPlan(layout, scheme, lost, nil)
		if len(lost) > scheme.M {
			if err == nil {
				r.Fatalf("lost %v of %s: planned", lost, scheme)
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
