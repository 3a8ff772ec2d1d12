package operator_test

import (
	"context"
	"math/rand/v2"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator/gateways"
)

// cutGateway is the gateways of a backend as one operator reaches them, until it is cut off.
type cutGateway struct {
	w      *world
	to     gateways.Gateway
	broken func()
}

// through makes a call unless the operator is cut off; then it may be made all the same, and nobody hears of it.
func through[T any](g *cutGateway, call func() (T, error)) (answer T, err error) {
	if g.w.isCut() {
		g.broken()
		if rand.IntN(2) == 0 {
			call()
		}
		return answer, errCut
	}
	return call()
}

func (g *cutGateway) StatusBrief(ctx context.Context) (api.Status, error) {
	return through(g, func() (api.Status, error) { return g.to.StatusBrief(ctx) })
}

func (g *cutGateway) Status(ctx context.Context) (api.Status, error) {
	return through(g, func() (api.Status, error) { return g.to.Status(ctx) })
}

func (g *cutGateway) Heat(ctx context.Context) (api.HeatReport, error) {
	return through(g, func() (api.HeatReport, error) { return g.to.Heat(ctx) })
}

func (g *cutGateway) Load(ctx context.Context) (api.Load, error) {
	return through(g, func() (api.Load, error) { return g.to.Load(ctx) })
}

func (g *cutGateway) Classes(ctx context.Context) ([]api.ClassInfo, error) {
	return through(g, func() ([]api.ClassInfo, error) { return g.to.Classes(ctx) })
}

func (g *cutGateway) PutClass(ctx context.Context, class api.ClassSpec) (api.ClassInfo, error) {
	return through(g, func() (api.ClassInfo, error) { return g.to.PutClass(ctx, class) })
}

func (g *cutGateway) DeleteClass(ctx context.Context, name string) error {
	_, err := through(g, func() (struct{}, error) { return struct{}{}, g.to.DeleteClass(ctx, name) })
	return err
}

func (g *cutGateway) PlaceNode(ctx context.Context, id string, request api.PlaceRequest) (api.NodeInfo, error) {
	return through(g, func() (api.NodeInfo, error) { return g.to.PlaceNode(ctx, id, request) })
}

func (g *cutGateway) AddNode(ctx context.Context, id string, request api.AddRequest) (api.AddedNode, error) {
	return through(g, func() (api.AddedNode, error) { return g.to.AddNode(ctx, id, request) })
}

func (g *cutGateway) StartBalance(ctx context.Context, request api.BalanceRequest) (api.Balance, error) {
	return through(g, func() (api.Balance, error) { return g.to.StartBalance(ctx, request) })
}

func (g *cutGateway) RepairStatus(ctx context.Context) (api.RepairStatus, error) {
	return through(g, func() (api.RepairStatus, error) { return g.to.RepairStatus(ctx) })
}

func (g *cutGateway) ThrottleRepair(ctx context.Context, limits api.ThrottleRequest) (api.RepairStatus, error) {
	return through(g, func() (api.RepairStatus, error) { return g.to.ThrottleRepair(ctx, limits) })
}

func (g *cutGateway) DeferRepair(ctx context.Context, request api.DeferRequest) (api.RepairStatus, error) {
	return through(g, func() (api.RepairStatus, error) { return g.to.DeferRepair(ctx, request) })
}

func (g *cutGateway) Estimate(ctx context.Context, request api.TransitionRequest) (api.Estimate, error) {
	return through(g, func() (api.Estimate, error) { return g.to.Estimate(ctx, request) })
}

func (g *cutGateway) StartTransition(ctx context.Context, request api.TransitionRequest) (api.Transition, error) {
	return through(g, func() (api.Transition, error) { return g.to.StartTransition(ctx, request) })
}

func (g *cutGateway) Transition(ctx context.Context, id string) (api.Transition, error) {
	return through(g, func() (api.Transition, error) { return g.to.Transition(ctx, id) })
}

func (g *cutGateway) Pause(ctx context.Context, id string) (api.Transition, error) {
	return through(g, func() (api.Transition, error) { return g.to.Pause(ctx, id) })
}

func (g *cutGateway) Resume(ctx context.Context, id string, bytesPerSecond *int64) (api.Transition, error) {
	return through(g, func() (api.Transition, error) { return g.to.Resume(ctx, id, bytesPerSecond) })
}

func (g *cutGateway) Cancel(ctx context.Context, id string) (api.Transition, error) {
	return through(g, func() (api.Transition, error) { return g.to.Cancel(ctx, id) })
}

func (g *cutGateway) Throttle(ctx context.Context, id string, limits api.ThrottleRequest) (api.Transition, error) {
	return through(g, func() (api.Transition, error) { return g.to.Throttle(ctx, id, limits) })
}
