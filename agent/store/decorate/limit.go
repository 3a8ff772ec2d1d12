package decorate

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/restripe/restripe/agent/store"
)

// Limit bounds the bytes per second that values cause in both directions together. An operation starts when the bytes
// of the earlier ones are paid for, and owes its own afterwards: a single large value is never refused, only the next
// one waits.
type Limit struct{ limiter *rate.Limiter }

// NewLimit returns a limit of bytesPerSecond; 0 is without limit.
func NewLimit(bytesPerSecond int64) *Limit {
	l := &Limit{limiter: rate.NewLimiter(rate.Inf, 0)}
	l.Set(bytesPerSecond)
	return l
}

// Set changes the limit for what starts from now on.
func (l *Limit) Set(bytesPerSecond int64) {
	if bytesPerSecond <= 0 {
		l.limiter.SetLimit(rate.Inf)
		return
	}
	l.limiter.SetBurst(int(max(leastBurst, bytesPerSecond/burstsPerSecond)))
	l.limiter.SetLimit(rate.Limit(bytesPerSecond))
}

// An idle limit saves up for a tenth of a second or leastBurst bytes, whichever is more.
const (
	burstsPerSecond = 10
	leastBurst      = 64 << 10
)

// Wrap puts the limit around inner.
func (l *Limit) Wrap(inner store.Store) store.Store {
	return keepLister(inner, &limited{inner, l}, plainly)
}

// wait blocks until the debt is paid.
func (l *Limit) wait(ctx context.Context, doing, key string) error {
	if l.limiter.Limit() == rate.Inf {
		return nil
	}
	if err := l.limiter.WaitN(ctx, 0); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		} else {
			err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
		}
		return fmt.Errorf("%s %q: waiting for the rate limit: %w", doing, key, err)
	}
	return nil
}

// owe takes size bytes from the budget without waiting.
func (l *Limit) owe(size int) {
	for burst := l.limiter.Burst(); size > 0 && burst > 0 && l.limiter.Limit() != rate.Inf; {
		piece := min(size, burst)
		l.limiter.ReserveN(time.Now(), piece)
		size -= piece
	}
}

type limited struct {
	store.Store
	limit *Limit
}

func (s *limited) Create(ctx context.Context, key string, value []byte) error {
	if err := s.limit.wait(ctx, "creating", key); err != nil {
		return err
	}
	s.limit.owe(len(value))
	return s.Store.Create(ctx, key, value)
}

func (s *limited) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	if err := s.limit.wait(ctx, "reading", key); err != nil {
		return 0, err
	}
	count, err := s.Store.ReadAt(ctx, key, p, offset)
	s.limit.owe(count)
	return count, err
}
