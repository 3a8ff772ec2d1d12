package decorate

import (
	"context"
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/store"
)

// Retry repeats operations whose outcome is unknown, store.ErrDown included. Every operation of a Store may be
// repeated; errors that say what happened (store.Definite) and the end of the context are passed on at once.
//
// A Create that is repeated may find its own earlier attempt: it then fails with store.ErrExists, as it does for a
// stranger's value, and the caller compares the content.
//
// A listing is repeated only as long as it has shown nothing; a page of one is repeated like anything else.
type Retry struct {
	Attempts int                                 // in all, at least 1
	Delay    func(attempt int) time.Duration     // before the attempt of this number, counted from 1 for the first repetition; nil: none
	Report   func(Operation, string, int, error) // called before each repetition, with the key, the attempt that failed and its error; may be nil
}

// Backoff returns delays that start at first and double up to limit.
func Backoff(first, limit time.Duration) func(attempt int) time.Duration {
	return func(attempt int) time.Duration {
		delay := first
		for i := 1; i < attempt && delay < limit; i++ {
			delay *= 2
		}
		return min(delay, limit)
	}
}

// Wrap puts the repetition around inner.
func (r *Retry) Wrap(inner store.Store) store.Store {
	return keepListerAs(inner, &retried{inner, r}, r.list, func(ctx context.Context, prefix string, call func() error) error {
		return r.run(ctx, List, prefix, call)
	})
}

// run does attempts until one succeeds or another one would be pointless.
func (r *Retry) run(ctx context.Context, operation Operation, key string, attempt func() error) error {
	for i := 1; ; i++ {
		err := attempt()
		switch {
		case err == nil || store.Definite(err) || ctx.Err() != nil:
			return err
		case i >= r.Attempts:
			if i == 1 {
				return err
			}
			return fmt.Errorf("giving up after %d attempts: %w", i, err)
		}
		if r.Report != nil {
			r.Report(operation, key, i, err)
		}
		if r.Delay == nil {
			continue
		}
		timer := time.NewTimer(r.Delay(i))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w while waiting to repeat after: %w", ctx.Err(), err)
		}
	}
}

// list repeats a listing that failed before it showed a key.
func (r *Retry) list(ctx context.Context, inner store.Lister, prefix string, visit visitor) error {
	var shownErr error
	err := r.run(ctx, List, prefix, func() error {
		shown := false
		err := inner.List(ctx, prefix, func(key string, size int64) error {
			shown = true
			return visit(key, size)
		})
		if shown {
			shownErr = err
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return shownErr
}

type retried struct {
	store.Store
	retry *Retry
}

func (s *retried) Create(ctx context.Context, key string, value []byte) error {
	return s.retry.run(ctx, Create, key, func() error { return s.Store.Create(ctx, key, value) })
}

func (s *retried) ReadAt(ctx context.Context, key string, p []byte, offset int64) (count int, err error) {
	err = s.retry.run(ctx, ReadAt, key, func() (err error) {
		count, err = s.Store.ReadAt(ctx, key, p, offset)
		return err
	})
	return count, err
}

func (s *retried) Delete(ctx context.Context, key string) error {
	return s.retry.run(ctx, Delete, key, func() error { return s.Store.Delete(ctx, key) })
}

func (s *retried) Info(ctx context.Context) (info store.Info, err error) {
	err = s.retry.run(ctx, Info, "", func() (err error) {
		info, err = s.Store.Info(ctx)
		return err
	})
	return info, err
}
