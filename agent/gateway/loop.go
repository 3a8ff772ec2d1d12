package gateway

import (
	"context"
	"time"
)

// every calls work at once and then at each tick until ctx ends.
func every(ctx context.Context, period time.Duration, work func(ctx context.Context)) {
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

// sleep waits and reports whether ctx lives on.
func sleep(ctx context.Context, while time.Duration) bool {
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// swarm is how long one wake is followed by others that are about the same.
const swarm = time.Second / 4

// again does work over and over: after a period, which is asked for each time, or when it is kicked.
func again(ctx context.Context, kicked <-chan struct{}, period func() time.Duration, work func(ctx context.Context)) {
	for ctx.Err() == nil {
		work(ctx)
		timer := time.NewTimer(period())
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-kicked:
			sleep(ctx, swarm)
		}
		timer.Stop()
	}
}

// knock puts a token in, unless one is there already.
func knock(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}
