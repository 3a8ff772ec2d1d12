package repair

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
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/trace"
)

// Rebuild says how groups are repaired. The zero value is right where somebody waits for it: nothing holds it back.
type Rebuild struct {
	Deep      bool         // blocks are read and checked whole first
	looks     bool         // nodes are asked for their blocks first, even if the records show a loss
	Condemned map[int]bool // slots that count as lost whatever their blocks look like: the parity equations have shown them to be wrong
	Judged    block.Stamp  // generation of the record that condemned is of: under another one there are other blocks

	shape  stripe.RepairShape // empty: by the most loaded link
	whole  bool               // messages leave as whole cells
	proxy  block.NodeID       // of shape initiator
	beside int                // groups that are rebuilt side by side

	full map[block.NodeID]bool // nodes that have not taken a block of the group

	Admit *Grant // where nobody waits for it
}

// Outcome is what the repair of a group did.
type Outcome struct {
	slots     int
	bytes     int64
	predicted api.Traffic
	measured  api.Traffic
}

// hopBytes is what a link carries while a message crosses it, is added up and begins to leave again, whatever its size:
// half a millisecond at 1 Gb/s.
const hopBytes = 64 << 10

// RepairGroup finds the slots of a group whose blocks are gone and rebuilds them from the others, on their own nodes or,
// where those do not take blocks, on substitutes. It returns how many slots it rebuilt.
func (rs *Repairs) RepairGroup(ctx context.Context, id block.GroupID, deep bool) (int, error) {
	done, err := rs.rebuildGroup(ctx, id, Rebuild{Deep: deep})
	return done.slots, err
}

// rebuildGroup is RepairGroup, done as the options say, by one caller after the other.
func (rs *Repairs) rebuildGroup(ctx context.Context, id block.GroupID, options Rebuild) (done Outcome, err error) {
	ctx, span := trace.Begin(ctx, "repair group")
	if span != nil {
		span.Text("restripe.group", id.String())
	}
	defer func() { span.Int("restripe.slots", int64(done.slots)).End(err) }()
	waiting, leave, err := rs.supervisor.enter(ctx, id, options.Admit)
	if err != nil {
		return Outcome{}, err
	}
	defer leave()
	view, err := rs.catalog.Group(ctx, id)
	if errors.Is(err, catalog.ErrNoGroup) {
		return Outcome{}, nil
	}
	if err != nil {
		return Outcome{}, err
	}
	if view.Generation != options.Judged {
		options.Condemned = nil
	}
	vouched, err := rs.vouch(ctx, view, options)
	if err != nil {
		return Outcome{}, err
	}
	if vouched > 0 {
		if view, err = rs.catalog.Group(ctx, id); errors.Is(err, catalog.ErrNoGroup) {
			return Outcome{}, nil
		} else if err != nil {
			return Outcome{}, err
		}
		options.Condemned = nil
	}
	found, err := rs.findLoss(ctx, &view.Group, options)
	if err != nil || len(found.lost) == 0 {
		return Outcome{}, err
	}
	if options.Admit != nil {
		if err := options.Admit.wait(waiting, found.run.Load()); err != nil {
			if waiting.Err() != nil && ctx.Err() == nil {
				err = errRepaired // by somebody who does not wait for the budget
			}
			return Outcome{}, err
		}
		fresh, err := rs.catalog.Group(ctx, id)
		if err != nil && !errors.Is(err, catalog.ErrNoGroup) {
			return Outcome{}, err
		}
		if err != nil || fresh.Generation != view.Generation { // while it waited
			return Outcome{}, errRepaired
		}
	}
	done, err = rs.rebuildLoss(ctx, view, found)
	if err != nil && !found.seen {
		err = fmt.Errorf("%w: %w", errUnseen, err)
	}
	return done, err
}

// loss is what a group has lost, and how that is rebuilt.
type loss struct {
	lost []int // slots
	seen bool  // at the nodes; else by the records alone
	run  *group.Execution
	home []block.NodeID // of the group then
}

// errUnseen says that what the records show of a loss did not do to repair it.
var errUnseen = api.Refuse(api.ErrConflict, "more may be lost of the group than the records show")

// findLoss finds what a group has lost and plans how it is rebuilt. What the records show to be in vain is refused before
// any node is asked. Where they show a loss nothing else is looked for, as a rule: what else is missing fails the run or
// its verification, before anything is committed.
func (rs *Repairs) findLoss(ctx context.Context, group *catalog.Group, options Rebuild) (loss, error) {
	incarnations, err := rs.catalog.Incarnations(ctx)
	if err != nil {
		return loss{}, fmt.Errorf("reading incarnations: %w", err)
	}
	lost, away := rs.recordedLoss(group, incarnations)
	if err := rs.checkProspect(group, lost, options.full); err != nil {
		return loss{}, err
	}
	seen := len(lost) == 0 || options.Deep || options.looks || options.Condemned != nil
	if seen {
		lost, away, err = rs.lostSlots(ctx, group, incarnations, options)
	}
	if err != nil || len(lost) == 0 {
		return loss{}, err
	}
	r, err := rs.planRepair(group, lost, away, options)
	if err != nil {
		return loss{}, err
	}
	home, err := rs.housed(r, lost, options.full)
	return loss{lost: lost, seen: seen, run: r, home: home}, err
}

// checkProspect refuses to repair a group of which more is lost than it survives, or fewer nodes are free than it needs, by
// what the records show of its loss.
func (rs *Repairs) checkProspect(group *catalog.Group, lost []int, full map[block.NodeID]bool) error {
	code, err := rs.groups.CodeOf(group)
	if err != nil {
		return err
	}
	var homeless []int
	for _, slot := range lost {
		if id, _ := group.Place(slot); !rs.agents.TakesBlocks(id) || full[id] {
			homeless = append(homeless, slot)
		}
	}
	if !code.Layout.Survives(code.Scheme, lost) {
		return lostForGood(group, lost, code)
	}
	if free, _ := rs.agents.Candidates(takenBy(group, full)); len(homeless) > len(free) {
		id, _ := group.Place(homeless[len(free)])
		return noSubstitute(group, homeless[len(free)], id)
	}
	return nil
}

func lostForGood(group *catalog.Group, lost []int, code *group.Code) error {
	return api.Refuse(api.ErrDataLoss, "group %s has lost slots %v, and each stripe of %s survives the loss of %d", group.ID, lost, code.Scheme, code.Scheme.M)
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
func (rs *Repairs) rebuildLoss(ctx context.Context, view *catalog.GroupView, found loss) (Outcome, error) {
	id, r := view.ID, found.run
	attempt, err := rs.catalog.Begin(ctx, catalog.KindRepair, rs.groups.Deadline(), func(block.Stamp) []catalog.BlockSet {
		return []catalog.BlockSet{r.Blocks()}
	}, view)
	if err != nil {
		return Outcome{}, fmt.Errorf("announcing the repair of group %s: %w", id, err)
	}
	done, err := rs.groups.Execute(ctx, attempt, r)
	if err != nil {
		return Outcome{}, rs.groups.Abandon(ctx, attempt, err)
	}
	change := catalog.Change{Groups: []catalog.GroupChange{{
		Was: view, Slots: done.Slots, Scheme: view.Scheme, Home: found.home, Seal: true,
	}}, RepairedSlots: map[block.GroupID][]int{id: found.lost}}
	if err := rs.groups.Commit(ctx, attempt, change); err != nil {
		return Outcome{}, err
	}
	rs.members.ForgetCounts()
	rs.log.Info("group repaired", "group", id, "slots", found.lost, "plan", r.Plan.Planner)
	account := rs.groups.Account(r, done)
	return Outcome{
		slots: len(found.lost), bytes: account.Predicted.BytesWritten, predicted: account.Predicted, measured: account.Measured,
	}, nil
}

// recordedLoss returns the slots that are lost by the records: on contents that are gone, or on nodes that do not answer and
// are not expected back. Those whose nodes only do not answer are away.
func (rs *Repairs) recordedLoss(group *catalog.Group, incarnations map[block.NodeID]block.Incarnation) (lost, away []int) {
	for slot, items := range group.Slots {
		switch silent := func(item catalog.Item) bool { return !rs.agents.Answers(item.Node) }; {
		case slices.ContainsFunc(items, func(item catalog.Item) bool {
			return item.Incarnation != incarnations[item.Node] || silent(item) && rs.agents.IsGone(item.Node)
		}):
			lost = append(lost, slot)
		case slices.ContainsFunc(items, silent):
			away = append(away, slot)
		}
	}
	return lost, away
}

// lostSlots asks the nodes of a group and returns the slots to rebuild and those that cannot be asked.
func (rs *Repairs) lostSlots(ctx context.Context, record *catalog.Group, incarnations map[block.NodeID]block.Incarnation, options Rebuild) (lost, away []int, err error) {
	states, err := rs.groups.SlotStatesUnder(ctx, record, incarnations, options.Deep)
	if err != nil {
		return nil, nil, err
	}
	for slot, state := range states {
		if options.Condemned[slot] && state == group.SlotWhole {
			state = group.SlotMissing
		}
		switch state {
		case group.SlotMissing, group.SlotSuspect:
			lost = append(lost, slot)
		case group.SlotUnreachable:
			if rs.agents.IsGone(record.Slots[slot][0].Node) {
				lost = append(lost, slot)
			} else {
				away = append(away, slot)
			}
		}
	}
	return lost, away, nil
}

// planRepair binds the plan that rebuilds the lost slots on their own nodes.
func (rs *Repairs) planRepair(record *catalog.Group, lost, away []int, options Rebuild) (*group.Execution, error) {
	code, err := rs.groups.CodeOf(record)
	if err != nil {
		return nil, err
	}
	if !code.Layout.Survives(code.Scheme, lost) {
		return nil, lostForGood(record, lost, code)
	}
	var plan *stripe.Plan
	if options.shape == "" {
		flow := stripe.Flow{CellBytes: int64(record.CellBytes), PieceBytes: group.RunPieceBytes, HopBytes: hopBytes, Beside: max(1, options.beside)}
		if options.whole {
			flow.PieceBytes = 0
		}
		plan, err = stripe.ChooseRepairPlan(code.Layout, code.Scheme, flow, lost, away)
	} else {
		plan, err = stripe.NewShapedRepairPlan(code.Layout, code.Scheme, options.shape, lost, away)
	}
	if errors.Is(err, stripe.ErrLost) {
		return nil, api.Refuse(api.ErrUnavailable, "group %s has lost slots %v while slots %v do not answer: bring their nodes back", record.ID, lost, away)
	}
	if err != nil {
		return nil, fmt.Errorf("planning the repair of group %s: %w", record.ID, err)
	}
	if !plan.Proved {
		return nil, fmt.Errorf("plan %s of group %s was not proved; no plan runs unproved", plan.Planner, record.ID)
	}
	r, err := rs.groups.NewExecution(record, plan)
	if err != nil {
		return nil, err
	}
	if options.whole {
		r.PieceBytes = 0
	}
	r.Lost, r.Away = map[int]bool{}, map[int]bool{}
	for _, slot := range lost {
		r.Lost[slot] = true
	}
	for _, slot := range away {
		r.Away[slot] = true
	}
	if options.shape == stripe.RepairInitiator {
		proxy, err := rs.groups.ProxyFor(record, options.proxy)
		if err != nil {
			return nil, err
		}
		r.Nodes[stripe.Position(record.Columns+plan.Parities)] = proxy
	}
	return r, nil
}

// housed has substitutes take the lost slots whose own nodes do not take blocks or are full, and returns the nodes the
// group will be at home at.
func (rs *Repairs) housed(r *group.Execution, lost []int, full map[block.NodeID]bool) ([]block.NodeID, error) {
	home := append([]block.NodeID{}, r.Group.Home...)
	taken := takenBy(r.Group, full)
	for _, slot := range lost {
		node := r.Nodes[stripe.Position(slot)]
		if rs.agents.TakesBlocks(node) && !full[node] {
			continue
		}
		other, found := rs.agents.Substitute(taken)
		if !found {
			return nil, noSubstitute(r.Group, slot, node)
		}
		taken[other] = true
		r.Nodes[stripe.Position(slot)], home[slot] = other, other
	}
	return home, nil
}

// RebuildRetrying repairs a group and starts over after a race, where more is lost than was seen, or where a node is full.
// It pays once.
func (rs *Repairs) RebuildRetrying(ctx context.Context, id block.GroupID, options Rebuild) (done Outcome, err error) {
	if options.Admit != nil {
		once := *options.Admit
		options.Admit = &once
	}
	roster := rs.agents.Roster()
	err = group.RetryRaces(ctx, func(full map[block.NodeID]bool) (err error) {
		options.full = full
		done, err = rs.rebuildGroup(ctx, id, options)
		options.looks = true
		if errors.Is(err, group.ErrNotWhole) {
			err = fmt.Errorf("%w: %w", errRepaired, err)
		}
		return err
	})
	if !errors.Is(err, group.ErrHalted) && ctx.Err() == nil {
		rs.supervisor.failures.note(id, roster, err != nil, retryTurns*rs.options.SweepEvery, time.Now())
	}
	return done, err
}

// RebuildNow repairs a group somebody waits for, and reports whether it is whole now.
func (rs *Repairs) RebuildNow(ctx context.Context, id block.GroupID) bool {
	done, err := rs.RebuildRetrying(ctx, id, Rebuild{Deep: true})
	rs.supervisor.count(&done)
	if err != nil && ctx.Err() == nil {
		rs.log.Warn("a group could not be repaired for a read", "group", id, "cause", err)
	}
	return err == nil
}
