package transition

import (
	"context"
	"errors"
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/stripe"
)

// options says by which planner groups are taken to another scheme.
type options struct {
	planner   string
	objective stripe.Objective
	proxy     block.NodeID

	admit group.Admission
}

// planGroup binds the plan that takes a group to another scheme. A nil run means that it is there already. A group whose ladder does not
// have the scheme comes under that of its class; errNoFit says that its rows and columns do not allow that.
func (j *Coordinator) planGroup(group *catalog.Group, to stripe.Scheme, h options) (*group.Execution, error) {
	if group.Scheme == to.String() {
		return nil, nil
	}
	from, err := j.groups.CodeOf(group)
	if err != nil {
		return nil, err
	}
	layout := from.Layout
	if !layout.Ladder.Contains(to) {
		if group, layout, err = j.relaid(group, layout, to); err != nil {
			return nil, err
		}
	}
	plan, err := stripe.NewPlanBetween(from.Layout, layout, from.Scheme, to, h.planner, h.objective)
	if err != nil {
		return nil, fmt.Errorf("planning %s -> %s: %w", from.Scheme, to, err)
	}
	if !plan.Proved {
		return nil, fmt.Errorf("plan %s of %s -> %s was not proved; no plan runs unproved", h.planner, from.Scheme, to)
	}
	r, err := j.groups.NewExecution(group, plan)
	if err != nil {
		return nil, err
	}
	proxy := stripe.Position(group.Columns + plan.Parities)
	for _, program := range plan.Programs {
		if program.Position > proxy {
			return nil, api.Refuse(api.ErrBadRequest, "planner %s copies to a new pool and serves comparison only; choose another planner", h.planner)
		}
		if program.Position == proxy {
			if r.Nodes[proxy], err = j.groups.ProxyFor(group, h.proxy); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// transitionGroup takes one group to another scheme in one attempt. Whatever the error, the group is whole under one
// scheme.
func (j *Coordinator) transitionGroup(ctx context.Context, id block.GroupID, to stripe.Scheme, h options) (*group.Cost, error) {
	view, err := j.catalog.Group(ctx, id)
	if errors.Is(err, catalog.ErrNoGroup) {
		j.heat.Forget(id)
		return &group.Cost{Skipped: true}, nil
	}
	if err != nil {
		return nil, err
	}
	record := &view.Group
	r, err := j.planGroup(record, to, h)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return &group.Cost{Skipped: true}, nil
	}
	if admitted, err := h.admit(ctx, record, r); err != nil || !admitted {
		return &group.Cost{Skipped: true}, err
	}
	attempt, err := j.catalog.Begin(ctx, catalog.KindTransition, j.groups.Deadline(), func(block.Stamp) []catalog.BlockSet {
		return []catalog.BlockSet{r.Blocks()}
	}, view)
	if err != nil {
		return nil, fmt.Errorf("announcing the transition of group %s: %w", id, err)
	}
	done, err := j.groups.Execute(ctx, attempt, r)
	if err != nil {
		return nil, j.groups.Abandon(ctx, attempt, err)
	}
	change := catalog.GroupChange{Was: view, Slots: done.Slots, Scheme: to.String(), NewEpoch: true, Seal: true}
	if r.Group != record {
		change.Layout = &catalog.GroupLayout{Ladder: r.Group.Ladder, Mode: r.Group.Mode, Version: r.Group.LayoutVersion}
		change.Home = r.Group.Home
	}
	if err := j.groups.Commit(ctx, attempt, catalog.Change{Groups: []catalog.GroupChange{change}}); err != nil {
		return nil, err
	}
	return j.groups.Account(r, done), nil
}
