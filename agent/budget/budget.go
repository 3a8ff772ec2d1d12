// Package budget bounds how much memory requests hold at once.
package budget

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// ErrFull says that other requests have had all of a budget for as long as there was patience.
var ErrFull = errors.New("other requests have all the memory there is for ones like this; try again in a moment")

// Budget is a number of bytes that may be in use at once. It is safe for concurrent use; copies are the same budget.
type Budget struct {
	Bytes    int64
	used     *semaphore.Weighted
	arriving *semaphore.Weighted // the part of it that requests may have which will want more
	waiting  *atomic.Int64       // requests
}

// New returns a budget of so many bytes, none of which is in use.
func New(bytes int64) Budget {
	return Budget{
		Bytes: bytes, used: semaphore.NewWeighted(bytes), arriving: semaphore.NewWeighted(bytes / 4), waiting: new(atomic.Int64),
	}
}

// IsContended reports whether somebody waits for bytes.
func (b Budget) IsContended() bool { return b.waiting.Load() > 0 }

func (b Budget) acquire(ctx context.Context, bytes int64) error {
	if b.used.TryAcquire(bytes) {
		return nil
	}
	b.waiting.Add(1)
	defer b.waiting.Add(-1)
	return b.used.Acquire(ctx, bytes)
}

// Reserve takes bytes, waiting its turn. One request larger than the whole budget gets the budget.
func (b Budget) Reserve(ctx context.Context, bytes int64) (release func(), err error) {
	bytes = min(bytes, b.Bytes)
	if err := b.acquire(ctx, bytes); err != nil {
		return nil, fmt.Errorf("waiting for buffer memory: %w", err)
	}
	return func() { b.used.Release(bytes) }, nil
}

// Try is Reserve that does not wait. It reports whether there was room.
func (b Budget) Try(bytes int64) (release func(), room bool) {
	bytes = min(bytes, b.Bytes)
	return func() { b.used.Release(bytes) }, b.used.TryAcquire(bytes)
}

// Holding is what one request has of a budget while its bytes come. It belongs to one goroutine. Nobody waits in a circle:
// what has to be waited for is taken for all that is still to come, and a quarter of the budget is all that those have who may
// have to.
type Holding struct {
	budget         Budget
	patience       time.Duration
	used, arriving int64
	ahead          int64 // of what is used, and not needed yet
}

// Hold returns a holding of nothing, which waits for patience at most when it grows.
func (b Budget) Hold(patience time.Duration) *Holding { return &Holding{budget: b, patience: patience} }

// Grow takes bytes more, for a request that will want rest after them at most. It is ErrFull where there is no room in time.
// One that wants more than three quarters of the budget at once gets those.
func (h *Holding) Grow(ctx context.Context, bytes, rest int64) error {
	if h.ahead >= bytes {
		h.ahead -= bytes
		return nil
	}
	bytes -= h.ahead
	h.ahead = 0
	if h.budget.arriving.TryAcquire(bytes) {
		if h.budget.used.TryAcquire(bytes) {
			h.arriving, h.used = h.arriving+bytes, h.used+bytes
			return nil
		}
		h.budget.arriving.Release(bytes)
	}
	most := h.budget.Bytes - h.budget.Bytes/4
	all := min(bytes+rest, most)
	waiting, cancel := context.WithTimeout(ctx, h.patience)
	defer cancel()
	if h.budget.acquire(waiting, all) != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for buffer memory: %w", ctx.Err())
		}
		return ErrFull
	}
	h.used += all
	if h.ahead = all - bytes; all == most {
		h.ahead = math.MaxInt64
	}
	return nil
}

// Release gives all of it back.
func (h *Holding) Release() {
	h.budget.used.Release(h.used)
	h.budget.arriving.Release(h.arriving)
	*h = Holding{budget: h.budget, patience: h.patience}
}
