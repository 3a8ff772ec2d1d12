package decide

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

var weekStart = time.Date(2026, 3, 25, 0, 0, 0, 0, time.UTC) // over the spring jump of European clocks

// A week of load that heats and cools, with gateways that fail, operators that are started anew and people who pause: the
// promises of move, checkBudget and checkWindows hold at every tick. Then the load stays as it is, and everything comes
// to rest where the policy wants it.
func TestAWeek(t *testing.T) {
	var moves, backs, groups, weeks int
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range 7 * 24 * time.Hour / tick {
			w.disturb()
			reachable := rapid.IntRange(0, 19).Draw(t, "reachable") > 0
			w.step(reachable)
		}
		w.policy.Spec.StopPolicy, w.p99 = v1alpha1.StopNone, 0
		for i := range w.transitions {
			w.transitions[i].Spec.Paused = false
		}
		w.comeToRest()
		weeks++
		for _, g := range w.groups {
			groups++
			moves += len(g.moves)
			for i := 1; i < len(g.moves); i++ {
				if g.moves[i].to == g.moves[i-1].from {
					backs++
				}
			}
		}
	})
	t.Logf("%d weeks, %d groups, %.2f moves of a group, of which %d back to where it came from", weeks, groups, float64(moves)/float64(groups), backs)
	if moves == 0 || backs == 0 {
		t.Error("the load never made a group move and move back: nothing was tested")
	}
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, now: weekStart, jobs: map[string]*modelJob{}, policy: drawPolicy(t), reportEvery: rapid.IntRange(1, 6).Draw(t, "report every")}
	w.memory.rates = map[string]Rates{}
	declaration, wrong := Declare(w.policy, nil, nil)
	if wrong != nil {
		t.Fatal(wrong)
	}
	w.declaration, w.halfLife = declaration, declaration.Class.HalfLife
	for range rapid.IntRange(1, 60).Draw(t, "groups") {
		w.groups = append(w.groups, &modelGroup{scheme: declaration.Class.Default, bytes: rapid.Int64Range(1<<20, 64<<20).Draw(t, "bytes"), changed: w.now})
	}
	return w
}

// drawPolicy has a rung for each band of heat, hottest first.
func drawPolicy(t *rapid.T) *v1alpha1.RedundancyPolicy {
	ladder := rapid.SampledFrom([][]v1alpha1.SchemeName{{"rep(3)", "rs(12,2)"}, {"rep(3)", "rs(4,2)", "rs(12,2)"}, {"rs(2,2)", "rs(4,2)", "rs(6,2)", "rs(12,2)"}}).Draw(t, "ladder")
	policy := &v1alpha1.RedundancyPolicy{ObjectMeta: metav1.ObjectMeta{Name: "media", Generation: 1}}
	policy.Spec = v1alpha1.RedundancyPolicySpec{
		BackendRef: "demo", Selector: v1alpha1.Selector{Prefixes: []string{""}}, Ladder: ladder,
		Temperature: &v1alpha1.Temperature{
			HalfLife:          metav1.Duration{Duration: time.Duration(rapid.IntRange(1, 8).Draw(t, "half-life")) * time.Hour},
			Dwell:             metav1.Duration{Duration: time.Duration(rapid.IntRange(1, 12).Draw(t, "dwell")) * time.Hour},
			HysteresisPercent: number(rapid.SampledFrom([]int32{0, 10, 25, 50, 90}).Draw(t, "hysteresis")),
		},
		Budget: &v1alpha1.Budget{Concurrency: number(rapid.Int32Range(1, 4).Draw(t, "concurrency"))},
	}
	if rapid.Bool().Draw(t, "budget") {
		policy.Spec.Budget.BytesPerSecond = quantity(fmt.Sprintf("%dKi", rapid.IntRange(512, 8192).Draw(t, "rate")))
	}
	if rapid.Bool().Draw(t, "gives way") {
		policy.Spec.Budget.ForegroundLatency = &metav1.Duration{Duration: 50 * time.Millisecond}
	}
	bound := 400.0
	for i, step := range ladder {
		rule := v1alpha1.TemperatureRule{Scheme: step}
		if i < len(ladder)-1 {
			bound /= rapid.Float64Range(3, 20).Draw(t, "bound")
			rule.AtLeast = quantity(fmt.Sprintf("%dm", int64(bound*1000)))
		} else {
			rule.Below = policy.Spec.Temperature.Rules[i-1].AtLeast
		}
		policy.Spec.Temperature.Rules = append(policy.Spec.Temperature.Rules, rule)
	}
	policy.Spec.Windows = rapid.SampledFrom([][]v1alpha1.Window{
		nil,
		{declared(v1alpha1.WindowAllow, "30 1 * * *", 6*time.Hour, "Europe/Berlin", v1alpha1.OverrunPause)},
		{declared(v1alpha1.WindowAllow, "0 22 * * *", 8*time.Hour, "America/New_York", v1alpha1.OverrunFinish)},
		{declared(v1alpha1.WindowDeny, "0 8 * * 1-5", 10*time.Hour, "", v1alpha1.OverrunPause)},
		{declared(v1alpha1.WindowAllow, "0 */3 * * *", time.Hour, "", v1alpha1.OverrunPause), declared(v1alpha1.WindowDeny, "30 12 * * *", 20*time.Minute, "", v1alpha1.OverrunFinish)},
	}).Draw(t, "windows")
	return policy
}

// disturb changes the load, people's minds, and what can break.
func (w *world) disturb() {
	chance := func(name string, ofThousand int) bool {
		return rapid.IntRange(0, 999).Draw(w.t, name) < ofThousand
	}
	if chance("load changes", 60) {
		rate := rapid.SampledFrom([]float64{0, 0.01, 0.3, 1, 5, 30, 200, 3000}).Draw(w.t, "rate")
		from := rapid.IntRange(0, len(w.groups)-1).Draw(w.t, "from")
		for _, g := range w.groups[from:min(len(w.groups), from+1+len(w.groups)/4)] {
			g.rate = rate
		}
	}
	if chance("latency changes", 30) {
		w.p99 = rapid.SampledFrom([]time.Duration{time.Millisecond, 45 * time.Millisecond, time.Second}).Draw(w.t, "latency")
	}
	if chance("operator starts anew", 20) {
		w.memory = operatorMemory{rates: map[string]Rates{}}
	}
	if chance("job fails", 10) {
		for _, j := range w.running() {
			j.State, j.Error, j.Finished = JobFailed, "n3 went away", number(w.now)
		}
	}
	if chance("people hold", 10) {
		w.policy.Spec.StopPolicy = rapid.SampledFrom([]v1alpha1.StopPolicy{v1alpha1.StopNone, v1alpha1.StopNone, v1alpha1.StopHold, v1alpha1.StopHoldAndDrain}).Draw(w.t, "stop")
		w.policy.Generation++
	}
	if len(w.transitions) > 0 && chance("people pause", 10) {
		i := rapid.IntRange(0, len(w.transitions)-1).Draw(w.t, "which")
		w.transitions[i].Spec.Paused = !w.transitions[i].Spec.Paused
	}
}

func (w *world) step(reachable bool) {
	w.use()
	w.summarize()
	w.operate(reachable)
	w.checkBudget()
	w.checkWindows(reachable)
	w.runJobs()
	w.now = w.now.Add(tick)
	w.ticks++
}

// comeToRest runs a week of steady load: heats settle, windows open, budgets suffice. In the last day nothing moves.
func (w *world) comeToRest() {
	const days = 7
	var before int
	for i := range days * 24 * time.Hour / tick {
		if i == (days-1)*24*time.Hour/tick {
			before = w.countMoves()
		}
		w.step(true)
	}
	if w.countMoves() != before {
		w.t.Fatalf("%d groups moved in the last day of a steady load", w.countMoves()-before)
	}
	if converged := meta.FindStatusCondition(w.policy.Status.Conditions, v1alpha1.ConditionConverged); converged.Status != metav1.ConditionTrue {
		w.t.Fatalf("not converged: %s: %s\n%s", converged.Reason, converged.Message, w)
	}
	for _, g := range w.groups {
		// A bound acts at the edges of heat buckets, so a group may stay as far as a factor of two past it.
		if low, high := w.kept(g.scheme); g.heat < low/2 && g.heat >= 1.0/64 || g.heat >= high*2 {
			w.t.Fatalf("a group with heat %g rests under %s, which keeps %g to %g", g.heat, g.scheme, low, high)
		}
	}
}

func (w *world) countMoves() int {
	n := 0
	for _, g := range w.groups {
		n += len(g.moves)
	}
	return n
}
