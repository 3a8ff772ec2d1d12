package group

import (
	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// Cost is what taking one group, or several together, to another scheme cost.
type Cost struct {
	Skipped   bool  // it was there already, or is gone
	Reshaped  int64 // groups that got columns of others, and those others
	Objects   int64 // objects copied out of the group instead
	Copied    int64 // their bytes
	bytes     int64
	Predicted api.Traffic
	Measured  api.Traffic
	Baselines map[string]int64 // bytes other ways would have sent
}

// Count adds objects that were copied.
func (c *Cost) Count(snapshots ...*catalog.Snapshot) {
	for _, snapshot := range snapshots {
		c.Objects++
		c.Copied += snapshot.Object.Size
	}
}

// Add adds what another group cost.
func (c *Cost) Add(other *Cost) {
	c.Reshaped += other.Reshaped
	c.Objects += other.Objects
	c.Copied += other.Copied
	c.bytes += other.bytes
	c.Predicted.Add(other.Predicted)
	c.Measured.Add(other.Measured)
	for name, bytes := range other.Baselines {
		if c.Baselines == nil {
			c.Baselines = map[string]int64{}
		}
		c.Baselines[name] += bytes
	}
}

// Account compares what the run cost with its plan and with other ways.
func (g *Groups) Account(r *Execution, done *Result) *Cost {
	cell := int64(r.Group.CellBytes)
	cost := r.Plan.Cost
	m := &Cost{
		bytes: int64(r.before.Layout.Cells()) * cell,
		Predicted: api.Traffic{
			BlocksRead: int64(cost.BlocksRead), BlocksSent: int64(cost.BlocksSent), BlocksWritten: int64(cost.BlocksWritten),
			BytesRead: int64(cost.BlocksRead) * cell, BytesSent: int64(cost.BlocksSent) * cell, BytesWritten: int64(cost.BlocksWritten) * cell,
		},
		Measured:  trafficOf(done.Counters),
		Baselines: map[string]int64{},
	}
	for name, baseline := range r.baselines() {
		if baseline != nil {
			m.Baselines[name] = int64(baseline.BlocksSent) * cell
		}
	}
	return m
}

// baselines are what other ways cost: of a group that becomes narrower, what the same of the narrower one does.
func (r *Execution) baselines() map[string]*stripe.Cost {
	if r.Plan.Before.Columns != r.Plan.Layout.Columns {
		return stripe.Baselines(r.after.Layout, r.Plan.To, r.Plan.To)
	}
	return stripe.Baselines(r.before.Layout, r.Plan.From, r.Plan.To)
}

func trafficOf(counters wire.Counters) api.Traffic {
	return api.Traffic{
		BlocksRead: counters.BlocksRead, BlocksSent: counters.BlocksSent, BlocksWritten: counters.BlocksWritten,
		BytesRead: counters.BytesRead, BytesSent: counters.BytesSent, BytesWritten: counters.BytesWritten,
	}
}

// ProxyFor chooses the node that plays the proxy: the named one, else any that is not part of the group.
func (g *Groups) ProxyFor(group *catalog.Group, named block.NodeID) (block.NodeID, error) {
	if named != "" {
		return named, nil
	}
	taken := map[block.NodeID]bool{}
	for _, id := range group.Home {
		taken[id] = true
	}
	if id, found := g.agents.Substitute(taken); found {
		return id, nil
	}
	return "", api.Refuse(api.ErrTooFewNodes, "a proxy planner needs one node beside the %d of group %s; add a node or name one with proxy", len(group.Home), group.ID)
}
