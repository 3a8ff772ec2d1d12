package client

import (
	"context"
	"net/url"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// Class is a class as it is in force.
type Class = api.ClassInfo

// classes declares the classes of the cluster and tells how much each is used.
type classes struct{ *transport }

// Classes returns the classes of the cluster, by name.
func (c *classes) Classes(ctx context.Context) (classes []Class, err error) {
	return classes, c.call(ctx, api.RouteListClasses, nil, nil, &classes)
}

// PutClass declares a class, new or in place of the one of that name. Every gateway knows it within seconds.
func (c *classes) PutClass(ctx context.Context, spec api.ClassSpec) (class Class, err error) {
	return class, c.call(ctx, api.RoutePutClass.With(spec.Name), nil, spec, &class)
}

// DeleteClass removes a class that has no objects; ErrConflict where it has some. One that is not there is removed already.
func (c *classes) DeleteClass(ctx context.Context, name string) error {
	return c.call(ctx, api.RouteDeleteClass.With(name), nil, nil, nil)
}

// HeatUnder returns how often the groups of one class are used, settled or not by a dwell that the class need not have. The
// gateway walks over all groups for it.
func (c *classes) HeatUnder(ctx context.Context, class string, dwell time.Duration) (report api.HeatReport, err error) {
	return report, c.call(ctx, api.RouteHeat, url.Values{"class": {class}, "dwell": {dwell.String()}}, nil, &report)
}

// Heat returns how often the groups of every class are used.
func (c *classes) Heat(ctx context.Context) (report api.HeatReport, err error) {
	return report, c.call(ctx, api.RouteHeat, nil, nil, &report)
}
