package stripe

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// Every shape rebuilds the same bytes, with the messages it promises.
func TestShapesRestoreLostSlots(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		layout := drawLayout(r)
		scheme := rapid.SampledFrom(layout.Ladder).Draw(r, "scheme")
		if scheme.M == 0 {
			return
		}
		slots := layout.Columns + scheme.M
		missing := rapid.SliceOfNDistinct(rapid.IntRange(0, slots-1), 1, min(slots-1, scheme.M), rapid.ID).Draw(r, "missing")
		lost := missing[:rapid.IntRange(1, len(missing)).Draw(r, "lost")]
		whole := encode(layout, scheme, randomCells(layout, rapid.Uint64().Draw(r, "seed")))
		left, wanted := make(group), make(group)
		for key, content := range whole {
			gone := false
			for _, slot := range missing {
				gone = gone || slot == key.slot
			}
			if !gone {
				left[key] = content
			}
			for _, slot := range lost {
				if slot == key.slot {
					wanted[key] = content
				}
			}
		}
		for _, shape := range RepairShapes() {
			plan, err := NewShapedRepairPlan(layout, scheme, shape, lost, missing[len(lost):])
			if err != nil {
				r.Fatal(err)
			}
			if !plan.Proved {
				r.Fatalf("%s is not proved", shape)
			}
			if problem := execute(t, plan, left, nil).difference(wanted); problem != "" {
				r.Fatalf("%s: %s", shape, problem)
			}
			most := scheme.K * len(wanted)
			if shape == RepairInitiator {
				most = (scheme.K + len(lost)) * len(layout.partitions[scheme.K].Stripes)
			}
			if plan.Cost.BlocksSent > most {
				r.Fatalf("%s sends %d blocks, want at most %d", shape, plan.Cost.BlocksSent, most)
			}
		}
	})
}

// One lost block of a wide stripe, by every shape: k messages, or k + 1 through an initiator.
func TestShapesOfOneLostBlock(t *testing.T) {
	layout, err := NewLayout(Ladder{RS(10, 4)}, 0, ModeFree)
	if err != nil {
		t.Fatal(err)
	}
	for shape, want := range map[RepairShape]struct{ sent, busiest, steps int }{
		RepairStar: {10, 10, 1}, RepairChain: {10, 1, 10}, RepairTree: {10, 4, 3}, RepairInitiator: {11, 10, 2},
	} {
		for lost := range 14 {
			plan, err := NewShapedRepairPlan(layout, RS(10, 4), shape, []int{lost}, nil)
			if err != nil {
				t.Fatal(err)
			}
			cost := plan.Cost
			if busiest := max(cost.MaxNodeBlocksReceived, cost.MaxNodeBlocksSent); cost.BlocksSent != want.sent || busiest != want.busiest || plan.Steps() != want.steps {
				t.Errorf("%s of slot %d: %d blocks, the busiest link %d, in %d steps; want %+v", shape, lost, cost.BlocksSent, busiest, plan.Steps(), want)
			}
		}
	}
}

// What is chosen has the least span, and that is a chain where cells are large and a star where they are tiny.
func TestShapeIsChosenByTheMostLoadedLink(t *testing.T) {
	layout, err := NewLayout(Ladder{RS(10, 4)}, 0, ModeFree)
	if err != nil {
		t.Fatal(err)
	}
	flow := func(cell int64, beside int) Flow {
		return Flow{CellBytes: cell, PieceBytes: 256 << 10, HopBytes: 64 << 10, Beside: beside}
	}
	for _, c := range []struct {
		flow Flow
		want string
	}{
		{flow(64<<20, 1), plannerRepairChain}, {flow(1<<20, 4), plannerRepairChain}, {flow(1<<10, 1), plannerRepair},
		{flow(128<<10, 1), plannerRepairTree}, {Flow{CellBytes: 64 << 20, Beside: 1}, plannerRepairTree}, // whole cells: nothing overlaps
	} {
		plan, err := ChooseRepairPlan(layout, RS(10, 4), c.flow, []int{3}, []int{11})
		if err != nil {
			t.Fatal(err)
		}
		if plan.Planner != c.want {
			t.Errorf("%+v: %s, want %s", c.flow, plan.Planner, c.want)
		}
		for _, shape := range []RepairShape{RepairStar, RepairChain, RepairTree} {
			other, err := NewShapedRepairPlan(layout, RS(10, 4), shape, []int{3}, []int{11})
			if err != nil {
				t.Fatal(err)
			}
			if other.Span(c.flow) < plan.Span(c.flow) {
				t.Errorf("%+v: %s takes %d, %s was chosen at %d", c.flow, shape, other.Span(c.flow), plan.Planner, plan.Span(c.flow))
			}
		}
	}
	// 256 pieces over ten hops: within 1.5 times a plain transfer of the cell, where a star takes ten.
	chain, err := NewShapedRepairPlan(layout, RS(10, 4), RepairChain, []int{3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if span := chain.Span(flow(64<<20, 1)); span > 64<<20*3/2 {
		t.Errorf("a chain of 64 MiB cells spans %d bytes", span)
	}
}

func TestUnknownShapesAreRefused(t *testing.T) {
	layout, err := NewLayout(Ladder{RS(3, 2)}, 0, ModeFree)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewShapedRepairPlan(layout, RS(3, 2), "ring", []int{0}, nil); !errors.Is(err, ErrPlan) {
		t.Errorf("shape ring: %v", err)
	}
	for _, shape := range RepairShapes() {
		if _, err := NewShapedRepairPlan(layout, RS(3, 2), shape, []int{0, 1}, []int{3}); !errors.Is(err, ErrLost) {
			t.Errorf("%s with three slots missing: %v", shape, err)
		}
	}
}
