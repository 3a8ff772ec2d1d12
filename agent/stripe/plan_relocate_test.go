package stripe

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A relocation copies exactly the units of its slots, byte for byte, reads nothing else, and sends each once.
func TestRelocationCopiesSlots(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		layout := drawLayout(rt)
		scheme := rapid.SampledFrom(layout.Ladder).Draw(rt, "scheme")
		stored := encode(layout, scheme, randomCells(layout, 1))
		slots := rapid.SliceOfNDistinct(rapid.IntRange(0, layout.Columns+scheme.M-1), 1, 3, rapid.ID[int]).Draw(rt, "slots")
		plan, err := NewRelocationPlan(layout, scheme, slots)
		if err != nil {
			t.Fatal(err)
		}
		want := make(group)
		for key, content := range stored {
			for _, slot := range slots {
				if key.slot == slot {
					want[key] = content
				}
			}
		}
		if difference := execute(t, plan, stored, nil).difference(want); difference != "" {
			t.Fatal(difference)
		}
		if plan.Cost.BlocksRead != len(want) || plan.Cost.BlocksSent != len(want) || plan.Cost.BlocksWritten != len(want) || !plan.Proved {
			t.Fatalf("%d units cost %+v, proved: %t", len(want), plan.Cost, plan.Proved)
		}
		for _, program := range plan.Programs {
			for _, row := range program.Rows {
				if row.Message < 0 && program.Position != plan.Destination(row.Slot) {
					t.Fatalf("slot %d is staged at position %d", row.Slot, program.Position)
				}
			}
		}
	})
}

func TestRelocationsRefused(t *testing.T) {
	layout := mustLayout(t, Ladder{RS(4, 2), RS(6, 2)}, 0, "")
	for _, slots := range [][]int{nil, {-1}, {layout.Columns + 2}, {1, 1}} {
		if _, err := NewRelocationPlan(layout, RS(4, 2), slots); !errors.Is(err, ErrPlan) {
			t.Errorf("relocation of %v: %v", slots, err)
		}
	}
	if _, err := NewRelocationPlan(layout, RS(5, 2), []int{0}); !errors.Is(err, ErrLayout) {
		t.Errorf("under a scheme off the ladder: %v", err)
	}
	plan, err := NewRelocationPlan(layout, RS(4, 2), []int{0})
	if err != nil {
		t.Fatal(err)
	}
	if got := Explain(plan); !strings.HasPrefix(got, "2 blocks cross the network: each is copied as it is") {
		t.Error(got)
	}
	mutant := plan.clone()
	mutant.Programs[1].Rows[0].Terms[0].Coefficient = 2
	if err := mutant.Prove(); !errors.Is(err, ErrUnproved) {
		t.Errorf("a relocation that changes its block: %v", err)
	}
}
