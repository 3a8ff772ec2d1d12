package console

import (
	"fmt"
	"testing"
	"time"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
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
		return &consolev1.HistorySample{At: stamp(began.Add(time.Duration(minute) * time.Minute)), Bytes: bytes, StoredBytes: 2 * bytes, SavedBytes: bytes, Cost: float64(bytes), HottestCost: 1.5 * float64(bytes)}
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
