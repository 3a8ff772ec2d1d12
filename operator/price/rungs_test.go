package price

import (
	"math"
	"testing"

	"github.com/restripe/restripe/agent/heat/shadow"
	"github.com/restripe/restripe/agent/stripe"
)

// At the documented prices and groups of 4 MiB, three blocks read less are worth the storage of whole copies from 3.2 reads a
// day on, and eight less that of rs(4,2) from 0.27.
func TestWhatRungsCost(t *testing.T) {
	ladder := stripe.Ladder{stripe.Replicas(3), stripe.RS(4, 2), stripe.RS(12, 2)}
	rungs, err := Default().Rungs(ladder, 4<<20)
	if err != nil {
		t.Fatal(err)
	}
	prices := shadow.Prices(rungs)
	for rate, want := range map[float64]int{0.26: 2, 0.28: 1, 3.1: 1, 3.3: 0} {
		if got := prices.Best(rate); got != want {
			t.Errorf("read %v times a day it costs least under %s, want %s", rate, ladder[got], ladder[want])
		}
	}
	if month := prices.Stored[0] * daysOfMonth; math.Abs(month-3*0.02) > 1e-9 {
		t.Errorf("a GiB under rep(3) costs %v a month, want 0.06", month)
	}
	// Whole copies are made by sending: two copies of each byte, less what lies where it is wanted.
	up, down := prices.Move[1][0], prices.Move[0][1]
	if up < 0.01 || up > 0.03 || down <= 0 || down > up/3 {
		t.Errorf("a GiB to whole copies costs %v, back %v", up, down)
	}
	large, err := Default().Rungs(ladder, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	if ratio := prices.Use[1] / large.Use[1]; math.Abs(ratio-16) > 1e-9 {
		t.Errorf("a read of a GiB in groups of 4 MiB costs %v times that in groups of 64 MiB, want 16", ratio)
	}
}

// Prices of nothing move nothing.
func TestFreeRungs(t *testing.T) {
	ladder := stripe.Ladder{stripe.Replicas(3), stripe.RS(4, 2)}
	rungs, err := Table{}.Rungs(ladder, 0)
	if err != nil {
		t.Fatal(err)
	}
	prices := shadow.Prices(rungs)
	for _, candidate := range shadow.Candidates(len(ladder)) {
		for rung := range ladder {
			for _, rate := range []float64{0, 1, 1e6} {
				if to := candidate.Next(&prices, rung, rate); to != rung && candidate.Always == shadow.ByUse {
					t.Errorf("%s moves from rung %d to %d though all are free", candidate.Name(), rung, to)
				}
			}
		}
	}
}
