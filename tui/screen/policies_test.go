package screen

import (
	"testing"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
)

// A policy is said to be what the web says of it, and why it is not ready where there is no word for that.
func TestStatesOfPolicies(t *testing.T) {
	l := newLook(true, true)
	condition := func(kind, status, reason string) *consolev1.Condition {
		return &consolev1.Condition{Type: kind, Status: status, Reason: reason}
	}
	unready := condition("Ready", "False", "NotConverged")
	for want, one := range map[string]*consolev1.Policy{
		"~ new":               {},
		"+ ready":             {Conditions: []*consolev1.Condition{condition("Ready", "True", "Converged")}},
		"> moving":            {Conditions: []*consolev1.Condition{unready, condition("Progressing", "True", "Moving")}},
		"~ to approve":        {Conditions: []*consolev1.Condition{unready, condition("AwaitingApproval", "True", "ApprovalNeeded")}},
		"= paused":            {Conditions: []*consolev1.Condition{unready, condition("Paused", "True", "Window")}},
		"~ converging":        {Conditions: []*consolev1.Condition{unready, condition("Progressing", "False", "NotMoving")}},
		"! stalled":           {Conditions: []*consolev1.Condition{unready, condition("Stalled", "True", "InvalidLadder")}},
		"! RedundancyMissing": {Conditions: []*consolev1.Condition{condition("Ready", "False", "RedundancyMissing")}},
		"= held":              {StopPolicy: "Hold", Conditions: []*consolev1.Condition{unready}},
		"~ deleting":          {Deleting: true, Conditions: []*consolev1.Condition{unready}},
	} {
		if got := policyState(&l, one); got != want {
			t.Errorf("%q, want %q, of %v", got, want, one)
		}
	}
}
