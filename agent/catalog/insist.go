package catalog

import (
	"context"
	"errors"
	"time"
)

// finalError marks an error that asking again cannot mend.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

func final(err error) error {
	if err == nil {
		return nil
	}
	return finalError{err}
}

// insist calls turn until it is done, fails for good, or patience or ctx ends. A turn that is neither done nor failed
// is repeated at once: somebody else was faster, so the system as a whole makes progress. A turn must be such that
// repeating it after an unclear answer is right.
func (c *Catalog) insist(ctx context.Context, turn func(context.Context) (done bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	for failures := 0; ; {
		done, err := turn(ctx)
		if done {
			return nil
		}
		if err == nil {
			if err = ctx.Err(); err != nil {
				return err
			}
			continue
		}
		var last finalError
		if errors.As(err, &last) {
			return last.error
		}
		if errors.Is(err, ErrClosed) || errors.Is(err, ErrCorrupt) {
			return err
		}
		failures++
		if pauseErr := c.pause(ctx, failures); pauseErr != nil {
			return errors.Join(err, pauseErr)
		}
	}
}

func pauseDoubling(ctx context.Context, turn int) error {
	wait := min(time.Second, 10*time.Millisecond<<min(turn-1, 10))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
