package decide

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// tick is the step of the model's clock.
const tick = 10 * time.Minute

// modelGroup is a group of the model: how often it is used, and what was done with it.
type modelGroup struct {
	scheme  stripe.Scheme
	bytes   int64
	rate    float64 // accesses a day, now
	heat    float64 // as the gateways' decayed counters have it
	changed time.Time
	moves   []modelMove
}

type modelMove struct {
	from, to stripe.Scheme
	heat     float64
}

// modelJob is a transition at the model's gateway.
type modelJob struct {
	Job
	spec    v1alpha1.TransitionSpec
	from    Selection
	to      stripe.Scheme
	settled time.Duration
	allowed float64 // bytes that may be moved already
}

// world is a pure model of a gateway with the groups of one class, and of the objects that are declared.
type world struct {
	t           *rapid.T
	now         time.Time
	groups      []*modelGroup
	halfLife    time.Duration
	jobs        map[string]*modelJob
	policy      *v1alpha1.RedundancyPolicy
	declaration *Declaration
	transitions []v1alpha1.Transition
	report      *ClassHeat
	reportEvery int
	p99         time.Duration
	ticks       int
	names       []string
	memory      operatorMemory
}

// operatorMemory is what an operator forgets when it is started anew.
type operatorMemory struct {
	backoff Backoff
	rates   map[string]Rates
}

// use lets the groups be used for a tick.
func (w *world) use() {
	keep := math.Exp2(-tick.Hours() / w.halfLife.Hours())
	for _, g := range w.groups {
		g.heat = g.heat*keep + g.rate*(1-keep)
	}
}

// summarize makes the heat report, from time to time.
func (w *world) summarize() {
	if w.report != nil && w.ticks%w.reportEvery != 0 {
		return
	}
	report := ClassHeat{Began: w.now, Complete: true}
	rung := func(scheme stripe.Scheme) *RungHeat {
		i := slices.IndexFunc(report.Rungs, func(r RungHeat) bool { return r.Scheme == scheme })
		if i < 0 {
			report.Rungs = append(report.Rungs, RungHeat{Scheme: scheme, Buckets: emptyBuckets()})
			i = len(report.Rungs) - 1
		}
		return &report.Rungs[i]
	}
	for _, g := range w.groups {
		r := rung(g.scheme)
		r.Groups, r.Bytes = r.Groups+1, r.Bytes+g.bytes
		b := bucketAt(r.Buckets, g.heat)
		b.Groups, b.Bytes = b.Groups+1, b.Bytes+g.bytes
		if w.now.Sub(g.changed) >= w.declaration.Class.Dwell {
			b.SettledGroups, b.SettledBytes = b.SettledGroups+1, b.SettledBytes+g.bytes
		}
	}
	w.report = &report
}

// matches reports whether a job takes a group now.
func (w *world) matches(j *modelJob, g *modelGroup) bool {
	return g.scheme == j.from.From && g.heat >= j.from.Heat.AtLeast && g.heat < j.from.Heat.Below && w.now.Sub(g.changed) >= j.settled
}

// costFactor is bytes read, sent and written per byte of a group.
const costFactor = 2

// runJobs moves groups for a tick, as fast as the jobs may.
func (w *world) runJobs() {
	for _, name := range slices.Sorted(mapKeys(w.jobs)) {
		j := w.jobs[name]
		if j.State != JobRunning {
			continue
		}
		j.allowed += float64(min(j.Applied.Total, 1<<50)) * tick.Seconds()
		left := false
		for _, g := range w.groups {
			if !w.matches(j, g) {
				continue
			}
			if cost := float64(g.bytes * costFactor); cost <= j.allowed {
				j.allowed -= cost
				w.move(g, j.to)
				j.GroupsDone, j.BytesDone = j.GroupsDone+1, j.BytesDone+g.bytes
				continue
			}
			left = true
		}
		if !left {
			j.State, j.Finished = JobDone, number(w.now)
		}
	}
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// move changes a group, and checks the promises: not twice within the dwell time, and not back before the heat was past
// the bounds of both rungs.
func (w *world) move(g *modelGroup, to stripe.Scheme) {
	if since := w.now.Sub(g.changed); since < w.declaration.Class.Dwell {
		w.t.Fatalf("a group changed twice within %s", since)
	}
	heat := judgedHeat(g.heat)
	if low, high := w.kept(g.scheme); heat >= low && heat < high {
		w.t.Fatalf("a group with heat %g left %s, which keeps %g to %g", g.heat, g.scheme, low, high)
	}
	if n := len(g.moves); n > 0 && g.moves[n-1].from == to {
		first := g.moves[n-1]
		if low, high := w.kept(to); first.heat >= low && first.heat < high {
			w.t.Fatalf("a group went from %s at heat %g, within %g to %g, and came back", to, first.heat, low, high)
		}
	}
	g.moves = append(g.moves, modelMove{g.scheme, to, heat})
	g.scheme, g.changed = to, w.now
}

// judgedHeat is what rules make of a heat: below the buckets' first bound a group counts as never used, from their last
// one on as used without end.
func judgedHeat(heat float64) float64 {
	buckets := emptyBuckets()
	switch {
	case heat < buckets[0].Below:
		return 0
	case heat >= buckets[len(buckets)-1].AtLeast:
		return math.MaxFloat64
	}
	return heat
}

// kept is the range of heat that a rung keeps by its rules and hysteresis, worked out from the policy's text alone. Rules
// of the model follow each other without gaps, hottest first.
func (w *world) kept(scheme stripe.Scheme) (low, high float64) {
	temperature := w.policy.Spec.Temperature
	hysteresis := float64(*temperature.HysteresisPercent) / 100
	high = math.Inf(1)
	for _, rule := range temperature.Rules {
		low = 0
		if rule.AtLeast != nil {
			low = rule.AtLeast.AsApproximateFloat64()
		}
		if mustParse(rule.Scheme) == scheme {
			return low * (1 - hysteresis), high * (1 + hysteresis)
		}
		high = low
	}
	return 0, 0
}

func mustParse(name v1alpha1.SchemeName) stripe.Scheme {
	scheme, err := stripe.ParseScheme(string(name))
	if err != nil {
		panic(err) // a mistake in the test
	}
	return scheme
}

// operate is one look of an operator at everything; reachable says whether the gateway answers.
func (w *world) operate(reachable bool) {
	permission := w.declaration.Windows.At(w.now)
	limits := w.declaration.Limits
	w.memory.backoff = w.memory.backoff.Next(limits, Load{Window: 10 * time.Second, Requests: 100, P99: w.p99, Moving: 1 << 20}, w.now)
	limits = limits.Under(w.memory.backoff.Limit())
	if reachable && stopped(w.policy) == v1alpha1.StopNone {
		w.plan(limits.Concurrency)
	}
	for i := range w.transitions {
		if t := &w.transitions[i]; t.Status.CompletionTime == nil {
			w.steer(t, permission, limits, reachable)
		}
	}
	w.policy.Status = PolicyStatus(PolicyView{
		Now: w.now, Policy: w.policy, Declaration: w.declaration, Heat: w.report, Unknown: w.place().Unknown(),
		Choice: Choice{Later: w.candidates()}, Transitions: w.transitions, Permission: permission,
	})
	if surplus := Surplus(w.policy, w.transitions); len(surplus) > 0 {
		w.transitions = slices.DeleteFunc(w.transitions, func(t v1alpha1.Transition) bool { return slices.Contains(surplus, t.Name) })
	}
}

func (w *world) place() *Place {
	p := Place{Backend: "demo", Class: &w.declaration.Class, Rules: w.declaration.Rules, Heat: w.report, Asked: Asked(w.policy)}
	for i := range w.transitions {
		t := &w.transitions[i]
		if t.Status.CompletionTime != nil {
			if t.Status.CompletionTime.After(p.LastEnded) {
				p.LastEnded = t.Status.CompletionTime.Time
			}
			continue
		}
		selection, _ := SelectionOf(&t.Spec, nil)
		p.Active = append(p.Active, selection)
	}
	return &p
}

func (w *world) candidates() []Candidate {
	var candidates []Candidate
	for _, move := range Moves(*w.place()) {
		candidates = append(candidates, Candidate{Move: move, Estimate: Estimate{Groups: move.Groups, Bytes: move.Bytes}})
	}
	return candidates
}

func (w *world) plan(concurrency int) {
	active := 0
	for i := range w.transitions {
		if w.transitions[i].Status.CompletionTime == nil {
			active++
		}
	}
	choice := Select(w.candidates(), nil, Consent{Approval: w.policy.Spec.Approval}, concurrency, active)
	for i := range choice.Create {
		made := NewTransition(w.policy, &choice.Create[i], w.names)
		made.UID, made.CreationTimestamp = types.UID(made.Name), metav1.Time{Time: w.now}
		w.names = append(w.names, made.Name)
		w.transitions = append(w.transitions, *made)
	}
}

// steer looks at one transition and carries out what is decided.
func (w *world) steer(t *v1alpha1.Transition, permission Permission, limits Limits, reachable bool) {
	j := w.jobs[JobID(t, t.Status.Retries)]
	v := TransitionView{
		Now: w.now, Transition: t, Policy: w.policy, Declaration: w.declaration, From: string(t.Spec.From), To: string(t.Spec.To),
		Overlap: Overlapping(t, w.transitions, nil), Permission: permission, Estimate: &Estimate{},
	}
	if !reachable {
		v.Unreachable = problem(ReasonGatewayDown, "away")
	}
	if j != nil {
		v.Job = &j.Job
		w.memory.rates[t.Name] = w.memory.rates[t.Name].Add(w.now, j.BytesDone)
		v.Rates = w.memory.rates[t.Name]
	}
	wants := DecideTransition(v).Wants
	v.Grant = Allocate(limits, w.runners(t.Name, wants))[t.Name]
	d := DecideTransition(v)
	w.carryOut(t, d)
	t.Status = d.Status
}

func (w *world) runners(self string, wants bool) []Runner {
	var runners []Runner
	for i := range w.transitions {
		t := &w.transitions[i]
		applied := Grant{}
		if j := w.jobs[JobID(t, t.Status.Retries)]; j != nil && j.State == JobRunning {
			applied = j.Applied
		}
		runner := RunnerOf(t, applied)
		if t.Name == self {
			runner.Wants = wants
		}
		if t.Status.CompletionTime == nil || applied.Runs() {
			runners = append(runners, runner)
		}
	}
	return runners
}

func (w *world) carryOut(t *v1alpha1.Transition, d TransitionDecision) {
	j := w.jobs[d.Job]
	switch d.Action {
	case ActionCreate:
		if j != nil {
			return
		}
		if permission := w.declaration.Windows.at(w.now); !permission.Start && t.Status.StartTime == nil {
			w.t.Fatalf("%s starts in a closed window", t.Name)
		}
		selection, wrong := SelectionOf(&t.Spec, nil)
		if wrong != nil {
			w.t.Fatal(wrong)
		}
		j = &modelJob{Job: Job{ID: d.Job, State: JobRunning, Started: w.now, Applied: d.Grant}, spec: t.Spec, from: selection, to: mustParse(t.Spec.To)}
		if t.Spec.Heat != nil && t.Spec.Heat.Settled != nil {
			j.settled = t.Spec.Heat.Settled.Duration
		}
		w.jobs[d.Job] = j
	case ActionPause:
		j.State = JobPaused
	case ActionResume:
		j.State = JobRunning
	case ActionCancel:
		j.State, j.Finished = JobCancelled, number(w.now)
	case ActionThrottle:
		j.Applied = d.Grant
	}
	w.checkBudget()
}

func (w *world) running() []*modelJob {
	var running []*modelJob
	for _, j := range w.jobs {
		if j.State == JobRunning {
			running = append(running, j)
		}
	}
	slices.SortFunc(running, func(a, b *modelJob) int { return cmp.Compare(a.ID, b.ID) })
	return running
}

// checkBudget holds after every single call to the gateway.
func (w *world) checkBudget() {
	var sum int64
	running := w.running()
	for _, j := range running {
		sum = saturated(sum, j.Applied.Total)
	}
	limits := w.declaration.Limits
	if sum > limits.Total {
		w.t.Fatalf("%d bytes a second are granted, the budget is %d", sum, limits.Total)
	}
	if len(running) > limits.Concurrency {
		w.t.Fatalf("%d transitions run at once, %d may", len(running), limits.Concurrency)
	}
	for i, a := range running {
		for _, b := range running[:i] {
			if a.from.Touches(b.from) {
				w.t.Fatalf("%s and %s may touch the same groups", a.ID, b.ID)
			}
		}
	}
}

// checkWindows holds when the operator has looked: nothing runs on that may not.
func (w *world) checkWindows(reachable bool) {
	if !reachable || w.declaration.Windows.at(w.now).Run {
		return
	}
	if running := w.running(); len(running) > 0 {
		w.t.Fatalf("%s runs in a closed window, at %s", running[0].ID, w.now)
	}
}

func (w *world) String() string {
	text := ""
	for _, g := range w.groups {
		text += fmt.Sprintf("%s at %g (%g), %d moves; ", g.scheme, g.heat, g.rate, len(g.moves))
	}
	return text
}
