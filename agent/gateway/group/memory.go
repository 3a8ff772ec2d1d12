package group

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// Memory bounds the gateway's buffers. Each kind has a budget of its own, so that none waits in a circle: an update may
// read its object and write it anew as groups, and what was read for that waits for the group to have room (rewrites, one
// at a time). Groups are filled at the pace of their clients, which batches of small objects must not wait for. A fragment
// holds the memory of its own bytes until they are written to a client; what it is decoded from (decodes) it holds until
// nodes have answered, and for nobody else.
type Memory struct {
	Groups, Batches, Reads, Decodes, Updates, Rewrites Budget
}

// Budget is a number of bytes that may be in use at once.
type Budget struct {
	Bytes int64
	used  *semaphore.Weighted
}

// NewBudget returns a budget of so many bytes, none of which is in use.
func NewBudget(bytes int64) Budget { return Budget{Bytes: bytes, used: semaphore.NewWeighted(bytes)} }

// Reserve takes bytes, waiting its turn. One request larger than the whole budget gets the budget.
func (b Budget) Reserve(ctx context.Context, bytes int64) (release func(), err error) {
	bytes = min(bytes, b.Bytes)
	if err := b.used.Acquire(ctx, bytes); err != nil {
		return nil, fmt.Errorf("waiting for buffer memory: %w", err)
	}
	return func() { b.used.Release(bytes) }, nil
}

// Try is reserve that does not wait. It reports whether there was room.
func (b Budget) Try(bytes int64) (release func(), room bool) {
	bytes = min(bytes, b.Bytes)
	return func() { b.used.Release(bytes) }, b.used.TryAcquire(bytes)
}
