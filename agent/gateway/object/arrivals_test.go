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

// An object waits if a row fills within the delay of its class, and not otherwise.
func TestWaitingIsWorthIt(t *testing.T) {
	ladder, err := stripe.ParseLadder("rs(4,2),rep(2)")
	if err != nil {
		t.Fatal(err)
	}
	class := api.Class{Ladder: ladder, PackDelay: 5 * time.Millisecond}
	for _, c := range []struct {
		mode      api.PackMode
		perSecond float64
		want      time.Duration
	}{
		{"", 5, 0}, {"", 790, 0}, {"", 810, class.PackDelay}, {"", 1e5, class.PackDelay},
		{api.PackAuto, 790, 0}, {api.PackAuto, 810, class.PackDelay},
		{api.PackBatch, 5, class.PackDelay}, {api.PackAtOnce, 1e5, 0},
	} {
		class.PackMode = c.mode
		if got := wait(&class, c.perSecond); got != c.want {
			t.Errorf("%q at %.0f a second: %s, want %s", c.mode, c.perSecond, got, c.want)
		}
	}
}
