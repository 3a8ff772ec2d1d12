package gateway

import (
	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// moved is what taking one group to another scheme cost.
type moved struct {
	skipped   bool  // it was there already, or is gone
	objects   int64 // objects moved out of the group instead
	bytes     int64
	predicted api.Traffic
	measured  api.Traffic
	baselines map[string]int64 // bytes other ways would have sent
}

// account compares what the run cost with its plan and with other ways.
func (g *Gateway) account(r *run, done *result) *moved {
	cell := int64(r.group.CellBytes)
	cost := r.plan.Cost
	m := &moved{
		bytes: int64(r.before.layout.Cells()) * cell,
		predicted: api.Traffic{
			BlocksRead: int64(cost.BlocksRead), BlocksSent: int64(cost.BlocksSent), BlocksWritten: int64(cost.BlocksWritten),
			BytesRead: int64(cost.BlocksRead) * cell, BytesSent: int64(cost.BlocksSent) * cell, BytesWritten: int64(cost.BlocksWritten) * cell,
		},
		measured:  trafficOf(done.counters),
		baselines: map[string]int64{},
	}
	for name, baseline := range stripe.Baselines(r.before.layout, r.plan.From, r.plan.To) {
		if baseline != nil {
			m.baselines[name] = int64(baseline.BlocksSent) * cell
		}
	}
	return m
}

func trafficOf(counters wire.Counters) api.Traffic {
	return api.Traffic{
		BlocksRead: counters.BlocksRead, BlocksSent: counters.BlocksSent, BlocksWritten: counters.BlocksWritten,
		BytesRead: counters.BytesRead, BytesSent: counters.BytesSent, BytesWritten: counters.BytesWritten,
	}
}

// proxyFor chooses the node that plays the proxy: the named one, else any that is not part of the group.
func (g *Gateway) proxyFor(group *catalog.Group, named block.NodeID) (block.NodeID, error) {
	if named != "" {
		return named, nil
	}
	taken := map[block.NodeID]bool{}
	for _, id := range group.Home {
		taken[id] = true
	}
	if id, found := g.agents.substitute(taken); found {
		return id, nil
	}
	return "", api.Refuse(api.ErrTooFewNodes, "a proxy planner needs one node beside the %d of group %s; add a node or name one with proxy", len(group.Home), group.ID)
}
