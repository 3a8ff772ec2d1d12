package stripe

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// narrowing draws a group that became wider and the layout that it had before, which has as many rows. Another width makes more rows,
// where they become rows of the wider group too.
func narrowing(t *rapid.T) (before, after *Layout, from, to Scheme) {
	columns, more, m := rapid.IntRange(1, 8).Draw(t, "columns"), rapid.IntRange(1, 8).Draw(t, "more"), rapid.IntRange(1, 3).Draw(t, "parities")
	to, from = RS(columns, m), RS(columns+more, m)
	ladders := []Ladder{{to}}
	if another := rapid.IntRange(1, columns).Draw(t, "another width"); another != columns {
		ladders = []Ladder{{to, RS(another, m)}, {to}}
	}
	var err error
	for _, ladder := range ladders {
		if after, err = NewLayout(ladder, columns, ModeFree); err != nil {
			t.Fatal(err)
		}
		if before, err = after.WithColumns(columns+more, Ladder{from}, ModeFree, to, from); err != nil {
			continue
		}
		if after, err = before.WithColumns(columns, Ladder{to}, ModeFree, from, to); err == nil {
			return before, after, from, to
		}
	}
	t.Fatal(err)
	return nil, nil, from, to
}

// Whatever columns a group loses, its parities are afterwards what encoding the others afresh gives. Of d columns that are not empty d - 1
// cells of each row cross the network, and a difference for each parity.
func TestNarrowingEqualsEncodingAfresh(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		before, after, from, to := narrowing(r)
		var empty, lost []int
		for column := range before.Columns {
			if rapid.IntRange(0, 3).Draw(r, "is empty") == 0 {
				empty = append(empty, column)
			} else if column >= after.Columns {
				lost = append(lost, column)
			}
		}
		before = before.Without(empty)
		after = after.Without(slices.DeleteFunc(empty, func(column int) bool { return column >= after.Columns }))
		checkNarrowing(t, r, before, after, from, to, lost)
	})
}

func checkNarrowing(tb testing.TB, t rapid.TB, before, after *Layout, from, to Scheme, lost []int) *Plan {
	cells := randomCells(before, 5)
	left, copied := make([][]byte, after.Cells()), make(group)
	for cell := range cells {
		row, column := cell/before.Columns, cell%before.Columns
		if before.IsEmpty(column) {
			cells[cell] = make([]byte, cellBytes)
		}
		if column < after.Columns {
			left[after.CellIndex(row, column)] = cells[cell]
		} else {
			copied[unitKey{column, row}] = cells[cell]
		}
	}
	plan, err := NewNarrowPlan(before, after, from, to, lost)
	if err != nil {
		t.Fatal(err)
	}
	stored, want := group{}, group{}
	for key, content := range encode(before, from, cells) { // parities lie in the slots of the narrower group
		if key.slot >= before.Columns {
			stored[unitKey{key.slot - before.Columns + after.Columns, key.unit}] = content
		}
	}
	for key, content := range encode(after, to, left) {
		if key.slot >= after.Columns {
			want[key] = content
		}
	}
	if problem := execute(tb, plan, stored, copied).difference(want); problem != "" {
		t.Fatal(problem)
	}
	sent := 0
	if len(lost) > 0 {
		sent = (len(lost) - 1 + to.M) * after.Rows
	}
	if plan.Cost.BlocksSent != sent || plan.Cost.BlocksWritten != to.M*after.Rows || plan.Cost.DataBlocksMoved != 0 || !plan.Proved {
		t.Fatalf("columns %v of %d are lost: %+v, want %d blocks sent", lost, before.Columns, plan.Cost, sent)
	}
	return plan
}

func TestNarrowingsRefused(t *testing.T) {
	wide, from, to := mustLayout(t, Ladder{RS(9, 3)}, 0, ""), RS(9, 3), RS(6, 3)
	narrow, err := wide.WithColumns(6, Ladder{to}, ModeFree, from, to)
	if err != nil {
		t.Fatal(err)
	}
	plan := checkNarrowing(t, t, wide, narrow, from, to, []int{6, 7, 8})
	if got := Explain(plan); !strings.HasPrefix(got, "5 blocks cross the network: what the last columns add to the parities is taken") {
		t.Errorf("it is explained by %q", got)
	}
	for name, is := range map[string]struct {
		before, after *Layout
		from, to      Scheme
		lost          []int
	}{
		"it is as wide":              {wide, wide, from, from, nil},
		"it is wider":                {narrow, wide, to, from, nil},
		"other parities":             {wide, narrow, from, RS(6, 2), []int{6, 7, 8}},
		"a column is not named":      {wide, narrow, from, to, []int{6, 8}},
		"an empty one is":            {wide.Without([]int{7}), narrow, from, to, []int{6, 7, 8}},
		"stripes that are not rows":  {mustLayout(t, Ladder{RS(9, 3), RS(3, 3)}, 0, ""), narrow, RS(3, 3), to, []int{6, 7, 8}},
		"as many rows as it has not": {mustLayout(t, Ladder{RS(9, 3), RS(6, 3)}, 0, ""), narrow, from, to, []int{6, 7, 8}},
	} {
		if _, err := NewNarrowPlan(is.before, is.after, is.from, is.to, is.lost); !errors.Is(err, ErrPlan) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, spoil := range map[string]func(*Plan){
		"a column stays in a parity": func(p *Plan) {
			for at := range p.Programs {
				if p.Programs[at].Position == 6 {
					p.Programs[at].Rows[0].Terms = p.Programs[at].Rows[0].Terms[:1]
				}
			}
		},
		"the group kept them":         func(p *Plan) { p.Before = p.Layout },
		"the plan of a widening":      func(p *Plan) { p.Planner = plannerWiden },
		"a column that it has not":    func(p *Plan) { p.Programs[len(p.Programs)-1].Inputs[0].Slot = 9 },
		"a row that it has not":       func(p *Plan) { p.Programs[len(p.Programs)-1].Inputs[0].Unit = 1 },
		"a column read at a parity's": func(p *Plan) { p.Programs[len(p.Programs)-1].Position = 8 },
	} {
		broken := plan.clone()
		spoil(broken)
		if err := broken.Prove(); !errors.Is(err, ErrUnproved) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
