package job

import (
	"context"
	"sync"
)

// Background is work that goes on until it returns or is stopped, and is waited for.
type Background struct {
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup
}

// NewBackground returns one that has the values of ctx and does not end with it.
func NewBackground(ctx context.Context) *Background {
	b := &Background{}
	b.ctx, b.stop = context.WithCancel(context.WithoutCancel(ctx))
	return b
}

// Go begins work beside the caller. Its context ends with Stop.
func (b *Background) Go(work func(ctx context.Context)) {
	b.work.Add(1)
	go func() {
		defer b.work.Done()
		work(b.ctx)
	}()
}

// Context ends when everything is stopped.
func (b *Background) Context() context.Context { return b.ctx }

// Stop ends all contexts and waits until the work under way has returned.
func (b *Background) Stop() {
	b.stop()
	b.work.Wait()
}
