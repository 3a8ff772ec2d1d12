package client

import (
	"context"

	"github.com/restripe/restripe/agent/gateway/api"
)

// Class is a class as it is in force.
type Class = api.ClassInfo

// Classes returns the classes of the cluster, by name.
func (c *Client) Classes(ctx context.Context) (classes []Class, err error) {
	return classes, c.call(ctx, api.RouteListClasses, nil, nil, &classes)
}

// PutClass declares a class, new or in place of the one of that name. Every gateway knows it within seconds.
func (c *Client) PutClass(ctx context.Context, spec api.ClassSpec) (class Class, err error) {
	return class, c.call(ctx, api.RoutePutClass.With(spec.Name), nil, spec, &class)
}

// DeleteClass removes a class that has no objects; ErrConflict where it has some. One that is not there is removed already.
func (c *Client) DeleteClass(ctx context.Context, name string) error {
	return c.call(ctx, api.RouteDeleteClass.With(name), nil, nil, nil)
}

// Heat returns how often the groups of every class are used.
func (c *Client) Heat(ctx context.Context) (report api.HeatReport, err error) {
	return report, c.call(ctx, api.RouteHeat, nil, nil, &report)
}

// Estimate returns what a transition would cost, without starting it. ErrUnavailable until the gateway has made its first
// heat report.
func (c *Client) Estimate(ctx context.Context, r api.TransitionRequest) (estimate api.Estimate, err error) {
	return estimate, c.call(ctx, api.RouteEstimate, nil, r, &estimate)
}

// Throttle changes the limits of a transition at once, whether it runs or is paused.
func (c *Client) Throttle(ctx context.Context, id string, r api.ThrottleRequest) (t api.Transition, err error) {
	return t, c.call(ctx, api.RouteThrottleTransition.With(id), nil, r, &t)
}

// Load returns what clients asked of the gateway in the last seconds.
func (c *Client) Load(ctx context.Context) (load api.Load, err error) {
	return load, c.call(ctx, api.RouteLoad, nil, nil, &load)
}

// StatusBrief returns the nodes and the transitions that have not ended. Counts of objects and groups are those of the
// last heat report, so it costs little however large the cluster is.
func (c *Client) StatusBrief(ctx context.Context) (status api.Status, err error) {
	return status, c.call(ctx, api.RouteStatus, map[string][]string{"brief": {"true"}}, nil, &status)
}
