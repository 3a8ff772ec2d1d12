package job

import (
	"context"
	"sync"
)

// Background is work that goes on until it returns or is stopped, and is waited for.
type Background struct {
	ctx  context.Context
	stop context.CancelFunc

	mutex sync.Mutex // of what follows. A WaitGroup takes no work that begins while its last returns.
	works int
	idle  chan struct{} // closed once there are no works left; nil: nobody waits for that
}

// NewBackground returns one that has the values of ctx and does not end with it.
func NewBackground(ctx context.Context) *Background {
	b := &Background{}
	b.ctx, b.stop = context.WithCancel(context.WithoutCancel(ctx))
	return b
}

// Go begins work beside the caller. Its context ends with Stop, and has ended where that has returned already: then nobody waits for it.
func (b *Background) Go(work func(ctx context.Context)) {
	b.mutex.Lock()
	b.works++
	b.mutex.Unlock()
	go func() {
		defer b.ended()
		work(b.ctx)
	}()
}

func (b *Background) ended() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.works--; b.works == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
}

// Context ends when everything is stopped.
func (b *Background) Context() context.Context { return b.ctx }

// Stop ends all contexts and waits until the work under way has returned.
func (b *Background) Stop() {
	b.stop()
	b.mutex.Lock()
	if b.works == 0 {
		b.mutex.Unlock()
		return
	}
	if b.idle == nil {
		b.idle = make(chan struct{})
	}
	idle := b.idle
	b.mutex.Unlock()
	<-idle
}
