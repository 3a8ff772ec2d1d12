package object

import (
	"math"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// arrivals measure at which rate small objects come, and how many at once, by what may share groups.
type arrivals struct {
	mutex sync.Mutex
	rates map[kind]*rate
}

// kind is what small objects that may share a group have in common.
type kind struct{ class, scheme string }

// rate is how many come in a second, lately, and how many of them are under way at once.
type rate struct {
	perSecond float64
	at        time.Time
	underWay  int       // now
	most      int       // that were under way at once since
	since     time.Time // which begins anew after a while
	before    int       // the most of the while before
}

// lately is for how long an arrival counts: one of that age counts e times less than one of now.
const lately = 200 * time.Millisecond

// mostRates is of how many kinds rates are remembered at most.
const mostRates = 1024

// note counts an arrival and returns the rate with it.
func (a *arrivals) note(of kind, now time.Time) float64 {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.count(of, now).perSecond
}

// begin counts an arrival that is under way until it ends. It returns the rate with it, and how many were under way at once, lately.
func (a *arrivals) begin(of kind, now time.Time) (perSecond float64, atOnce int) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	r := a.count(of, now)
	if age := now.Sub(r.since); age > lately {
		if r.before = r.most; age > 2*lately {
			r.before = 0
		}
		r.most, r.since = 0, now
	}
	r.underWay++
	r.most = max(r.most, r.underWay)
	return r.perSecond, max(r.most, r.before)
}

// end is the end of what has begun.
func (a *arrivals) end(of kind) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if r := a.rates[of]; r != nil {
		r.underWay = max(0, r.underWay-1) // it may have begun before the rates were forgotten
	}
}

// count counts an arrival. The caller holds the mutex.
func (a *arrivals) count(of kind, now time.Time) *rate {
	if a.rates == nil || len(a.rates) >= mostRates {
		a.rates = map[kind]*rate{}
	}
	r := a.rates[of]
	if r == nil {
		r = &rate{at: now, since: now}
		a.rates[of] = r
	}
	r.perSecond = r.perSecond*math.Exp(-max(0, now.Sub(r.at).Seconds())/lately.Seconds()) + 1/lately.Seconds()
	r.at = now
	return r
}

// wait is how long the first object of a batch waits for company. At a rate of T a row of w columns is full after w/T: where that is
// within the delay of the class it is worth waiting for, and otherwise nothing is gained by it. Nor is where never so many are under
// way at once: a client that waits for each of its puts has none to come while it waits. For the same reason a batch that has all of
// them waits no longer (hasAll).
func wait(class *api.Class, perSecond float64, atOnce int) time.Duration {
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
