package memcached

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// pool lends connections, at most as many at a time as it was made for.
type pool struct {
	address string
	timeout time.Duration
	permits chan struct{}

	mu     sync.Mutex
	idle   []*connection // most recently used last
	closed bool
}

func newPool(address string, connections int, timeout time.Duration) *pool {
	return &pool{address: address, timeout: timeout, permits: make(chan struct{}, connections)}
}

// use runs work with a connection and returns its error; failures of the connection wrap store.ErrDown.
func (p *pool) use(ctx context.Context, work func(c *connection) error) error {
	select {
	case p.permits <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.permits }()
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := p.take(ctx)
	if err != nil {
		return unreachable(ctx, p.address, err)
	}
	release := c.guard(ctx)
	err = work(c)
	failure := c.err
	release()
	p.giveBack(c)
	if failure != nil {
		return unreachable(ctx, p.address, failure)
	}
	return err
}

// take returns an idle connection that the server has not closed, or a new one.
func (p *pool) take(ctx context.Context) (*connection, error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, fmt.Errorf("store was closed: %w", net.ErrClosed)
		}
		if len(p.idle) == 0 {
			p.mu.Unlock()
			return dial(ctx, p.address, p.timeout)
		}
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		p.mu.Unlock()
		if c.alive() {
			return c, nil
		}
		c.abandon()
	}
}

// giveBack keeps a connection that can be used again, and closes any other.
func (p *pool) giveBack(c *connection) {
	p.mu.Lock()
	keep := c.reusable() && !p.closed
	if keep {
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	if !keep {
		c.abandon()
	}
}

// close closes the idle connections, and each of the others when its call ends.
func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var errs []error
	for _, c := range p.idle {
		errs = append(errs, c.close())
	}
	p.idle = nil
	return errors.Join(errs...)
}
