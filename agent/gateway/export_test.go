package gateway

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/stripe"
)

// HoldDecodes takes all the memory that fragments are decoded in, until release.
func (g *Gateway) HoldDecodes() (release func(), held bool) {
	return g.groups.Memory.Decodes.Try(g.groups.Memory.Decodes.Bytes)
}

// HoldGroups takes all the memory that large objects are put in, until release.
func (g *Gateway) HoldGroups() (release func(), held bool) {
	return g.groups.Memory.Groups.Try(g.groups.Memory.Groups.Bytes)
}

// HoldSmall takes all the memory that small objects come into, until release.
func (g *Gateway) HoldSmall() (release func(), held bool) {
	return g.groups.Memory.Small.Try(g.groups.Memory.Small.Bytes)
}

// RepairWaits reports whether the repair of a group waits for what limits repair.
func (g *Gateway) RepairWaits() bool { return g.Repairs.IsWaiting() }

// TakeLoss reports whether the records of all groups are to be looked at for losses, and takes that back.
func (g *Gateway) TakeLoss() bool { return g.agents.Lost.Swap(false) }

// Figures is where the gateway's metrics are.
func (g *Gateway) Figures() *prometheus.Registry { return g.metrics.registry }

// Known returns the nodes as the gateway knows them, without asking anybody.
func (g *Gateway) Known() []member.Member { return g.agents.Members() }

// Reshape has groups become wider by the columns of others, or narrower by giving them back.
func (g *Gateway) Reshape(ctx context.Context, kept, taken []*catalog.GroupView, ladder string, to string) (*group.Cost, error) {
	schemes, err := stripe.ParseLadder(ladder)
	if err != nil {
		return nil, err
	}
	scheme, err := stripe.ParseScheme(to)
	if err != nil {
		return nil, err
	}
	return g.groups.Reshape(ctx, &group.Region{Kept: kept, Taken: taken}, group.Shape{Ladder: schemes, Mode: stripe.ModeFree, Scheme: scheme},
		func(context.Context, *catalog.Group, *group.Execution) (bool, error) { return true, nil })
}
