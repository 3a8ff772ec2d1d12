package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/stripe"
)

// repairGroup finds the slots of a group whose blocks are gone and rebuilds them from the others, on their own nodes or,
// where those do not take blocks, on substitutes. It returns how many slots it rebuilt.
func (g *Gateway) repairGroup(ctx context.Context, id block.GroupID, deep bool) (int, error) {
	view, err := g.catalog.Group(ctx, id)
	if errors.Is(err, catalog.ErrNoGroup) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	group := &view.Group
	states, err := g.slotStates(ctx, group, deep)
	if err != nil {
		return 0, err
	}
	var lost, away []int
	for slot, state := range states {
		switch state {
		case slotMissing, slotSuspect:
			lost = append(lost, slot)
		case slotUnreachable:
			if g.isGone(group.Slots[slot][0].Node) {
				lost = append(lost, slot)
			} else {
				away = append(away, slot)
			}
		}
	}
	if len(lost) == 0 {
		return 0, nil
	}
	code, err := g.codeOf(group)
	if err != nil {
		return 0, err
	}
	if len(lost) > code.scheme.M {
		return 0, refuse(ErrDataLoss, "group %s has lost slots %v and %s survives the loss of %d", id, lost, code.scheme, code.scheme.M)
	}
	plan, err := stripe.NewRepairPlan(code.layout, code.scheme, lost, away)
	if errors.Is(err, stripe.ErrLost) {
		return 0, refuse(ErrUnavailable, "group %s has lost slots %v while slots %v do not answer: bring their nodes back", id, lost, away)
	}
	if err != nil {
		return 0, fmt.Errorf("planning the repair of group %s: %w", id, err)
	}
	r, err := g.newRun(group, plan)
	if err != nil {
		return 0, err
	}
	r.lost, r.away = map[int]bool{}, map[int]bool{}
	for _, slot := range away {
		r.away[slot] = true
	}
	home := append([]block.NodeID{}, group.Home...)
	taken := map[block.NodeID]bool{}
	for _, node := range home {
		taken[node] = true
	}
	for _, slot := range lost {
		r.lost[slot] = true
		node := r.nodes[stripe.Position(slot)]
		if !g.takesBlocks(node) {
			other, found := g.substitute(taken)
			if !found {
				return 0, refuse(ErrUnavailable, "slot %d of group %s cannot be rebuilt: node %s does not take blocks and no other node is free", slot, id, node)
			}
			taken[other] = true
			r.nodes[stripe.Position(slot)], home[slot] = other, other
		}
	}
	attempt, err := g.catalog.Begin(ctx, catalog.KindRepair, g.deadline(), func(block.Stamp) []catalog.BlockSet {
		return []catalog.BlockSet{r.blocks()}
	}, view)
	if err != nil {
		return 0, fmt.Errorf("announcing the repair of group %s: %w", id, err)
	}
	done, err := g.carryOut(ctx, attempt, r)
	if err != nil {
		return 0, g.abandon(ctx, attempt, err)
	}
	change := catalog.Change{Groups: []catalog.GroupChange{{
		Was: view, Slots: done.slots, Scheme: group.Scheme, Home: home,
	}}, RepairedSlots: map[block.GroupID][]int{id: lost}}
	if err := g.commit(ctx, attempt, change); err != nil {
		return 0, err
	}
	g.log.Info("group repaired", "group", id, "slots", lost)
	return len(lost), nil
}

// isGone reports whether a node that does not answer is not expected back: its state says down.
func (g *Gateway) isGone(id block.NodeID) bool {
	target, err := g.agents.get(id)
	return err != nil || target.node.State == catalog.NodeDown
}

func (g *Gateway) takesBlocks(id block.NodeID) bool {
	target, err := g.agents.get(id)
	if err != nil {
		return false
	}
	reachable, _, _ := target.state()
	return reachable && target.node.State == catalog.NodeUp
}

// The states of a slot, as Stat shows them.
const (
	slotWhole       = "ok"
	slotMissing     = "missing"     // the node answers and does not have it
	slotSuspect     = "suspect"     // the store has lost its contents since
	slotUnreachable = "unreachable" // the node does not answer
)

// slotStates asks every node of a group for its blocks; deep has them read and checked whole.
func (g *Gateway) slotStates(ctx context.Context, group *catalog.Group, deep bool) ([]string, error) {
	incarnations, err := g.catalog.Incarnations(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading incarnations: %w", err)
	}
	type finding struct {
		slot  int
		state string
	}
	findings := make(chan finding, len(group.Slots))
	for slot := range group.Slots {
		go func() { findings <- finding{slot, g.slotState(ctx, group, slot, incarnations, deep)} }()
	}
	states := make([]string, len(group.Slots))
	for range group.Slots {
		found := <-findings
		states[found.slot] = found.state
	}
	return states, ctx.Err()
}

func (g *Gateway) slotState(ctx context.Context, group *catalog.Group, slot int, incarnations map[block.NodeID]block.Incarnation, deep bool) string {
	asked := map[block.NodeID][]block.Address{}
	for _, item := range group.Slots[slot] {
		if item.Incarnation != incarnations[item.Node] {
			return slotSuspect
		}
		asked[item.Node] = append(asked[item.Node], group.Address(slot, item))
	}
	receipts, err := g.inspect(ctx, asked, deep)
	switch {
	case err != nil && goneBlock(err):
		return slotMissing
	case err != nil:
		return slotUnreachable
	}
	for _, item := range group.Slots[slot] {
		if receipt := receipts[group.Address(slot, item)]; receipt == nil || receipt.Checksum != item.Checksum {
			return slotMissing
		}
	}
	return slotWhole
}

// repairConcurrency is how many groups one pass looks at side by side.
const repairConcurrency = 4

// Repair rebuilds what is lost in the groups in which a read met a missing block and, with all, in every other group
// there is when it starts. Groups that fail are looked at again by the next pass.
func (g *Gateway) Repair(ctx context.Context, all, deep bool) (RepairResult, error) {
	reported := g.reported.take()
	depth := map[block.GroupID]bool{}
	for _, id := range reported {
		depth[id] = true // a header may be whole where the cells are not
	}
	ids := reported
	if all {
		// Listed before any is worked on: groups that are written meanwhile are whole, and would never end.
		if err := g.eachGroup(ctx, block.GroupID{}, func(view *catalog.GroupView) error {
			if !depth[view.ID] {
				ids = append(ids, view.ID)
			}
			return nil
		}); err != nil {
			return RepairResult{}, err
		}
	}
	var result RepairResult
	var mutex sync.Mutex
	var workers errgroup.Group
	workers.SetLimit(repairConcurrency)
	for _, id := range ids {
		workers.Go(func() error {
			rebuilt, err := g.repairInsisting(ctx, id, deep || depth[id])
			mutex.Lock()
			defer mutex.Unlock()
			result.GroupsChecked++
			switch {
			case err != nil:
				result.Failed = append(result.Failed, fmt.Sprintf("group %s: %v", id, err))
				g.reported.add(id)
			case rebuilt > 0:
				result.GroupsRepaired++
				result.SlotsRebuilt += rebuilt
			}
			return nil
		})
	}
	_ = workers.Wait() // workers note their errors in the result
	return result, ctx.Err()
}

// repairTries is how often the repair of a group starts over because other commits came first.
const repairTries = 20

// repairInsisting repairs a group and starts over where somebody else's commit came first.
func (g *Gateway) repairInsisting(ctx context.Context, id block.GroupID, deep bool) (rebuilt int, err error) {
	for try := range repairTries {
		rebuilt, err = g.repairGroup(ctx, id, deep)
		isRace := errors.Is(err, ErrConflict) || errors.Is(err, catalog.ErrStale) || errors.Is(err, errNotWhole)
		if !isRace || pause(ctx, try) != nil {
			break
		}
	}
	return rebuilt, err
}
