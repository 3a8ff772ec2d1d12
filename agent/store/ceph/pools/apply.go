package pools

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Patience with monitors that have not yet heard of a change of their configuration.
const (
	retryEvery = 250 * time.Millisecond
	retryFor   = 10 * time.Second
)

// Apply carries the plan out, step by step, and calls done after each. It stops at the first step that fails, but still
// carries out steps that clean up. Every step may be carried out again: a plan made anew goes on where this one ended.
func (p *Plan) Apply(ctx context.Context, m Monitor, done func(Step)) error {
	var failed error
	for _, step := range p.Steps {
		if failed != nil && !step.Cleanup {
			continue
		}
		around := ctx
		if step.Cleanup {
			around = context.WithoutCancel(ctx)
		}
		if err := step.apply(around, m); err != nil {
			failed = errors.Join(failed, fmt.Errorf("to %s: %w", step.Text, err))
			continue
		}
		done(step)
	}
	return failed
}

func (s *Step) apply(ctx context.Context, m Monitor) error {
	limit := time.NewTimer(retryFor)
	defer limit.Stop()
	for {
		err := ask(ctx, m, s.Command, nil)
		if err == nil || s.retryCode == 0 || !refusedWith(err, s.retryCode) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-limit.C:
			return fmt.Errorf("%w; see whether %s is forbidden in the monitors' own ceph.conf, and whether the user has the capability mon 'allow *'", err, optionSizeOne)
		case <-time.After(retryEvery):
		}
	}
}
