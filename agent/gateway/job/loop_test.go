package job

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// What is watched is read when it is told of, after the period, soon where that failed, and no more often.
func TestWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began, tokens := time.Now(), make(chan struct{}, 1)
		var reads []time.Duration
		var fails atomic.Bool
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			Watched(ctx, tokens, Slowly, func(context.Context) error {
				reads = append(reads, time.Since(began))
				if fails.Load() {
					return errors.New("no answer")
				}
				return nil
			})
		}()
		tell := func() {
			select {
			case tokens <- struct{}{}:
			default: // as tokens that nobody takes become one
			}
		}
		wait := func(until time.Duration) {
			<-time.After(until - time.Since(began))
			synctest.Wait()
		}
		wait(5 * time.Second)
		tell()
		wait(10 * time.Second)
		fails.Store(true)
		tell()
		wait(12*time.Second + time.Second/2)
		fails.Store(false)
		wait(44 * time.Second)
		for range 4 { // told of again and again
			tell()
			wait(time.Since(began) + time.Second/4)
		}
		wait(48 * time.Second)
		close(tokens) // the engine was closed: that is told once
		wait(90 * time.Second)
		cancel()
		<-ended
		want := []time.Duration{5, 10, 11, 12, 13, 43, 44, 45, 48, 78}
		for i := range want {
			want[i] *= time.Second
		}
		if !slices.Equal(reads, want) {
			t.Errorf("it was read after %v, want %v", reads, want)
		}
	})
}
