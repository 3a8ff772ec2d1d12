package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
)

// PolicyView is what PolicyStatus looks at.
type PolicyView struct {
	Now         time.Time
	Policy      *v1alpha1.RedundancyPolicy
	Declaration *Declaration // nil if Declined
	Declined    *Problem     // of Declare, or of Conflicts
	Refusal     *Problem     // of Feasible
	Warnings    []*Problem
	NotPushed   *Problem // the gateways do not have the class as declared yet
	Heat        *ClassHeat
	Unknown     *Problem // of Place.Unknown
	Choice      Choice
	Transitions []v1alpha1.Transition // of the policy, those just created included
	Permission  Permission
	Degraded    *Problem   // of the backend, as far as it is about the class
	Elsewhere   *Elsewhere // nil: unknown
	Savings     *v1alpha1.Savings
	Temperature *v1alpha1.TemperatureStatus // with the books of candidates; nil: as it was
}

// Asked reports whether something was declared since the policy last converged, for Place.Asked.
func Asked(policy *v1alpha1.RedundancyPolicy) bool {
	converged := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionConverged)
	return converged == nil || !settled(converged) || converged.ObservedGeneration != policy.Generation
}

// crowd is the policy's transitions that have not ended, by what they do.
type crowd struct {
	active                    int32
	running, waiting, unasked []string // unasked: not approved
	held                      []*Problem
	troubled                  *Problem
}

func crowdOf(transitions []v1alpha1.Transition) crowd {
	var all crowd
	for i := range transitions {
		t := &transitions[i]
		if t.Status.CompletionTime != nil {
			continue
		}
		all.active++
		is := func(name string) bool { return meta.IsStatusConditionTrue(t.Status.Conditions, name) }
		switch {
		case is(v1alpha1.ConditionProgressing):
			all.running = append(all.running, t.Name)
		case t.Spec.NeedsApproval && !t.Spec.Approved:
			all.unasked = append(all.unasked, t.Name)
		default:
			all.waiting = append(all.waiting, t.Name)
		}
		if paused := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionPaused); paused != nil && paused.Status == metav1.ConditionTrue {
			all.held = append(all.held, problem(paused.Reason, "%s: %s", t.Name, paused.Message))
		}
		if degraded := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionDegraded); degraded != nil && degraded.Status == metav1.ConditionTrue {
			all.troubled = problem(degraded.Reason, "%s: %s", t.Name, degraded.Message)
		}
	}
	return all
}

// PolicyStatus is the whole status of a policy.
func PolicyStatus(v PolicyView) v1alpha1.RedundancyPolicyStatus {
	status := *v.Policy.Status.DeepCopy()
	status.ObservedGeneration = v.Policy.Generation
	status.Class = ClassName(v.Policy)
	if v.Declaration != nil {
		status.Ladder = nil
		for _, scheme := range v.Declaration.Class.Ladder {
			status.Ladder = append(status.Ladder, scheme.String())
		}
		status.Summary.Ladder = formatLadder(v.Declaration.Class.Ladder)
		if v.Policy.Spec.Temperature == nil {
			status.Temperature = nil
		}
	}
	if v.Temperature != nil {
		status.Temperature = v.Temperature
	}
	if v.Heat != nil && v.Heat.Complete {
		status.Rungs, status.Summary.Stored = rungsOf(v.Heat)
	}
	all := crowdOf(v.Transitions)
	status.ActiveTransitions = all.active
	status.Savings = v.Savings
	status.NextWindow = nil
	if !v.Permission.Start && !v.Permission.Next.IsZero() {
		status.NextWindow = &metav1.Time{Time: v.Permission.Next}
	}
	status.Conditions = v.conditions(&all)
	status.LadderChoice = v.ladderChoice(status.Conditions)
	return status
}

// ladderChoice is what the ladder was chosen for. When all is where the new ladder wants it, it replaces no other any more.
func (v *PolicyView) ladderChoice(conditions []metav1.Condition) *v1alpha1.LadderChoice {
	switch {
	case v.Declaration == nil:
		return v.Policy.Status.LadderChoice
	case v.Declaration.Choice == nil:
		return nil
	}
	choice := *v.Declaration.Choice
	choice.Replaces = choice.Replaces && !settled(meta.FindStatusCondition(conditions, v1alpha1.ConditionConverged))
	return &choice
}

func rungsOf(heat *ClassHeat) ([]v1alpha1.Rung, string) {
	var rungs []v1alpha1.Rung
	var stored int64
	for _, rung := range heat.Rungs {
		rungs = append(rungs, v1alpha1.Rung{Scheme: rung.Scheme.String(), Groups: rung.Groups, Bytes: rung.Bytes, StoredBytes: rung.StoredBytes})
		stored += rung.StoredBytes
	}
	text := words.Bytes(stored)
	if heat.Bytes > 0 {
		text += fmt.Sprintf(", %.2fx", float64(stored)/float64(heat.Bytes))
	}
	return rungs, text
}

func (v *PolicyView) conditions(all *crowd) []metav1.Condition {
	c := newConditions(policyTypes, v.Policy.Generation)
	c.unless(v1alpha1.ConditionAccepted, v.Declined, ReasonAccepted, v.acceptedMessage())
	if v.Declined == nil {
		v.feasible(c)
		v.planned(c, all)
	}
	v.moving(c, all)
	v.pinned(c)
	missing := v.missing(all)
	if missing == nil {
		c.yes(v1alpha1.ConditionConverged, ReasonConverged, v.convergedMessage())
	} else {
		c.no(v1alpha1.ConditionConverged, missing.Reason, missing.Message)
	}
	v.kstatus(c, missing)
	return c.since(v.Policy.Status.Conditions, v.Now)
}

func (v *PolicyView) convergedMessage() string {
	if v.Unknown != nil && v.Unknown.Reason == ReasonGatewayDown {
		return "everything was where the policy wants it when a gateway last answered"
	}
	return sentences("everything is where the policy wants it", v.Elsewhere.kept(), v.offLadder(), v.notWorthwhile())
}

// offLadder says of which groups the ladder is still another one.
func (v *PolicyView) offLadder() string {
	if v.Heat == nil {
		return ""
	}
	var groups int64
	for i := range v.Heat.Rungs {
		groups += v.Heat.Rungs[i].OffLadder
	}
	if groups == 0 {
		return ""
	}
	return words.Count(groups, "group") + " of another ladder come under this one when they have to move"
}

func (v *PolicyView) acceptedMessage() string {
	if v.Declaration == nil {
		return ""
	}
	text := "ladder " + formatLadder(v.Declaration.Class.Ladder) + ", new objects " + v.Declaration.Class.Default.String()
	switch {
	case v.Declaration.Auto:
		text += "; groups are where they cost least (temperature.mode auto)"
	case v.Declaration.Rules != nil:
		text += "; " + v.Declaration.Rules.String()
	}
	return text
}

// pinned says what a person keeps on one scheme, and until when.
func (v *PolicyView) pinned(c *conditions) {
	switch d := v.Declaration; {
	case d == nil && v.Declined != nil:
		c.unknown(v1alpha1.ConditionPinned, v.Declined.Reason, v.Declined.Message)
	case d == nil:
	case d.Pinned:
		c.yes(v1alpha1.ConditionPinned, ReasonPinned, "pinned to "+d.Pin.String())
	case d.Pin != nil:
		c.no(v1alpha1.ConditionPinned, ReasonPinExpired, fmt.Sprintf("the pin to %s ended at %s and has no effect any more; take it out", d.Pin.Scheme, words.Time(d.Pin.Until)))
	default:
		c.no(v1alpha1.ConditionPinned, ReasonNotPinned, "nothing is pinned")
	}
}

func (v *PolicyView) feasible(c *conditions) {
	messages := make([]string, len(v.Warnings))
	for i, warning := range v.Warnings {
		messages[i] = warning.Message
	}
	switch {
	case v.Refusal != nil:
		c.no(v1alpha1.ConditionFeasible, v.Refusal.Reason, v.Refusal.Message)
	case len(messages) > 0:
		c.yes(v1alpha1.ConditionFeasible, ReasonFeasibleWarnings, sentences(messages...))
	default:
		c.yes(v1alpha1.ConditionFeasible, ReasonFeasible, "the backend can carry it out")
	}
}

func (v *PolicyView) planned(c *conditions, all *crowd) {
	switch {
	case v.Refusal != nil:
		c.no(v1alpha1.ConditionPlanned, v.Refusal.Reason, "nothing is planned before the backend can carry it out")
	case v.NotPushed != nil:
		c.no(v1alpha1.ConditionPlanned, v.NotPushed.Reason, v.NotPushed.Message)
	case v.Unknown != nil:
		c.unknown(v1alpha1.ConditionPlanned, v.Unknown.Reason, v.Unknown.Message)
	case all.active > 0 || len(v.Choice.Later) > 0:
		c.yes(v1alpha1.ConditionPlanned, ReasonPlanned, sentences(words.Count(int64(all.active), "transition"), laterMessage(v.Choice.Later), v.notWorthwhile()))
	case len(v.Choice.Refused) > 0:
		c.yes(v1alpha1.ConditionPlanned, ReasonNotWorthwhile, v.notWorthwhile())
	default:
		c.yes(v1alpha1.ConditionPlanned, ReasonNothingToMove, "nothing has to move")
	}
}

func laterMessage(later []Candidate) string {
	if len(later) == 0 {
		return ""
	}
	return words.Count(int64(len(later)), "more") + " when there is room for it: " + later[0].Reason
}

// notWorthwhile says what is not moved because it does not pay, or cannot.
func (v *PolicyView) notWorthwhile() string {
	if len(v.Choice.Refused) == 0 {
		return ""
	}
	first := &v.Choice.Refused[0]
	text := fmt.Sprintf("not moved from %s to %s: %s", first.Move.From, first.Move.To, first.Verdict.Message)
	if more := len(v.Choice.Refused) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

func (v *PolicyView) moving(c *conditions, all *crowd) {
	if len(all.unasked) > 0 {
		c.yes(v1alpha1.ConditionAwaitingApproval, ReasonApprovalNeeded, "a person has to approve "+strings.Join(all.unasked, ", ")+": restripe approve "+all.unasked[0])
	} else {
		c.no(v1alpha1.ConditionAwaitingApproval, ReasonNoApprovalNeeded, "nothing waits for approval")
	}
	if len(all.running) > 0 {
		c.yes(v1alpha1.ConditionProgressing, ReasonMoving, "moving: "+strings.Join(all.running, ", "))
	} else {
		c.no(v1alpha1.ConditionProgressing, ReasonNotMoving, "nothing moves")
	}
	c.when(v1alpha1.ConditionPaused, v.heldBack(all), ReasonNotPaused, "nothing is held back")
	troubled := all.troubled
	if troubled == nil {
		troubled = v.Degraded
	}
	c.when(v1alpha1.ConditionDegraded, troubled, ReasonHealthy, "nothing is missing")
}

// heldBack is what holds back something that would move.
func (v *PolicyView) heldBack(all *crowd) *Problem {
	stop := stopped(v.Policy)
	switch {
	case stop == v1alpha1.StopHoldAndDrain:
		return problem(ReasonDrained, "stopPolicy HoldAndDrain: nothing moves; set it to None to go on")
	case stop == v1alpha1.StopHold:
		return problem(ReasonHeld, "stopPolicy Hold: nothing new starts; set it to None to go on")
	case len(all.held) > 0:
		return all.held[0]
	case !v.Permission.Start && v.Permission.Why != nil && len(v.Choice.Create)+len(v.Choice.Later) > 0:
		return v.Permission.Why
	}
	return nil
}

// missing is why the class has not converged; nil if it has. Without temperature a policy that converged stays so until
// it is edited, whatever people move.
func (v *PolicyView) missing(all *crowd) *Problem {
	stays := v.Declined == nil && all.active == 0 && !Asked(v.Policy) && (v.Unknown != nil || v.Declaration.onDefault())
	stuck := slices.IndexFunc(v.Choice.Refused, func(r Refused) bool { return r.Verdict.Stuck })
	switch {
	case v.Declined != nil:
		return v.Declined
	case all.active > 0:
		return problem(ReasonNotConverged, "%s to go: %s", words.Count(int64(all.active), "transition"), strings.Join(append(append(slices.Clone(all.running), all.waiting...), all.unasked...), ", "))
	case stays:
		return v.Elsewhere.problem()
	case v.Refusal != nil:
		return v.Refusal
	case v.NotPushed != nil:
		return v.NotPushed
	case v.Unknown != nil:
		return v.Unknown
	case len(v.Choice.Create) > 0:
		return problem(ReasonNotConverged, "has to move: %s", v.Choice.Create[0].Reason)
	case len(v.Choice.Later) > 0:
		return problem(ReasonNotConverged, "has to move: %s", v.Choice.Later[0].Reason)
	case stuck >= 0:
		return problem(ReasonCannotMove, "%s", v.Choice.Refused[stuck].Verdict.Message)
	}
	return v.Elsewhere.problem()
}

func (v *PolicyView) kstatus(c *conditions, missing *Problem) {
	switch {
	case v.Policy.DeletionTimestamp != nil:
		c.kstatus(nil, problem(ReasonDeleting, "the policy is being deleted"), "")
	case v.Declined != nil:
		c.kstatus(v.Declined, nil, "")
	case v.Refusal != nil && v.Refusal.Reason != ReasonBackendUnknown:
		c.kstatus(v.Refusal, nil, "")
	case missing != nil && (missing.Reason == ReasonCannotMove || missing.Reason == ReasonObjectsElsewhere):
		c.kstatus(missing, nil, "")
	case v.Degraded != nil:
		c.kstatus(nil, v.Degraded, "")
	default:
		c.kstatus(nil, missing, "everything is where the policy wants it")
	}
}

// String is the bands in words, coldest first.
func (r *Rules) String() string {
	parts := make([]string, len(r.bands))
	for i, b := range r.bands {
		parts[i] = fmt.Sprintf("%s when used %s", b.to, b.HeatRange)
	}
	return strings.Join(parts, ", ")
}

// SchemeStatus is the whole status of a scheme that so many policies have on their ladder.
func SchemeStatus(scheme *v1alpha1.RedundancyScheme, policies int, now time.Time) v1alpha1.RedundancySchemeStatus {
	status := v1alpha1.RedundancySchemeStatus{ObservedGeneration: scheme.Generation, Policies: int32(policies)}
	code, wrong := Code(scheme.Spec)
	var leaving *Problem
	if wrong == nil {
		status.Code, status.CanLose = code.String(), int32(code.M)
		status.Overhead = fmt.Sprintf("%.2fx", code.Overhead())
		if scheme.DeletionTimestamp != nil {
			leaving = problem(ReasonInUse, "deleted, and still on the ladder of %s", policiesNumber(policies))
		}
	}
	c := newConditions(schemeTypes, scheme.Generation)
	c.unless(v1alpha1.ConditionAccepted, wrong, ReasonAccepted, describe(code))
	c.kstatus(wrong, leaving, describe(code))
	status.Conditions = c.since(scheme.Status.Conditions, now)
	return status
}

func policiesNumber(n int) string {
	if n == 1 {
		return "1 policy"
	}
	return fmt.Sprintf("%d policies", n)
}

func describe(code stripe.Scheme) string {
	if code.K < 1 {
		return ""
	}
	return fmt.Sprintf("%s survives the loss of %s and stores %.2f bytes per byte", code, words.Count(int64(code.M), "node"), code.Overhead())
}
