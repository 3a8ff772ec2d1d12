package catalog_test

import (
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// A clock that was far ahead for a while keeps nothing for longer than one that was right: neither what was settled in that
// time, nor what comes after it in the order of records, nor the dead blocks of that time.
func TestAClockThatWasAheadKeepsNothingForLonger(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		aborted := func(count int) {
			t.Helper()
			for range count {
				attempt, err := w.a.Begin(w.ctx, catalog.KindPut, w.now.Add(time.Minute), func(stamp block.Stamp) []catalog.BlockSet {
					return []catalog.BlockSet{{Group: block.GroupID{Stamp: stamp}, Slots: []int{0}, Nodes: home[:1]}}
				})
				if err != nil {
					t.Fatal(err)
				}
				if err := attempt.Abort(w.ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		const ahead, after = 600, 5 // several pages, and some
		w.now = w.now.Add(1000 * time.Hour)
		aborted(ahead)
		w.now = w.now.Add(-1000 * time.Hour)
		aborted(after)

		expire := func(want int) {
			t.Helper()
			if result, err := w.b.Expire(w.ctx, w.now, 24*time.Hour); err != nil || result.Forgotten != want {
				t.Errorf("%+v, %v; want %d forgotten", result, err, want)
			}
		}
		expire(0)
		w.now = w.now.Add(time.Hour)
		if graves, err := w.b.Graves(w.ctx, w.now, "", 2*ahead); err != nil || len(graves) != ahead+after {
			t.Errorf("%d dead blocks are due, %v; want %d", len(graves), err, ahead+after)
		}
		w.now = w.now.Add(22 * time.Hour)
		expire(0)
		w.now = w.now.Add(time.Hour + time.Minute)
		expire(ahead + after)
	})
}
