package catalog_test

import (
	"slices"
	"testing"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/mem"
)

// A later reading contains each earlier one, also across starts; what was read before the catalog went back is not contained in
// what it is then, nor are two copies that went on in each other.
func TestTimelinesContainWhatWasBefore(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		first, err := w.a.Timeline(w.ctx, nil)
		must(t, err)
		must(t, w.put(t, w.a, "k").commit(w))
		must(t, w.put(t, w.b, "k").commit(w))
		second, err := w.b.Timeline(w.ctx, nil)
		must(t, err)
		if !second.Contains(first) || first.Contains(second) {
			t.Errorf("%v and %v: only the later contains the other", first, second)
		}
		later := w.open(t, w.engine, "a", "2")
		third, err := later.Timeline(w.ctx, nil)
		must(t, err)
		if third.Contains(second) {
			t.Errorf("%v contains %v although nothing of the earlier start was asked for", third, second)
		}
		whole, err := later.Timeline(w.ctx, []string{w.a.Start(), "a/unknown", later.Start()})
		must(t, err)
		if !whole.Contains(second) || len(whole.Ended) != 1 || whole.Ended[w.a.Start()] == nil {
			t.Errorf("%v, want the counts of %s beside the last starts, and all of %v", whole, w.a.Start(), second)
		}
		_, err = w.a.Timeline(w.ctx, nil)
		is(t, err, catalog.ErrFenced)
	})
}

func TestATimelineOfACatalogThatWentBack(t *testing.T) {
	engine := mem.New()
	w := newWorld(t, engine)
	must(t, w.put(t, w.a, "k").commit(w))
	copied := engine.Clone()
	must(t, w.put(t, w.a, "k").commit(w))
	lost, err := w.a.Timeline(w.ctx, nil)
	must(t, err)
	w.engine.Engine = copied
	read, err := w.b.Timeline(w.ctx, nil)
	must(t, err)
	if read.Contains(lost) {
		t.Errorf("%v contains %v, which the catalog lost", read, lost)
	}
	_, err = w.a.Timeline(w.ctx, nil)
	is(t, err, catalog.ErrBehind)
	select {
	case <-w.a.Over():
	default:
		t.Error("the start that lost updates is not over")
	}
}

// A claim ends all starts, and disowns them and those that agents told of.
func TestAClaimDisownsAllStarts(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		must(t, w.a.Claim(w.ctx, []string{"z/1", "y/1"}))
		for _, over := range []*catalog.Catalog{w.a, w.b} {
			_, err := over.Timeline(w.ctx, nil)
			is(t, err, catalog.ErrClaimed)
		}
		next := w.open(t, w.engine, "a", "2")
		read, err := next.Timeline(w.ctx, nil)
		must(t, err)
		want := []string{w.a.Start(), w.b.Start(), "y/1", "z/1"}
		slices.Sort(want)
		if !slices.Equal(read.Disowned, want) || len(read.Sessions) != 1 {
			t.Errorf("%v, want %v disowned and one start", read, want)
		}
		must(t, w.put(t, next, "k").commit(w))
		must(t, next.Claim(w.ctx, nil))
		again, err := w.open(t, w.engine, "a", "3").Timeline(w.ctx, nil)
		must(t, err)
		if !slices.Contains(again.Disowned, "z/1") || !slices.Contains(again.Disowned, next.Start()) {
			t.Errorf("%v disowned after another claim", again.Disowned)
		}
	})
}
