package decide

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

func cold(groups, bytes int64, from stripe.Scheme) Candidate {
	return Candidate{
		Move: Move{
			Selection: Selection{Backend: "demo", Class: "media", From: from, Heat: HeatRange{Below: 0.25}}, To: stripe.RS(12, 2),
			Settled: 6 * time.Hour, Groups: groups, Bytes: bytes, Reason: "cold",
		},
		Estimate: Estimate{Groups: groups, Bytes: bytes, BytesSent: bytes},
	}
}

func TestSelect(t *testing.T) {
	moves := []Candidate{cold(1, 1<<20, stripe.Replicas(3)), cold(2, 1<<30, stripe.RS(4, 2)), cold(3, 1<<40, stripe.RS(6, 2))}
	dear := func(move Move, estimate Estimate) Verdict {
		return Verdict{Refused: move.Bytes > 1<<35, Message: "pays back in 13.7 months, limit 6", Price: float64(estimate.BytesSent) / (1 << 30)}
	}
	manual := func(mode v1alpha1.ApprovalMode, bytes, cost string) *v1alpha1.Approval {
		approval := &v1alpha1.Approval{Mode: mode}
		if bytes != "" {
			approval.AboveBytes = quantity(bytes)
		}
		if cost != "" {
			approval.AboveCost = quantity(cost)
		}
		return approval
	}
	for _, c := range []struct {
		intent              string
		judge               Judge
		approval            *v1alpha1.Approval
		concurrency, active int
		want                string // groups: created, ? with approval, - refused, later
	}{
		{"all at once", nil, nil, 4, 0, "1 2 3"},
		{"one at a time", nil, nil, 1, 0, "1 later 2 later 3"},
		{"one runs already", nil, nil, 2, 1, "1 later 2 later 3"},
		{"what does not pay is left out", dear, nil, 4, 0, "1 2 -3"},
		{"auto", nil, manual(v1alpha1.ApprovalAuto, "", ""), 4, 0, "1 2 3"},
		{"manual: all wait, and take no turn", nil, manual(v1alpha1.ApprovalManual, "", ""), 1, 1, "1? 2? 3?"},
		{"manual above bytes", nil, manual(v1alpha1.ApprovalManualAbove, "1Gi", ""), 4, 0, "1 2 3?"},
		{"manual above cost", dear, manual(v1alpha1.ApprovalManualAbove, "", "500m"), 4, 0, "1 2? -3"},
	} {
		choice := Select(moves, c.judge, Consent{Approval: c.approval}, c.concurrency, c.active)
		var words []string
		for _, s := range choice.Create {
			word := fmt.Sprint(s.Groups)
			if s.NeedsApproval {
				word += "?"
				if s.ApprovalWhy == "" {
					t.Errorf("%s: no reason for the approval of %s", c.intent, word)
				}
			}
			words = append(words, word)
		}
		for _, s := range choice.Later {
			words = append(words, fmt.Sprintf("later %d", s.Groups))
		}
		for _, s := range choice.Refused {
			words = append(words, fmt.Sprintf("-%d", s.Move.Groups))
		}
		if got := strings.Join(words, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.intent, got, c.want)
		}
	}
}

func TestWhatCannotMoveIsNotTriedAgainAndAgain(t *testing.T) {
	gone, stuck := cold(1, 1, stripe.RS(4, 2)), cold(1, 1, stripe.RS(6, 2))
	gone.Estimate.Groups, stuck.Estimate.Groups, stuck.Estimate.GroupsOffLadder = 0, 0, 7
	choice := Select([]Candidate{gone, stuck}, nil, Consent{}, 1, 0)
	if len(choice.Create) != 0 || len(choice.Refused) != 2 || choice.Refused[0].Verdict.Stuck || !choice.Refused[1].Verdict.Stuck {
		t.Errorf("%+v", choice)
	}
}

func TestNewTransition(t *testing.T) {
	policy := mediaPolicy("rep(3) rs(4,2) rs(12,2)")
	selected := Selected{Candidate: cold(312, 1<<30, stripe.RS(4, 2)), NeedsApproval: true}
	selected.Reason = strings.Repeat("x", 600)
	selected.Heat.AtLeast = math.Ldexp(1, -6)
	made := NewTransition(policy, &selected, []string{"media-rs12-2-6", "media-rs4-2-9", "mediathek-rs4-2-40", "media-by-hand"})
	if made.Name != "media-rs12-2-10" || made.Spec.From != "rs(4,2)" || made.Spec.To != "rs(12,2)" || !made.Spec.NeedsApproval || len(made.Spec.Reason) != longestReason {
		t.Errorf("%+v", made)
	}
	if heat := made.Spec.Heat; heat.AtLeast.String() != "15625u" || heat.Below.String() != "250m" || heat.Settled.Duration != 6*time.Hour {
		t.Errorf("%s to %s, settled %s", heat.AtLeast, heat.Below, heat.Settled.Duration)
	}
	selection, wrong := SelectionOf(&made.Spec, nil)
	if wrong != nil || selection != selected.Selection {
		t.Errorf("selects %+v, want %+v; %v", selection, selected.Selection, wrong)
	}
	selected.Heat, selected.Settled = Everything(), 0
	if made = NewTransition(policy, &selected, nil); made.Spec.Heat != nil || made.Name != "media-rs12-2-1" {
		t.Errorf("%+v", made)
	}
}

func TestHeatQuantitiesAreExact(t *testing.T) {
	for exponent := -6; exponent <= 20; exponent++ {
		edge := math.Ldexp(1, exponent)
		if got := heatQuantity(edge).AsApproximateFloat64(); got != edge {
			t.Errorf("%g became %g", edge, got)
		}
	}
}

func TestReverse(t *testing.T) {
	selected := Selected{Candidate: cold(312, 1<<30, stripe.RS(4, 2))}
	original := NewTransition(mediaPolicy("rs(4,2) rs(12,2)"), &selected, nil)
	back := Reverse(original, "taken back")
	if back.Spec.From != "rs(12,2)" || back.Spec.To != "rs(4,2)" || back.Spec.RollbackOf != original.Name || back.Name == original.Name ||
		back.Spec.Heat.Settled != nil || back.Spec.Heat.Below.String() != "250m" || back.Spec.NeedsApproval {
		t.Errorf("%+v", back.Spec)
	}
}

func TestSurplus(t *testing.T) {
	policy := mediaPolicy("rs(4,2)")
	policy.Spec.HistoryLimit = number[int32](1)
	ended := func(name, of string, at int64) v1alpha1.Transition {
		return v1alpha1.Transition{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TransitionSpec{PolicyRef: of},
			Status: v1alpha1.TransitionStatus{CompletionTime: &metav1.Time{Time: time.Unix(at, 0)}}}
	}
	running := ended("running", "media", 0)
	running.Status.CompletionTime = nil
	all := []v1alpha1.Transition{ended("c", "media", 3), running, ended("a", "media", 1), ended("other", "logs", 0), ended("b", "media", 2)}
	if got := strings.Join(Surplus(policy, all), " "); got != "a b" {
		t.Errorf("%s, want a b", got)
	}
	policy.Spec.HistoryLimit = nil
	if got := Surplus(policy, all); len(got) != 0 {
		t.Errorf("%v within the default limit", got)
	}
}

func TestOverlapping(t *testing.T) {
	of := func(name string, created int64, from v1alpha1.SchemeName, below string) v1alpha1.Transition {
		transition := v1alpha1.Transition{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(created, 0)},
			Spec: v1alpha1.TransitionSpec{BackendRef: "demo", Class: "media", From: from, To: "rs(12,2)"}}
		if below != "" {
			transition.Spec.Heat = &v1alpha1.HeatBounds{Below: quantity(below)}
		}
		return transition
	}
	self := of("self", 10, "rs(4,2)", "1")
	self.Spec.Heat.AtLeast = quantity("500m")
	ended, unapproved := of("ended", 1, "rs(4,2)", ""), of("unapproved", 1, "rs(4,2)", "")
	ended.Status.CompletionTime, unapproved.Spec.NeedsApproval = &metav1.Time{}, true
	elsewhere := of("elsewhere", 1, "rs(4,2)", "")
	elsewhere.Spec.BackendRef = "other"
	began := of("younger but runs", 20, "rs(4,2)", "")
	began.Status.StartTime = &metav1.Time{}
	for _, c := range []struct {
		other v1alpha1.Transition
		want  string
	}{
		{of("older", 1, "rs(4,2)", ""), "older"}, {of("younger", 20, "rs(4,2)", ""), ""}, {of("another rung", 1, "rep(3)", ""), ""},
		{of("another range", 1, "rs(4,2)", "0.5"), ""}, {of("part of the range", 1, "rs(4,2)", "0.6"), "part of the range"},
		{of("as old, lesser name", 10, "rs(4,2)", ""), "as old, lesser name"}, {of("zz as old", 10, "rs(4,2)", ""), ""},
		{of("by name", 1, "warm", ""), "by name"}, {of("unknown", 1, "what", ""), ""}, {ended, ""}, {unapproved, ""}, {elsewhere, ""}, {self, ""},
		{began, "younger but runs"},
	} {
		if got := Overlapping(&self, []v1alpha1.Transition{of("z", 30, "rs(4,2)", ""), c.other}, Schemes{"warm": stripe.RS(4, 2)}); got != c.want {
			t.Errorf("beside %s: %q, want %q", c.other.Name, got, c.want)
		}
	}
}

// What moves because another ladder was chosen is shown to a person first, whatever the policy leaves to itself.
func TestAnotherLadderNeedsApproval(t *testing.T) {
	policy := mediaPolicy("rep(3) rs(4,2)")
	declaration := mustDeclare(t, policy)
	for _, c := range []struct {
		choice *v1alpha1.LadderChoice
		needed bool
	}{{nil, false}, {&v1alpha1.LadderChoice{}, false}, {&v1alpha1.LadderChoice{Replaces: true}, true}} {
		declaration.Choice = c.choice
		if needed, why := ConsentOf(policy, declaration).Needed(Estimate{Groups: 1}, Verdict{}); needed != c.needed {
			t.Errorf("after the choice %+v approval is needed: %v, %s", c.choice, needed, why)
		}
	}
	v := PolicyView{Now: time.Unix(1000, 0), Policy: policy, Declaration: declaration, Permission: Permission{Start: true, Run: true}}
	v.Choice.Create = []Selected{{Candidate: cold(1, 1, stripe.RS(4, 2))}}
	if status := PolicyStatus(v); !status.LadderChoice.Replaces {
		t.Error("approval is no longer needed while something has to move")
	}
	v.Choice = Choice{}
	if status := PolicyStatus(v); status.LadderChoice.Replaces {
		t.Error("approval is needed after everything has moved")
	}
}
