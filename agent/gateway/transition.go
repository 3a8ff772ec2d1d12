package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// how says by which planner groups are taken to another scheme.
type how struct {
	planner   string
	objective stripe.Objective
	proxy     block.NodeID

	admit admission
}

// admission waits until a plan may be carried out and tells whether it still should be.
type admission func(ctx context.Context, group *catalog.Group, plan *run) (bool, error)

// moved is what taking one group to another scheme cost.
type moved struct {
	skipped   bool  // it was there already, or is gone
	objects   int64 // objects moved out of the group instead
	bytes     int64
	predicted api.Traffic
	measured  api.Traffic
	baselines map[string]int64 // bytes other ways would have sent
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

// proxyFor chooses the node that plays the proxy: the named one, else any that is not part of the group.
func (g *Gateway) proxyFor(group *catalog.Group, named block.NodeID) (block.NodeID, error) {
	if named != "" {
		return named, nil
	}
	taken := map[block.NodeID]bool{}
	for _, id := range group.Home {
		taken[id] = true
	}
	if id, found := g.substitute(taken); found {
		return id, nil
	}
	return "", api.Refuse(api.ErrTooFewNodes, "a proxy planner needs one node beside the %d of group %s; add a node or name one with proxy", len(group.Home), group.ID)
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

// moveObjects takes small objects out of groups they share with others, into new groups under another scheme. Each keeps
// its revision: the bytes are the same. Objects that change meanwhile are left to the caller's next look.
func (g *Gateway) moveObjects(ctx context.Context, class *api.Class, to stripe.Scheme, snapshots []*catalog.Snapshot) error {
	entries := map[string][]byte{}
	byKey := map[string]*catalog.Snapshot{}
	var total int64
	for _, snapshot := range snapshots {
		total += snapshot.Object.Size
	}
	release, err := g.memory.updates.reserve(ctx, total)
	if err != nil {
		return err
	}
	defer release()
	for _, snapshot := range snapshots {
		var data bytes.Buffer
		reader := &Reader{gateway: g, memory: g.memory.reads, current: snapshot}
		if err := reader.WriteTo(ctx, &data, 0, snapshot.Object.Size); err != nil {
			return fmt.Errorf("reading an object to move: %w", err)
		}
		entries[snapshot.Object.Key], byKey[snapshot.Object.Key] = data.Bytes(), snapshot
	}
	attempt, err := g.catalog.Begin(ctx, catalog.KindMove, g.deadline(), func(block.Stamp) []catalog.BlockSet { return nil })
	if err != nil {
		return fmt.Errorf("announcing a move: %w", err)
	}
	revision := func(key string) block.Stamp { return byKey[key].Object.Revision }
	group, extents, err := g.stagePacked(ctx, attempt, class, to, entries, revision)
	if err != nil {
		return g.abandon(ctx, attempt, err)
	}
	change := catalog.Change{NewGroups: []catalog.Group{*group}}
	for key, snapshot := range byKey {
		change.Move = append(change.Move, catalog.ObjectMove{Snapshot: snapshot, Extents: []catalog.Extent{extents[key]}, Scheme: to.String()})
	}
	return g.commit(ctx, attempt, change)
}
