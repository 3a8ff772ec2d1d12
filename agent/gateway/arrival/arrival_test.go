package arrival

import (
	"math"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

// A steady rate is measured as it is, and forgotten when nothing comes any more.
func TestArrivalsAreMeasured(t *testing.T) {
	var a Rates
	now := time.Unix(1000, 0)
	for _, perSecond := range []float64{20, 500, 5000} {
		var measured float64
		for range int(5 * perSecond) {
			now = now.Add(time.Duration(float64(time.Second) / perSecond))
			measured = a.Note(Kind{"c", "rs(3,2)"}, now)
		}
		// The arrival of now counts whole, so it is too much by a part of one of them.
		if most := perSecond + 1/Lately.Seconds(); measured < perSecond*0.95 || measured > most*1.05 {
			t.Errorf("%.0f a second are measured as %.1f", perSecond, measured)
		}
	}
	if measured := a.Note(Kind{"c", "rs(3,2)"}, now.Add(10*time.Second)); math.Abs(measured-1/Lately.Seconds()) > 1 {
		t.Errorf("%.1f a second after ten seconds of nothing", measured)
	}
	if measured := a.Note(Kind{"c", "rep(1)"}, now); measured != 1/Lately.Seconds() {
		t.Errorf("another kind has the rate %.1f from the beginning", measured)
	}
	for i := range 3 * mostRates {
		a.Note(Kind{"c", string(rune(i))}, now)
	}
	if len(a.rates) > mostRates {
		t.Errorf("%d rates are remembered", len(a.rates))
	}
}

// How many are under way at once is remembered for a while after they have ended.
func TestArrivalsAtOnce(t *testing.T) {
	var a Rates
	of, now := Kind{"c", "rs(3,2)"}, time.Unix(1000, 0)
	begin := func(want int) {
		t.Helper()
		if _, atOnce := a.Begin(of, now); atOnce != want {
			t.Errorf("%d at once, want %d", atOnce, want)
		}
	}
	for i := range 3 {
		begin(i + 1)
	}
	for range 3 {
		a.End(of)
	}
	begin(3)
	a.End(of)
	now = now.Add(Lately + 1)
	begin(3) // of the time before
	a.End(of)
	now = now.Add(Lately + 1)
	begin(1)
	now = now.Add(time.Hour)
	begin(2) // which has not ended
	for range 5 {
		a.End(of)
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
		if got := Wait(&class, c.perSecond, c.atOnce); got != c.want {
			t.Errorf("%q at %.0f a second, %d at once: %s, want %s", c.mode, c.perSecond, c.atOnce, got, c.want)
		}
	}
}
