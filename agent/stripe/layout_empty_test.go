package stripe

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawEmpty draws which columns of a layout nothing is stored of, not all.
func drawEmpty(t *rapid.T, l *Layout) (empty []int) {
	kept := rapid.IntRange(0, l.Columns-1).Draw(t, "kept")
	for column := range l.Columns {
		if column != kept && rapid.Bool().Draw(t, "empty") {
			empty = append(empty, column)
		}
	}
	return empty
}

// named are the positions that a plan needs an agent at.
func named(plan *Plan) (positions []Position) {
	for _, program := range plan.Programs {
		positions = append(positions, program.Position)
	}
	for _, message := range plan.Messages {
		positions = append(positions, message.From, message.To)
	}
	return positions
}

// TestPlansLeaveEmptyColumnsOut: whatever columns nothing is stored of, plans of every kind are proved, name nobody at those columns,
// and cost no more than with all columns.
func TestPlansLeaveEmptyColumnsOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := drawLayout(t)
		empty := drawEmpty(t, whole)
		l := whole.Without(empty)
		if l.Whole() != whole || l.Filled() != whole.Columns-len(empty) {
			t.Fatalf("without %v: %d columns are left of %d", empty, l.Filled(), whole.Columns)
		}
		check := func(what string, plan *Plan, err error) {
			if err != nil {
				t.Fatalf("%s without %v: %v", what, empty, err)
			}
			if !plan.Proved {
				t.Fatalf("%s without %v is not proved", what, empty)
			}
			for _, position := range named(plan) {
				if l.IsEmpty(int(position)) {
					t.Fatalf("%s without %v needs the node of column %d", what, empty, position)
				}
			}
		}
		from := rapid.SampledFrom(l.Ladder).Draw(t, "from")
		to := rapid.SampledFrom(l.Ladder).Draw(t, "to")
		for _, objective := range Objectives() {
			plan, err := NewPlan(l, from, to, "", objective)
			check("a transition", plan, err)
			full, err := NewPlan(whole, from, to, "", objective)
			if err != nil {
				t.Fatal(err)
			}
			if objective == LeastNetwork && plan.Cost.BlocksSent > full.Cost.BlocksSent {
				t.Fatalf("%s to %s without %v sends %d blocks, with all columns %d", from, to, empty, plan.Cost.BlocksSent, full.Cost.BlocksSent)
			}
		}
		for _, planner := range Planners() {
			if plan, err := NewPlan(l, from, to, planner, ""); err == nil || papersApply(from, to) {
				check(planner, plan, err)
			}
		}
		var stored []int
		for slot := range l.Columns + from.M {
			if !l.IsEmpty(slot) {
				stored = append(stored, slot)
			}
		}
		moved, err := NewRelocationPlan(l, from, stored)
		check("a relocation", moved, err)
		updated, err := NewUpdatePlan(l, from, []int{l.CellIndex(l.Rows-1, stored[0])})
		check("an update", updated, err)
		if from.M == 0 {
			return
		}
		lost := rapid.Permutation(stored).Draw(t, "stored")[:rapid.IntRange(1, min(from.M, len(stored))).Draw(t, "lost")]
		for _, shape := range RepairShapes() {
			plan, err := NewShapedRepairPlan(l, from, shape, lost, nil)
			check("a repair", plan, err)
		}
		if len(empty) > 0 {
			if _, err := NewRepairPlan(l, from, empty[:1], nil); err == nil {
				t.Fatalf("a repair of column %d, of which nothing is stored, was planned", empty[0])
			}
			if _, err := NewUpdatePlan(l, from, []int{empty[0]}); err == nil {
				t.Fatalf("an update of column %d, of which nothing is stored, was planned", empty[0])
			}
		}
	})
}

// TestALoneColumnIsRepairedFromOneParity: zeros are at hand without being sent.
func TestALoneColumnIsRepairedFromOneParity(t *testing.T) {
	l, err := NewLayout(Ladder{RS(3, 2)}, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := NewRepairPlan(l.Without([]int{1, 2}), RS(3, 2), []int{0}, []int{4})
	if err != nil {
		t.Fatal(err)
	}
	if plan.Cost.BlocksSent != l.Rows || plan.Cost.BlocksRead != l.Rows {
		t.Errorf("one column of %d rows takes %+v", l.Rows, plan.Cost)
	}
}

// TestWithoutIsASet: what was left out before stays so, in whatever order, and the same plans are shared.
func TestWithoutIsASet(t *testing.T) {
	l, err := NewLayout(Ladder{RS(3, 2), RS(6, 2)}, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	one, other := l.Without([]int{2}).Without([]int{5, 2}), l.Without([]int{5, 2})
	if !slices.Equal([]bool{one.IsEmpty(2), one.IsEmpty(5), one.IsEmpty(1), one.IsEmpty(6)}, []bool{true, true, false, false}) {
		t.Errorf("columns 2 and 5 are left out: %b", one.empty)
	}
	first, err := NewPlan(one, RS(3, 2), RS(6, 2), "", "")
	if err != nil {
		t.Fatal(err)
	}
	if second, err := NewPlan(other, RS(3, 2), RS(6, 2), "", ""); err != nil || first != second {
		t.Errorf("equal layouts have plans of their own: %v", err)
	}
	if l.Without(nil) != l {
		t.Error("a layout without nothing is another one")
	}
}
