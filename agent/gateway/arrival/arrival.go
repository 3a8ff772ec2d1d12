package arrival

import (
	"math"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// Rates measure at which rate small objects come, and how many at once, by what may share groups.
type Rates struct {
	mutex sync.Mutex
	rates map[Kind]*rate
}

// Kind is what small objects that may share a group have in common.
type Kind struct{ Class, Scheme string }

// rate is how many come in a second, lately, and how many of them are under way at once.
type rate struct {
	perSecond float64
	at        time.Time
	underWay  int       // now
	most      int       // that were under way at once since
	since     time.Time // which begins anew after a while
	before    int       // the most of the while before
}

// Lately is for how long an arrival counts: one of that age counts e times less than one of now.
const Lately = 200 * time.Millisecond

// mostRates is of how many kinds rates are remembered at most.
const mostRates = 1024

// Note counts an arrival and returns the rate with it.
func (a *Rates) Note(of Kind, now time.Time) float64 {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.count(of, now).perSecond
}

// Begin counts an arrival that is under way until it ends. It returns the rate with it, and how many were under way at once, lately.
func (a *Rates) Begin(of Kind, now time.Time) (perSecond float64, atOnce int) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	r := a.count(of, now)
	if age := now.Sub(r.since); age > Lately {
		if r.before = r.most; age > 2*Lately {
			r.before = 0
		}
		r.most, r.since = 0, now
	}
	r.underWay++
	r.most = max(r.most, r.underWay)
	return r.perSecond, max(r.most, r.before)
}

// End is the end of what has begun.
func (a *Rates) End(of Kind) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if r := a.rates[of]; r != nil {
		r.underWay = max(0, r.underWay-1) // it may have begun before the rates were forgotten
	}
}

// count counts an arrival. The caller holds the mutex.
func (a *Rates) count(of Kind, now time.Time) *rate {
	if a.rates == nil || len(a.rates) >= mostRates {
		a.rates = map[Kind]*rate{}
	}
	r := a.rates[of]
	if r == nil {
		r = &rate{at: now, since: now}
		a.rates[of] = r
	}
	r.perSecond = r.perSecond*math.Exp(-max(0, now.Sub(r.at).Seconds())/Lately.Seconds()) + 1/Lately.Seconds()
	r.at = now
	return r
}

// Wait is how long the first object of a batch waits for company. At a rate of T a row of w columns is full after w/T: where that is
// within the delay of the class it is worth waiting for, and otherwise nothing is gained by it. Nor is where never so many are under
// way at once: a client that waits for each of its puts has none to come while it waits. For the same reason a batch that has all of
// them waits no longer.
func Wait(class *api.Class, perSecond float64, atOnce int) time.Duration {
	switch class.PackMode {
	case api.PackBatch:
		return class.PackDelay
	case api.PackAtOnce:
		return 0
	}
	row := max(2, class.Ladder.Width())
	if atOnce < row || float64(row) > perSecond*class.PackDelay.Seconds() {
		return 0
	}
	return class.PackDelay
}
