package member

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/wire"
)

// Nodes describes the members: what is declared and found of them, and how much lies on them. That is counted in the records
// of all groups, a few seconds ago at most or, where counting takes long, by the last count.
func (m *Membership) Nodes(ctx context.Context) (api.NodeList, error) {
	_ = m.agents.refresh(ctx) // it has said why, and what was read before is shown
	slots, err := m.slots(ctx)
	if err != nil {
		return api.NodeList{}, err
	}
	list := api.NodeList{Nodes: []api.NodeInfo{}, Patience: m.agents.patient().public()}
	if slots.old {
		at := slots.at.UTC()
		list.CountedAt = &at
	}
	now := time.Now()
	fair := fairShares(m.agents.Members(), &slots)
	for _, target := range m.agents.All() {
		info := target.info(&slots, now)
		if bytes, takesPart := fair[info.ID]; takesPart {
			info.FairBytes = bytes
		}
		list.Nodes = append(list.Nodes, info)
	}
	return list, nil
}

// Node describes one member.
func (m *Membership) Node(ctx context.Context, id block.NodeID) (api.NodeInfo, error) {
	list, err := m.Nodes(ctx)
	if err != nil {
		return api.NodeInfo{}, err
	}
	for _, node := range list.Nodes {
		if node.ID == id {
			return node, nil
		}
	}
	return api.NodeInfo{}, noSuchNode(id)
}

func noSuchNode(id block.NodeID) error {
	return api.Refuse(api.ErrNotFound, "there is no node %q; list the nodes to see their names", id)
}

// info describes a node.
func (t *Agent) info(slots *slotCounts, now time.Time) api.NodeInfo {
	node := t.Node
	info := api.NodeInfo{
		NodeStatus: t.status(), Declared: string(node.State), OutBy: node.Out, Fenced: node.Fenced,
		Replaces: node.Replaces, Slots: slots.stored(node.ID), SlotBytes: slots.bytes(node.ID), FairBytes: -1,
	}
	if node.Since != 0 {
		since := time.UnixMilli(node.Since).UTC()
		info.Since = &since
	}
	if quiet := t.silent(); !quiet.IsZero() {
		quiet = quiet.UTC()
		info.Silent = &quiet
	}
	if node.State == catalog.NodeDraining {
		info.Drain = drainInfo(node.Drain, slots.left(node.ID, time.UnixMilli(node.Drain.Began)), now)
	}
	return info
}

// drainInfo is a drain with so many slots left; -1: it is not known how many.
func drainInfo(d catalog.Drain, left int64, now time.Time) *api.DrainInfo {
	elapsed := time.Duration(d.Elapsed) * time.Millisecond
	if !d.Paused {
		elapsed += max(0, now.Sub(time.UnixMilli(d.Began)))
	}
	info := &api.DrainInfo{
		SlotsTotal: max(d.Slots, left), SlotsLeft: left, BytesPerSecond: d.BytesPerSecond, Paused: d.Paused,
		ElapsedSeconds: elapsed.Seconds(), ETASeconds: -1,
	}
	if done := info.SlotsTotal - left; left == 0 {
		info.ETASeconds = 0
	} else if left > 0 && done > 0 && !d.Paused {
		info.ETASeconds = float64(left) / float64(done) * elapsed.Seconds()
	}
	return info
}

// DrainNode has every block of a node moved to other nodes, or changes how that is done. The node serves meanwhile and
// takes nothing new; once nothing lies on it, it can be removed.
func (m *Membership) DrainNode(ctx context.Context, id block.NodeID, request api.DrainRequest) (api.NodeInfo, error) {
	if rate := request.BytesPerSecond; rate != nil && *rate < 0 {
		return api.NodeInfo{}, api.Refuse(api.ErrBadRequest, "a rate of %d bytes per second; give a positive one, or 0 for no limit", *rate)
	}
	slots, err := m.slots(ctx)
	if err != nil {
		return api.NodeInfo{}, err
	}
	return m.declare(ctx, id, func(node *catalog.Node) error {
		now := time.Now().UnixMilli()
		switch node.State {
		case catalog.NodeDraining:
		case catalog.NodeUp:
			node.State, node.Drain = catalog.NodeDraining, catalog.Drain{Slots: max(0, slots.left(id, time.Time{})), Began: now}
		default:
			return api.Refuse(api.ErrBadRequest, "node %s is declared %s; declare it up before it is drained", id, node.State)
		}
		if request.BytesPerSecond != nil {
			node.Drain.BytesPerSecond = *request.BytesPerSecond
		}
		if request.Paused != nil && *request.Paused != node.Drain.Paused {
			if node.Drain.Paused = *request.Paused; node.Drain.Paused {
				node.Drain.Elapsed += max(0, now-node.Drain.Began)
			} else {
				node.Drain.Began = now
			}
		}
		return nil
	})
}

// UndrainNode ends a drain: what was moved stays where it is now, and the node takes blocks again.
func (m *Membership) UndrainNode(ctx context.Context, id block.NodeID) (api.NodeInfo, error) {
	return m.declare(ctx, id, func(node *catalog.Node) error {
		if node.State != catalog.NodeDraining && node.State != catalog.NodeUp {
			return api.Refuse(api.ErrBadRequest, "node %s is declared %s, not draining", id, node.State)
		}
		node.State, node.Drain = catalog.NodeUp, catalog.Drain{}
		return nil
	})
}

// DownNode declares that a node is not expected back: what lay on it is rebuilt elsewhere, or moved while it answers.
func (m *Membership) DownNode(ctx context.Context, id block.NodeID) (api.NodeInfo, error) {
	return m.declare(ctx, id, func(node *catalog.Node) error {
		if err := checkNotExcluded(node); err != nil {
			return err
		}
		node.State, node.Drain = catalog.NodeDown, catalog.Drain{}
		return nil
	})
}

// checkNotExcluded refuses a node that was removed, or almost: only a person who says so makes it a member again.
func checkNotExcluded(node *catalog.Node) error {
	if node.IsExcluded() {
		return api.Refuse(api.ErrBadRequest, "node %s is declared %s; declare it up first, which makes it a member again", node.ID, node.State)
	}
	return nil
}

// UpNode takes every declaration back, and makes a node that was removed, or almost, a member again. A node that was gone
// takes blocks once its store was swept.
func (m *Membership) UpNode(ctx context.Context, id block.NodeID) (api.NodeInfo, error) {
	return m.declare(ctx, id, func(node *catalog.Node) error {
		node.State, node.Drain = catalog.NodeUp, catalog.Drain{}
		return nil
	})
}

// removal is the removal of a node that is under way, or whose end nobody has heard of yet.
type removal struct {
	ended chan struct{}
	err   error     // once it has ended
	at    time.Time // when it ended
}

// removalKept is for how long whoever asks again for a removal is told what came of it.
const removalKept = time.Minute

// isOver reports whether it ended so long ago that nobody is told of it any more.
func (r *removal) isOver() bool { return job.IsClosed(r.ended) && time.Since(r.at) > removalKept }

// RemoveNode makes a node no member any more. It is refused while anything lies on it or is on its way to it. That is looked
// for in the records of all groups: where it takes long it goes on by itself, and done is false; asked again, it tells what
// has come of it.
func (m *Membership) RemoveNode(ctx context.Context, id block.NodeID) (done bool, err error) {
	m.removing.Lock()
	under := m.removals[id]
	if under == nil || under.isOver() {
		under = &removal{ended: make(chan struct{})}
		m.removals[id] = under
		m.options.Background.Go(func(ctx context.Context) {
			defer close(under.ended)
			if under.err = m.remove(ctx, id); under.err != nil {
				m.log.Warn("a node is not removed", "node", id, "cause", under.err)
			}
			under.at = time.Now()
		})
	}
	m.removing.Unlock()
	impatient := time.NewTimer(slotPatience)
	defer impatient.Stop()
	select {
	case <-under.ended:
		m.removing.Lock()
		defer m.removing.Unlock()
		if m.removals[id] == under {
			delete(m.removals, id)
		}
		return true, under.err
	case <-impatient.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// remove looks at the node, excludes it, and looks at it again: another gateway may not know that it is to be left and commit
// blocks onto it between a look and whatever follows. Once it is excluded none can.
func (m *Membership) remove(ctx context.Context, id block.NodeID) error {
	node, err := m.record(ctx, id)
	if err != nil {
		return err
	}
	if node.State == catalog.NodeUp {
		return api.Refuse(api.ErrConflict, "node %s is declared up and may be given blocks at any moment; drain it first, or declare it down if it does not come back", id)
	}
	if !node.IsExcluded() {
		if err := m.checkLeft(ctx, id); err != nil {
			return err
		}
		if node, err = m.changeState(ctx, node, catalog.NodeRemoving); err != nil {
			return err
		}
	}
	if err := m.checkEmpty(ctx, id); err != nil {
		m.agents.Lost.Store(true) // what lies there is rebuilt elsewhere
		return err
	}
	_, err = m.changeState(ctx, node, catalog.NodeRemoved)
	return err
}

// changeState takes the record of a node on its way out of the cluster one step further.
func (m *Membership) changeState(ctx context.Context, node catalog.Node, state catalog.NodeState) (catalog.Node, error) {
	next := node
	next.State, next.Drain, next.Since = state, catalog.Drain{}, time.Now().UnixMilli()
	changed, err := m.catalog.ChangeNode(ctx, node, next)
	if err != nil {
		return node, fmt.Errorf("removing node %s: %w", node.ID, err)
	}
	m.agents.Enter(changed)
	return changed, nil
}

// leftPatience is how long what is announced to a node that is to leave may take to end: puts that are announced ahead are given up
// after a second.
const leftPatience = 3 * time.Second

// checkLeft refuses a node that anything lies on or is on its way to. Attempts come before groups: one that commits
// between the two looks is seen in the second.
func (m *Membership) checkLeft(ctx context.Context, id block.NodeID) error {
	busy, err := isAnnounced(ctx, m.catalog, id)
	for began := time.Now(); busy && err == nil && time.Since(began) < leftPatience; {
		select {
		case <-time.After(leftPatience / 20):
			busy, err = isAnnounced(ctx, m.catalog, id)
		case <-ctx.Done():
			return fmt.Errorf("waiting for writes to node %s to end: %w", id, ctx.Err())
		}
	}
	if err != nil {
		return err
	}
	if busy {
		return api.Refuse(api.ErrConflict, "writes to node %s are under way; try again in a moment", id)
	}
	return m.checkEmpty(ctx, id)
}

// checkEmpty refuses a node that slots of groups lie on, or are to.
func (m *Membership) checkEmpty(ctx context.Context, id block.NodeID) error {
	slots, places := 0, 0
	for groups, err := range m.catalog.GroupRecords(ctx) {
		if err != nil {
			return err
		}
		for i := range groups {
			for slot := range groups[i].Home {
				if at, stored := groups[i].Place(slot); at == id && stored {
					slots++
				} else if at == id {
					places++
				}
			}
		}
	}
	if slots+places > 0 {
		m.lookAgain.Store(true)
		return api.Refuse(api.ErrConflict, "%d slots of groups lie on node %s and %d more are to; wait until its blocks are moved or rebuilt elsewhere, then remove it", slots, id, places)
	}
	return nil
}

// isAnnounced reports whether an active attempt may write to a node.
func isAnnounced(ctx context.Context, records *catalog.Catalog, id block.NodeID) (bool, error) {
	for intent, err := range records.AllIntents(ctx) {
		if err != nil {
			return false, fmt.Errorf("listing attempts: %w", err)
		}
		for _, set := range intent.Blocks {
			if slices.Contains(set.Nodes, id) {
				return true, nil
			}
		}
	}
	return false, nil
}

// ReplaceNode has a node come back at another address or with an empty store, or another node take its place. The
// replacement takes new blocks at once; what lay on the node is rebuilt meanwhile, or moved while the node answers.
func (m *Membership) ReplaceNode(ctx context.Context, id block.NodeID, request api.ReplaceRequest) (api.NodeInfo, error) {
	if request.Address != "" {
		if _, _, err := net.SplitHostPort(request.Address); err != nil {
			return api.NodeInfo{}, api.Refuse(api.ErrBadRequest, "address %q: want host:port", request.Address)
		}
	}
	if request.With == "" || request.With == id {
		return m.declare(ctx, id, func(node *catalog.Node) error {
			if err := checkNotExcluded(node); err != nil {
				return err
			}
			node.State, node.Drain = catalog.NodeUp, catalog.Drain{}
			if request.Address != "" {
				node.Address = request.Address
			}
			if request.Domain != "" {
				node.Domain = request.Domain
			}
			return nil
		})
	}
	if err := api.CheckNodeID(string(request.With)); err != nil {
		return api.NodeInfo{}, api.Refuse(api.ErrBadRequest, "%w", err)
	}
	old, err := m.record(ctx, id)
	if err != nil {
		return api.NodeInfo{}, err
	}
	if err := checkNotExcluded(&old); err != nil {
		return api.NodeInfo{}, err
	}
	if err := m.enterReplacement(ctx, &old, request); err != nil {
		return api.NodeInfo{}, err
	}
	if target, err := m.agents.Get(id); err == nil && old.State == catalog.NodeUp {
		if trusted, _, _ := target.State(); trusted {
			return m.DrainNode(ctx, id, api.DrainRequest{})
		}
	}
	if old.State == catalog.NodeDraining {
		return m.Node(ctx, id)
	}
	return m.DownNode(ctx, id)
}

// enterReplacement makes another node a member, in the place of old.
func (m *Membership) enterReplacement(ctx context.Context, old *catalog.Node, request api.ReplaceRequest) error {
	entered, err := m.record(ctx, request.With)
	was := entered // zero where it is new
	switch isNew := errors.Is(err, api.ErrNotFound); {
	case isNew && request.Address == "":
		return api.Refuse(api.ErrBadRequest, "node %s is not a member yet; say at which address its agent is", request.With)
	case isNew:
		entered = catalog.Node{ID: request.With, Domain: old.Domain}
	case err != nil:
		return err
	}
	if err := checkNotExcluded(&entered); err != nil {
		return err
	}
	entered.State, entered.Spare, entered.Replaces, entered.Since = catalog.NodeUp, false, old.ID, time.Now().UnixMilli()
	if request.Address != "" {
		entered.Address = request.Address
	}
	if request.Domain != "" {
		entered.Domain = request.Domain
	}
	if _, err := m.ask(ctx, entered.ID, entered.Address); errors.Is(err, wire.ErrBadRequest) {
		return api.Refuse(api.ErrConflict, "the agent at %s cannot take the place of node %s: %w", entered.Address, old.ID, err)
	}
	if _, err := m.catalog.ChangeNode(ctx, was, entered); err != nil {
		return err
	}
	m.agents.Probe(ctx) // so that it takes blocks at once
	return nil
}

// PlaceNode changes the failure domain of a node, and whether it is a spare. Groups that lie unevenly in their domains then
// are spread again.
func (m *Membership) PlaceNode(ctx context.Context, id block.NodeID, request api.PlaceRequest) (api.NodeInfo, error) {
	if request.Domain != nil && len(*request.Domain) > maxDomainBytes {
		return api.NodeInfo{}, api.Refuse(api.ErrBadRequest, "a failure domain has at most %d bytes, this one has %d", maxDomainBytes, len(*request.Domain))
	}
	return m.declare(ctx, id, func(node *catalog.Node) error {
		if request.Domain != nil {
			node.Domain = *request.Domain
		}
		if request.Spare != nil {
			node.Spare = *request.Spare
		}
		return nil
	})
}

const maxDomainBytes = 63

// SetPatience changes how patient all gateways are with nodes that do not answer.
func (m *Membership) SetPatience(ctx context.Context, p api.Patience) (api.Patience, error) {
	milliseconds := func(seconds float64) int64 { return int64(math.Round(seconds * 1000)) }
	switch {
	case !(p.DownAfterSeconds >= 1) || p.DownAfterSeconds > 1e9:
		return api.Patience{}, api.Refuse(api.ErrBadRequest, "downAfterSeconds %v: want at least 1", p.DownAfterSeconds)
	case p.OutAfterSeconds != -1 && !(p.OutAfterSeconds >= p.DownAfterSeconds) || p.OutAfterSeconds > 1e9:
		return api.Patience{}, api.Refuse(api.ErrBadRequest, "outAfterSeconds %v: want no less than downAfterSeconds, or -1 for never", p.OutAfterSeconds)
	}
	membership := catalog.Membership{DownAfter: milliseconds(p.DownAfterSeconds), OutAfter: milliseconds(p.OutAfterSeconds)}
	if err := m.catalog.PutMembership(ctx, membership); err != nil {
		return api.Patience{}, err
	}
	m.agents.setPatience(patienceOf(membership))
	return patienceOf(membership).public(), nil
}

func (p patience) public() api.Patience {
	if p.out < 0 {
		return api.Patience{DownAfterSeconds: p.down.Seconds(), OutAfterSeconds: -1}
	}
	return api.Patience{DownAfterSeconds: p.down.Seconds(), OutAfterSeconds: p.out.Seconds()}
}

// record reads the record of a node, which may have been removed.
func (m *Membership) record(ctx context.Context, id block.NodeID) (catalog.Node, error) {
	nodes, err := m.catalog.Nodes(ctx)
	if err != nil {
		return catalog.Node{}, err
	}
	for _, node := range nodes {
		if node.ID == id {
			return node, nil
		}
	}
	return catalog.Node{}, noSuchNode(id)
}

// declareTries is how often a change of a record starts over because others came first.
const declareTries = 20

// declare changes the record of a node as somebody wishes. Where another change came first it is looked at again.
func (m *Membership) declare(ctx context.Context, id block.NodeID, change func(*catalog.Node) error) (api.NodeInfo, error) {
	for try := 0; ; try++ {
		was, err := m.record(ctx, id)
		if err != nil {
			return api.NodeInfo{}, err
		}
		is := was
		if err := change(&is); err != nil {
			return api.NodeInfo{}, err
		}
		if is != was {
			if is.State != was.State {
				is.Since = time.Now().UnixMilli()
			}
			is, err = m.catalog.ChangeNode(ctx, was, is)
			if errors.Is(err, catalog.ErrStale) && !errors.Is(err, catalog.ErrUnknown) && try < declareTries {
				continue
			}
			if err != nil {
				return api.NodeInfo{}, err
			}
			m.log.Info("a node was declared", "node", id, "state", is.State)
			m.ForgetCounts()
		}
		m.agents.Enter(is)
		return m.Node(ctx, id)
	}
}
