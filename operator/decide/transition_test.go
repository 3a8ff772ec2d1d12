package decide

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
)

// stage carries out what DecideTransition says, as a controller does with a gateway.
type stage struct {
	t           *testing.T
	now         time.Time
	policy      *v1alpha1.RedundancyPolicy
	transition  *v1alpha1.Transition
	original    *v1alpha1.Transition
	job         *Job
	jobs        int             // that were ever created
	estimate    func(*Estimate) // what the gateways say otherwise; nil: nothing
	refusal     string          // of a start; empty: it is accepted
	grant       Grant
	overlap     string
	infeasible  *Problem
	unreachable *Problem
	rates       Rates
}

// visit decides and acts once, and writes the status, as one look of a controller does.
func (s *stage) visit() TransitionDecision {
	v := s.view()
	d := DecideTransition(v)
	if d.Action == ActionEstimate {
		v.Estimate = &Estimate{Groups: 312, Bytes: 1 << 30, BytesSent: 0, BytesRead: 1 << 30, BytesWritten: 1 << 28, ReencodeBytesSent: 1 << 30, PlanHash: "h"}
		if s.estimate != nil {
			s.estimate(v.Estimate)
		}
		d = DecideTransition(v)
	}
	if d.Action == ActionCreate && s.refusal != "" {
		v.Refused = s.refusal
		d = DecideTransition(v)
	}
	s.carryOut(d)
	s.transition.Status = d.Status
	if d.Unapprove {
		s.transition.Spec.Approved = false
	}
	if d.HoldPolicy {
		s.policy.Spec.StopPolicy = v1alpha1.StopHold
	}
	if d.CancelOriginal {
		s.original.Spec.Cancelled = true
	}
	return d
}

func (s *stage) view() TransitionView {
	v := TransitionView{
		Now: s.now, Transition: s.transition, Policy: s.policy, Original: s.original, From: "rs(4,2)", To: "rs(12,2)",
		Infeasible: s.infeasible, Overlap: s.overlap, Permission: Permission{Start: true, Run: true}, Grant: s.grant,
		Unreachable: s.unreachable, Rates: s.rates,
	}
	if s.job != nil && s.job.ID == JobID(s.transition, s.transition.Status.Retries) {
		v.Job = s.job
	}
	if s.policy != nil {
		v.Declaration = mustDeclare(s.t, s.policy).At(s.now)
		v.Permission = v.Declaration.Windows.At(s.now)
	}
	return v
}

func (s *stage) carryOut(d TransitionDecision) {
	switch d.Action {
	case ActionCreate:
		if s.job == nil || s.job.ID != d.Job {
			s.jobs++
			s.job = &Job{ID: d.Job, State: JobRunning, GroupsTotal: 312, BytesTotal: 1 << 30, Started: s.now, Applied: d.Grant}
		}
	case ActionPause:
		s.job.State = JobPaused
	case ActionResume:
		s.job.State = JobRunning
	case ActionCancel:
		s.job.State, s.job.Finished = JobCancelled, &s.now
	case ActionThrottle:
		s.job.Applied = d.Grant
	}
}

func describeDecision(s *stage, d TransitionDecision) string {
	var set []string
	for _, condition := range d.Status.Conditions {
		if condition.Status == metav1.ConditionTrue && condition.Type != v1alpha1.ConditionAccepted && condition.Type != v1alpha1.ConditionFeasible && condition.Type != v1alpha1.ConditionPlanned {
			set = append(set, condition.Type)
		}
	}
	action := string(d.Action)
	if action == "" {
		action = "nothing"
	}
	if d.Action == ActionCreate || d.Action == ActionThrottle || d.Action == ActionResume {
		action += fmt.Sprintf(" at %d", d.Grant.Total)
	}
	text := fmt.Sprintf("%s: %s [%s]", d.Status.Summary.State, action, strings.Join(set, " "))
	if !d.Again.IsZero() {
		text += " again in " + durationText(d.Again.Sub(s.now).Round(time.Second))
	}
	if d.Release {
		text += " released"
	}
	if why := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionConverged); why != nil {
		text += "\n  " + why.Reason + ": " + why.Message
	}
	return text
}

// transitionStory answers "visit"; the other commands set the scene.
func transitionStory(t *testing.T) func(string, []string) string {
	s := &stage{
		t: t, now: moment(t, "2026-03-03T20:00:00Z"), policy: mediaPolicy("rep(3) rs(4,2) rs(12,2)", "rs(12,2)<0.5"),
		transition: &v1alpha1.Transition{
			ObjectMeta: metav1.ObjectMeta{Name: "media-rs12-2-1", UID: "uid", Generation: 1},
			Spec:       v1alpha1.TransitionSpec{PolicyRef: "media", BackendRef: "demo", Class: "media", From: "rs(4,2)", To: "rs(12,2)"},
		},
		grant: Grant{Total: 100, Node: Unlimited, Domain: Unlimited},
	}
	int64Of := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	set := map[string]func(arguments []string){
		"clock":      func(a []string) { s.now = moment(t, "2026-03-0"+a[0]+"T"+a[1]+":00Z") },
		"later":      func(a []string) { wait, _ := time.ParseDuration(a[0]); s.now = s.now.Add(wait) },
		"window":     func(a []string) { s.window(a) },
		"grant":      func(a []string) { s.grant.Total = int64Of(a[0]) },
		"overlap":    func(a []string) { s.overlap = strings.Join(a, "") },
		"approval":   func([]string) { s.transition.Spec.NeedsApproval = true },
		"approve":    func([]string) { s.transition.Spec.Approved = true },
		"pause":      func([]string) { s.transition.Spec.Paused = true },
		"resume":     func([]string) { s.transition.Spec.Paused = false },
		"cancel":     func([]string) { s.transition.Spec.Cancelled = true },
		"delete":     func([]string) { s.transition.DeletionTimestamp = &metav1.Time{Time: s.now} },
		"stop":       func(a []string) { s.policy.Spec.StopPolicy = v1alpha1.StopPolicy(a[0]) },
		"nopolicy":   func([]string) { s.policy = nil },
		"ladder":     func(a []string) { s.policy = mediaPolicy(a[0]) },
		"pin":        func(a []string) { s.policy.Spec.Pin = pinned(s.t, a[0], a[1]) },
		"unpin":      func([]string) { s.policy.Spec.Pin = nil },
		"madeforpin": func([]string) { s.transition.Spec.Pinned = true },
		"infeasible": func(a []string) { s.infeasible = problem(ReasonTooFewNodes, "%s", a[0]) },
		"feasible":   func([]string) { s.infeasible = nil },
		"gateway":    func(a []string) { s.gateway(a[0]) },
		"forget":     func([]string) { s.transition.Status = v1alpha1.TransitionStatus{} },
		"loses":      func([]string) { s.job = nil },
		"edit":       func([]string) { s.transition.Generation++ },
		"done": func([]string) {
			s.job.State, s.job.GroupsDone, s.job.BytesDone, s.job.Finished = JobDone, 312, 1<<30, number(s.now)
		},
		"fails":     func(a []string) { s.job.State, s.job.Error, s.job.Finished = JobFailed, a[0], number(s.now) },
		"refuses":   func(a []string) { s.refusal = a[0] },
		"accepts":   func([]string) { s.refusal = "" },
		"cancelled": func([]string) { s.job.State, s.job.Finished = JobCancelled, number(s.now) },
		"uncounted": func([]string) { s.job.GroupsTotal, s.job.BytesTotal = 0, 0 },
		"counted":   func([]string) { s.job.GroupsTotal, s.job.BytesTotal = 312, 1<<30 },
		"moved": func(a []string) {
			s.job.BytesDone = int64Of(a[0]) << 20
			s.rates = s.rates.Add(s.now, s.job.BytesDone)
		},
		"takesback": func(a []string) {
			s.transition.Spec.RollbackOf = a[0]
			s.original = &v1alpha1.Transition{ObjectMeta: metav1.ObjectMeta{Name: a[0]}}
		},
		"originalmissing": func([]string) { s.original = nil },
		"originalended":   func([]string) { s.original.Status.CompletionTime = &metav1.Time{Time: s.now} },
	}
	return func(command string, arguments []string) string {
		if command == "visit" {
			return describeDecision(s, s.visit())
		}
		if command == "jobs" {
			return fmt.Sprintf("%d jobs, policy %s, original cancelled %v", s.jobs, stopped(s.policy), s.original != nil && s.original.Spec.Cancelled)
		}
		act := set[command]
		if act == nil {
			t.Fatalf("no command %s", command)
		}
		act(arguments)
		return ""
	}
}

func (s *stage) window(arguments []string) {
	duration, err := time.ParseDuration(arguments[1])
	if err != nil {
		s.t.Fatal(err)
	}
	s.policy.Spec.Windows = []v1alpha1.Window{declared(v1alpha1.WindowAllow, arguments[0], duration, "", v1alpha1.Overrun(arguments[2]))}
}

func (s *stage) gateway(state string) {
	s.unreachable = nil
	if state == "away" {
		s.unreachable = problem(ReasonGatewayDown, "no gateway of backend demo answers: connection refused")
	}
}

func TestTransitionStories(t *testing.T) { tellStories(t, "transition.txt", transitionStory) }

// Whatever is true of a transition, every condition is there from the first visit, with a reason and the generation.
func TestEveryConditionIsThere(t *testing.T) {
	for _, name := range []string{"first visit", "unreachable", "unresolved"} {
		v := TransitionView{Now: time.Unix(1000, 0), Transition: &v1alpha1.Transition{ObjectMeta: metav1.ObjectMeta{Generation: 7}}, Permission: Permission{Start: true, Run: true}}
		switch name {
		case "unreachable":
			v.Unreachable = problem(ReasonGatewayDown, "away")
		case "unresolved":
			v.Unresolved = problem(ReasonUnknownScheme, "which?")
		}
		checkConditions(t, name, DecideTransition(v).Status.Conditions, movingTypes, 7)
	}
}

func checkConditions(t testing.TB, name string, list []metav1.Condition, types []string, generation int64) {
	t.Helper()
	if len(list) != len(types) {
		t.Errorf("%s: %d conditions, want %d", name, len(list), len(types))
	}
	for _, want := range types {
		condition := meta.FindStatusCondition(list, want)
		switch {
		case condition == nil:
			t.Errorf("%s: condition %s is not there", name, want)
		case condition.Reason == "" || condition.ObservedGeneration != generation || condition.LastTransitionTime.IsZero():
			t.Errorf("%s: condition %+v", name, condition)
		}
	}
	is := func(want string) bool { return meta.IsStatusConditionTrue(list, want) }
	trues := 0
	for _, want := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		if is(want) {
			trues++
		}
	}
	if trues != 1 {
		t.Errorf("%s: %d of Ready, Reconciling and Stalled are true, want one", name, trues)
	}
}

func TestConditionsKeepTheTimeOfTheirStatus(t *testing.T) {
	s := &stage{t: t, now: time.Unix(1000, 0), grant: Grant{1, 1, 1}, transition: &v1alpha1.Transition{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}}
	first := s.visit()
	s.now = s.now.Add(time.Minute)
	s.job.State, s.job.GroupsDone, s.job.Finished = JobDone, 312, &s.now
	second := s.visit()
	for _, c := range []struct {
		name    string
		changes bool
	}{{v1alpha1.ConditionAccepted, false}, {v1alpha1.ConditionConverged, true}, {v1alpha1.ConditionPaused, false}} {
		before, after := meta.FindStatusCondition(first.Status.Conditions, c.name), meta.FindStatusCondition(second.Status.Conditions, c.name)
		if !before.LastTransitionTime.Equal(&after.LastTransitionTime) != c.changes {
			t.Errorf("%s: %s, then %s", c.name, before.LastTransitionTime, after.LastTransitionTime)
		}
	}
}

func TestRetryDelaysGrowToALimit(t *testing.T) {
	for retries, want := range map[int32]time.Duration{0: 10 * time.Second, 1: 20 * time.Second, 5: 320 * time.Second, 6: 10 * time.Minute, 1000: 10 * time.Minute} {
		if got := RetryDelay(retries); got != want {
			t.Errorf("after %d tries: %s, want %s", retries, got, want)
		}
	}
}

// TestARateIsBytesOverTime: what is moved in lumps has the rate of the whole, which no single visit saw.
func TestARateIsBytesOverTime(t *testing.T) {
	start := time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)
	rates, done := Rates{}.Add(start, 0), int64(0)
	if _, known := rates.Rate(); known {
		t.Error("a rate without a visit")
	}
	for visit := 1; visit <= 10; visit++ {
		if visit%5 == 0 {
			done += 1000
		}
		rates = rates.Add(start.Add(time.Duration(visit)*2*time.Second), done)
	}
	if rate, known := rates.Rate(); !known || rate != 100 {
		t.Errorf("2,000 bytes in 20 s are %v B/s, known %v", rate, known)
	}
	rates = rates.Add(start.Add(30*time.Second), done)
	if rate, _ := rates.Rate(); rate < 66 || rate > 67 {
		t.Errorf("a long visit counts as long as it was: %v B/s", rate)
	}
}

func TestETA(t *testing.T) {
	start := time.Unix(0, 0)
	visit := func(rates Rates, perVisit ...int64) Rates {
		done := rates.done
		for i, bytes := range perVisit {
			done += bytes
			rates = rates.Add(start.Add(time.Duration(i+1)*10*time.Second), done)
		}
		return rates
	}
	begun := Rates{}.Add(start, 0)
	if _, known := visit(begun, 100, 100).ETA(1000); known {
		t.Error("known after two visits")
	}
	for _, c := range []struct {
		intent   string
		perVisit []int64
		want     string
	}{
		{"steady", []int64{1000, 1000, 1000, 1000}, "60 s"},
		{"spread", []int64{500, 1000, 2000, 2000, 500, 1000}, "60 s (30-120)"},
		{"stalls lengthen it", []int64{1000, 0, 1000, 0, 1000, 0}, "2 min (1-2)"},
		{"endless while nothing moves", []int64{0, 0, 0, 0}, ""},
	} {
		eta, known := visit(begun, c.perVisit...).ETA(6000)
		if known != (c.want != "") || known && words.ETA(eta.Middle, eta.Low, eta.High) != c.want || eta.Low > eta.Middle || eta.Middle > eta.High {
			t.Errorf("%s: %s %v, want %s", c.intent, words.ETA(eta.Middle, eta.Low, eta.High), eta, c.want)
		}
	}
	back := visit(begun, 1000, 1000, 1000).Add(start, 3000).Add(start.Add(10*time.Second), 4000)
	if eta, known := back.ETA(6000); !known || words.ETA(eta.Middle, eta.Low, eta.High) != "60 s" {
		t.Errorf("after a clock that jumped back: %v", eta)
	}
}
