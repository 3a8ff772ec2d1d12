package gateways

import (
	"context"
	"sync"
	"time"
)

// Freshness is whether a source answers: when it last did, and since when and why it does not.
type Freshness struct {
	Answered time.Time // zero: never yet
	Since    time.Time // of the first failure after that; zero: it answers
	Err      error
}

// Success returns the freshness after an answer.
func (f Freshness) Success(now time.Time) Freshness { return Freshness{Answered: now} }

// Failure returns the freshness after there was no answer.
func (f Freshness) Failure(now time.Time, err error) Freshness {
	f.Err = err
	if f.Since.IsZero() {
		f.Since = now
	}
	return f
}

// Worse returns the one of two freshnesses of one source that is to be told of.
func (f Freshness) Worse(other Freshness) Freshness {
	switch {
	case f.Err == nil && other.Err != nil:
		return other
	case f.Err == nil && !other.Answered.IsZero() && (f.Answered.IsZero() || other.Answered.Before(f.Answered)):
		return other
	case f.Err != nil && other.Err != nil && other.Since.Before(f.Since):
		return other
	}
	return f
}

// Reading is the last answer to one question. The zero value has none. It is safe for concurrent use; values are shared, so
// do not change them.
type Reading[T any] struct {
	asking sync.Mutex // held while asking and before mutex

	mutex sync.Mutex // of what follows
	value T
	known bool
	fresh Freshness
	tried time.Time
}

// Get returns the last answer; known is false while there was none. It never waits.
func (r *Reading[T]) Get() (value T, known bool, fresh Freshness) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.value, r.known, r.fresh
}

// Set takes an answer, or that there was none: then the last one stays.
func (r *Reading[T]) Set(now time.Time, value T, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.tried = now
	if err != nil {
		r.fresh = r.fresh.Failure(now, err)
		return
	}
	r.value, r.known, r.fresh = value, true, r.fresh.Success(now)
}

// Ask returns what the question is answered with, or was no longer ago than the age. A failure is remembered as long, so
// that gateways that do not answer hold up one caller and not all. An end of the context says nothing about them.
func (r *Reading[T]) Ask(
	ctx context.Context,
	now func() time.Time,
	age time.Duration,
	question func(context.Context) (T, error),
) (T, error) {
	r.asking.Lock()
	defer r.asking.Unlock()
	r.mutex.Lock()
	value, fresh, tried := r.value, r.fresh, r.tried
	r.mutex.Unlock()
	var none T
	if within(now(), tried, age) {
		if fresh.Err != nil {
			return none, fresh.Err
		}
		return value, nil
	}
	value, err := question(ctx)
	if ctx.Err() != nil {
		return none, ctx.Err()
	}
	if r.Set(now(), value, err); err != nil {
		return none, err
	}
	return value, nil
}

// change replaces an answer that is known by what became of it. One that is being asked for is waited for and changed then.
func (r *Reading[T]) change(next func(T) T) {
	r.asking.Lock()
	defer r.asking.Unlock()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.known {
		r.value = next(r.value)
	}
}

// within reports whether something was at most the age ago. A clock that was set back makes everything old.
func within(now, then time.Time, age time.Duration) bool {
	since := now.Sub(then)
	return !then.IsZero() && since >= 0 && since < age
}
