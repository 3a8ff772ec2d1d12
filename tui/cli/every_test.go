package cli

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestEveryStepIsTaken: the first at once, then one a tick, until one ends it.
func TestEveryStepIsTaken(t *testing.T) {
	steps := 0
	err := every(t.Context(), time.Millisecond, func() (bool, error) { steps++; return steps == 3, nil })
	if err != nil || steps != 3 {
		t.Errorf("%d steps, %v", steps, err)
	}
	broken := errors.New("broken")
	if err := every(t.Context(), time.Hour, func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("a step that fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = every(ctx, time.Hour, func() (bool, error) { cancel(); return false, nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted wait: %v", err)
	}
}

// TestWatchesEndWell: who watches ends it by interrupting, which is no failure; but what fails before is one.
func TestWatchesEndWell(t *testing.T) {
	shown := 0
	if err := watched(t.Context(), false, time.Hour, func() error { shown++; return nil }); err != nil || shown != 1 {
		t.Errorf("shown %d times without a watch: %v", shown, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	shown = 0
	err := watched(ctx, true, time.Millisecond, func() error {
		if shown++; shown == 3 {
			cancel()
			return ctx.Err() // as a request does that is under way
		}
		return nil
	})
	if err != nil || shown != 3 {
		t.Errorf("shown %d times until interrupted: %v", shown, err)
	}
	broken := errors.New("broken")
	if err := watched(t.Context(), true, time.Hour, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a watch that fails: %v", err)
	}
	if err := watched(ctx, false, time.Hour, func() error { return ctx.Err() }); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted answer that is not watched: %v", err)
	}
}
