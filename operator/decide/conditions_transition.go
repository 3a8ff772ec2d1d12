package decide

import (
	"fmt"
	"slices"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
)

// transitionState is where a transition stands, for its conditions and the word in its summary.
type transitionState int

const (
	stateWaiting transitionState = iota
	stateRunning
	stateRetrying
	stateCancelling
	stateUnreachable
	stateDone
	stateCancelled
	stateFailed
)

// holding are the reasons for which something that could move is held back.
var holding = []string{
	ReasonPausedByUser, ReasonWindowClosed, ReasonWindowDenies, ReasonHeld, ReasonBudgetUsedUp, ReasonOverlap,
	ReasonWaitsForOriginal, ReasonWaitsForHold,
}

// conclude writes the conditions and the summary of a state and its cause.
func (d *TransitionDecision) conclude(v *TransitionView, state transitionState, why *Problem) {
	c := newConditions(movingTypes, v.Transition.Generation)
	d.declared(v, c)
	spec := &v.Transition.Spec
	switch {
	case spec.NeedsApproval && !spec.Approved && state < stateDone:
		c.yes(v1alpha1.ConditionAwaitingApproval, ReasonApprovalNeeded,
			sentences("a person has to approve: restripe approve "+v.Transition.Name, d.withdrawn(), d.planned()))
	case spec.NeedsApproval && spec.Approved:
		c.no(v1alpha1.ConditionAwaitingApproval, ReasonApproved, d.approvedText())
	default:
		c.no(v1alpha1.ConditionAwaitingApproval, ReasonNoApprovalNeeded, "starts without approval")
	}
	d.moving(v, c, state, why)
	d.concluded(v, c, state, why)
	d.Status.Conditions = c.since(v.Transition.Status.Conditions, v.Now)
	if state != stateUnreachable || d.Status.Summary.State == "" {
		d.Status.Summary.State = stateWord(v, state, why)
	}
}

func (d *TransitionDecision) declared(v *TransitionView, c *conditions) {
	c.unless(v1alpha1.ConditionAccepted, v.Unresolved, ReasonAccepted, fmt.Sprintf("%s to %s", d.Status.From, d.Status.To))
	c.unless(v1alpha1.ConditionFeasible, v.Infeasible, ReasonFeasible, "the backend can carry it out")
	if d.Status.Cost == nil {
		c.no(v1alpha1.ConditionPlanned, ReasonNotPlanned, "the gateways have not said yet what it costs")
		return
	}
	c.yes(v1alpha1.ConditionPlanned, ReasonPlanned, d.planned())
}

// planned is the cost in words.
func (d *TransitionDecision) planned() string {
	cost := d.Status.Cost
	if cost == nil {
		return ""
	}
	text := fmt.Sprintf("%s: sends %s, reads %s, writes %s", words.Count(cost.Groups, "group"), words.Bytes(cost.BytesSent), words.Bytes(cost.BytesRead), words.Bytes(cost.BytesWritten))
	if cost.ReencodeBytesSent > cost.BytesSent {
		text += fmt.Sprintf("; encoding anew would send %s", words.Bytes(cost.ReencodeBytesSent))
	}
	return text
}

// approvedText says who approved what.
func (d *TransitionDecision) approvedText() string {
	record := d.Status.Approval
	switch {
	case record == nil:
		return "approved"
	case record.By == "":
		return fmt.Sprintf("approved: %s, %s", words.Count(record.Groups, "group"), words.Bytes(record.Bytes))
	}
	return fmt.Sprintf("approved by %s: %s, %s", record.By, words.Count(record.Groups, "group"), words.Bytes(record.Bytes))
}

func (d *TransitionDecision) moving(v *TransitionView, c *conditions, state transitionState, why *Problem) {
	switch state {
	case stateRunning:
		text := d.progress()
		if v.Job != nil && v.Job.Error != "" { // why it does not go on, as the gateways say
			text = sentences(text, v.Job.Error)
		}
		c.yes(v1alpha1.ConditionProgressing, ReasonMoving, text)
	case stateDone:
		c.no(v1alpha1.ConditionProgressing, ReasonDone, d.progress())
	case stateUnreachable:
		c.unknown(v1alpha1.ConditionProgressing, why.Reason, why.Message)
	default:
		c.no(v1alpha1.ConditionProgressing, why.Reason, why.Message)
	}
	held := why
	if state != stateWaiting || why == nil || !slices.Contains(holding, why.Reason) {
		held = nil
	}
	c.when(v1alpha1.ConditionPaused, held, ReasonNotPaused, "nothing holds it back")
	troubled := why
	if state == stateRetrying {
		troubled = problem(ReasonRetrying, "%s", d.failure)
	}
	if !slices.Contains([]transitionState{stateRetrying, stateUnreachable, stateFailed}, state) && (state != stateRunning || why == nil) {
		troubled = nil
	}
	c.when(v1alpha1.ConditionDegraded, troubled, ReasonHealthy, "nothing failed")
}

func (d *TransitionDecision) concluded(v *TransitionView, c *conditions, state transitionState, why *Problem) {
	switch state {
	case stateDone:
		c.yes(v1alpha1.ConditionConverged, ReasonDone, d.progress())
		c.kstatus(nil, nil, d.progress())
	case stateCancelled, stateFailed:
		c.no(v1alpha1.ConditionConverged, why.Reason, why.Message)
		c.kstatus(why, nil, "")
	default:
		if why == nil {
			why = problem(ReasonMoving, "%s", d.progress())
		}
		c.no(v1alpha1.ConditionConverged, why.Reason, why.Message)
		c.kstatus(v.Unresolved, why, "")
	}
}

// progress is how far it is, in words.
func (d *TransitionDecision) progress() string {
	p := d.Status.Progress
	if p == nil {
		return "starting"
	}
	if p.GroupsTotal == 0 && d.Status.Summary.ETA == estimating {
		return "begun; estimating how much there is to move"
	}
	text := fmt.Sprintf("%d of %s, %s of %s, %s sent (%s predicted)", p.GroupsDone, words.Count(p.GroupsTotal, "group"), words.Bytes(p.BytesDone), words.Bytes(p.BytesTotal),
		words.Bytes(p.BytesSentMeasured), words.Bytes(p.BytesSentPredicted))
	switch d.Status.Summary.ETA {
	case "":
	case estimating:
		text += ", estimating the time left"
	default:
		text += ", about " + d.Status.Summary.ETA + " left"
	}
	return text
}

func stateWord(v *TransitionView, state transitionState, why *Problem) string {
	switch state {
	case stateRunning, stateCancelling:
		return "Running"
	case stateDone:
		return "Done"
	case stateCancelled:
		return "Cancelled"
	case stateFailed:
		return "Failed"
	}
	switch {
	case why != nil && why.Reason == ReasonApprovalNeeded:
		return "Unapproved"
	case why != nil && why.Reason == ReasonPausedByUser, v.started() && state == stateWaiting:
		return "Paused"
	}
	return "Waiting"
}
