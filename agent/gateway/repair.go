package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

// rebuild says how groups are repaired. The zero value is right where somebody waits for it: nothing holds it back.
type rebuild struct {
	deep      bool         // blocks are read and checked whole first
	looks     bool         // nodes are asked for their blocks first, even if the records show a loss
	condemned map[int]bool // slots that count as lost whatever their blocks look like: the parity equations have shown them to be wrong
	judged    block.Stamp  // generation of the record that condemned is of: under another one there are other blocks

	shape  stripe.RepairShape // empty: by the most loaded link
	whole  bool               // messages leave as whole cells
	proxy  block.NodeID       // of shape initiator
	beside int                // groups that are rebuilt side by side

	full map[block.NodeID]bool // nodes that have not taken a block of the group

	admit *payment // where nobody waits for it
}

// rebuilt is what the repair of a group did.
type rebuilt struct {
	slots     int
	bytes     int64
	predicted api.Traffic
	measured  api.Traffic
}

// hopBytes is what a link carries while a message crosses it, is added up and begins to leave again, whatever its size:
// half a millisecond at 1 Gb/s.
const hopBytes = 64 << 10

// repairGroup finds the slots of a group whose blocks are gone and rebuilds them from the others, on their own nodes or,
// where those do not take blocks, on substitutes. It returns how many slots it rebuilt.
func (g *Gateway) repairGroup(ctx context.Context, id block.GroupID, deep bool) (int, error) {
	done, err := g.rebuildGroup(ctx, id, rebuild{deep: deep})
	return done.slots, err
}

// rebuildGroup is repairGroup, done as how says, by one caller after the other.
func (g *Gateway) rebuildGroup(ctx context.Context, id block.GroupID, how rebuild) (rebuilt, error) {
	waiting, leave, err := g.repairs.enter(ctx, id, how.admit)
	if err != nil {
		return rebuilt{}, err
	}
	defer leave()
	view, err := g.catalog.Group(ctx, id)
	if errors.Is(err, catalog.ErrNoGroup) {
		return rebuilt{}, nil
	}
	if err != nil {
		return rebuilt{}, err
	}
	if view.Generation != how.judged {
		how.condemned = nil
	}
	found, err := g.findLoss(ctx, &view.Group, how)
	if err != nil || len(found.lost) == 0 {
		return rebuilt{}, err
	}
	if how.admit != nil {
		if err := how.admit.wait(waiting, found.run.load()); err != nil {
			if waiting.Err() != nil && ctx.Err() == nil {
				err = errRepaired // by somebody who does not wait for the budget
			}
			return rebuilt{}, err
		}
		fresh, err := g.catalog.Group(ctx, id)
		if err != nil && !errors.Is(err, catalog.ErrNoGroup) {
			return rebuilt{}, err
		}
		if err != nil || fresh.Generation != view.Generation { // while it waited
			return rebuilt{}, errRepaired
		}
	}
	done, err := g.rebuildLoss(ctx, view, found)
	if err != nil && !found.seen {
		err = fmt.Errorf("%w: %w", errUnseen, err)
	}
	return done, err
}

// loss is what a group has lost, and how that is rebuilt.
type loss struct {
	lost []int // slots
	seen bool  // at the nodes; else by the records alone
	run  *run
	home []block.NodeID // of the group then
}

// errUnseen says that what the records show of a loss did not do to repair it.
var errUnseen = api.Refuse(api.ErrConflict, "more may be lost of the group than the records show")

// findLoss finds what a group has lost and plans how it is rebuilt. What the records show to be in vain is refused before
// any node is asked. Where they show a loss nothing else is looked for, as a rule: what else is missing fails the run or
// its verification, before anything is committed.
func (g *Gateway) findLoss(ctx context.Context, group *catalog.Group, how rebuild) (loss, error) {
	incarnations, err := g.catalog.Incarnations(ctx)
	if err != nil {
		return loss{}, fmt.Errorf("reading incarnations: %w", err)
	}
	lost, away := g.recordedLoss(group, incarnations)
	if err := g.checkProspect(group, lost, how.full); err != nil {
		return loss{}, err
	}
	seen := len(lost) == 0 || how.deep || how.looks || how.condemned != nil
	if seen {
		lost, away, err = g.lostSlots(ctx, group, incarnations, how)
	}
	if err != nil || len(lost) == 0 {
		return loss{}, err
	}
	r, err := g.planRepair(group, lost, away, how)
	if err != nil {
		return loss{}, err
	}
	home, err := g.housed(r, lost, how.full)
	return loss{lost: lost, seen: seen, run: r, home: home}, err
}

// checkProspect refuses to repair a group of which more is lost than it survives, or fewer nodes are free than it needs, by
// what the records show of its loss.
func (g *Gateway) checkProspect(group *catalog.Group, lost []int, full map[block.NodeID]bool) error {
	code, err := g.codeOf(group)
	if err != nil {
		return err
	}
	var homeless []int
	for _, slot := range lost {
		if id, _ := group.Place(slot); !g.agents.takesBlocks(id) || full[id] {
			homeless = append(homeless, slot)
		}
	}
	if !code.layout.Survives(code.scheme, lost) {
		return lostForGood(group, lost, code)
	}
	if free, _ := g.agents.candidates(takenBy(group, full)); len(homeless) > len(free) {
		id, _ := group.Place(homeless[len(free)])
		return noSubstitute(group, homeless[len(free)], id)
	}
	return nil
}

func lostForGood(group *catalog.Group, lost []int, code *code) error {
	return api.Refuse(api.ErrDataLoss, "group %s has lost slots %v, and each stripe of %s survives the loss of %d", group.ID, lost, code.scheme, code.scheme.M)
}

func noSubstitute(group *catalog.Group, slot int, id block.NodeID) error {
	return api.Refuse(api.ErrUnavailable, "slot %d of group %s cannot be rebuilt: node %s does not take blocks and no other node is free; make room on it, bring nodes back or add some", slot, group.ID, id)
}

// takenBy returns the nodes that cannot take one more slot of a group.
func takenBy(group *catalog.Group, full map[block.NodeID]bool) map[block.NodeID]bool {
	taken := map[block.NodeID]bool{}
	maps.Copy(taken, full)
	for _, node := range group.Home {
		taken[node] = true
	}
	return taken
}

// rebuildLoss carries out what was planned for a group as it was read.
func (g *Gateway) rebuildLoss(ctx context.Context, view *catalog.GroupView, found loss) (rebuilt, error) {
	id, r := view.ID, found.run
	attempt, err := g.catalog.Begin(ctx, catalog.KindRepair, g.deadline(), func(block.Stamp) []catalog.BlockSet {
		return []catalog.BlockSet{r.blocks()}
	}, view)
	if err != nil {
		return rebuilt{}, fmt.Errorf("announcing the repair of group %s: %w", id, err)
	}
	done, err := g.carryOut(ctx, attempt, r)
	if err != nil {
		return rebuilt{}, g.abandon(ctx, attempt, err)
	}
	change := catalog.Change{Groups: []catalog.GroupChange{{
		Was: view, Slots: done.slots, Scheme: view.Scheme, Home: found.home,
	}}, RepairedSlots: map[block.GroupID][]int{id: found.lost}}
	if err := g.commit(ctx, attempt, change); err != nil {
		return rebuilt{}, err
	}
	g.slots.forget()
	g.log.Info("group repaired", "group", id, "slots", found.lost, "plan", r.plan.Planner)
	account := g.account(r, done)
	return rebuilt{
		slots: len(found.lost), bytes: account.predicted.BytesWritten, predicted: account.predicted, measured: account.measured,
	}, nil
}

// recordedLoss returns the slots that are lost by the records: on contents that are gone, or on nodes that do not answer and
// are not expected back. Those whose nodes only do not answer are away.
func (g *Gateway) recordedLoss(group *catalog.Group, incarnations map[block.NodeID]block.Incarnation) (lost, away []int) {
	for slot, items := range group.Slots {
		switch silent := func(item catalog.Item) bool { return !g.agents.answers(item.Node) }; {
		case slices.ContainsFunc(items, func(item catalog.Item) bool {
			return item.Incarnation != incarnations[item.Node] || silent(item) && g.agents.isGone(item.Node)
		}):
			lost = append(lost, slot)
		case slices.ContainsFunc(items, silent):
			away = append(away, slot)
		}
	}
	return lost, away
}

// lostSlots asks the nodes of a group and returns the slots to rebuild and those that cannot be asked.
func (g *Gateway) lostSlots(ctx context.Context, group *catalog.Group, incarnations map[block.NodeID]block.Incarnation, how rebuild) (lost, away []int, err error) {
	states, err := g.slotStatesUnder(ctx, group, incarnations, how.deep)
	if err != nil {
		return nil, nil, err
	}
	for slot, state := range states {
		if how.condemned[slot] && state == slotWhole {
			state = slotMissing
		}
		switch state {
		case slotMissing, slotSuspect:
			lost = append(lost, slot)
		case slotUnreachable:
			if g.agents.isGone(group.Slots[slot][0].Node) {
				lost = append(lost, slot)
			} else {
				away = append(away, slot)
			}
		}
	}
	return lost, away, nil
}

// planRepair binds the plan that rebuilds the lost slots on their own nodes.
func (g *Gateway) planRepair(group *catalog.Group, lost, away []int, how rebuild) (*run, error) {
	code, err := g.codeOf(group)
	if err != nil {
		return nil, err
	}
	if !code.layout.Survives(code.scheme, lost) {
		return nil, lostForGood(group, lost, code)
	}
	var plan *stripe.Plan
	if how.shape == "" {
		flow := stripe.Flow{CellBytes: int64(group.CellBytes), PieceBytes: runPieceBytes, HopBytes: hopBytes, Beside: max(1, how.beside)}
		if how.whole {
			flow.PieceBytes = 0
		}
		plan, err = stripe.ChooseRepairPlan(code.layout, code.scheme, flow, lost, away)
	} else {
		plan, err = stripe.NewShapedRepairPlan(code.layout, code.scheme, how.shape, lost, away)
	}
	if errors.Is(err, stripe.ErrLost) {
		return nil, api.Refuse(api.ErrUnavailable, "group %s has lost slots %v while slots %v do not answer: bring their nodes back", group.ID, lost, away)
	}
	if err != nil {
		return nil, fmt.Errorf("planning the repair of group %s: %w", group.ID, err)
	}
	if !plan.Proved {
		return nil, fmt.Errorf("plan %s of group %s was not proved; no plan runs unproved", plan.Planner, group.ID)
	}
	r, err := g.newRun(group, plan)
	if err != nil {
		return nil, err
	}
	if how.whole {
		r.pieceBytes = 0
	}
	r.lost, r.away = map[int]bool{}, map[int]bool{}
	for _, slot := range lost {
		r.lost[slot] = true
	}
	for _, slot := range away {
		r.away[slot] = true
	}
	if how.shape == stripe.RepairInitiator {
		proxy, err := g.proxyFor(group, how.proxy)
		if err != nil {
			return nil, err
		}
		r.nodes[stripe.Position(group.Columns+plan.Parities)] = proxy
	}
	return r, nil
}

// housed has substitutes take the lost slots whose own nodes do not take blocks or are full, and returns the nodes the
// group will be at home at.
func (g *Gateway) housed(r *run, lost []int, full map[block.NodeID]bool) ([]block.NodeID, error) {
	home := append([]block.NodeID{}, r.group.Home...)
	taken := takenBy(r.group, full)
	for _, slot := range lost {
		node := r.nodes[stripe.Position(slot)]
		if g.agents.takesBlocks(node) && !full[node] {
			continue
		}
		other, found := g.agents.substitute(taken)
		if !found {
			return nil, noSubstitute(r.group, slot, node)
		}
		taken[other] = true
		r.nodes[stripe.Position(slot)], home[slot] = other, other
	}
	return home, nil
}

// rebuildInsisting repairs a group and starts over after a race, where more is lost than was seen, or where a node is full.
// It pays once.
func (g *Gateway) rebuildInsisting(ctx context.Context, id block.GroupID, how rebuild) (done rebuilt, err error) {
	if how.admit != nil {
		once := *how.admit
		how.admit = &once
	}
	roster := g.agents.roster()
	err = insist(ctx, func(full map[block.NodeID]bool) (err error) {
		how.full = full
		done, err = g.rebuildGroup(ctx, id, how)
		how.looks = true
		if errors.Is(err, errNotWhole) {
			err = fmt.Errorf("%w: %w", errRepaired, err)
		}
		return err
	})
	if !errors.Is(err, errHalted) && ctx.Err() == nil {
		g.repairs.failures.note(id, roster, err != nil, retryTurns*g.options.SweepEvery, time.Now())
	}
	return done, err
}

// rebuildNow repairs a group somebody waits for, and reports whether it is whole now.
func (g *Gateway) rebuildNow(ctx context.Context, id block.GroupID) bool {
	done, err := g.rebuildInsisting(ctx, id, rebuild{deep: true})
	g.repairs.count(&done)
	if err != nil && ctx.Err() == nil {
		g.log.Warn("a group could not be repaired for a read", "group", id, "cause", err)
	}
	return err == nil
}
