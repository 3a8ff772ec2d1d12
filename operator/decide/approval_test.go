package decide

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// asking is a stage whose transition waits for approval, and has been looked at once.
func asking(t *testing.T) *stage {
	s := &stage{
		t: t, now: time.Unix(1000, 0), grant: Grant{Total: 100, Node: Unlimited, Domain: Unlimited}, policy: mediaPolicy("rep(3) rs(4,2) rs(12,2)"),
		transition: &v1alpha1.Transition{ObjectMeta: metav1.ObjectMeta{Name: "media-1", UID: "uid"}},
	}
	s.transition.Spec = v1alpha1.TransitionSpec{PolicyRef: "media", From: "rs(4,2)", To: "rs(12,2)", NeedsApproval: true}
	s.visit()
	if cost := s.transition.Status.Cost; cost == nil || cost.Groups != 312 || cost.Bytes != 1<<30 {
		t.Fatalf("it shows %+v", cost)
	}
	return s
}

func (s *stage) approve() {
	s.transition.Spec.Approved, s.transition.Spec.ApprovedBy = true, "ada"
}

func (s *stage) awaits() string {
	return meta.FindStatusCondition(s.transition.Status.Conditions, v1alpha1.ConditionAwaitingApproval).Message
}

func TestAnApprovalIsForWhatWasShown(t *testing.T) {
	s := asking(t)
	s.approve()
	d := s.visit()
	record := s.transition.Status.Approval
	if record == nil || record.By != "ada" || record.Groups != 312 || record.Bytes != 1<<30 || record.PlanHash != "h" {
		t.Fatalf("recorded is %+v", record)
	}
	if d.Action != ActionCreate || s.jobs != 1 {
		t.Errorf("approved, it does %q", d.Action)
	}
	if said := s.awaits(); said != "approved by ada: 312 groups, 1.0 GiB" {
		t.Errorf("it says %q", said)
	}
}

func TestAnApprovalDoesNotGrow(t *testing.T) {
	for _, c := range []struct {
		intent string
		change func(e *Estimate)
		asks   bool
	}{
		{"a little more", func(e *Estimate) { e.Groups, e.Bytes = 343, 1<<30+100<<20 }, false},
		{"more groups", func(e *Estimate) { e.Groups = 344 }, true},
		{"more bytes", func(e *Estimate) { e.Bytes = 2 << 30 }, true},
		{"another plan", func(e *Estimate) { e.PlanHash = "other" }, true},
		{"less", func(e *Estimate) { e.Groups, e.Bytes = 1, 1 }, false},
	} {
		s := asking(t)
		s.approve()
		s.estimate = c.change
		d := s.visit()
		if d.Unapprove != c.asks || (s.jobs == 0) != c.asks {
			t.Errorf("%s: asked again: %v, with %d jobs", c.intent, d.Unapprove, s.jobs)
		}
		if !c.asks {
			continue
		}
		s.visit()
		if said := s.awaits(); !strings.Contains(said, "approved was 312 groups, 1.0 GiB, and it is") || s.jobs != 0 {
			t.Errorf("%s: it says %q, with %d jobs", c.intent, said, s.jobs)
		}
		s.approve()
		s.visit()
		if record := s.transition.Status.Approval; s.jobs != 1 || record.Withdrawn || record.Groups != s.transition.Status.Cost.Groups {
			t.Errorf("%s: approved again: %+v, with %d jobs", c.intent, record, s.jobs)
		}
	}
}

// A job that finds more than was approved is paused until a person has seen that.
func TestAJobStaysWithinItsApproval(t *testing.T) {
	s := asking(t)
	s.approve()
	s.visit()
	s.job.GroupsTotal, s.job.BytesTotal = 1900, 100<<30
	if d := s.visit(); !d.Unapprove || s.job.State != JobPaused {
		t.Errorf("asked again: %v, the job is %s", d.Unapprove, s.job.State)
	}
	s.visit()
	if said := s.awaits(); !strings.Contains(said, "it is 1,900 groups, 100 GiB by now") {
		t.Errorf("it says %q", said)
	}
	s.approve()
	s.visit()
	s.visit()
	if s.job.State != JobRunning || s.transition.Status.Approval.Groups != 1900 {
		t.Errorf("approved again, the job is %s under %+v", s.job.State, s.transition.Status.Approval)
	}
}

// What was to start by itself does not when it has grown to what the policy leaves to people.
func TestWhatGrowsBeyondTheLimitIsAskedFor(t *testing.T) {
	s := asking(t)
	s.transition.Spec.NeedsApproval = false
	limit := resource.MustParse("10Gi")
	s.policy.Spec.Approval = &v1alpha1.Approval{Mode: v1alpha1.ApprovalManualAbove, AboveBytes: &limit}
	s.estimate = func(e *Estimate) { e.Bytes = 20 << 30 }
	if d := s.visit(); d.Status.Summary.State != "Cancelled" || s.jobs > 0 {
		t.Errorf("it is %s, with %d jobs", d.Status.Summary.State, s.jobs)
	}
}

// The limit on bytes counts what a move does to data: cooling sends nothing and gives copies up.
func TestTheLimitCountsDataTouched(t *testing.T) {
	limit := resource.MustParse("1Gi")
	consent := Consent{Approval: &v1alpha1.Approval{Mode: v1alpha1.ApprovalManualAbove, AboveBytes: &limit}}
	for _, c := range []struct {
		intent   string
		estimate Estimate
		needed   bool
	}{
		{"little of anything", Estimate{Bytes: 1 << 20, BytesSent: 1 << 20}, false},
		{"much is sent", Estimate{BytesSent: 2 << 30}, true},
		{"much is read and written", Estimate{BytesRead: 1 << 30, BytesWritten: 1 << 20}, true},
		{"much is in the groups", Estimate{Bytes: 2 << 30}, true},
		{"copies of much are given up", Estimate{StoredBefore: 6 << 30, StoredAfter: 3 << 30}, true},
	} {
		if needed, why := consent.Needed(c.estimate, Verdict{}); needed != c.needed {
			t.Errorf("%s: %v, %s", c.intent, needed, why)
		}
	}
}

func TestApproverIsWhoSetTheField(t *testing.T) {
	fields := func(text string) *metav1.FieldsV1 { return metav1.NewFieldsV1(text) }
	transition := &v1alpha1.Transition{}
	transition.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "restripe-operator", FieldsV1: fields(`{"f:spec":{"f:class":{}}}`)},
		{Manager: "kubectl-patch", FieldsV1: fields(`{"f:spec":{"f:approved":{}}}`)},
		{Manager: "restripe-cli", FieldsV1: fields(`{"f:spec":{"f:paused":{}}}`)},
	}
	if by := Approver(transition); by != "kubectl-patch" {
		t.Errorf("approved by %q", by)
	}
	if by := Approver(&v1alpha1.Transition{}); by != "" {
		t.Errorf("approved by %q", by)
	}
}
