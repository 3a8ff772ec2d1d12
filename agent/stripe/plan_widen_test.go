package stripe

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever columns a group gets, and wherever they come from, it has afterwards what encoding all of it afresh gives. Each new cell
// crosses the network once to where it stays, and no more beside it than if each source sent each parity row the sum of its columns.
func TestWideningEqualsEncodingAfresh(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		layout := drawLayout(r)
		scheme := rapid.SampledFrom(layout.Ladder).Draw(r, "scheme")
		var w Widening
		var stays []int
		for column := range layout.Columns {
			if rapid.Bool().Draw(r, "is new") {
				w.Columns = append(w.Columns, column)
			} else {
				stays = append(stays, column)
			}
		}
		if len(w.Columns) == 0 {
			w.Columns, stays = stays[:1], stays[1:]
		}
		if len(stays) > 0 && rapid.Bool().Draw(r, "with an empty column") {
			layout = layout.Without(stays[:1])
		}
		sources := []Position{layout.Outside(scheme, 0), layout.Outside(scheme, 1), layout.Outside(scheme, 2)}
		for row := range scheme.M {
			sources = append(sources, Position(layout.Columns+row))
		}
		sources = slices.DeleteFunc(sources, func(p Position) bool { return p >= layout.Outside(scheme, layout.Columns) })
		for _, column := range w.Columns {
			sources = append(sources, Position(column))
		}
		for range w.Columns {
			w.Sources = append(w.Sources, rapid.SampledFrom(sources).Draw(r, "source"))
		}
		checkWidening(t, r, layout, scheme, w)
	})
}

func checkWidening(tb testing.TB, t rapid.TB, layout *Layout, scheme Scheme, w Widening) *Plan {
	cells := randomCells(layout, 7)
	before, copied := slices.Clone(cells), make(group)
	stripes := map[int32]bool{}
	for cell := range cells {
		column := cell % layout.Columns
		isNew := slices.Contains(w.Columns, column)
		if layout.IsEmpty(column) {
			cells[cell], before[cell] = make([]byte, cellBytes), make([]byte, cellBytes)
		}
		if isNew {
			before[cell] = make([]byte, cellBytes)
			copied[unitKey{column, cell / layout.Columns}] = cells[cell]
			stripes[layout.partitions[scheme.K].StripeOf[cell]] = true
		}
	}
	plan, err := NewWidenPlan(layout, scheme, w)
	if err != nil {
		t.Fatal(err)
	}
	stored, want := encode(layout, scheme, before), group{}
	for key := range stored {
		if layout.Without(w.Columns).IsEmpty(key.slot) {
			delete(stored, key)
		}
	}
	for key, content := range encode(layout, scheme, cells) {
		isParity := key.slot >= layout.Columns
		if isParity && stripes[int32(key.unit)] || !isParity && slices.Contains(w.Columns, key.slot) {
			want[key] = content
		}
	}
	if problem := execute(tb, plan, stored, copied).difference(want); problem != "" {
		t.Fatal(problem)
	}
	moved := len(copied)
	for at, column := range w.Columns {
		if w.Sources[at] == Position(column) {
			moved -= layout.Rows
		}
	}
	cellsOf, byPolicy1 := layout.partitions[scheme.K].Stripes, moved
	for stripe := range stripes {
		from := map[Position]bool{}
		for at, column := range w.Columns {
			if slices.ContainsFunc(cellsOf[stripe], func(cell int32) bool { return int(cell)%layout.Columns == column }) {
				from[w.Sources[at]] = true
			}
		}
		for source := range from {
			byPolicy1 += scheme.M
			if source >= Position(layout.Columns) && source < layout.Outside(scheme, 0) {
				byPolicy1--
			}
		}
	}
	cost, whole := plan.Cost, layout.Columns == scheme.K // each stripe gets all of the new columns
	if whole && cost.BlocksSent > byPolicy1 || cost.BlocksSent < moved || cost.DataBlocksMoved != len(copied) || !plan.Proved {
		t.Fatalf("%d new cells cost %+v, and %d blocks if sources sent sums to each parity row; proved: %t",
			len(copied), cost, byPolicy1, plan.Proved)
	}
	return plan
}

// What a region of Scale-RS costs, which becomes wider by as many groups as are dissolved for it: w groups of w+d columns out of w+d of w.
func TestWideningCosts(t *testing.T) {
	for _, is := range []struct {
		w, d, m  int
		sources  func(l *Layout, scheme Scheme, column int) Position
		perGroup int
	}{
		{6, 3, 3, oneSource, 6}, // 36 in a region of 6, as in the paper; 48 and 72 by its Policies 2 and 3
		{4, 2, 2, oneSource, 4},
		{9, 3, 3, oneSource, 6},
		{4, 6, 3, oneSource, 9},
		{6, 3, 3, parityNode, 5}, // one less where the columns come from a node of the parities: NCScale's bound
		{6, 3, 3, manySources, 8},
		{6, 3, 1, manySources, 3 + 3},
		{6, 3, 3, newNode, 5},     // or where one of them stays on their node
		{6, 3, 3, nowhere, 2 + 3}, // the columns stay where they are: two go to the third, which sends sums
		{6, 1, 2, nowhere, 2},
	} {
		layout := mustLayout(t, Ladder{RS(is.w+is.d, is.m)}, 0, "")
		var w Widening
		for column := is.w; column < is.w+is.d; column++ {
			w.Columns = append(w.Columns, column)
			w.Sources = append(w.Sources, is.sources(layout, layout.Ladder[0], column))
		}
		plan := checkWidening(t, t, layout, layout.Ladder[0], w)
		if want := is.perGroup * layout.Rows; plan.Cost.BlocksSent != want || plan.Cost.BlocksWritten != (is.d+is.m)*layout.Rows ||
			plan.Cost.BlocksRead != (is.d+is.m)*layout.Rows {
			t.Errorf("%d->%d columns, m = %d, from %v: %+v, want %d sent", is.w, is.w+is.d, is.m, w.Sources, plan.Cost, want)
		}
	}
}

func oneSource(l *Layout, scheme Scheme, _ int) Position        { return l.Outside(scheme, 0) }
func parityNode(l *Layout, _ Scheme, _ int) Position            { return Position(l.Columns) }
func manySources(l *Layout, scheme Scheme, column int) Position { return l.Outside(scheme, column) }

func newNode(l *Layout, _ Scheme, _ int) Position { return Position(l.Columns - 1) }

func nowhere(_ *Layout, _ Scheme, column int) Position { return Position(column) }

func TestWideningsRefused(t *testing.T) {
	layout := mustLayout(t, Ladder{RS(6, 2)}, 0, "")
	scheme := layout.Ladder[0]
	outside := layout.Outside(scheme, 0)
	for name, w := range map[string]Widening{
		"nothing":                 {},
		"a column without source": {Columns: []int{4, 5}, Sources: []Position{outside}},
		"a column twice":          {Columns: []int{5, 5}, Sources: []Position{outside, outside}},
		"no such column":          {Columns: []int{6}, Sources: []Position{outside}},
		"one before the first":    {Columns: []int{-1}, Sources: []Position{outside}},
		"from a column's node":    {Columns: []int{5}, Sources: []Position{0}},
		"from the proxy":          {Columns: []int{5}, Sources: []Position{outside - 1}},
		"from nowhere":            {Columns: []int{5}, Sources: []Position{layout.Outside(scheme, layout.Columns)}},
	} {
		if _, err := NewWidenPlan(layout, scheme, w); !errors.Is(err, ErrPlan) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewWidenPlan(layout, RS(5, 2), Widening{Columns: []int{5}, Sources: []Position{outside}}); !errors.Is(err, ErrLayout) {
		t.Errorf("under a scheme off the ladder: %v", err)
	}
	plan, err := NewWidenPlan(layout, scheme, Widening{Columns: []int{4, 5}, Sources: []Position{outside, outside}})
	if err != nil {
		t.Fatal(err)
	}
	if got := Explain(plan); !strings.HasPrefix(got, "4 blocks cross the network: columns of other groups are copied to new nodes") {
		t.Errorf("it is explained by %q", got)
	}
	for name, spoil := range map[string]func(*Plan){
		"a parity that leaves a column out": func(p *Plan) {
			last := &p.Programs[len(p.Programs)-1]
			for i := range last.Rows {
				if len(last.Rows[i].Terms) > 1 {
					last.Rows[i].Terms = last.Rows[i].Terms[:1]
				}
			}
		},
		"columns that were there": func(p *Plan) { p.Before = p.Layout },
		"the plan of an update":   func(p *Plan) { p.Planner = plannerUpdate },
		"one column more":         func(p *Plan) { p.Before = p.Layout.Without([]int{3, 4, 5}) },
	} {
		broken := plan.clone()
		spoil(broken)
		if err := broken.Prove(); !errors.Is(err, ErrUnproved) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
