package console

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
)

// gateways are those of one backend, any of which answers for all. The one that answered last is asked first.
type gateways struct {
	clients []*client.Client
	first   atomic.Int64
}

func dial(addresses []string) (*gateways, error) {
	if len(addresses) == 0 {
		return nil, errors.New("reaching gateways: none is named; name one in spec.gateways of the backend")
	}
	g := &gateways{}
	for _, address := range addresses {
		c, err := client.New(address)
		if err != nil {
			return nil, fmt.Errorf("reaching gateways: %w", err)
		}
		g.clients = append(g.clients, c)
	}
	return g, nil
}

func (g *gateways) close() {
	for _, c := range g.clients {
		c.Close()
	}
}

// ask asks one gateway after the other, each for at most so long, until one answers. A refusal is an answer. A change
// whose outcome is not known is not tried elsewhere.
func ask[T any](ctx context.Context, g *gateways, patience time.Duration, call func(ctx context.Context, c *client.Client) (T, error)) (answer T, err error) {
	first := g.first.Load()
	var failures []error
	for i := range int64(len(g.clients)) {
		at := (first + i) % int64(len(g.clients))
		answer, err = askOne(ctx, g.clients[at], patience, call)
		if err == nil || !silent(err) {
			g.first.Store(at)
			return answer, err
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
	}
	return answer, errors.Join(failures...)
}

func askOne[T any](ctx context.Context, c *client.Client, patience time.Duration, call func(ctx context.Context, c *client.Client) (T, error)) (T, error) {
	within, stop := context.WithTimeout(ctx, patience)
	defer stop()
	answer, err := call(within, c)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w at %s within %v", client.ErrUnreachable, c.Address(), patience)
	}
	return answer, err
}

// silent reports whether an error says that the gateway could not answer, so that another one may.
func silent(err error) bool {
	return errors.Is(err, client.ErrUnreachable) || errors.Is(err, api.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}
