package stripe

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// ladderPairs are ladders that people have and come to want; every scheme of the second that fits is reached from every one of the
// first, and back.
var ladderPairs = []struct{ has, wants string }{
	{"rs(4,2)", "rs(4,2),rs(4,1)"},
	{"rs(4,1)", "rs(4,3),rep(3)"},
	{"rep(3),rs(4,2),rs(12,2)", "rep(3),rs(6,2),rs(12,2)"},
	{"rs(12,2)", "rs(3,2),rs(6,3),rs(12,3)"},
	{"rs(8,3),rs(12,3)", "rs(6,3),rs(12,3)"},
	{"rs(4,2),rs(6,2),rs(9,2)", "rs(4,2),rs(9,2)"},
	{"rs(5,2),rs(10,2)", "rep(2),rs(2,1),rs(10,4)"},
	{"rep(3),rs(4,2),rs(6,2),rs(9,2),rs(12,2),rs(16,2)", "rs(8,2),rs(16,3)"},
}

func TestLaddersChangeWhereTheDataIs(t *testing.T) {
	plans := 0
	for _, pair := range ladderPairs {
		has, wants := mustLadder(t, pair.has), mustLadder(t, pair.wants)
		for _, mode := range []Mode{ModeFree, ModeRow} {
			before := mustLayout(t, has, 0, mode)
			cells := randomCells(before, 7)
			for _, from := range has {
				for _, to := range wants {
					after, err := before.WithLadder(wants, mode, to)
					if to.K > before.Columns || before.Cells()%to.K != 0 {
						if !errors.Is(err, ErrLayout) {
							t.Errorf("%s under %s, to %s of %s: %v", from, has, to, wants, err)
						}
						continue
					}
					if err != nil {
						t.Fatalf("%s under %s, to %s of %s: %v", from, has, to, wants, err)
					}
					if after.Rows != before.Rows || after.Columns != before.Columns || !after.Ladder.Contains(to) {
						t.Fatalf("%s became %d rows of %s", has, after.Rows, after.Ladder)
					}
					for _, planner := range []string{PlannerRestripe, PlannerReencode} {
						plan, err := NewPlanBetween(before, after, from, to, planner, LeastNetwork)
						if err != nil {
							t.Fatalf("%s of %s to %s of %s: %v", from, has, to, after.Ladder, err)
						}
						if plan.Cost.DataBlocksMoved != 0 || !plan.Proved {
							t.Errorf("%s of %s to %s of %s: %+v", from, has, to, after.Ladder, plan.Cost)
						}
						is := transit(t, plan, encode(before, from, cells))
						if text := is.difference(encode(after, to, cells)); text != "" {
							t.Errorf("%s of %s to %s of %s by %s: %s", from, has, to, after.Ladder, planner, text)
						}
						plans++
					}
					// It goes on from there as any group does.
					for _, step := range after.Ladder {
						if _, err := NewPlan(after, to, step, "", ""); err != nil {
							t.Errorf("%s to %s of %s: %v", to, step, after.Ladder, err)
						}
					}
				}
			}
		}
	}
	if plans < 100 {
		t.Errorf("%d plans were made", plans)
	}
}

func mustLadder(t testing.TB, text string) Ladder {
	t.Helper()
	ladder, err := ParseLadder(text)
	if err != nil {
		t.Fatal(err)
	}
	return ladder
}

func TestAnyTwoLadders(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		before := drawLayout(r)
		wants := drawLadder(r)
		if len(wants) == 0 {
			return
		}
		from := rapid.SampledFrom(before.Ladder).Draw(r, "from")
		to := rapid.SampledFrom(wants).Draw(r, "to")
		after, err := before.WithLadder(wants, before.Mode, to)
		if err != nil {
			if fits := to.K <= before.Columns && before.Cells()%to.K == 0; fits && len(before.Ladder) < MaxSchemes {
				r.Fatalf("%s fits %d rows and %d columns of %s: %v", to, before.Rows, before.Columns, before.Ladder, err)
			}
			return
		}
		if after.Rows != before.Rows || !after.Ladder.Contains(to) {
			r.Fatalf("%d rows of %s became %d of %s", before.Rows, before.Ladder, after.Rows, after.Ladder)
		}
		plan, err := NewPlanBetween(before, after, from, to, "", rapid.SampledFrom(Objectives()).Draw(r, "objective"))
		if err != nil {
			r.Fatal(err)
		}
		cells := randomCells(before, rapid.Uint64().Draw(r, "seed"))
		is := transit(t, plan, encode(before, from, cells))
		if text := is.difference(encode(after, to, cells)); text != "" {
			r.Fatalf("%s of %s to %s of %s: %s", from, before.Ladder, to, after.Ladder, text)
		}
	})
}
