package cli

import (
	"context"
	"time"
)

// watchInterval is the time between two pictures of --watch.
const watchInterval = 2 * time.Second

// every takes a step at once and then at each tick, until one says that all is over, or fails, or the context ends.
func every(ctx context.Context, interval time.Duration, step func() (ended bool, err error)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if ended, err := step(); ended || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watched shows something once or, where it is watched, until the context ends: the ordinary end of a watch.
func watched(ctx context.Context, watch bool, interval time.Duration, show func() error) error {
	err := every(ctx, interval, func() (ended bool, err error) { return !watch, show() })
	if watch && ctx.Err() != nil {
		return nil
	}
	return err
}
