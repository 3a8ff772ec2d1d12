package object

import (
	"math"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// arrivals measure at which rate small objects come, by what may share groups.
type arrivals struct {
	mutex sync.Mutex
	rates map[kind]*rate
}

// kind is what small objects that may share a group have in common.
type kind struct{ class, scheme string }

// rate is how many come in a second, lately.
type rate struct {
	perSecond float64
	at        time.Time
}

// lately is for how long an arrival counts: one of that age counts e times less than one of now.
const lately = 200 * time.Millisecond

// mostRates is of how many kinds rates are remembered at most.
const mostRates = 1024

// note counts an arrival and returns the rate with it.
func (a *arrivals) note(of kind, now time.Time) float64 {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.rates == nil || len(a.rates) >= mostRates {
		a.rates = map[kind]*rate{}
	}
	r := a.rates[of]
	if r == nil {
		r = &rate{at: now}
		a.rates[of] = r
	}
	r.perSecond = r.perSecond*math.Exp(-max(0, now.Sub(r.at).Seconds())/lately.Seconds()) + 1/lately.Seconds()
	r.at = now
	return r.perSecond
}

// wait is how long the first object of a batch waits for company. At a rate of T a row of w columns is full after w/T: where that is
// within the delay of the class it is worth waiting for, and otherwise nothing is gained by it.
func wait(class *api.Class, perSecond float64) time.Duration {
	switch class.PackMode {
	case api.PackBatch:
		return class.PackDelay
	case api.PackAtOnce:
		return 0
	}
	if float64(class.Ladder.Width()) > perSecond*class.PackDelay.Seconds() {
		return 0
	}
	return class.PackDelay
}
