package job

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestARunSavesWhileItWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRun(100)
		saves := 0
		errOver := errors.New("over")
		err := r.Saving(t.Context(), time.Second, func(context.Context) { saves++ }, func(ctx context.Context) error {
			if !Sleep(ctx, 2500*time.Millisecond) {
				return ctx.Err()
			}
			return errOver
		})
		if !errors.Is(err, errOver) || saves != 3 {
			t.Errorf("it ended with %v after %d saves, want 3", err, saves)
		}
		if elapsed := r.Elapsed(); elapsed < 102.5 || elapsed > 102.6 {
			t.Errorf("it took %v s, of which 100 before", elapsed)
		}
	})
}

func TestARunSavesWhenItIsAskedTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRun(0)
		var saves atomic.Int64
		err := r.Saving(t.Context(), time.Hour, func(context.Context) { saves.Add(1) }, func(context.Context) error {
			for range 3 {
				synctest.Wait()
				r.Look()
			}
			synctest.Wait()
			return nil
		})
		if err != nil || saves.Load() != 4 {
			t.Errorf("it ended with %v after %d saves, want 4", err, saves.Load())
		}
	})
}

func TestARunIsHaltedAndEnds(t *testing.T) {
	r := NewRun(0)
	if r.Halted() {
		t.Error("it is halted from the beginning")
	}
	r.Halt()
	r.Halt()
	<-r.Halting()
	if !r.Halted() {
		t.Error("it is not halted")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Ended(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("it has not ended, and waiting ended with %v", err)
	}
	r.End()
	if err := r.Ended(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestETA(t *testing.T) {
	for _, c := range []struct {
		done, total     int64
		elapsed, expect float64
	}{{0, 10, 5, -1}, {5, 10, 5, 5}, {10, 10, 5, 0}, {12, 10, 5, 0}, {1, 4, 2, 6}} {
		if have := ETA(c.done, c.total, c.elapsed); have != c.expect {
			t.Errorf("%d of %d after %v s: %v, want %v", c.done, c.total, c.elapsed, have, c.expect)
		}
	}
}

// A loop that is woken looks once for a swarm of wakes, and at once for one.
func TestAgainLooksOnceForASwarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		wake := NewWake()
		var looks atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			Again(ctx, wake, func() time.Duration { return time.Hour }, func(context.Context) { looks.Add(1) })
		}()
		synctest.Wait()
		for range 5 {
			wake.Notify()
		}
		Sleep(ctx, time.Second)
		first := looks.Load() // one at first, one for the swarm, and one more where it was woken in the middle of it
		if first != 2 && first != 3 {
			t.Errorf("it looked %d times for one swarm", first)
		}
		Sleep(ctx, time.Hour)
		if looks.Load() != first+1 {
			t.Errorf("after an hour it has looked %d times, want %d", looks.Load(), first+1)
		}
		cancel()
		<-done
	})
}

func TestBackgroundIsWaitedFor(t *testing.T) {
	b := NewBackground(t.Context())
	ended := false
	b.Go(func(ctx context.Context) {
		<-ctx.Done()
		ended = true
	})
	b.Stop()
	if !ended || b.Context().Err() == nil {
		t.Error("it was not waited for")
	}
}
