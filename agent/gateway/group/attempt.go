package group

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
)

// Commit commits and turns the catalog's refusals into the gateway's.
func (g *Groups) Commit(ctx context.Context, attempt *catalog.Attempt, change catalog.Change) error {
	return refused(attempt, attempt.Commit(ctx, change))
}

// CommitPiece commits a piece of a put. After an error the attempt has to be abandoned.
func (g *Groups) CommitPiece(
	ctx context.Context, attempt *catalog.Attempt, key string, groups []catalog.Group, extents []catalog.Extent,
) error {
	return refused(attempt, attempt.CommitPiece(ctx, key, groups, extents))
}

// refused is what the gateway says of a commit of an attempt.
func refused(attempt *catalog.Attempt, err error) error {
	var stale *catalog.StaleError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, catalog.ErrUnknown): // for whatever cause: it could not be settled, so nothing else may be believed
		return fmt.Errorf("%w: attempt %s: %v", api.ErrUnknownOutcome, attempt.Stamp(), err) //nolint:errorlint // callers must not match it
	case errors.As(err, &stale) && stale.Has(catalog.ViolationWhole):
		return api.Refuse(api.ErrUnavailable, "nothing was changed, try again: %w: %v", ErrNotWhole, err)
	case errors.Is(err, catalog.ErrStale):
		return fmt.Errorf("%w: %w", api.ErrConflict, err)
	case errors.Is(err, catalog.ErrNotActive):
		return api.Refuse(api.ErrUnavailable, "attempt %s took longer than it had announced and was given up: try again: %w", attempt.Stamp(), err)
	}
	return fmt.Errorf("committing attempt %s: %w", attempt.Stamp(), err)
}

// Abandon settles an attempt that failed with cause before its commit and returns what the caller may be told.
func (g *Groups) Abandon(ctx context.Context, attempt *catalog.Attempt, cause error) error {
	if err := attempt.Abort(context.WithoutCancel(ctx)); err != nil {
		//nolint:errorlint // callers must not match what it had failed by
		return fmt.Errorf("%w: settling attempt %s: %v (it had failed: %v)", api.ErrUnknownOutcome, attempt.Stamp(), err, cause)
	}
	return cause
}

// KeepAlive extends the deadline of an attempt that goes on at its client's pace, until the returned function is called.
func (g *Groups) KeepAlive(ctx context.Context, attempt *catalog.Attempt) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(g.options.AttemptTime / 4)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if err := attempt.Extend(ctx, nil, g.Deadline()); err != nil && ctx.Err() == nil {
					g.log.Warn("extending the deadline of an attempt", "attempt", attempt.Stamp(), "cause", err)
				}
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// Deadline is until when an attempt that begins now is announced.
func (g *Groups) Deadline() time.Time { return g.options.Clock().Add(g.options.AttemptTime) }

// AttemptTime is how long that is from now.
func (g *Groups) AttemptTime() time.Duration { return g.options.AttemptTime }

// NoRoomError says which node did not take a block that a plan stages on it.
type NoRoomError struct {
	Node  block.NodeID
	cause error
}

// Error returns what the node said.
func (e *NoRoomError) Error() string { return e.cause.Error() }

// Unwrap returns what the node said.
func (e *NoRoomError) Unwrap() error { return e.cause }

// IsFull reports whether err means that a store has no room.
func IsFull(err error) bool { return errors.Is(err, store.ErrFull) }

// TakesNothing reports whether err means that the node's store answers and takes no new blocks.
func TakesNothing(err error) bool {
	return IsFull(err) || errors.Is(err, store.ErrReadOnly) || errors.Is(err, store.ErrAuth)
}

// ErrNotWhole refuses to commit what lacks a block, or to work on it (rules 6b and 19).
var ErrNotWhole = errors.New("a store has lost a block of the group")
