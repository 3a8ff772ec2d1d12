package decide

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
)

// approvalSlackPercent is by how much of what was approved more may be moved: objects come and go while a person looks.
const approvalSlackPercent = 10

// extent is how much a transition moves.
type extent struct {
	plan          string
	groups, bytes int64
}

func (e extent) String() string {
	return fmt.Sprintf("%s, %s", words.Count(e.groups, "group"), words.Bytes(e.bytes))
}

// exceeds reports whether an approval of so much does not cover e.
func (e extent) exceeds(approved extent) bool {
	more := func(is, was int64) bool {
		return is > was+was/100*approvalSlackPercent+was%100*approvalSlackPercent/100
	}
	other := e.plan != "" && approved.plan != "" && e.plan != approved.plan
	return other || more(e.groups, approved.groups) || more(e.bytes, approved.bytes)
}

// shown is how much a status says is moved.
func shown(status *v1alpha1.TransitionStatus) extent {
	e := extent{plan: status.PlanHash}
	if status.Cost != nil {
		e.groups, e.bytes = status.Cost.Groups, status.Cost.Bytes
	}
	return e
}

// found is how much is moved by what was found out in this look; known is false if nothing was. What a job has found counts
// more than what was estimated before.
func (v *TransitionView) found() (e extent, known bool) {
	switch {
	case v.Job != nil && v.Job.GroupsTotal > 0:
		return extent{groups: v.Job.GroupsTotal, bytes: v.Job.BytesTotal}, true
	case v.Job == nil && v.Estimate != nil:
		return extent{plan: v.Estimate.PlanHash, groups: v.Estimate.Groups, bytes: v.Estimate.Bytes}, true
	}
	return extent{}, false
}

// approve takes note of what a person approves, which is what the status says before this look, and withdraws an approval
// that covers less than what would be moved.
func (d *TransitionDecision) approve(v *TransitionView) {
	spec, record := &v.Transition.Spec, d.Status.Approval
	if !spec.NeedsApproval {
		return
	}
	if !spec.Approved {
		if record != nil {
			record.Withdrawn = true
		}
		if now, known := v.found(); known && v.Job != nil && d.Status.Cost != nil {
			d.Status.Cost.Groups, d.Status.Cost.Bytes = now.groups, now.bytes // which is what is approved next
		}
		return
	}
	if record == nil || record.Withdrawn {
		what := shown(&v.Transition.Status)
		if v.Transition.Status.Cost == nil { // approved before anything was shown
			what = shown(&d.Status)
		}
		if d.Status.Cost == nil {
			return
		}
		if job, known := v.found(); known && v.Job != nil && record == nil { // of an operator that kept no record
			what.groups, what.bytes = max(what.groups, job.groups), max(what.bytes, job.bytes)
		}
		record = &v1alpha1.TransitionApproval{
			By: cmp.Or(spec.ApprovedBy, v.Approver), At: metav1.Time{Time: v.Now}, PlanHash: what.plan, Groups: what.groups, Bytes: what.bytes,
		}
		d.Status.Approval = record
	}
	approved := extent{record.PlanHash, record.Groups, record.Bytes}
	if now, known := v.found(); known && now.exceeds(approved) {
		d.Unapprove, record.Withdrawn = true, true
		d.Status.Cost.Groups, d.Status.Cost.Bytes = now.groups, now.bytes
	}
}

// withdrawn says why a person has to approve again; empty: nobody has approved before.
func (d *TransitionDecision) withdrawn() string {
	record := d.Status.Approval
	if record == nil || !record.Withdrawn {
		return ""
	}
	approved, now := extent{record.PlanHash, record.Groups, record.Bytes}, shown(&d.Status)
	if !now.exceeds(approved) {
		return ""
	}
	return fmt.Sprintf("approved was %s, and it is %s by now", approved, now)
}

// unasked is why a transition that was made without asking must not start: by now its policy leaves such to people.
func (v *TransitionView) unasked() *Problem {
	if v.Estimate == nil || v.started() || !v.mayNeedApproval() {
		return nil
	}
	if needed, why := ConsentOf(v.Policy, v.Declaration).Needed(*v.Estimate, v.Verdict); needed {
		return problem(ReasonSuperseded, "it was made to start by itself, and needs approval by now: %s; the policy makes another", why)
	}
	return nil
}

// mayNeedApproval reports whether it depends on the estimate if the policy asks a person.
func (v *TransitionView) mayNeedApproval() bool {
	return !v.Transition.Spec.NeedsApproval && v.Transition.Spec.RollbackOf == "" && v.Policy != nil && v.Policy.Spec.Approval != nil &&
		v.Policy.Spec.Approval.Mode == v1alpha1.ApprovalManualAbove
}

// estimates reports whether what the transition costs is to be asked: before anything is shown, while a person is asked, so
// that what is shown is so, and before it starts, where that depends on it.
func (v *TransitionView) estimates(want intent) bool {
	spec := &v.Transition.Spec
	switch {
	case v.Job != nil || v.started() || v.Estimate != nil || v.Unresolved != nil || v.Infeasible != nil:
		return false
	case v.Transition.Status.Cost == nil, spec.NeedsApproval && !spec.Approved:
		return true
	}
	return want == intentRun && (spec.NeedsApproval || v.mayNeedApproval())
}

// Touched is how much data a move touches: what its groups hold, what is read, sent and written, or what is given up of what is
// stored, whichever is most.
func (e *Estimate) Touched() int64 {
	return max(e.Bytes, e.BytesRead+e.BytesSent+e.BytesWritten, e.StoredBefore-e.StoredAfter)
}

// Approver returns who set spec.approved of a transition, as the API server knows it: by which program.
func Approver(t *v1alpha1.Transition) string {
	for _, entry := range slices.Backward(t.ManagedFields) {
		var fields struct {
			Spec struct {
				Approved json.RawMessage `json:"f:approved"`
			} `json:"f:spec"`
		}
		if entry.FieldsV1 != nil && json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) == nil && fields.Spec.Approved != nil {
			return entry.Manager
		}
	}
	return ""
}
