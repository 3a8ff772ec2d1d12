package job

import (
	"context"
	"time"
)

// Every calls work at once and then at each tick until ctx ends.
func Every(ctx context.Context, period time.Duration, work func(ctx context.Context)) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		work(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// What is watched is read after SafetyPeriod although nobody told of a change, for whoever made it may be of a release that does not
// tell. Where it could not be read it is tried again after watchedApart, and what is told of again and again is read no more often.
const (
	SafetyPeriod = 30 * time.Second
	watchedApart = time.Second
)

// Watched reads what is watched whenever tokens holds one, and at the latest after the period, which is asked for each time, until ctx
// ends.
func Watched(ctx context.Context, tokens <-chan struct{}, period func() time.Duration, read func(ctx context.Context) error) {
	timer := time.NewTimer(period())
	defer timer.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-tokens:
			if !open {
				tokens = nil // the engine was closed, which reading tells
				break
			}
			if !Sleep(ctx, watchedApart-time.Since(last)) {
				return
			}
			select {
			case <-tokens: // what is read now has that too
			default:
			}
		case <-timer.C:
		}
		last = time.Now()
		if read(ctx) != nil {
			timer.Reset(min(watchedApart, period()))
		} else {
			timer.Reset(period())
		}
	}
}

// Slowly is the period of what is told of.
func Slowly() time.Duration { return SafetyPeriod }

// Sleep waits and reports whether ctx lives on.
func Sleep(ctx context.Context, while time.Duration) bool {
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// longestRest bounds what Rest waits.
const longestRest = 2 * time.Second

// Rest waits after work of such a length for so long that work takes a share of the time, within a bound, and reports whether
// ctx lives on. Work that takes long because what it works on is far or busy is followed by a long rest.
func Rest(ctx context.Context, worked time.Duration, share float64) bool {
	return Sleep(ctx, min(longestRest, time.Duration(float64(worked)*(1/share-1))))
}

// swarm is how long one wake is followed by others that are about the same.
const swarm = time.Second / 4

// Again does work over and over: after a period, which is asked for each time, or when it is woken.
func Again(ctx context.Context, wake Wake, period func() time.Duration, work func(ctx context.Context)) {
	for ctx.Err() == nil {
		work(ctx)
		timer := time.NewTimer(period())
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-wake:
			Sleep(ctx, swarm)
		}
		timer.Stop()
	}
}

// Wake wakes a loop. Who is woken looks once, however often it was notified meanwhile.
type Wake chan struct{}

// NewWake returns one that nobody has notified yet.
func NewWake() Wake { return make(Wake, 1) }

// Notify wakes the loop, now or when it next waits.
func (w Wake) Notify() {
	select {
	case w <- struct{}{}:
	default: // it will look anyway
	}
}

// IsClosed reports whether a channel on which nothing is sent was closed.
func IsClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}
