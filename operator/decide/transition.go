package decide

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
)

// JobState is where a job at the gateways stands.
type JobState string

// The states of a job, as the gateways name them.
const (
	JobRunning   JobState = "running"
	JobPaused    JobState = "paused"
	JobCancelled JobState = "cancelled"
	JobDone      JobState = "done"
	JobFailed    JobState = "failed"
)

func (s JobState) final() bool { return s == JobCancelled || s == JobDone || s == JobFailed }

// Job is a transition at the gateways.
type Job struct {
	ID                                 string
	State                              JobState
	Error                              string
	GroupsTotal, GroupsDone            int64
	BytesTotal, BytesDone              int64
	BytesSentPredicted, BytesSentSoFar int64
	Applied                            Grant // Unlimited where the gateway has 0
	Started                            time.Time
	Finished                           *time.Time
}

// TransitionView is what DecideTransition looks at.
type TransitionView struct {
	Now        time.Time
	Transition *v1alpha1.Transition

	// Policy is the policy of the transition, nil if it names none or there is none; Declaration is nil if the policy is
	// not accepted.
	Policy      *v1alpha1.RedundancyPolicy
	Declaration *Declaration
	// Original is the transition that this one takes back, nil if it takes none back or there is none.
	Original *v1alpha1.Transition
	Approver string // which program set spec.approved, as Approver says

	From, To   string   // canonical, empty if Unresolved
	Unresolved *Problem // of From and To
	Infeasible *Problem // the backend cannot do it now
	Overlap    string   // an older transition that has not ended and may touch the same groups
	Permission Permission
	Grant      Grant // of the budget
	Estimate   *Estimate
	Verdict    Verdict // of the price table, with the estimate

	Unreachable *Problem // no gateway answers: Job is what it is by chance
	Job         *Job     // nil: the gateways know none
	Refused     string   // why the gateways will not start it or tell what it costs, asked in this look; empty: they did not refuse
	Rates       Rates
}

// Action is one call to the gateways.
type Action string

// The actions.
const (
	ActionNone     Action = ""
	ActionEstimate Action = "estimate" // and look again with View.Estimate
	ActionCreate   Action = "create"
	ActionPause    Action = "pause"
	ActionResume   Action = "resume"
	ActionCancel   Action = "cancel"
	ActionThrottle Action = "throttle"
)

// TransitionDecision is what comes next.
type TransitionDecision struct {
	Action Action
	Job    string // its ID at the gateways
	Grant  Grant  // for create, resume and throttle

	Unapprove      bool // spec.approved must become false: more would be moved than was approved
	HoldPolicy     bool // the policy's stopPolicy must become Hold
	CancelOriginal bool // the original must become cancelled
	Release        bool // nothing of it runs any more: the finalizer may go
	Wants          bool // nothing but the budget keeps it from running, for Runner.Wants
	failure        string
	Status         v1alpha1.TransitionStatus
	Again          time.Time // look again then, besides when something changes; zero: no need
}

// The shape of retries and of looking again.
const (
	mostRetries  = 8
	firstRetry   = 10 * time.Second
	longestRetry = 10 * time.Minute
	lookRunning  = 2 * time.Second
	lookWaiting  = 30 * time.Second
)

// RetryDelay is how long after the failure number retries+1 the next try starts.
func RetryDelay(retries int32) time.Duration {
	return min(longestRetry, firstRetry<<min(retries, 10))
}

// JobID is the name of a transition's job at the gateways: a try that failed leaves its name behind. Retries are those of
// the status as the API server has it: whoever looks next must ask for the same job.
func JobID(transition *v1alpha1.Transition, retries int32) string {
	return fmt.Sprintf("%s-%d", transition.UID, retries)
}

// intent is what should become of a job.
type intent int

const (
	intentRun intent = iota
	intentWait
	intentCancel
)

// Overlapping returns the transition that t waits for: one that may touch the same groups and goes before it; empty:
// none. Those that have started go before the others, then the older. One that has ended, that a person has not approved
// yet or that cannot be resolved is not waited for.
func Overlapping(t *v1alpha1.Transition, others []v1alpha1.Transition, schemes Schemes) string {
	own, wrong := SelectionOf(&t.Spec, schemes)
	if wrong != nil {
		return ""
	}
	before := func(a, b *v1alpha1.Transition) bool {
		return cmp.Or(compareTrue(a.Status.StartTime != nil, b.Status.StartTime != nil),
			a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
	}
	var first *v1alpha1.Transition
	for i := range others {
		other := &others[i]
		waits := other.Spec.NeedsApproval && !other.Spec.Approved && other.Status.StartTime == nil
		if other.Name == t.Name || other.Status.CompletionTime != nil || waits || !before(other, t) {
			continue
		}
		if theirs, wrong := SelectionOf(&other.Spec, schemes); wrong == nil && own.Touches(theirs) && (first == nil || before(other, first)) {
			first = other
		}
	}
	if first == nil {
		return ""
	}
	return first.Name
}

// DecideTransition returns the one call that takes a transition on, and its status. It can be asked any number of times,
// after a restart too: calls carry IDs, and everything that matters is in the objects and at the gateways.
func DecideTransition(v TransitionView) TransitionDecision {
	d := TransitionDecision{Status: *v.Transition.Status.DeepCopy()}
	d.Status.ObservedGeneration = v.Transition.Generation
	if v.From != "" {
		d.Status.From, d.Status.To = v.From, v.To
	}
	if d.Status.CompletionTime != nil {
		d.Release = true
		d.Status.Conditions = observedAgain(d.Status.Conditions, v.Transition.Generation)
		return d
	}
	if v.Unreachable != nil {
		d.Again = v.Now.Add(lookWaiting)
		// A backend that is gone runs no job that would have to be cancelled.
		d.Release = v.Unreachable.Reason == ReasonBackendMissing && v.deleted() != nil
		d.conclude(&v, stateUnreachable, v.Unreachable)
		return d
	}
	d.observe(&v)
	if d.approve(&v); d.Unapprove {
		asked := *v.Transition
		asked.Spec.Approved = false
		v.Transition = &asked
	}
	v.rollBack(&d)
	want, why := v.intent()
	d.Wants = want == intentRun || why != nil && why.Reason == ReasonBudgetUsedUp
	switch failure := v.failure(); {
	case failure != "" && want != intentCancel:
		d.fail(&v, want, why, failure)
	case v.Job != nil && v.Job.State.final():
		d.settle(&v, want, why)
	default:
		d.steer(&v, want, why)
	}
	return d
}

// observe writes the estimate and the progress down.
func (d *TransitionDecision) observe(v *TransitionView) {
	if v.Estimate != nil && (d.Status.Cost == nil || v.Job == nil) {
		e := v.Estimate
		d.Status.PlanHash = e.PlanHash
		d.Status.Cost = &v1alpha1.Cost{
			Groups: e.Groups, Bytes: e.Bytes, BytesRead: e.BytesRead, BytesSent: e.BytesSent, BytesWritten: e.BytesWritten,
			PeakBytes: e.PeakBytes, ReencodeBytesSent: e.ReencodeBytesSent, Price: v.Verdict.PriceText, SavingPerMonth: v.Verdict.SavingMonthText,
		}
	}
	if v.Job == nil {
		return
	}
	job := v.Job
	if d.Status.StartTime == nil {
		d.Status.StartTime = &metav1.Time{Time: job.Started}
	}
	d.Status.Job = job.ID
	progress := v1alpha1.Progress{
		GroupsTotal: job.GroupsTotal, GroupsDone: job.GroupsDone, BytesTotal: job.BytesTotal, BytesDone: job.BytesDone,
		BytesSentPredicted: job.BytesSentPredicted, BytesSentMeasured: job.BytesSentSoFar,
	}
	if job.State == JobRunning {
		if rate, known := v.Rates.Rate(); known {
			progress.BytesPerSecond = int64(rate)
		}
		// Before the gateways have counted what there is to move, nothing is left only by the look of it.
		if eta, known := v.Rates.ETA(job.BytesTotal - job.BytesDone); known && job.GroupsTotal > 0 {
			progress.ETASeconds, progress.ETASecondsLow, progress.ETASecondsHigh = seconds(eta.Middle), seconds(eta.Low), seconds(eta.High)
			d.Status.Summary.ETA = words.ETA(eta.Middle, eta.Low, eta.High)
		} else {
			d.Status.Summary.ETA = estimating
		}
	} else {
		d.Status.Summary.ETA = ""
	}
	d.Status.Progress = &progress
	d.Status.Summary.Done = ""
	if job.BytesTotal > 0 {
		d.Status.Summary.Done = words.Share(job.BytesDone, job.BytesTotal)
	}
	d.Status.Summary.Sent = words.Bytes(job.BytesSentSoFar)
}

// estimating is what is said of the time left until there is something to estimate it from.
const estimating = "estimating"

func seconds(d time.Duration) *int64 {
	n := int64((d + time.Second/2) / time.Second)
	return &n
}

// rollBack holds the policy and ends the original of a transition that takes one back.
func (v *TransitionView) rollBack(d *TransitionDecision) {
	if v.Transition.Spec.RollbackOf == "" {
		return
	}
	d.HoldPolicy = v.mustHold()
	d.CancelOriginal = v.Original != nil && v.Original.Status.CompletionTime == nil && !v.Original.Spec.Cancelled
}

func stopped(policy *v1alpha1.RedundancyPolicy) v1alpha1.StopPolicy {
	if policy == nil || policy.Spec.StopPolicy == "" {
		return v1alpha1.StopNone
	}
	return policy.Spec.StopPolicy
}

// started reports whether a try of the transition has begun.
func (v *TransitionView) started() bool { return v.Job != nil || v.Transition.Status.StartTime != nil }

// intent says what should become of the job: cancelled, for the first reason there is; waiting, for the first reason
// there is; or running.
func (v *TransitionView) intent() (intent, *Problem) {
	for _, ask := range []func(*TransitionView) *Problem{
		(*TransitionView).deleted, (*TransitionView).cancelled, (*TransitionView).policyGone, (*TransitionView).drained,
		(*TransitionView).superseded, (*TransitionView).unasked,
	} {
		if why := ask(v); why != nil {
			return intentCancel, why
		}
	}
	for _, ask := range []func(*TransitionView) *Problem{
		(*TransitionView).unresolved, (*TransitionView).infeasible, (*TransitionView).unapproved, (*TransitionView).unheld,
		(*TransitionView).unreturned, (*TransitionView).unaccepted, (*TransitionView).held, (*TransitionView).overlapping, (*TransitionView).paused,
		(*TransitionView).outsideWindows, (*TransitionView).withoutBudget,
	} {
		if why := ask(v); why != nil {
			return intentWait, why
		}
	}
	return intentRun, nil
}

func (v *TransitionView) deleted() *Problem {
	if v.Transition.DeletionTimestamp == nil {
		return nil
	}
	return problem(ReasonDeleting, "the transition is being deleted; groups already moved stay where they are")
}

func (v *TransitionView) cancelled() *Problem {
	if !v.Transition.Spec.Cancelled {
		return nil
	}
	return problem(ReasonCancelled, "cancelled; groups already moved stay where they are")
}

func (v *TransitionView) policyGone() *Problem {
	name := v.Transition.Spec.PolicyRef
	if name == "" || v.Policy != nil && v.Policy.DeletionTimestamp == nil {
		return nil
	}
	return problem(ReasonPolicyGone, "policy %s is gone, and its transitions with it; groups already moved stay where they are", name)
}

func (v *TransitionView) drained() *Problem {
	if stopped(v.Policy) != v1alpha1.StopHoldAndDrain {
		return nil
	}
	return problem(ReasonDrained, "stopPolicy HoldAndDrain of policy %s ends its transitions; groups already moved stay where they are", v.Policy.Name)
}

// superseded: the policy's ladder no longer has the target, or a pin of it came or went. Other edits let what runs end.
func (v *TransitionView) superseded() *Problem {
	if v.Declaration == nil || v.Unresolved != nil {
		return nil
	}
	return v.Declaration.Supersedes(v.Transition, v.To)
}

func (v *TransitionView) unresolved() *Problem { return v.Unresolved }

// infeasible keeps a transition from starting; one that runs finds its own way around lost nodes.
func (v *TransitionView) infeasible() *Problem {
	if v.started() {
		return nil
	}
	return v.Infeasible
}

func (v *TransitionView) unapproved() *Problem {
	spec := &v.Transition.Spec
	if !spec.NeedsApproval || spec.Approved {
		return nil
	}
	return problem(ReasonApprovalNeeded, "a person has to approve: restripe approve %s", v.Transition.Name)
}

func (v *TransitionView) unreturned() *Problem {
	name := v.Transition.Spec.RollbackOf
	switch {
	case name == "" || v.started() || v.Original != nil && v.Original.Status.CompletionTime != nil:
		return nil
	case v.Original == nil:
		return problem(ReasonOriginalMissing, "there is no transition %s to take back; create one without rollbackOf", name)
	}
	return problem(ReasonWaitsForOriginal, "waiting for %s, which it takes back, to end", name)
}

// unheld keeps a transition that takes another one back from racing the policy that wants it the other way.
func (v *TransitionView) unheld() *Problem {
	if !v.mustHold() {
		return nil
	}
	return problem(ReasonWaitsForHold, "policy %s is put on Hold first, so that it does not undo what is taken back", v.Policy.Name)
}

func (v *TransitionView) mustHold() bool {
	return v.Transition.Spec.RollbackOf != "" && !v.started() && v.Policy != nil && v.Policy.DeletionTimestamp == nil && stopped(v.Policy) == v1alpha1.StopNone
}

func (v *TransitionView) unaccepted() *Problem {
	if v.Transition.Spec.PolicyRef == "" || v.Declaration != nil || v.started() {
		return nil
	}
	return problem(ReasonPolicyNotAccepted, "policy %s is not accepted; see its conditions", v.Transition.Spec.PolicyRef)
}

// held: Hold starts nothing new; a person who takes a transition back means it.
func (v *TransitionView) held() *Problem {
	if stopped(v.Policy) != v1alpha1.StopHold || v.started() || v.Transition.Spec.RollbackOf != "" {
		return nil
	}
	return problem(ReasonHeld, "stopPolicy Hold of policy %s starts nothing new; set it to None to go on", v.Policy.Name)
}

func (v *TransitionView) overlapping() *Problem {
	if v.Overlap == "" {
		return nil
	}
	return problem(ReasonOverlap, "waiting for the older transition %s, which may touch the same groups", v.Overlap)
}

func (v *TransitionView) paused() *Problem {
	if !v.Transition.Spec.Paused {
		return nil
	}
	return problem(ReasonPausedByUser, "paused by a person; go on with: restripe resume %s", v.Transition.Name)
}

func (v *TransitionView) outsideWindows() *Problem {
	if v.Permission.Start || v.started() && v.Permission.Run {
		return nil
	}
	why := *v.Permission.Why
	if !v.Permission.Next.IsZero() {
		why.Message += "; may go on at " + words.Time(v.Permission.Next)
	}
	return &why
}

func (v *TransitionView) withoutBudget() *Problem {
	if v.Grant.Runs() {
		return nil
	}
	return problem(ReasonBudgetUsedUp, "waiting for its turn: other transitions of the policy use its budget or concurrency")
}

// steer brings a job that has not ended, or none, to what is wanted.
func (d *TransitionDecision) steer(v *TransitionView, want intent, why *Problem) {
	d.Again = v.Now.Add(lookWaiting)
	switch {
	case v.Job == nil && want == intentCancel:
		d.end(v, stateCancelled, v.Now, why)
		return
	case v.estimates(want):
		d.Action, d.Again = ActionEstimate, v.Now.Add(lookRunning)
	case v.Job == nil && want == intentRun:
		d.Action, d.Job, d.Grant = ActionCreate, JobID(v.Transition, v.Transition.Status.Retries), v.Grant
		d.Again = v.Now.Add(lookRunning)
	case v.Job == nil:
	case want == intentCancel:
		d.Action, d.Job = ActionCancel, v.Job.ID
		d.Again = v.Now.Add(lookRunning)
		d.conclude(v, stateCancelling, why)
		return
	case want == intentWait && v.Job.State == JobRunning:
		d.Action, d.Job = ActionPause, v.Job.ID
	case want == intentWait:
	default:
		d.Again = v.Now.Add(lookRunning)
		d.keepRunning(v)
	}
	if want == intentRun && (v.Job != nil || d.Action == ActionCreate) {
		d.conclude(v, stateRunning, nil)
		return
	}
	if at := v.Permission.Until; !at.IsZero() && at.Before(d.Again) {
		d.Again = at
	}
	if want == intentRun {
		why = problem(ReasonNotPlanned, "the gateways are asked what it costs")
	}
	d.conclude(v, stateWaiting, why)
}

// keepRunning applies the grant before anything goes on under an older, larger one.
func (d *TransitionDecision) keepRunning(v *TransitionView) {
	switch {
	case v.Job.Applied != v.Grant:
		d.Action = ActionThrottle
	case v.Job.State == JobPaused:
		d.Action = ActionResume
	default:
		return
	}
	d.Job, d.Grant = v.Job.ID, v.Grant
}

// settle deals with a job that has ended.
func (d *TransitionDecision) settle(v *TransitionView, want intent, why *Problem) {
	finished := v.Now
	if v.Job.Finished != nil {
		finished = *v.Job.Finished
	}
	switch {
	case v.Job.State == JobDone:
		d.end(v, stateDone, finished, nil)
	case v.Job.State == JobCancelled:
		if why == nil || want != intentCancel {
			why = problem(ReasonCancelled, "cancelled at the gateways; groups already moved stay where they are")
		}
		d.end(v, stateCancelled, finished, why)
	default:
		d.end(v, stateCancelled, finished, why)
	}
}

// failure is why the last try came to nothing: its job failed, or the gateways refused it, now or in an earlier look;
// empty: it did not, or another one is due.
func (v *TransitionView) failure() string {
	switch {
	case v.Job != nil && v.Job.State == JobFailed:
		return fmt.Sprintf("try %d failed: %s", v.Transition.Status.Retries+1, v.Job.Error)
	case v.Job != nil:
		return ""
	case v.Refused != "":
		return fmt.Sprintf("try %d failed: %s", v.Transition.Status.Retries+1, v.Refused)
	}
	if progressing, degraded := v.lastSaid(); progressing.Status == metav1.ConditionFalse && degraded.Status == metav1.ConditionTrue && degraded.Reason == ReasonRetrying {
		return degraded.Message
	}
	return ""
}

// fail waits for the time of the next try. Which try it is must be on record before it starts: should the operator be
// killed in between, the next one would not find the job and start another.
func (d *TransitionDecision) fail(v *TransitionView, want intent, why *Problem, failure string) {
	retries := v.Transition.Status.Retries
	at := v.noticed().Add(RetryDelay(retries))
	d.failure = failure
	switch {
	case retries >= mostRetries:
		finished := v.Now
		if v.Job != nil && v.Job.Finished != nil {
			finished = *v.Job.Finished
		}
		d.end(v, stateFailed, finished, problem(ReasonFailed, "failed %d times, the last time: %s; cure it and create another transition, or let the policy do so", mostRetries+1, strings.TrimPrefix(failure, fmt.Sprintf("try %d failed: ", retries+1))))
	case want == intentWait:
		d.Again = v.Now.Add(lookWaiting)
		d.conclude(v, stateRetrying, problem(ReasonRetrying, "%s; %s", failure, why.Message))
	case v.Now.Before(at):
		d.Again = at
		d.conclude(v, stateRetrying, problem(ReasonRetrying, "%s; next try at %s", failure, at.UTC().Format(time.RFC3339)))
	default:
		d.Status.Retries, d.Again = retries+1, v.Now
		d.conclude(v, stateRunning, problem(ReasonRetrying, "%s; trying again", failure))
	}
}

// noticed is when the failure was first seen, by the operator's clock: since then nothing progresses and something is
// wrong. After a clock that jumped back it was long ago.
func (v *TransitionView) noticed() time.Time {
	progressing, degraded := v.lastSaid()
	at := progressing.LastTransitionTime.Time
	if degraded.LastTransitionTime.After(at) {
		at = degraded.LastTransitionTime.Time
	}
	switch {
	case progressing.Status != metav1.ConditionFalse || degraded.Status != metav1.ConditionTrue:
		return v.Now
	case at.After(v.Now):
		return time.Time{}
	}
	return at
}

// lastSaid are the conditions Progressing and Degraded as they are on record, empty before the first look.
func (v *TransitionView) lastSaid() (progressing, degraded metav1.Condition) {
	if found := meta.FindStatusCondition(v.Transition.Status.Conditions, v1alpha1.ConditionProgressing); found != nil {
		progressing = *found
	}
	if found := meta.FindStatusCondition(v.Transition.Status.Conditions, v1alpha1.ConditionDegraded); found != nil {
		degraded = *found
	}
	return progressing, degraded
}

func (d *TransitionDecision) end(v *TransitionView, state transitionState, at time.Time, why *Problem) {
	d.Release, d.Wants = true, false
	d.Status.CompletionTime = &metav1.Time{Time: at}
	d.Status.Summary.ETA = ""
	d.Again = time.Time{}
	d.conclude(v, state, why)
}
