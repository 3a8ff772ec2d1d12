package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/restripe/restripe/agent/gateway/api"
)

// repairs starts and steers the repair of what was lost.
type repairs struct{ *transport }

// Repair rebuilds the slots that are missing, and those that a read found corrupt.
func (c *repairs) Repair(ctx context.Context) (api.RepairResult, error) {
	return c.RepairAs(ctx, api.RepairRequest{})
}

// RepairDeep is Repair that has every block read and checked whole first.
func (c *repairs) RepairDeep(ctx context.Context) (api.RepairResult, error) {
	return c.RepairAs(ctx, api.RepairRequest{Deep: true})
}

// RepairAs is Repair in the way the request says.
func (c *repairs) RepairAs(ctx context.Context, request api.RepairRequest) (result api.RepairResult, err error) {
	query := url.Values{"deep": {strconv.FormatBool(request.Deep)}, "whole": {strconv.FormatBool(request.Whole)}}
	for name, value := range map[string]string{"shape": request.Shape, "proxy": request.Proxy} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return result, c.call(ctx, api.RouteStartRepair, query, nil, &result)
}

// RepairStatus returns how the repair of what was lost stands.
func (c *repairs) RepairStatus(ctx context.Context) (status api.RepairStatus, err error) {
	return status, c.call(ctx, api.RouteGetRepair, nil, nil, &status)
}

// PauseRepair keeps groups from being rebuilt that nobody asks for.
func (c *repairs) PauseRepair(ctx context.Context) (status api.RepairStatus, err error) {
	return status, c.call(ctx, api.RoutePauseRepair, nil, nil, &status)
}

// ResumeRepair ends a pause, and a deferral.
func (c *repairs) ResumeRepair(ctx context.Context) (status api.RepairStatus, err error) {
	return status, c.call(ctx, api.RouteResumeRepair, nil, nil, &status)
}

// DeferRepair has groups wait for a while that lost something with a node or a store and survive a further loss.
func (c *repairs) DeferRepair(ctx context.Context, request api.DeferRequest) (status api.RepairStatus, err error) {
	return status, c.call(ctx, api.RouteDeferRepair, nil, request, &status)
}

// ThrottleRepair changes the limits of repair that the request names.
func (c *repairs) ThrottleRepair(ctx context.Context, request api.ThrottleRequest) (status api.RepairStatus, err error) {
	return status, c.call(ctx, api.RouteThrottleRepair, nil, request, &status)
}
