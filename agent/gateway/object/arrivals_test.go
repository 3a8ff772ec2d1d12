package object

import (
	"math"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

// A steady rate is measured as it is, and forgotten when nothing comes any more.
func TestArrivalsAreMeasured(t *testing.T) {
	var a arrivals
	now := time.Unix(1000, 0)
	for _, perSecond := range []float64{20, 500, 5000} {
		var measured float64
		for range int(5 * perSecond) {
			now = now.Add(time.Duration(float64(time.Second) / perSecond))
			measured = a.note(kind{"c", "rs(3,2)"}, now)
		}
		// The arrival of now counts whole, so it is too much by a part of one of them.
		if most := perSecond + 1/lately.Seconds(); measured < perSecond*0.95 || measured > most*1.05 {
			t.Errorf("%.0f a second are measured as %.1f", perSecond, measured)
		}
	}
	if measured := a.note(kind{"c", "rs(3,2)"}, now.Add(10*time.Second)); math.Abs(measured-1/lately.Seconds()) > 1 {
		t.Errorf("%.1f a second after ten seconds of nothing", measured)
	}
	if measured := a.note(kind{"c", "rep(1)"}, now); measured != 1/lately.Seconds() {
		t.Errorf("another kind has the rate %.1f from the beginning", measured)
	}
	for i := range 3 * mostRates {
		a.note(kind{"c", string(rune(i))}, now)
	}
	if len(a.rates) > mostRates {
		t.Errorf("%d rates are remembered", len(a.rates))
	}
}

// How many are under way at once is remembered for a while after they have ended.
func TestArrivalsAtOnce(t *testing.T) {
	var a arrivals
	of, now := kind{"c", "rs(3,2)"}, time.Unix(1000, 0)
	begin := func(want int) {
		t.Helper()
		if _, atOnce := a.begin(of, now); atOnce != want {
			t.Errorf("%d at once, want %d", atOnce, want)
		}
	}
	for i := range 3 {
		begin(i + 1)
	}
	for range 3 {
		a.end(of)
	}
	begin(3)
	a.end(of)
	now = now.Add(lately + 1)
	begin(3) // of the time before
	a.end(of)
	now = now.Add(lately + 1)
	begin(1)
	now = now.Add(time.Hour)
	begin(2) // which has not ended
	for range 5 {
		a.end(of)
	}
	now = now.Add(time.Hour)
	begin(1)
}

// An object waits if a row fills within the delay of its class, if so many come at once, and not otherwise.
func TestWaitingIsWorthIt(t *testing.T) {
	ladder, err := stripe.ParseLadder("rs(4,2),rep(2)")
	if err != nil {
		t.Fatal(err)
	}
	class := api.Class{Ladder: ladder, PackDelay: 5 * time.Millisecond}
	for _, c := range []struct {
		mode      api.PackMode
		perSecond float64
		atOnce    int
		want      time.Duration
	}{
		{"", 5, 1, 0}, {"", 790, 4, 0}, {"", 810, 4, class.PackDelay}, {"", 1e5, 400, class.PackDelay},
		{"", 810, 3, 0}, {"", 1e5, 1, 0},
		{api.PackAuto, 790, 4, 0}, {api.PackAuto, 810, 4, class.PackDelay},
		{api.PackBatch, 5, 1, class.PackDelay}, {api.PackAtOnce, 1e5, 400, 0},
	} {
		class.PackMode = c.mode
		if got := wait(&class, c.perSecond, c.atOnce); got != c.want {
			t.Errorf("%q at %.0f a second, %d at once: %s, want %s", c.mode, c.perSecond, c.atOnce, got, c.want)
		}
	}
}

// A batch that waits goes on once it has all that were under way at once, unless it is to wait always.
func TestABatchThatHasAll(t *testing.T) {
	entries := map[string]entry{"a": {}, "b": {}, "c": {}}
	for _, c := range []struct {
		mode   api.PackMode
		wait   time.Duration
		atOnce int
		want   bool
	}{
		{"", time.Second, 3, true}, {api.PackAuto, time.Second, 2, true}, {"", time.Second, 4, false},
		{"", 0, 3, false}, {api.PackBatch, time.Second, 3, false},
	} {
		b := batch{key: batchKey{class: &api.Class{PackMode: c.mode}}, wait: c.wait, entries: entries}
		if got := b.hasAll(c.atOnce); got != c.want {
			t.Errorf("%q with %d at once, waiting %s: %t", c.mode, c.atOnce, c.wait, got)
		}
	}
}
