package decide

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

func unlimitedBut(total int64, concurrency int) Limits {
	return Limits{Total: total, Node: Unlimited, Domain: Unlimited, Concurrency: concurrency}
}

func TestAllocate(t *testing.T) {
	full := func(total int64) Grant { return Grant{total, Unlimited, Unlimited} }
	runner := func(name string, weight int, throttle, applied int64) Runner {
		r := Runner{Name: name, Weight: weight, Throttle: throttle, Wants: true}
		if applied > 0 {
			r.Applied = full(applied)
		}
		return r
	}
	stopped := runner("s", 1, Unlimited, 40)
	stopped.Wants = false
	for _, c := range []struct {
		intent  string
		limits  Limits
		runners []Runner
		want    string
	}{
		{"one gets all", unlimitedBut(100, 4), []Runner{runner("a", 1, Unlimited, 0)}, "a:100"},
		{"two share", unlimitedBut(100, 4), []Runner{runner("a", 1, Unlimited, 0), runner("b", 1, Unlimited, 0)}, "a:50 b:50"},
		{"by weight", unlimitedBut(90, 4), []Runner{runner("a", 1, Unlimited, 0), runner("b", 2, Unlimited, 0)}, "a:30 b:60"},
		{"a throttle leaves the rest to the others", unlimitedBut(100, 4), []Runner{runner("a", 1, 10, 0), runner("b", 1, Unlimited, 0)}, "a:10 b:90"},
		{"a throttle above the share is of no use", unlimitedBut(100, 4), []Runner{runner("a", 1, 80, 0), runner("b", 1, Unlimited, 0)}, "a:50 b:50"},
		{"a throttle of nothing stops", unlimitedBut(100, 4), []Runner{runner("a", 1, 0, 10)}, "a:0"},
		{"who comes later waits until the first has been told to slow down", unlimitedBut(100, 4), []Runner{runner("a", 1, Unlimited, 100), runner("b", 1, Unlimited, 0)}, "a:50 b:0"},
		{"and starts the next time", unlimitedBut(100, 4), []Runner{runner("a", 1, Unlimited, 50), runner("b", 1, Unlimited, 0)}, "a:50 b:50"},
		{"what runs without being wanted still counts until it has stopped", unlimitedBut(100, 4), []Runner{runner("a", 1, Unlimited, 20), stopped}, "a:60 s:0"},
		{"a budget that was lowered", unlimitedBut(10, 4), []Runner{runner("a", 1, Unlimited, 80), runner("b", 1, Unlimited, 20)}, "a:5 b:5"},
		{"no budget, no limit", unlimitedBut(Unlimited, 4), []Runner{runner("a", 1, Unlimited, 0), runner("b", 1, 10, 0)}, "a:unlimited b:10"},
		{"from no budget to one", unlimitedBut(100, 4), []Runner{runner("a", 1, Unlimited, Unlimited), runner("b", 1, Unlimited, 1)}, "a:50 b:1"},
		{"concurrency: those that run keep their turn", unlimitedBut(100, 1), []Runner{runner("a", 1, Unlimited, 0), runner("b", 1, Unlimited, 60)}, "a:0 b:100"},
		{"concurrency: then by weight and name", unlimitedBut(100, 1), []Runner{runner("a", 1, Unlimited, 0), runner("c", 2, Unlimited, 0), runner("b", 2, Unlimited, 0)}, "a:0 c:0 b:100"},
		{"less than a byte a second each", unlimitedBut(1, 4), []Runner{runner("a", 1, Unlimited, 0), runner("b", 1, Unlimited, 0)}, "a:0 b:0"},
	} {
		text := ""
		grants := Allocate(c.limits, c.runners)
		for i, r := range c.runners {
			if i > 0 {
				text += " "
			}
			if total := grants[r.Name].Total; total == Unlimited {
				text += r.Name + ":unlimited"
			} else {
				text += fmt.Sprintf("%s:%d", r.Name, total)
			}
		}
		if text != c.want {
			t.Errorf("%s: %s, want %s", c.intent, text, c.want)
		}
	}
}

// Grants are applied in any order, and some not at all; at no moment is the sum over the limits, and when nothing
// changes any more the budget is used up.
func TestAllocateNeverExceedsTheLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.OneOf(rapid.Int64Range(100, 1000), rapid.Just(Unlimited))
		limits := Limits{Total: rate.Draw(t, "total"), Node: rate.Draw(t, "node"), Domain: rate.Draw(t, "domain"), Concurrency: rapid.IntRange(1, 5).Draw(t, "concurrency")}
		runners := make([]Runner, rapid.IntRange(1, 6).Draw(t, "runners"))
		for i := range runners {
			runners[i] = Runner{Name: fmt.Sprint(i), Weight: rapid.IntRange(0, 4).Draw(t, "weight"), Throttle: rapid.OneOf(rapid.Int64Range(0, 1000), rapid.Just(Unlimited)).Draw(t, "throttle")}
		}
		check := func() {
			var total, node, domain int64
			running := 0
			for _, r := range runners {
				if !r.Applied.Runs() {
					continue
				}
				running++
				total, node, domain = saturated(total, r.Applied.Total), saturated(node, r.Applied.Node), saturated(domain, r.Applied.Domain)
				if r.Applied.Total > r.Throttle {
					t.Fatalf("%s has %d, over its throttle %d", r.Name, r.Applied.Total, r.Throttle)
				}
			}
			if total > limits.Total || node > limits.Node || domain > limits.Domain {
				t.Fatalf("%d, %d, %d are over %+v", total, node, domain, limits)
			}
		}
		apply := func() {
			grants := Allocate(limits, runners)
			for _, i := range rapid.Permutation(indices(len(runners))).Draw(t, "order") {
				if rapid.IntRange(0, 3).Draw(t, "fails") > 0 {
					runners[i].Applied = grants[runners[i].Name]
					check()
				}
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "ticks") {
			for i := range runners {
				runners[i].Wants = rapid.Bool().Draw(t, "wants")
			}
			apply()
		}
		checkSteady(t, limits, runners)
	})
}

// checkSteady lets everybody want and applies everything: within a few ticks nothing changes, and what is left over
// nobody could take.
func checkSteady(t *rapid.T, limits Limits, runners []Runner) {
	for tick := 0; ; tick++ {
		changed := false
		for i := range runners {
			runners[i].Wants = true
		}
		for name, grant := range Allocate(limits, runners) {
			for i := range runners {
				if runners[i].Name == name && runners[i].Applied != grant {
					changed, runners[i].Applied = true, grant
				}
			}
		}
		if !changed {
			break
		}
		if tick > 10 {
			t.Fatal("grants go on changing")
		}
	}
	var total int64
	hungry := false
	for _, r := range runners {
		total = saturated(total, r.Applied.Total)
		hungry = hungry || r.Applied.Runs() && r.Applied.Total < r.Throttle
	}
	if hungry && limits.Total != Unlimited && total < limits.Total-int64(len(runners)) {
		t.Fatalf("%d of %d are used and somebody could take more: %+v", total, limits.Total, runners)
	}
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func saturated(a, b int64) int64 {
	if a > Unlimited-b {
		return Unlimited
	}
	return a + b
}

func TestRunnerOf(t *testing.T) {
	transition := &v1alpha1.Transition{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.TransitionSpec{BytesPerSecond: quantity("10Mi")}}
	transition.Status.From, transition.Status.To = "rs(12,2)", "rep(3)"
	transition.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue}}
	if r := RunnerOf(transition, Grant{1, 2, 3}); r.Weight != weightHeating || r.Throttle != 10<<20 || !r.Wants || r.Applied != (Grant{1, 2, 3}) {
		t.Errorf("%+v", r)
	}
	transition.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue, Reason: ReasonBudgetUsedUp}}
	transition.Spec.RollbackOf = "b"
	if r := RunnerOf(transition, Grant{}); r.Weight != weightBack || !r.Wants {
		t.Errorf("%+v", r)
	}
	transition.Status.Conditions[0].Reason = ReasonWindowClosed
	if r := RunnerOf(transition, Grant{}); r.Wants {
		t.Error("wants to run in a closed window")
	}
}

func TestBackoff(t *testing.T) {
	limits := Limits{Total: 3200, Node: Unlimited, Domain: Unlimited, Latency: 100 * time.Millisecond}
	now := time.Unix(1000, 0)
	busy := Load{Window: 10 * time.Second, Requests: 1000, P99: 200 * time.Millisecond, Moving: 3000}
	calm := Load{Window: 10 * time.Second, Requests: 1000, P99: 10 * time.Millisecond, Moving: 100}
	var b Backoff
	step := func(load Load, wait time.Duration) int64 {
		now = now.Add(wait)
		b = b.Next(limits, load, now)
		return limits.Under(b.Limit()).Total
	}
	for i, want := range []int64{1600, 800, 400, 200, 100, 100} {
		if got := step(busy, 10*time.Second); got != want {
			t.Errorf("lowering, step %d: %d, want %d", i, got, want)
		}
	}
	for i, want := range []int64{300, 500, 700} {
		if got := step(calm, 10*time.Second); got != want {
			t.Errorf("raising, step %d: %d, want %d", i, got, want)
		}
	}
	if got := step(busy, time.Second); got != 700 {
		t.Errorf("the same slow requests lower it twice: %d", got)
	}
	if got := step(Load{Window: 10 * time.Second, Requests: 1000, P99: 90 * time.Millisecond}, 10*time.Second); got != 700 {
		t.Errorf("close to the limit: %d, want no change", got)
	}
	if got := step(Load{Window: 10 * time.Second, Requests: 3, P99: time.Minute}, 10*time.Second); got != 900 {
		t.Errorf("three requests say nothing: %d, want 900", got)
	}
	if got := step(calm, -time.Hour); got != 1100 {
		t.Errorf("a clock that jumped back: %d, want 1100", got)
	}
	for range 20 {
		step(calm, 10*time.Second)
	}
	if b.Ceiling != 0 {
		t.Errorf("never back at the whole budget: %+v", b)
	}
	limits.Total = Unlimited
	if got := step(busy, 10*time.Second); got != freeFloor {
		t.Errorf("without a budget, from what moves: %d, want the floor %d", got, freeFloor)
	}
	for range 2000 {
		step(calm, 10*time.Second)
	}
	if b.Ceiling != 0 {
		t.Errorf("never free again: %+v", b)
	}
	limits.Latency = 0
	if step(busy, 10*time.Second); b != (Backoff{}) {
		t.Errorf("without a latency to keep: %+v", b)
	}
}

// At no load is more granted than the budget, or less than its floor.
func TestBackoffStaysBetweenFloorAndBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{Total: rapid.Int64Range(1, 1<<40).Draw(t, "total"), Latency: time.Millisecond}
		now := time.Unix(0, 0)
		var b Backoff
		for range rapid.IntRange(1, 50).Draw(t, "ticks") {
			now = now.Add(time.Duration(rapid.IntRange(-20, 60).Draw(t, "seconds")) * time.Second)
			load := Load{Window: 10 * time.Second, Requests: rapid.Int64Range(0, 100).Draw(t, "requests"), P99: time.Duration(rapid.Int64Range(0, 4e6).Draw(t, "p99")), Moving: rapid.Int64Range(0, 1<<40).Draw(t, "moving")}
			b = b.Next(limits, load, now)
			if got := limits.Under(b.Limit()).Total; got > limits.Total || got < max(1, limits.Total/floorParts) {
				t.Fatalf("%d of a budget of %d", got, limits.Total)
			}
		}
	})
}
