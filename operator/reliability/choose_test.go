package reliability

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

func target(nines float64, nodes int, overhead float64) Target {
	return Target{Nines: nines, Nodes: nodes, MaxOverhead: overhead, Environment: DefaultEnvironment()}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		intent string
		target Target
		ladder string
		lean   string
	}{
		{"two parities do", target(6, 14, 1.5), "rep(3),rs(2,2),rs(4,2)", ""},
		{"nine nines take four", target(9, 14, 1.5), "rep(5),rs(2,4),rs(4,4),rs(8,4)", "rep(4),rs(2,4),rs(4,4),rs(8,4)"},
		{"more nodes than are needed change nothing", target(9, 15, 1.5), "rep(5),rs(2,4),rs(4,4),rs(8,4)", "rep(4),rs(2,4),rs(4,4),rs(8,4)"},
		{"recommended ladders are too wide for eleven", target(11, 20, 1.5), "rep(6),rs(2,5),rs(10,5)", "rep(4),rs(2,5),rs(10,5)"},
		{"few nines on few nodes", target(4, 4, 1.5), "rep(2),rs(2,1)", ""},
		{"replication alone is within the overhead", target(3, 5, 2), "rep(2)", ""},
		{"and needs no more than three nodes", target(3, 4, 3), "rep(2)", ""},
	} {
		choice, err := Choose(c.target)
		if err != nil {
			t.Errorf("%s: %v", c.intent, err)
			continue
		}
		if got := choice.Ladder.String(); got != c.ladder {
			t.Errorf("%s: %s, want %s", c.intent, got, c.ladder)
		}
		lean := ""
		if choice.Lean != nil {
			lean = choice.Lean.Ladder.String()
		}
		if lean != c.lean {
			t.Errorf("%s: lean %q, want %q", c.intent, lean, c.lean)
		}
	}
}

// Whatever is chosen keeps the promises: nines on every step, overhead, a spare node, steps down for nothing; and with a
// parity less no ladder that can be recommended does.
func TestChoicesKeepTheTarget(t *testing.T) {
	chosen := 0
	rapid.Check(t, func(t *rapid.T) {
		target := target(rapid.Float64Range(1, 15).Draw(t, "nines"), rapid.IntRange(1, 30).Draw(t, "nodes"), rapid.Float64Range(1.05, 4).Draw(t, "overhead"))
		target.FailurePercent = rapid.Float64Range(0.1, 30).Draw(t, "failures")
		target.RepairBandwidth = rapid.Float64Range(1<<20, 1<<32).Draw(t, "bandwidth")
		choice, err := Choose(target)
		if err != nil {
			if !errors.Is(err, ErrTarget) {
				t.Fatal(err)
			}
			return
		}
		chosen++
		cold := choice.Steps[len(choice.Steps)-1]
		if cold.Overhead > target.MaxOverhead || choice.NodesUsed >= target.Nodes || choice.NodesUsed != choice.Ladder.Width()+cold.Scheme.M {
			t.Fatalf("%+v", choice)
		}
		for i, step := range choice.Steps {
			if step.Group.Nines < target.Nines || step.Cluster.Nines > step.Group.Nines+1e-9 || step.Scheme != choice.Ladder[i] {
				t.Fatalf("%+v", step)
			}
		}
		layout, err := stripe.NewLayout(choice.Ladder, 0, stripe.ModeFree)
		if err != nil || layout.Rows != 1 && len(choice.Ladder) > 1 {
			t.Fatalf("%s: %+v, %v", choice.Ladder, layout, err)
		}
		for i := range len(choice.Ladder) - 1 {
			plan, err := stripe.NewPlan(layout, choice.Ladder[i], choice.Ladder[i+1], stripe.PlannerRestripe, stripe.LeastNetwork)
			if err != nil || plan.Cost.BlocksSent != 0 {
				t.Fatalf("%s: step %d sends %+v, %v", choice.Ladder, i, plan.Cost, err)
			}
		}
		if lean := choice.Lean; lean != nil {
			if nines, err := target.ninesOf(lean.Ladder); err != nil || nines < target.Nines || lean.Overhead >= choice.Steps[0].Overhead || lean.NetworkDown <= 0 {
				t.Fatalf("%+v, %v", lean, err)
			}
		}
		if m := cold.Scheme.M; m > 1 {
			recommended, err := stripe.RecommendLadders(target.Nodes, m-1, target.MaxOverhead)
			if err == nil {
				if good, err := target.reachedBy(recommended[0].Ladder); err != nil || good {
					t.Fatalf("%s would do, but %s was chosen (%v)", recommended[0].Ladder, choice.Ladder, err)
				}
			}
		}
		if lines := Explain(choice); len(lines) < 4 {
			t.Fatalf("%q", lines)
		}
	})
	if chosen == 0 {
		t.Error("no target was reachable")
	}
}

// What an error says would help does help, by itself, and no less of it does.
func TestWhatHelpsHelps(t *testing.T) {
	for _, c := range []struct {
		target  Target
		message string
		helps   []Target
		less    []Target
	}{
		{
			target(12, 14, 1.5),
			"choosing a ladder: target not reachable: the best ladder for 14 nodes at 1.50 bytes stored per byte, rep(5),rs(2,4),rs(8,4), reaches 9.9 nines, not 12; " +
				"have 19 nodes, allow 1.65 bytes stored per byte, repair at 400 MiB/s or ask for 9 nines",
			[]Target{target(12, 19, 1.5), target(12, 14, 1.65), target(9, 14, 1.5)},
			[]Target{target(12, 18, 1.5), target(12, 14, 1.6), target(10, 14, 1.5)},
		},
		{
			target(9, 5, 1.5),
			"choosing a ladder: target not reachable: the best ladder for 5 nodes at 1.50 bytes stored per byte, rep(2),rs(2,1), reaches 4.5 nines, not 9; " +
				"have 13 nodes, allow 3.00 bytes stored per byte or ask for 4 nines",
			[]Target{target(9, 13, 1.5), target(9, 5, 3), target(4, 5, 1.5)},
			[]Target{target(9, 12, 1.5), target(9, 5, 2.95), target(5, 5, 1.5)},
		},
		{
			target(3, 3, 1.2),
			"choosing a ladder: target not reachable: 3 nodes are too few for a code that stores at most 1.20 bytes per byte with one node spare; " +
				"have 7 nodes or allow 2.00 bytes stored per byte",
			[]Target{target(3, 7, 1.2), target(3, 3, 2)},
			[]Target{target(3, 6, 1.2), target(3, 3, 1.95)},
		},
	} {
		if _, err := Choose(c.target); !errors.Is(err, ErrTarget) || err.Error() != c.message {
			t.Errorf("%v\nwant %s", err, c.message)
		}
		for _, better := range c.helps {
			if _, err := Choose(better); err != nil {
				t.Errorf("%+v: %v", better, err)
			}
		}
		for _, worse := range c.less {
			if choice, err := Choose(worse); err == nil {
				t.Errorf("%+v is enough: %s", worse, choice.Ladder)
			}
		}
	}
	faster := target(12, 14, 1.5)
	faster.RepairBandwidth *= 4
	if _, err := Choose(faster); err != nil {
		t.Error(err)
	}
}

func TestChooseRefusesTargets(t *testing.T) {
	broken := target(9, 14, 1.5)
	broken.RepairBandwidth = 0
	for name, wrong := range map[string]struct {
		target Target
		class  error
	}{
		"no nines": {target(0, 14, 1.5), ErrTarget}, "too many": {target(16, 14, 1.5), ErrTarget}, "no nodes": {target(9, 0, 1.5), ErrTarget},
		"no redundancy": {target(9, 14, 1), ErrTarget}, "no repair": {broken, ErrModel},
	} {
		if choice, err := Choose(wrong.target); !errors.Is(err, wrong.class) || !strings.Contains(err.Error(), "choosing a ladder: ") {
			t.Errorf("%s: %+v, %v", name, choice, err)
		}
	}
}

func TestTargetOfAPolicy(t *testing.T) {
	if got := TargetOf(v1alpha1.Reliability{Nines: 9}, 14, 0); got != target(9, 14, 1.5) {
		t.Errorf("%+v", got)
	}
	got := TargetOf(v1alpha1.Reliability{
		Nines: 7, AnnualFailurePercent: resource.MustParse("1500m"), RepairBandwidth: resource.MustParse("1Gi"), MaxOverhead: resource.MustParse("1.4"),
	}, 20, 1<<30)
	want := Target{Nines: 7, Nodes: 20, MaxOverhead: 1.4, Environment: Environment{
		FailurePercent: 1.5, RepairBandwidth: 1 << 30, NodeBytes: 1 << 30, DetectionSeconds: DefaultDetectionSeconds,
	}}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestExplain(t *testing.T) {
	choice, err := Choose(target(9, 14, 1.5))
	if err != nil {
		t.Fatal(err)
	}
	want := `With 4 of a hundred nodes failing a year, 4.0 TiB on each and repair at 100 MiB/s, a lost node is whole again after 11.8 h under rep(5) and after 3.9 d under rs(8,4), as a lost byte takes k bytes to rebuild.
4 parity blocks a stripe are the fewest that give 9 nines within 1.50 bytes stored per byte: with 3, rs(6,3) reaches 8.4.
The weakest step is rs(8,4): a group, on 12 nodes, loses data once in 8.1 billion years (9.9 nines); of all groups on 14 nodes together something is lost once in 3.2 billion years (9.5 nines).
All steps survive any 4 losses, so every step down the ladder sends nothing over the network.
The ladder rep(4),rs(2,4),rs(4,4),rs(8,4) is safe enough too: it stores hot data 4.00 times instead of 5.00 times, but cooling it sends 0.50 blocks per data block. Declare it where much stays hot.
The models know independent failures of nodes and one repair at a time; what fails together, mistakes and lost racks are not in them.`
	if got := strings.Join(Explain(choice), "\n"); got != want {
		t.Errorf("%s", got)
	}
}

func TestNumbersForPeople(t *testing.T) {
	for years, want := range map[float64]string{
		0.25: "0.25", 4.16: "4.2", 25: "25", 254: "250", 231843: "230,000", 4.58e6: "4.6 million", 8.05e9: "8.1 billion", 2.35e11: "240 billion", 3.2e13: "32 trillion", 7.7e16: "7.7e16",
	} {
		if got := yearsText(years); got != want {
			t.Errorf("%v years: %q, want %q", years, got, want)
		}
	}
	for seconds, want := range map[float64]string{30: "30 s", 119: "2 min", 600: "10 min", 42554: "11.8 h", 336144: "3.9 d"} {
		if got := timeText(seconds); got != want {
			t.Errorf("%v seconds: %q, want %q", seconds, got, want)
		}
	}
	if got := NinesText(8.9999); got != "8.9" {
		t.Errorf("%q: rounded up", got)
	}
}
