package controller

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
)

// callTimeout bounds one call to one gateway, so that one that hangs does not hold up what another would answer.
const callTimeout = 15 * time.Second

// walkTimeout bounds a walk over everything by one gateway.
const walkTimeout = 5 * time.Minute

// gateways are the gateways of one backend. The one that answered last is asked first.
type gateways struct {
	clients []*client.Client
	first   atomic.Int64
}

// Dial is the Dialer that reaches gateways over HTTP.
func Dial(addresses []string) (Gateway, error) {
	if len(addresses) == 0 {
		return nil, errors.New("reaching gateways: no address is given; name one in spec.gateways")
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

// Close drops idle connections.
func (g *gateways) Close() {
	for _, c := range g.clients {
		c.Close()
	}
}

// ask asks one gateway after the other until one answers. A refusal is an answer; not being able to serve is none.
func ask[T any](ctx context.Context, g *gateways, call func(ctx context.Context, c *client.Client) (T, error)) (answer T, err error) {
	return askWithin(ctx, g, callTimeout, call)
}

// askWithin is ask with another bound on each call.
func askWithin[T any](ctx context.Context, g *gateways, timeout time.Duration, call func(ctx context.Context, c *client.Client) (T, error)) (answer T, err error) {
	first := g.first.Load()
	var failures []error
	for i := range int64(len(g.clients)) {
		at := (first + i) % int64(len(g.clients))
		answer, err = callOne(ctx, g.clients[at], timeout, call)
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

func callOne[T any](ctx context.Context, c *client.Client, timeout time.Duration, call func(ctx context.Context, c *client.Client) (T, error)) (T, error) {
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	return call(ctx, c)
}

// silent reports whether an error says that the gateway could not answer, so that another one may.
func silent(err error) bool {
	return errors.Is(err, client.ErrUnreachable) || errors.Is(err, api.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// refused reports whether an error says that what was asked for was not done, and will not be unless something changes.
func refused(err error) bool {
	for _, definite := range []error{api.ErrBadRequest, api.ErrConflict, api.ErrNotFound, api.ErrTooFewNodes} {
		if errors.Is(err, definite) {
			return true
		}
	}
	return false
}

func (g *gateways) StatusBrief(ctx context.Context) (api.Status, error) {
	return ask(ctx, g, func(ctx context.Context, c *client.Client) (api.Status, error) { return c.StatusBrief(ctx) })
}

func (g *gateways) Status(ctx context.Context) (api.Status, error) {
	return askWithin(ctx, g, walkTimeout, func(ctx context.Context, c *client.Client) (api.Status, error) { return c.Status(ctx) })
}

func (g *gateways) Heat(ctx context.Context) (api.HeatReport, error) {
	return ask(ctx, g, func(ctx context.Context, c *client.Client) (api.HeatReport, error) { return c.Heat(ctx) })
}

// Load asks every gateway, as each knows its own clients alone: the longest waits, and the sums.
func (g *gateways) Load(ctx context.Context) (worst api.Load, err error) {
	var failures []error
	for _, c := range g.clients {
		load, err := callOne(ctx, c, callTimeout, func(ctx context.Context, c *client.Client) (api.Load, error) { return c.Load(ctx) })
		if err != nil {
			failures = append(failures, err)
			continue
		}
		worst.WindowSeconds = max(worst.WindowSeconds, load.WindowSeconds)
		worst.P50Seconds, worst.P99Seconds = max(worst.P50Seconds, load.P50Seconds), max(worst.P99Seconds, load.P99Seconds)
		worst.Requests += load.Requests
		worst.TransitionBytesPerSecond += load.TransitionBytesPerSecond
	}
	if len(failures) == len(g.clients) {
		return worst, errors.Join(failures...)
	}
	return worst, nil
}

func (g *gateways) Classes(ctx context.Context) ([]api.ClassInfo, error) {
	return ask(ctx, g, func(ctx context.Context, c *client.Client) ([]api.ClassInfo, error) { return c.Classes(ctx) })
}

func (g *gateways) RepairStatus(ctx context.Context) (api.RepairStatus, error) {
	return ask(ctx, g, func(ctx context.Context, c *client.Client) (api.RepairStatus, error) { return c.RepairStatus(ctx) })
}

func (g *gateways) ThrottleRepair(ctx context.Context, limits api.ThrottleRequest) (api.RepairStatus, error) {
	return ask(ctx, g, func(ctx context.Context, c *client.Client) (api.RepairStatus, error) {
		return c.ThrottleRepair(ctx, limits)
	})
}

func (g *gateways) DeferRepair(ctx context.Context, request api.DeferRequest) (api.RepairStatus, error) {
	return ask(ctx, g, func(ctx context.Context, c *client.Client) (api.RepairStatus, error) {
		return c.DeferRepair(ctx, request)
	})
}

func (g *gateways) PutClass(ctx context.Context, class api.ClassSpec) (api.ClassInfo, error) {
	return ask(ctx, g, func(ctx context.Context, c *client.Client) (api.ClassInfo, error) { return c.PutClass(ctx, class) })
}

func (g *gateways) DeleteClass(ctx context.Context, name string) error {
	_, err := ask(ctx, g, func(ctx context.Context, c *client.Client) (struct{}, error) {
		return struct{}{}, c.DeleteClass(ctx, name)
	})
	return err
}

func (g *gateways) PlaceNode(ctx context.Context, id string, request api.PlaceRequest) (api.NodeInfo, error) {
	return ask(ctx, g, func(ctx context.Context, c *client.Client) (api.NodeInfo, error) {
		return c.PlaceNode(ctx, id, request)
	})
}

func (g *gateways) Estimate(ctx context.Context, request api.TransitionRequest) (api.Estimate, error) {
	return ask(ctx, g, func(ctx context.Context, c *client.Client) (api.Estimate, error) { return c.Estimate(ctx, request) })
}

func (g *gateways) StartTransition(ctx context.Context, request api.TransitionRequest) (api.Transition, error) {
	return ask(ctx, g, func(ctx context.Context, c *client.Client) (api.Transition, error) {
		return c.StartTransition(ctx, request)
	})
}

func (g *gateways) Transition(ctx context.Context, id string) (api.Transition, error) {
	return ask(ctx, g, func(ctx context.Context, c *client.Client) (api.Transition, error) { return c.Transition(ctx, id) })
}

func (g *gateways) Pause(ctx context.Context, id string) (api.Transition, error) {
	return ask(ctx, g, func(ctx context.Context, c *client.Client) (api.Transition, error) { return c.Pause(ctx, id) })
}

func (g *gateways) Resume(ctx context.Context, id string, bytesPerSecond *int64) (api.Transition, error) {
	return ask(ctx, g, func(ctx context.Context, c *client.Client) (api.Transition, error) {
		return c.Resume(ctx, id, bytesPerSecond)
	})
}

func (g *gateways) Cancel(ctx context.Context, id string) (api.Transition, error) {
	return ask(ctx, g, func(ctx context.Context, c *client.Client) (api.Transition, error) { return c.Cancel(ctx, id) })
}

func (g *gateways) Throttle(ctx context.Context, id string, limits api.ThrottleRequest) (api.Transition, error) {
	return ask(ctx, g, func(ctx context.Context, c *client.Client) (api.Transition, error) {
		return c.Throttle(ctx, id, limits)
	})
}
