package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/restripe/restripe/operator"
)

// Whoever watches over an operator is told once it has started, and may ask whether it lives.
func TestStartedOperatorsSaySo(t *testing.T) {
	w := newWorld(t)
	started := make(chan error, 1)
	w.operator(func(options *operator.Options) {
		options.Started = func(ctx context.Context, alive func(context.Context) error) { started <- alive(ctx) }
	})
	select {
	case err := <-started:
		if err != nil {
			t.Errorf("it has started and does not live: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("it does not say that it has started")
	}
}
