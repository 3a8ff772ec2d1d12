package decide

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

func TestPinsThatMakeNoSense(t *testing.T) {
	until := "2026-03-10T00:00:00Z"
	cases := []struct {
		intent string
		change func(*v1alpha1.RedundancyPolicySpec)
		says   string
	}{
		{"off the ladder", func(s *v1alpha1.RedundancyPolicySpec) { s.Pin = pinned(t, "rs(6,2)", until) }, "pin.scheme names rs(6,2), which is not on the ladder"},
		{"no scheme", func(s *v1alpha1.RedundancyPolicySpec) { s.Pin = pinned(t, "warm", until) }, "no RedundancyScheme is called"},
		{"no end", func(s *v1alpha1.RedundancyPolicySpec) { s.Pin = &v1alpha1.Pin{Scheme: "rep(3)"} }, "pin.until is missing"},
		{"no temperature", func(s *v1alpha1.RedundancyPolicySpec) { s.Pin, s.Temperature = pinned(t, "rep(3)", until), nil }, "set default instead"},
	}
	for _, c := range cases {
		policy := mediaPolicy("rep(3) rs(12,2)", "rs(12,2)<1")
		c.change(&policy.Spec)
		if _, wrong := Declare(policy, nil, nil); wrong == nil || !strings.Contains(wrong.Message, c.says) {
			t.Errorf("%s: %v, want %q", c.intent, wrong, c.says)
		}
	}
}

func TestWhenAPinCounts(t *testing.T) {
	policy := mediaPolicy("rep(3) rs(12,2)", "rs(12,2)<1")
	policy.Spec.Pin = pinned(t, "rs(12,2)", "2026-03-10T00:00:00Z")
	d := mustDeclare(t, policy)
	end := d.Pin.Until
	for _, c := range []struct {
		at       time.Time
		inForce  bool
		tooLong  bool
		expected string // of new objects
	}{
		{end.Add(-v1alpha1.LongestPin - time.Second), true, true, "rs(12,2)"},
		{end.Add(-v1alpha1.LongestPin), true, false, "rs(12,2)"},
		{end.Add(-time.Second), true, false, "rs(12,2)"},
		{end, false, false, "rep(3)"},
	} {
		at := d.At(c.at)
		if at.Pinned != c.inForce || (at.Rules == nil) != c.inForce || at.Class.Default.String() != c.expected {
			t.Errorf("at %s: pinned %v, rules %v, default %s", c.at, at.Pinned, at.Rules, at.Class.Default)
		}
		if wrong := d.Pin.TooLong(c.at); (wrong != nil) != c.tooLong {
			t.Errorf("at %s: %v", c.at, wrong)
		}
		if wrong := d.Pin.Ended(c.at); (wrong == nil) != c.inForce {
			t.Errorf("at %s: %v", c.at, wrong)
		}
	}
	if d.Pinned || d.Rules == nil || d.Class.Default.String() != "rep(3)" {
		t.Errorf("asking changed the declaration: %+v", d)
	}
}

func TestThePinOfAPolicyIsACondition(t *testing.T) {
	now := moment(t, "2026-03-03T12:00:00Z")
	policy := mediaPolicy("rep(3) rs(12,2)", "rs(12,2)<1")
	for _, c := range []struct {
		pin    *v1alpha1.Pin
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		{nil, metav1.ConditionFalse, ReasonNotPinned, "nothing is pinned"},
		{&v1alpha1.Pin{Scheme: "rep(3)", Until: metav1.NewTime(now.Add(time.Hour)), By: "ada", Reason: "the audit"}, metav1.ConditionTrue, ReasonPinned, "pinned to rep(3) until 2026-03-03 13:00 UTC by ada: the audit"},
		{&v1alpha1.Pin{Scheme: "rep(3)", Until: metav1.NewTime(now)}, metav1.ConditionFalse, ReasonPinExpired, "the pin to rep(3) ended at 2026-03-03 12:00 UTC and has no effect any more; take it out"},
	} {
		policy.Spec.Pin = c.pin
		status := PolicyStatus(PolicyView{Now: now, Policy: policy, Declaration: mustDeclare(t, policy).At(now)})
		found := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionPinned)
		if found == nil || found.Status != c.status || found.Reason != c.reason || found.Message != c.says {
			t.Errorf("pin %v: %+v", c.pin, found)
		}
	}
}
