package stripe

import "testing"

func mustLayout(t testing.TB, ladder Ladder, columns int, mode Mode) *Layout {
	t.Helper()
	layout, err := NewLayout(ladder, columns, mode)
	if err != nil {
		t.Fatal(err)
	}
	return layout
}

func mustPlan(t testing.TB, l *Layout, from, to Scheme, planner string, objective Objective) *Plan {
	t.Helper()
	plan, err := NewPlan(l, from, to, planner, objective)
	if err != nil {
		t.Fatal(err)
	}
	if !plan.Proved {
		t.Fatalf("%s to %s by %s: not proved", from, to, planner)
	}
	return plan
}

// The table of the design: blocks sent per group by every planner, and the lower bound.
func TestBlocksSentByEveryPlanner(t *testing.T) {
	const none = -1
	for _, c := range []struct {
		from, to                                 Scheme
		cells, ours, bound, ers2, reencode, pool int
	}{
		{RS(4, 1), RS(5, 1), 20, 3, 3, 12, 24, 44},
		{RS(4, 3), RS(5, 3), 20, 9, 9, 30, 32, 52},
		{RS(6, 3), RS(12, 3), 12, 0, 0, 9, 15, 27},
		{Replicas(3), RS(12, 2), 12, 0, 0, none, 14, 26},
		{RS(8, 3), RS(10, 3), 40, 12, 9, 33, 52, 92},
		{RS(12, 4), RS(14, 4), 84, 25, 20, 62, 108, 192},
		{RS(8, 3), RS(6, 3), 24, 12, 9, 27, 36, 60},
	} {
		t.Run(c.from.String()+" to "+c.to.String(), func(t *testing.T) {
			for _, mode := range []Mode{ModeFree, ModeAdj, ModePair} {
				layout := mustLayout(t, Ladder{c.from, c.to}, 0, mode)
				if layout.Cells() != c.cells {
					t.Fatalf("%d cells, want %d", layout.Cells(), c.cells)
				}
				for planner, want := range map[string]int{
					PlannerRestripe: c.ours, PlannerERS2: c.ers2, PlannerReencode: c.reencode, PlannerCopyPool: c.pool,
				} {
					if want == none {
						if _, err := NewPlan(layout, c.from, c.to, planner, ""); err == nil {
							t.Errorf("%s: planned, want a refusal", planner)
						}
						continue
					}
					if got := mustPlan(t, layout, c.from, c.to, planner, "").Cost.BlocksSent; got != want {
						t.Errorf("mode %s, %s: %d blocks sent, want %d", mode, planner, got, want)
					}
				}
				if got := LowerBound(layout, c.from, c.to).BlocksSent; got != c.bound {
					t.Errorf("bound %d, want %d", got, c.bound)
				}
			}
			baselines := Baselines(mustLayout(t, Ladder{c.from, c.to}, 0, ModeFree), c.from, c.to)
			if cost := baselines[PlannerERS2]; (cost == nil) != (c.ers2 == none) || cost != nil && cost.BlocksSent != c.ers2 {
				t.Errorf("ers2-proxy baseline %+v, want %d", cost, c.ers2)
			}
			if baselines[PlannerReencode].BlocksSent != c.reencode || baselines[PlannerCopyPool].BlocksSent != c.pool {
				t.Errorf("baselines %+v %+v", baselines[PlannerReencode], baselines[PlannerCopyPool])
			}
		})
	}
}
