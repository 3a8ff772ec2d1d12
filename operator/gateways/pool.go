package gateways

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
)

// Patience bounds one call to one gateway, so that one that hangs does not hold up what another would answer.
const Patience = 15 * time.Second

// Credentials are what is shown to gateways.
type Credentials = client.Options

// WalkPatience bounds a walk over everything by one gateway.
const WalkPatience = 5 * time.Minute

// Pool is the gateways of one backend, any of which answers for all. The one that answered last is asked first. It is safe
// for concurrent use.
type Pool struct {
	clients  []*client.Client
	patience time.Duration
	first    atomic.Int64
}

var (
	_ Gateway        = (*Pool)(nil)
	_ ObjectLister   = (*Pool)(nil)
	_ HeatForeteller = (*Pool)(nil)
)

// NewPool returns the gateways at the addresses, of which there is at least one; each call to one of them takes no longer
// than the patience, and shows them who asks. It does not connect yet. Close it in the end.
func NewPool(addresses []string, patience time.Duration, who Credentials) (*Pool, error) {
	if len(addresses) == 0 {
		return nil, errors.New("reaching gateways: none is named; name one in spec.gateways of the backend")
	}
	p := &Pool{patience: patience}
	for _, address := range addresses {
		c, err := client.NewWith(address, who)
		if err != nil {
			return nil, fmt.Errorf("reaching gateways: %w", err)
		}
		p.clients = append(p.clients, c)
	}
	return p, nil
}

// Dial returns the Dialer that reaches gateways over HTTP and shows them who asks.
func Dial(who Credentials) Dialer { return DialWithin(Patience, who) }

// DialWithin is Dial with another patience.
func DialWithin(patience time.Duration, who Credentials) Dialer {
	return func(addresses []string) (Gateway, error) {
		p, err := NewPool(addresses, patience, who)
		if err != nil {
			return nil, err // and not a Gateway that holds a nil Pool
		}
		return p, nil
	}
}

// Close drops idle connections. A pool that is used again makes new ones.
func (p *Pool) Close() {
	for _, c := range p.clients {
		c.Close()
	}
}

// Ask asks one gateway after the other, each for at most the patience, until one answers. A refusal is an answer; not being
// able to serve is none. The error is then all of theirs. It ends with the context.
func Ask[T any](
	ctx context.Context,
	p *Pool,
	patience time.Duration,
	call func(context.Context, *client.Client) (T, error),
) (answer T, err error) {
	first := p.first.Load()
	var failures []error
	for i := range int64(len(p.clients)) {
		at := (first + i) % int64(len(p.clients))
		answer, err = askOne(ctx, p.clients[at], patience, call)
		if err == nil || !silent(err) {
			p.first.Store(at)
			return answer, err
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
	}
	return answer, errors.Join(failures...)
}

// AskFirst asks the gateway that answered last and no other: for what must not be done twice.
func AskFirst[T any](
	ctx context.Context,
	p *Pool,
	patience time.Duration,
	call func(context.Context, *client.Client) (T, error),
) (T, error) {
	return askOne(ctx, p.clients[p.first.Load()], patience, call)
}

// askOne asks one gateway. That it took longer than the patience is told as ErrUnreachable: the deadline is the pool's own,
// and an error of a context would say to callers that theirs had ended.
func askOne[T any](
	ctx context.Context,
	c *client.Client,
	patience time.Duration,
	call func(context.Context, *client.Client) (T, error),
) (T, error) {
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
	return errors.Is(err, client.ErrUnreachable) || errors.Is(err, api.ErrUnavailable) || errors.Is(err, api.ErrBusy) ||
		errors.Is(err, context.DeadlineExceeded)
}

// Refused reports whether an error says that what was asked for was not done, and will not be unless something changes.
func Refused(err error) bool {
	for _, definite := range []error{api.ErrBadRequest, api.ErrConflict, api.ErrNotFound, api.ErrTooFewNodes} {
		if errors.Is(err, definite) {
			return true
		}
	}
	return false
}

// ask is Ask within the patience of the pool, for a call that takes nothing but a context.
func ask[T any](ctx context.Context, p *Pool, call func(*client.Client, context.Context) (T, error)) (T, error) {
	return Ask(ctx, p, p.patience, func(ctx context.Context, c *client.Client) (T, error) { return call(c, ctx) })
}

// askAbout is ask for a call that takes something besides.
func askAbout[T, A any](ctx context.Context, p *Pool, call func(*client.Client, context.Context, A) (T, error), about A) (T, error) {
	return Ask(ctx, p, p.patience, func(ctx context.Context, c *client.Client) (T, error) { return call(c, ctx, about) })
}

// StatusBrief asks any gateway.
func (p *Pool) StatusBrief(ctx context.Context) (api.Status, error) {
	return ask(ctx, p, (*client.Client).StatusBrief)
}

// Status asks any gateway, each for at most WalkPatience.
func (p *Pool) Status(ctx context.Context) (api.Status, error) {
	return Ask(ctx, p, WalkPatience, func(ctx context.Context, c *client.Client) (api.Status, error) { return c.Status(ctx) })
}

// Heat asks any gateway.
func (p *Pool) Heat(ctx context.Context) (api.HeatReport, error) {
	return ask(ctx, p, (*client.Client).Heat)
}

// Load asks every gateway at once, as each knows its own clients alone: the longest waits, and the sums. Those that do not
// answer count for nothing, unless none does.
func (p *Pool) Load(ctx context.Context) (worst api.Load, err error) {
	answers, failures := make([]api.Load, len(p.clients)), make([]error, len(p.clients))
	var asking sync.WaitGroup
	for i, c := range p.clients {
		asking.Go(func() {
			answers[i], failures[i] = askOne(
				ctx,
				c,
				p.patience,
				func(ctx context.Context, c *client.Client) (api.Load, error) { return c.Load(ctx) },
			)
		})
	}
	asking.Wait()
	answered := false
	for i, load := range answers {
		if failures[i] != nil {
			continue
		}
		answered = true
		worst.WindowSeconds = max(worst.WindowSeconds, load.WindowSeconds)
		worst.P50Seconds, worst.P99Seconds = max(worst.P50Seconds, load.P50Seconds), max(worst.P99Seconds, load.P99Seconds)
		worst.Requests += load.Requests
		worst.TransitionBytesPerSecond += load.TransitionBytesPerSecond
	}
	if !answered {
		return worst, errors.Join(failures...)
	}
	return worst, nil
}

// Classes asks any gateway.
func (p *Pool) Classes(ctx context.Context) ([]api.ClassInfo, error) {
	return ask(ctx, p, (*client.Client).Classes)
}

// PutClass asks any gateway.
func (p *Pool) PutClass(ctx context.Context, class api.ClassSpec) (api.ClassInfo, error) {
	return askAbout(ctx, p, (*client.Client).PutClass, class)
}

// DeleteClass asks any gateway.
func (p *Pool) DeleteClass(ctx context.Context, name string) error {
	_, err := Ask(ctx, p, p.patience, func(ctx context.Context, c *client.Client) (struct{}, error) {
		return struct{}{}, c.DeleteClass(ctx, name)
	})
	return err
}

// List asks any gateway.
func (p *Pool) List(ctx context.Context, prefix, after string, limit int) (api.ObjectList, error) {
	return Ask(ctx, p, p.patience, func(ctx context.Context, c *client.Client) (api.ObjectList, error) {
		return c.List(ctx, prefix, after, limit)
	})
}

// HeatUnder asks any gateway, each for at most WalkPatience.
func (p *Pool) HeatUnder(ctx context.Context, class string, dwell time.Duration) (api.HeatReport, error) {
	return Ask(ctx, p, WalkPatience, func(ctx context.Context, c *client.Client) (api.HeatReport, error) {
		return c.HeatUnder(ctx, class, dwell)
	})
}

// PlaceNode asks any gateway.
func (p *Pool) PlaceNode(ctx context.Context, id string, request api.PlaceRequest) (api.NodeInfo, error) {
	return Ask(ctx, p, p.patience, func(ctx context.Context, c *client.Client) (api.NodeInfo, error) {
		return c.PlaceNode(ctx, id, request)
	})
}

// AddNode asks one gateway that answers, as another one would refuse what that has done already.
func (p *Pool) AddNode(ctx context.Context, id string, request api.AddRequest) (api.AddedNode, error) {
	if _, err := p.StatusBrief(ctx); err != nil { // which finds the one
		return api.AddedNode{}, err
	}
	return AskFirst(ctx, p, p.patience, func(ctx context.Context, c *client.Client) (api.AddedNode, error) {
		return c.AddNode(ctx, id, request)
	})
}

// StartBalance asks any gateway.
func (p *Pool) StartBalance(ctx context.Context, request api.BalanceRequest) (api.Balance, error) {
	return askAbout(ctx, p, (*client.Client).StartBalance, request)
}

// RepairStatus asks any gateway.
func (p *Pool) RepairStatus(ctx context.Context) (api.RepairStatus, error) {
	return ask(ctx, p, (*client.Client).RepairStatus)
}

// ThrottleRepair asks any gateway.
func (p *Pool) ThrottleRepair(ctx context.Context, limits api.ThrottleRequest) (api.RepairStatus, error) {
	return askAbout(ctx, p, (*client.Client).ThrottleRepair, limits)
}

// DeferRepair asks any gateway.
func (p *Pool) DeferRepair(ctx context.Context, request api.DeferRequest) (api.RepairStatus, error) {
	return askAbout(ctx, p, (*client.Client).DeferRepair, request)
}

// Estimate asks any gateway.
func (p *Pool) Estimate(ctx context.Context, request api.TransitionRequest) (api.Estimate, error) {
	return askAbout(ctx, p, (*client.Client).Estimate, request)
}

// StartTransition asks any gateway; the request's ID keeps it from being started twice.
func (p *Pool) StartTransition(ctx context.Context, request api.TransitionRequest) (api.Transition, error) {
	return askAbout(ctx, p, (*client.Client).StartTransition, request)
}

// Transition asks any gateway.
func (p *Pool) Transition(ctx context.Context, id string) (api.Transition, error) {
	return askAbout(ctx, p, (*client.Client).Transition, id)
}

// Pause asks any gateway.
func (p *Pool) Pause(ctx context.Context, id string) (api.Transition, error) {
	return askAbout(ctx, p, (*client.Client).Pause, id)
}

// Resume asks any gateway.
func (p *Pool) Resume(ctx context.Context, id string, bytesPerSecond *int64) (api.Transition, error) {
	return Ask(ctx, p, p.patience, func(ctx context.Context, c *client.Client) (api.Transition, error) {
		return c.Resume(ctx, id, bytesPerSecond)
	})
}

// Cancel asks any gateway.
func (p *Pool) Cancel(ctx context.Context, id string) (api.Transition, error) {
	return askAbout(ctx, p, (*client.Client).Cancel, id)
}

// Throttle asks any gateway.
func (p *Pool) Throttle(ctx context.Context, id string, limits api.ThrottleRequest) (api.Transition, error) {
	return Ask(ctx, p, p.patience, func(ctx context.Context, c *client.Client) (api.Transition, error) {
		return c.Throttle(ctx, id, limits)
	})
}
