package gateways

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestWorse(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }
	fine, older := Freshness{Answered: at(9)}, Freshness{Answered: at(5)}
	broken := fine.Failure(at(10), context.DeadlineExceeded)
	if again := broken.Failure(at(12), context.Canceled); again.Since != at(10) || !errors.Is(again.Err, context.Canceled) {
		t.Errorf("a second failure: %+v", again)
	}
	if healed := broken.Success(at(13)); healed.Err != nil || !healed.Since.IsZero() || healed.Answered != at(13) {
		t.Errorf("healed: %+v", healed)
	}
	for _, pair := range [][2]Freshness{{fine, broken}, {broken, fine}} {
		if pair[0].Worse(pair[1]).Err == nil {
			t.Errorf("%+v is no worse than %+v", pair[0], pair[1])
		}
	}
	if fine.Worse(older) != older || older.Worse(fine) != older || fine.Worse(Freshness{}) != fine {
		t.Error("the older answer is not the worse")
	}
}
