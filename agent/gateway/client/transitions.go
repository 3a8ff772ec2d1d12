package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/restripe/restripe/agent/gateway/api"
)

// transitions plans, starts and steers the moves of objects to other schemes.
type transitions struct{ *transport }

// Estimate returns what a transition would cost, without starting it. ErrUnavailable until the gateway has made its first
// heat report.
func (c *transitions) Estimate(ctx context.Context, r api.TransitionRequest) (estimate api.Estimate, err error) {
	return estimate, c.call(ctx, api.RouteEstimate, nil, r, &estimate)
}

// StartTransition starts a transition and returns its first state.
func (c *transitions) StartTransition(ctx context.Context, r api.TransitionRequest) (t api.Transition, err error) {
	return t, c.call(ctx, api.RouteStartTransition, nil, r, &t)
}

// Move takes one object to another scheme.
func (c *transitions) Move(ctx context.Context, key, scheme string) (t api.Transition, err error) {
	return t, c.call(ctx, api.RouteMoveObject, nil, api.MoveRequest{Key64: api.EncodeKey(key), To: scheme}, &t)
}

// Transitions lists the transitions the catalog remembers.
func (c *transitions) Transitions(ctx context.Context) (list []api.Transition, err error) {
	return list, c.call(ctx, api.RouteListTransitions, nil, nil, &list)
}

// Transition returns the state of one transition.
func (c *transitions) Transition(ctx context.Context, id string) (t api.Transition, err error) {
	return t, c.call(ctx, api.RouteGetTransition.With(id), nil, nil, &t)
}

// Watch calls visit with every state the gateway reports until the transition ends or is paused, and returns the last
// one. An error of visit ends the watch, not the transition.
func (c *transitions) Watch(ctx context.Context, id string, visit func(api.Transition) error) (last api.Transition, err error) {
	reply, err := c.send(ctx, request{route: api.RouteGetTransition.With(id), query: url.Values{"watch": {"true"}}})
	if err != nil {
		return last, err
	}
	defer func() { err = errors.Join(err, reply.Body.Close()) }()
	states := json.NewDecoder(reply.Body)
	for {
		var t api.Transition
		switch err := states.Decode(&t); {
		case errors.Is(err, io.EOF) && (last.State.Final() || last.State == api.TransitionPaused):
			return last, nil
		case errors.Is(err, io.EOF):
			return last, fmt.Errorf("watching transition %s: the gateway ended the stream before the transition ended", id)
		case err != nil:
			return last, fmt.Errorf("watching transition %s: %w", id, err)
		}
		last = t
		if err := visit(t); err != nil {
			return last, err
		}
	}
}

// Pause stops a transition after the groups in work.
func (c *transitions) Pause(ctx context.Context, id string) (t api.Transition, err error) {
	return t, c.call(ctx, api.RoutePauseTransition.With(id), nil, nil, &t)
}

// Resume goes on with a paused transition. bytesPerSecond, where not nil, is its new limit; 0 lifts it.
func (c *transitions) Resume(ctx context.Context, id string, bytesPerSecond *int64) (t api.Transition, err error) {
	var input any
	if bytesPerSecond != nil {
		input = map[string]int64{"bytesPerSecond": *bytesPerSecond}
	}
	return t, c.call(ctx, api.RouteResumeTransition.With(id), nil, input, &t)
}

// Cancel ends a transition; groups already taken over stay as they are.
func (c *transitions) Cancel(ctx context.Context, id string) (t api.Transition, err error) {
	return t, c.call(ctx, api.RouteCancelTransition.With(id), nil, nil, &t)
}

// Throttle changes the limits of a transition at once, whether it runs or is paused.
func (c *transitions) Throttle(ctx context.Context, id string, r api.ThrottleRequest) (t api.Transition, err error) {
	return t, c.call(ctx, api.RouteThrottleTransition.With(id), nil, r, &t)
}
