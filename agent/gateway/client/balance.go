package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/restripe/restripe/agent/gateway/api"
)

// balances adds nodes, and starts and steers the balance of the cluster.
type balances struct{ *transport }

// AddNode makes a node a member, or tells in a dry run what that would do.
func (c *balances) AddNode(ctx context.Context, id string, request api.AddRequest) (added api.AddedNode, err error) {
	return added, c.call(ctx, api.RouteAddNode.With(id), nil, request, &added)
}

// Balance returns the balance of the cluster as it is now.
func (c *balances) Balance(ctx context.Context) (balance api.Balance, err error) {
	return balance, c.call(ctx, api.RouteGetBalance, nil, nil, &balance)
}

// PlanBalance tells what a balance would move now, at a rate; nil is the default.
func (c *balances) PlanBalance(ctx context.Context, bytesPerSecond *int64) (plan api.BalancePlan, err error) {
	query := url.Values{}
	if bytesPerSecond != nil {
		query.Set("bytesPerSecond", strconv.FormatInt(*bytesPerSecond, 10))
	}
	return plan, c.call(ctx, api.RoutePlanBalance, query, nil, &plan)
}

// StartBalance begins a balance, or gives the one under way another rate.
func (c *balances) StartBalance(ctx context.Context, r api.BalanceRequest) (balance api.Balance, err error) {
	return balance, c.call(ctx, api.RouteStartBalance, nil, r, &balance)
}

// PauseBalance stops the balance until it is resumed.
func (c *balances) PauseBalance(ctx context.Context) (balance api.Balance, err error) {
	return balance, c.call(ctx, api.RoutePauseBalance, nil, nil, &balance)
}

// ResumeBalance goes on where the balance was paused.
func (c *balances) ResumeBalance(ctx context.Context) (balance api.Balance, err error) {
	return balance, c.call(ctx, api.RouteResumeBalance, nil, nil, &balance)
}

// CancelBalance ends the balance; what was moved stays where it is.
func (c *balances) CancelBalance(ctx context.Context) (balance api.Balance, err error) {
	return balance, c.call(ctx, api.RouteCancelBalance, nil, nil, &balance)
}
