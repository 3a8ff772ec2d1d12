package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

// how says by which planner groups are taken to another scheme.
type how struct {
	planner   string
	objective stripe.Objective
	proxy     block.NodeID

	admit admission
}

// planGroup binds the plan that takes a group to another scheme. A nil run means that it is there already.
func (g *Gateway) planGroup(group *catalog.Group, to stripe.Scheme, h how) (*run, error) {
	if group.Scheme == to.String() {
		return nil, nil
	}
	from, err := g.codeOf(group)
	if err != nil {
		return nil, err
	}
	if _, err := g.codeUnder(group, to); err != nil {
		return nil, err
	}
	plan, err := stripe.NewPlan(from.layout, from.scheme, to, h.planner, h.objective)
	if err != nil {
		return nil, fmt.Errorf("planning %s -> %s: %w", from.scheme, to, err)
	}
	if !plan.Proved {
		return nil, fmt.Errorf("plan %s of %s -> %s was not proved; no plan runs unproved", h.planner, from.scheme, to)
	}
	r, err := g.newRun(group, plan)
	if err != nil {
		return nil, err
	}
	proxy := stripe.Position(group.Columns + plan.Parities)
	for _, program := range plan.Programs {
		if program.Position > proxy {
			return nil, api.Refuse(api.ErrBadRequest, "planner %s copies to a new pool and serves comparison only; choose another planner", h.planner)
		}
		if program.Position == proxy {
			if r.nodes[proxy], err = g.proxyFor(group, h.proxy); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// transitionGroup takes one group to another scheme in one attempt. Whatever the error, the group is whole under one
// scheme.
func (g *Gateway) transitionGroup(ctx context.Context, id block.GroupID, to stripe.Scheme, h how) (*moved, error) {
	view, err := g.catalog.Group(ctx, id)
	if errors.Is(err, catalog.ErrNoGroup) {
		g.heat.tracker.Forget(id)
		return &moved{skipped: true}, nil
	}
	if err != nil {
		return nil, err
	}
	group := &view.Group
	r, err := g.planGroup(group, to, h)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return &moved{skipped: true}, nil
	}
	if admitted, err := h.admit(ctx, group, r); err != nil || !admitted {
		return &moved{skipped: true}, err
	}
	attempt, err := g.catalog.Begin(ctx, catalog.KindTransition, g.deadline(), func(block.Stamp) []catalog.BlockSet {
		return []catalog.BlockSet{r.blocks()}
	}, view)
	if err != nil {
		return nil, fmt.Errorf("announcing the transition of group %s: %w", id, err)
	}
	done, err := g.carryOut(ctx, attempt, r)
	if err != nil {
		return nil, g.abandon(ctx, attempt, err)
	}
	change := catalog.Change{Groups: []catalog.GroupChange{{Was: view, Slots: done.slots, Scheme: to.String(), NewEpoch: true}}}
	if err := g.commit(ctx, attempt, change); err != nil {
		return nil, err
	}
	return g.account(r, done), nil
}
