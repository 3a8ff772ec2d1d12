package console

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/agent/gateway/api"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/console/contract"
	"github.com/restripe/restripe/operator/gateways"
)

// TestAnOverviewHasTheLargestClasses: of many classes those with the most stored bytes, in their order.
func TestAnOverviewHasTheLargestClasses(t *testing.T) {
	var all []*consolev1.ClassOverview
	for i := range 1000 {
		all = append(all, &consolev1.ClassOverview{Class: fmt.Sprint(i), StoredBytes: int64(i * 7919 % 1000)})
	}
	shown := largest(all)
	if len(shown) != classesShown {
		t.Fatalf("%d classes", len(shown))
	}
	place := -1
	for _, one := range shown {
		var at int
		if _, err := fmt.Sscan(one.Class, &at); err != nil || at <= place || one.StoredBytes < 1000-classesShown {
			t.Errorf("class %s with %d bytes after %d: %v", one.Class, one.StoredBytes, place, err)
		}
		place = at
	}
	if few := largest(all[:3]); len(few) != 3 {
		t.Errorf("%d of 3 classes", len(few))
	}
	for _, one := range all {
		one.StoredBytes = 5
	}
	if equal := largest(all); len(equal) != classesShown {
		t.Errorf("%d classes of the same size", len(equal))
	}
	all[999].StoredBytes = 6
	if most := largest(all); len(most) != classesShown || most[classesShown-1] != all[999] {
		t.Errorf("the largest class, the last of many of the same size, is not among %d", len(most))
	}
}

// TestClassesAreAddedUp: each class counts with its last sample, at no more moments than asked for.
func TestClassesAreAddedUp(t *testing.T) {
	began := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	sample := func(minute int, bytes int64) *consolev1.HistorySample {
		return &consolev1.HistorySample{At: contract.Time(began.Add(time.Duration(minute) * time.Minute)), Bytes: bytes, StoredBytes: 2 * bytes, SavedBytes: bytes, Cost: float64(bytes), HottestCost: 1.5 * float64(bytes)}
	}
	classes := []*consolev1.ClassHistory{{Samples: []*consolev1.HistorySample{sample(0, 1), sample(10, 5)}}, {Samples: []*consolev1.HistorySample{sample(5, 10), sample(15, 20)}}}
	var got []string
	for _, one := range addedUp(classes, 100) {
		got = append(got, fmt.Sprintf("%s %d %d %d %g %g", one.At.AsTime().Format("15:04"), one.Bytes, one.StoredBytes, one.SavedBytes, one.Cost, one.HottestCost))
	}
	if want := "[00:00 1 2 1 1 1.5 00:05 11 22 11 11 16.5 00:10 15 30 15 15 22.5 00:15 25 50 25 25 37.5]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	if few := addedUp(classes, 2); len(few) > 2 || few[len(few)-1].Bytes != 25 {
		t.Errorf("at two moments: %v", few)
	}
	if none := addedUp(nil, 2); none != nil {
		t.Errorf("of nothing: %v", none)
	}
}

// What a policy says of its rungs is what heat and overview say at the same moment, though its status is of a while ago.
func TestRungsOfAPolicyAreThoseOfItsHeat(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	seen := &seenBackend{name: "local", observer: &gateways.Observer{}}
	s := &policies{sources: &sources{
		now:      func() time.Time { return now },
		backends: &seenBackends{byName: map[string]*seenBackend{"local": seen}},
	}}
	policy := &v1alpha1.RedundancyPolicy{ObjectMeta: metav1.ObjectMeta{Name: "photos"}}
	policy.Spec.BackendRef = "local"
	policy.Status.Rungs = []v1alpha1.Rung{{Scheme: "rep(3)", Groups: 9, Bytes: 900}}
	if rungs := s.view(policy).Rungs; len(rungs) != 1 || rungs[0].Bytes != 900 {
		t.Errorf("nothing is known of the heat, and the rungs are %v", rungs)
	}
	report := api.HeatReport{Classes: []api.ClassHeat{{Class: "photos", Bytes: 500, Rungs: []api.RungHeat{
		{Scheme: "rep(3)", Groups: 1, Bytes: 100, StoredBytes: 300}, {Scheme: "rs(4,2)", Groups: 4, Bytes: 400, StoredBytes: 600},
	}}}}
	seen.observer.Heat.Set(now, report, nil)
	overview := overviewOf(seen, &report.Classes[0], policy).view
	rungs := s.view(policy).Rungs
	if len(rungs) != len(overview.Rungs) {
		t.Fatalf("%v, and the overview has %v", rungs, overview.Rungs)
	}
	for i, rung := range rungs {
		also := overview.Rungs[i]
		if rung.Scheme != also.Scheme || rung.Groups != also.Groups || rung.Bytes != also.Bytes || rung.StoredBytes != also.StoredBytes {
			t.Errorf("%v, and the overview has %v", rung, also)
		}
	}
}
