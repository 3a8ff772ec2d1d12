package stripe

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A splice writes what encoding the cells afresh does. Each cell crosses the network once, and so does each parity but those of the
// first row.
func TestSpliceEqualsEncodingAfresh(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		layout := drawLayout(r)
		scheme := rapid.SampledFrom(layout.Ladder).Draw(r, "scheme")
		if rapid.Bool().Draw(r, "with empty columns") && layout.Columns > 1 {
			layout = layout.Without([]int{rapid.IntRange(0, layout.Columns-1).Draw(r, "empty")})
		}
		cells := randomCells(layout, rapid.Uint64().Draw(r, "seed"))
		copied, want := make(group), make(group)
		for cell := range cells {
			if column := cell % layout.Columns; layout.IsEmpty(column) {
				cells[cell] = make([]byte, cellBytes)
			} else {
				copied[unitKey{column, cell / layout.Columns}] = cells[cell]
			}
		}
		sent, zeros := 0, 0
		for key, content := range encode(layout, scheme, cells) {
			if layout.IsEmpty(key.slot) {
				continue
			}
			want[key] = content
			switch {
			case key.slot >= layout.Columns && layout.isZero(layout.partitions[scheme.K].Stripes[key.unit]):
				zeros++ // nobody has to be told
			case key.slot != layout.Columns:
				sent++
			}
		}
		plan, err := NewSplicePlan(layout, scheme)
		if err != nil {
			r.Fatal(err)
		}
		if scheme.M == 0 {
			sent = 0
		}
		if problem := execute(t, plan, nil, copied).difference(want); problem != "" {
			r.Fatal(problem)
		}
		if plan.Cost.BlocksSent != sent || plan.Cost.BlocksRead != len(copied) || plan.Cost.BlocksWritten != len(want) || !plan.Proved {
			r.Fatalf("%d cells cost %+v, want %d sent (%d parities are zeros), proved: %t", len(copied), plan.Cost, sent, zeros, plan.Proved)
		}
	})
}

func TestSplicesRefused(t *testing.T) {
	layout := mustLayout(t, Ladder{RS(4, 2), RS(6, 2)}, 0, "")
	if _, err := NewSplicePlan(layout, RS(5, 2)); !errors.Is(err, ErrLayout) {
		t.Errorf("under a scheme off the ladder: %v", err)
	}
	plan, err := NewSplicePlan(layout, RS(6, 2))
	if err != nil {
		t.Fatal(err)
	}
	if got := Explain(plan); !strings.HasPrefix(got, "14 blocks cross the network: each node puts its column together") {
		t.Errorf("it is explained by %q", got)
	}
	broken := *plan
	broken.Planner = plannerUpdate
	if err := broken.Prove(); !errors.Is(err, ErrUnproved) {
		t.Errorf("an update that copies: %v", err)
	}
}
