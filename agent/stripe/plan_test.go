package stripe

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// clone copies a plan deeply, unproved.
func (p *Plan) clone() *Plan {
	copied := *p
	copied.Proved = false
	copied.Messages = slices.Clone(p.Messages)
	copied.Programs = slices.Clone(p.Programs)
	for i := range copied.Programs {
		program := &copied.Programs[i]
		program.Inputs = slices.Clone(program.Inputs)
		program.Rows = slices.Clone(program.Rows)
		for j := range program.Rows {
			program.Rows[j].Terms = slices.Clone(program.Rows[j].Terms)
		}
	}
	return &copied
}

func drawPlan(t *rapid.T) *Plan {
	for {
		layout := drawLayout(t)
		from := rapid.SampledFrom(layout.Ladder).Draw(t, "from")
		var plan *Plan
		var err error
		switch rapid.IntRange(0, 5).Draw(t, "operation") {
		case 0:
			plan, err = NewUpdatePlan(layout, from, []int{0, layout.Cells() - 1}[:min(2, layout.Cells())])
		case 1:
			if from.M == 0 {
				continue
			}
			shape := rapid.SampledFrom(RepairShapes()).Draw(t, "shape")
			plan, err = NewShapedRepairPlan(layout, from, shape, []int{layout.Columns - 1}, nil)
		default:
			to := rapid.SampledFrom(layout.Ladder).Draw(t, "to")
			planner := rapid.SampledFrom([]string{PlannerRestripe, PlannerReencode, PlannerCopyPool}).Draw(t, "planner")
			plan, err = NewPlan(layout, from, to, planner, rapid.SampledFrom(Objectives()).Draw(t, "objective"))
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.Programs) > 0 {
			return plan
		}
	}
}

// A plan with any one mistake in it is refused.
func TestMutatedPlansAreRefused(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		original := drawPlan(r)
		plan := original.clone()
		if err := plan.Prove(); err != nil || !plan.Proved {
			r.Fatalf("the plan itself: %v", err)
		}
		program := &plan.Programs[rapid.IntRange(0, len(plan.Programs)-1).Draw(r, "program")]
		row := &program.Rows[rapid.IntRange(0, len(program.Rows)-1).Draw(r, "row")]
		mutation := rapid.SampledFrom([]string{
			"coefficient", "zero", "drop term", "drop row", "repeat row", "other unit", "other slot", "repeat input",
			"other source", "redirect", "cost", "unused input",
		}).Draw(r, "mutation")
		term := &row.Terms[rapid.IntRange(0, len(row.Terms)-1).Draw(r, "term")]
		switch mutation {
		case "coefficient":
			term.Coefficient ^= rapid.ByteRange(1, 255).Draw(r, "change")
		case "zero":
			term.Coefficient = 0
		case "drop term":
			row.Terms = slices.Delete(row.Terms, 0, 1)
		case "drop row":
			program.Rows = slices.Delete(program.Rows, 0, 1)
		case "repeat row":
			program.Rows = append(program.Rows, *row)
		case "other unit":
			if row.Message >= 0 {
				return
			}
			row.Unit++
		case "other slot":
			if row.Message >= 0 {
				return
			}
			row.Slot++
		case "repeat input":
			program.Inputs = append(program.Inputs, program.Inputs[0])
		case "other source":
			input := &program.Inputs[term.Input]
			if input.Kind == SourceMessage {
				input.Message++
			} else {
				input.Unit++
			}
		case "redirect":
			if len(plan.Messages) == 0 {
				return
			}
			message := &plan.Messages[rapid.IntRange(0, len(plan.Messages)-1).Draw(r, "message")]
			was := message.To
			message.To = (message.To + 1) % Position(plan.Layout.Columns+plan.Parities)
			if message.To == message.From {
				message.To++
			}
			if message.To == was {
				return // between two positions there is no other way
			}
		case "cost":
			plan.Cost.BlocksSent++
		case "unused input":
			program.Inputs = append(program.Inputs, Input{Kind: SourceBlock, Slot: int(program.Position), Unit: plan.Layout.Cells()})
		}
		if err := plan.Prove(); !errors.Is(err, ErrUnproved) || plan.Proved {
			r.Fatalf("%s: %v, proved %v", mutation, err, plan.Proved)
		}
		if !original.Proved {
			r.Fatal("the original lost its proof")
		}
	})
}

func TestMergesAndCoolingSendNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		k := rapid.IntRange(1, 8).Draw(r, "k")
		m := rapid.IntRange(1, MaxParity).Draw(r, "m")
		from := RS(k, m)
		to := RS(k*rapid.IntRange(2, 8).Draw(r, "factor"), rapid.IntRange(1, m).Draw(r, "fewer parities"))
		objective := rapid.SampledFrom([]Objective{LeastNetwork, LeastBottleneck}).Draw(r, "objective")
		columns := to.K + rapid.IntRange(0, min(3, MaxData-to.K)).Draw(r, "spare columns")
		layout, err := NewLayout(Ladder{from, to}, columns, ModeFree)
		if err != nil {
			r.Skip(err)
		}
		plan, err := NewPlan(layout, from, to, PlannerRestripe, objective)
		if err != nil {
			r.Fatal(err)
		}
		if plan.Cost.BlocksSent != 0 || plan.Cost.DataBlocksMoved != 0 {
			r.Fatalf("%s to %s: %+v", from, to, plan.Cost)
		}
	})
}

// Adding a parity rows to a stripe of k costs k+a-1 blocks; dropping rows costs nothing.
func TestChangeOfParitiesAlone(t *testing.T) {
	for _, k := range []int{2, 4, 7} {
		for m := 1; m <= 4; m++ {
			for next := 1; next <= 6; next++ {
				if next == m {
					continue
				}
				from, to := RS(k, m), RS(k, next)
				layout := mustLayout(t, Ladder{from, to}, 8, ModeFree)
				stripes := layout.Cells() / k
				want := 0
				if next > m {
					want = stripes * (k + next - m - 1)
				}
				for _, objective := range Objectives() {
					cost := mustPlan(t, layout, from, to, "", objective).Cost
					if cost.BlocksSent != want || next > m && objective == LeastReads && cost.BlocksRead != layout.Cells() {
						t.Errorf("%s to %s, %s: %+v, want %d sent", from, to, objective, cost, want)
					}
				}
			}
		}
	}
}

// Old parities spare cells when rows are added: every parity node of rep(3) has whole copies.
func TestAddedParitiesUseOldOnes(t *testing.T) {
	for _, c := range []struct {
		from, to Scheme
		sent     int
	}{
		{Replicas(3), RS(4, 3), 1},
		{Replicas(3), RS(12, 4), 2},
		{RS(4, 2), RS(12, 3), 12 - 3 + 1},
		{Replicas(1), RS(4, 2), 4 + 1},
	} {
		layout := mustLayout(t, Ladder{c.from, c.to}, 0, ModeFree)
		if got := mustPlan(t, layout, c.from, c.to, "", "").Cost.BlocksSent; got != c.sent {
			t.Errorf("%s to %s: %d sent, want %d", c.from, c.to, got, c.sent)
		}
	}
}

func TestObjectivesKeepTheirOrder(t *testing.T) {
	busiest := func(c Cost) int { return max(c.MaxNodeBlocksSent, c.MaxNodeBlocksReceived) }
	rapid.Check(t, func(r *rapid.T) {
		layout := drawLayout(r)
		from := rapid.SampledFrom(layout.Ladder).Draw(r, "from")
		to := rapid.SampledFrom(layout.Ladder).Draw(r, "to")
		costs := make(map[Objective]Cost)
		for _, objective := range Objectives() {
			plan, err := NewPlan(layout, from, to, PlannerRestripe, objective)
			if err != nil {
				r.Fatal(err)
			}
			costs[objective] = plan.Cost
		}
		network, reads, bottleneck := costs[LeastNetwork], costs[LeastReads], costs[LeastBottleneck]
		if network.BlocksSent > reads.BlocksSent || network.BlocksSent > bottleneck.BlocksSent ||
			reads.BlocksRead > network.BlocksRead || reads.BlocksRead > bottleneck.BlocksRead || busiest(bottleneck) > busiest(network) {
			r.Fatalf("%s to %s: %+v", from, to, costs)
		}
	})
}

// The plan never sends more than loose cells and one sum per further segment, and in mode adj it sends exactly that on
// adjacent steps.
func TestNetworkOfPlansFollowsSegments(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		layout := drawLayout(r)
		from := rapid.SampledFrom(layout.Ladder).Draw(r, "from")
		to := rapid.SampledFrom(layout.Ladder).Draw(r, "to")
		if from.K == to.K || to.M > from.M || to.M == 0 {
			return
		}
		plan, err := NewPlan(layout, from, to, PlannerRestripe, LeastNetwork)
		if err != nil {
			r.Fatal(err)
		}
		_, network := stepCost(layout.partitions[from.K], layout.partitions[to.K], to.M)
		widths := layout.Ladder.widths()
		distance := slices.Index(widths, from.K) - slices.Index(widths, to.K)
		exact := layout.Mode == ModeAdj && distance*distance == 1
		if plan.Cost.BlocksSent > network || exact && plan.Cost.BlocksSent != network {
			r.Fatalf("%s to %s: %d sent, want %d", from, to, plan.Cost.BlocksSent, network)
		}
	})
}

// The largest codes and longest ladders.
func TestLimits(t *testing.T) {
	layout := mustLayout(t, Ladder{RS(48, MaxParity), RS(MaxData, MaxParity), Replicas(MaxParity + 1)}, 0, ModeFree)
	for _, from := range layout.Ladder {
		for _, to := range layout.Ladder {
			mustPlan(t, layout, from, to, "", LeastNetwork)
		}
	}
	if _, err := NewRepairPlan(layout, RS(MaxData, MaxParity), []int{0, 9, 17, 30, 44, 63, 64, 71}, nil); err != nil {
		t.Error(err)
	}
	six := Ladder{Replicas(3), RS(4, 2), RS(6, 2), RS(8, 2), RS(12, 2), RS(24, 3)}
	layout = mustLayout(t, six, 0, "")
	for _, from := range six {
		for _, to := range six {
			plan := mustPlan(t, layout, from, to, "", "")
			if to.K%from.K == 0 && to.M <= from.M && plan.Cost.BlocksSent != 0 {
				t.Errorf("%s to %s sends %d blocks", from, to, plan.Cost.BlocksSent)
			}
		}
	}
}

func TestPlansRefused(t *testing.T) {
	layout := mustLayout(t, Ladder{Replicas(3), RS(4, 2), RS(6, 2)}, 0, "")
	for _, c := range []struct {
		from, to  Scheme
		planner   string
		objective Objective
	}{
		{RS(4, 2), RS(5, 2), "", ""},
		{RS(4, 1), RS(6, 2), "", ""},
		{Scheme{}, RS(6, 2), "", ""},
		{RS(4, 2), RS(6, 2), "magic", ""},
		{RS(4, 2), RS(6, 2), "", "beauty"},
		{Replicas(3), RS(6, 2), PlannerERS2, ""},
		{RS(4, 2), RS(4, 2), PlannerERS1, ""},
	} {
		if _, err := NewPlan(layout, c.from, c.to, c.planner, c.objective); !errors.Is(err, ErrPlan) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, cells := range [][]int{nil, {-1}, {layout.Cells()}, {1, 1}} {
		if _, err := NewUpdatePlan(layout, RS(4, 2), cells); !errors.Is(err, ErrPlan) {
			t.Errorf("update of %v: %v", cells, err)
		}
	}
	for _, lost := range [][]int{nil, {-1}, {layout.Columns + 2}, {1, 1}} {
		if _, err := NewRepairPlan(layout, RS(4, 2), lost, nil); !errors.Is(err, ErrPlan) {
			t.Errorf("repair of %v: %v", lost, err)
		}
	}
	if _, err := NewRepairPlan(layout, RS(4, 2), []int{0, 1, 2}, nil); !errors.Is(err, ErrLost) {
		t.Errorf("repair of three slots: %v", err)
	}
}

func TestPlansAreShared(t *testing.T) {
	layout := mustLayout(t, Ladder{RS(4, 2), RS(6, 2)}, 0, "")
	if mustPlan(t, layout, RS(4, 2), RS(6, 2), "", "") != mustPlan(t, mustLayout(t, Ladder{RS(4, 2), RS(6, 2)}, 6, ModeFree), RS(4, 2), RS(6, 2), PlannerRestripe, LeastNetwork) {
		t.Error("equal arguments made two plans")
	}
}

func BenchmarkNewPlan(b *testing.B) {
	for _, c := range []struct {
		ladder   string
		from, to Scheme
	}{
		{"rep(3),rs(4,2),rs(12,2)", RS(4, 2), RS(12, 2)},
		{"rs(4,2),rs(5,2),rs(6,2)", RS(4, 2), RS(5, 2)},
		{"rs(12,4),rs(14,4)", RS(12, 4), RS(14, 4)},
		{"rs(30,2),rs(31,2),rs(32,2)", RS(30, 2), RS(31, 2)},
	} {
		ladder, err := ParseLadder(c.ladder)
		if err != nil {
			b.Fatal(err)
		}
		layout := mustLayout(b, ladder, 0, ModeFree)
		for _, objective := range Objectives() {
			b.Run(c.from.String()+"-"+c.to.String()+"-"+string(objective), func(b *testing.B) {
				for b.Loop() {
					if _, err := buildPlan(layout, layout, c.from, c.to, PlannerRestripe, objective); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
