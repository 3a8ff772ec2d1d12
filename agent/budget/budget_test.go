package budget_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/budget"
)

// Many requests of which each is a good part of the budget, and which come piece by piece side by side, all get through.
func TestNobodyWaitsInACircle(t *testing.T) {
	const size, step = 60, 10
	b := budget.New(100)
	var requests sync.WaitGroup
	for range 50 {
		requests.Go(func() {
			held := b.Hold(time.Hour)
			defer held.Release()
			for came := int64(0); came < size; came += step {
				if err := held.Grow(t.Context(), step, size-came-step); err != nil {
					t.Error(err)
				}
			}
		})
	}
	requests.Wait()
	whole, room := b.Try(100)
	if !room {
		t.Fatal("something was not given back")
	}
	whole()
}

func TestWhatIsHeldIsBounded(t *testing.T) {
	b := budget.New(100)
	first, second := b.Hold(time.Millisecond), b.Hold(time.Millisecond)
	if err := first.Grow(t.Context(), 60, 10); err != nil {
		t.Fatal(err)
	}
	if err := second.Grow(t.Context(), 40, 0); !errors.Is(err, budget.ErrFull) {
		t.Errorf("40 of 100 bytes beside 70: %v", err)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	if err := second.Grow(left, 40, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that was given up: %v", err)
	}
	if err := first.Grow(t.Context(), 10, 0); err != nil {
		t.Errorf("what was taken ahead: %v", err)
	}
	first.Release()
	if err := second.Grow(t.Context(), 1000, 1000); err != nil {
		t.Errorf("more than there is: %v", err)
	}
	if err := second.Grow(t.Context(), 1000, 0); err != nil {
		t.Errorf("the rest of more than there is: %v", err)
	}
	if _, room := b.Try(30); room {
		t.Error("more than the budget is in use")
	}
	second.Release()
	second.Release()
	if release, room := b.Try(100); !room {
		t.Error("what was released is still in use")
	} else {
		release()
	}
}
