package price

import (
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

func TestRegret(t *testing.T) {
	began := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	status := &v1alpha1.TemperatureStatus{
		CountedSince: metav1.NewTime(began), Candidate: "a", Done: "3221225472",
		Candidates: []v1alpha1.TemperatureCandidate{
			{Name: "a", Text: "by use", Cost: "2147483648"}, {Name: "always 0", Text: "everything on rep(3)", Cost: "9663676416"},
			{Name: "always 1", Text: "everything on rs(4,2)", Cost: "5368709120"},
		},
	}
	if r := RegretOf(status); r.Days != 0 || r.Fixed != nil || r.SavedPerMonth != 0 || len(r.Ways) != 3 {
		t.Errorf("before anything was compared: %+v", r)
	}
	status.LookedAt = &metav1.Time{Time: began.Add(10 * 24 * time.Hour)}
	r := RegretOf(status)
	if r.Days != 10 || r.Paid != 3 || r.Fixed == nil || r.Fixed.Text != "everything on rs(4,2)" || r.Fixed.Paid != 5 ||
		!r.Ways[0].Leads || r.Ways[1].Leads {
		t.Errorf("%+v", r)
	}
	if want := 2.0 / 10 * 365.25 / 12; math.Abs(r.SavedPerMonth-want) > 1e-9 {
		t.Errorf("%v are saved a month, want %v", r.SavedPerMonth, want)
	}
	status.Done = "unreadable"
	if r := RegretOf(status); r.Paid != 0 {
		t.Errorf("with a number that is none: %+v", r)
	}
}
