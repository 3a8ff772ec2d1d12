package operator_test

import (
	"time"

	"k8s.io/utils/clock"
)

// fastClock is a clock that runs faster than the real one, so that hours pass within a test.
type fastClock struct {
	began time.Time // real
	start time.Time // what it says then
	speed float64
}

func newFastClock(speed float64) *fastClock {
	return &fastClock{began: time.Now(), start: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC), speed: speed}
}

func (c *fastClock) real(d time.Duration) time.Duration {
	return max(time.Microsecond, time.Duration(float64(d)/c.speed))
}

func (c *fastClock) Now() time.Time {
	return c.start.Add(time.Duration(float64(time.Since(c.began)) * c.speed))
}

func (c *fastClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *fastClock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }

func (c *fastClock) Tick(d time.Duration) <-chan time.Time { return time.Tick(c.real(d)) }

func (c *fastClock) Sleep(d time.Duration) { <-c.After(d) }

func (c *fastClock) NewTimer(d time.Duration) clock.Timer {
	return &fastTimer{clock: c, timer: time.NewTimer(c.real(d))}
}

func (c *fastClock) NewTicker(d time.Duration) clock.Ticker {
	return fastTicker{time.NewTicker(c.real(d))}
}

type fastTimer struct {
	clock *fastClock
	timer *time.Timer
}

func (t *fastTimer) C() <-chan time.Time        { return t.timer.C }
func (t *fastTimer) Stop() bool                 { return t.timer.Stop() }
func (t *fastTimer) Reset(d time.Duration) bool { return t.timer.Reset(t.clock.real(d)) }

type fastTicker struct{ *time.Ticker }

func (t fastTicker) C() <-chan time.Time { return t.Ticker.C }
