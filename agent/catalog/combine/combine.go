// Package combine has calls that come at the same time share work, as their transactions cost more than what is in them.
package combine

import (
	"context"
	"slices"
	"sync"
)

// Queue is where items wait to be carried out together. The first caller leads: it carries out those that wait in one turn, and hands
// the lead to the first that came meanwhile. Every caller is served by the next turn but one, so none starves.
type Queue[T any] struct {
	share func(waiting []T) int
	work  func(ctx context.Context, batch []T)

	mutex   sync.Mutex
	leading bool
	waiting []*place[T]
}

// place is an item that waits.
type place[T any] struct {
	item T
	lead chan struct{} // holds one token when the lead was handed over
}

// New returns a queue. share says how many of those that wait, of the first at least one, go into a turn; work carries a turn out, under
// a context that does not end with that of any caller. Whoever asked has to learn from work that an item is done.
func New[T any](share func(waiting []T) int, work func(ctx context.Context, batch []T)) *Queue[T] {
	return &Queue[T]{share: share, work: work}
}

// Do has an item carried out beside others, and returns nil once done is closed, which work has to do. If ctx ends before, it returns
// why, and whether the item is carried out all the same.
func (q *Queue[T]) Do(ctx context.Context, item T, done <-chan struct{}) (begun bool, err error) {
	own := &place[T]{item: item, lead: make(chan struct{}, 1)}
	if q.enter(own) {
		q.turn(ctx)
	}
	for {
		select {
		case <-done:
			return true, nil
		case <-own.lead:
			q.turn(ctx)
		case <-ctx.Done():
			return !q.leave(own), ctx.Err()
		}
	}
}

// enter queues an item and reports whether its caller must lead.
func (q *Queue[T]) enter(own *place[T]) bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.waiting = append(q.waiting, own)
	if q.leading {
		return false
	}
	q.leading = true
	return true
}

// leave takes an item out of the queue, passing on the lead if it was just handed to it. It reports whether it was still waiting.
func (q *Queue[T]) leave(own *place[T]) bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	before := len(q.waiting)
	q.waiting = slices.DeleteFunc(q.waiting, func(other *place[T]) bool { return other == own })
	select {
	case <-own.lead:
		q.handOver()
	default:
	}
	return len(q.waiting) < before
}

// handOver gives the lead to whoever waits longest. The caller holds the mutex.
func (q *Queue[T]) handOver() {
	if len(q.waiting) == 0 {
		q.leading = false
		return
	}
	q.waiting[0].lead <- struct{}{}
}

// turn carries out one batch, which has the leader in it because it waits longest.
func (q *Queue[T]) turn(ctx context.Context) {
	q.mutex.Lock()
	batch := make([]T, len(q.waiting))
	for i, one := range q.waiting {
		batch[i] = one.item
	}
	batch = batch[:q.share(batch)]
	q.waiting = slices.Delete(q.waiting, 0, len(batch))
	q.mutex.Unlock()

	defer func() {
		q.mutex.Lock()
		defer q.mutex.Unlock()
		q.handOver()
	}()
	// What others asked for must not fail because the leader's caller gave up.
	q.work(context.WithoutCancel(ctx), batch)
}
