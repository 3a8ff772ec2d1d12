package member

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/wire"
)

// enterNodes enters those nodes of the options that the catalog does not know, and returns all members. Of a node that is
// known the record holds, as people have declared what it says: a node list adds a failure domain where it has none, and
// may say where the agent is now, which Follow finds out.
func (m *Membership) enterNodes(ctx context.Context) ([]catalog.Node, error) {
	known, err := m.catalog.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the members: %w", err)
	}
	members := map[block.NodeID]catalog.Node{}
	for _, node := range known {
		members[node.ID] = node
	}
	for _, given := range m.options.Nodes {
		record, there := members[given.ID]
		if !there {
			record, err = m.addNode(ctx, given)
		}
		if err == nil {
			err = m.compareNode(ctx, &record, &given)
		}
		if err != nil {
			return nil, fmt.Errorf("entering node %s: %w", given.ID, err)
		}
	}
	if known, err = m.catalog.Nodes(ctx); err != nil {
		return nil, fmt.Errorf("reading the members: %w", err)
	}
	return known, nil
}

// addNode enters a node that the catalog did not know, and returns its record, which is another one where somebody else was
// first.
func (m *Membership) addNode(ctx context.Context, node catalog.Node) (catalog.Node, error) {
	if node.State == "" {
		node.State = catalog.NodeUp
	}
	added, err := m.catalog.ChangeNode(ctx, catalog.Node{}, node)
	if errors.Is(err, catalog.ErrStale) {
		return m.record(ctx, node.ID)
	}
	return added, err
}

// compareNode tells of what a node list says of a node otherwise than its record.
func (m *Membership) compareNode(ctx context.Context, record, given *catalog.Node) error {
	if record.Domain == "" && given.Domain != "" {
		next := *record
		next.Domain = given.Domain
		changed, err := m.catalog.ChangeNode(ctx, *record, next)
		if err != nil && !errors.Is(err, catalog.ErrStale) { // else somebody has declared something at this moment
			return err
		}
		if err == nil {
			*record = changed
		}
	}
	id := record.ID
	tell := func(what string, given, record any) {
		m.log.Warn("the node list says otherwise than the record of a node, which holds; correct the list, or declare it with `restripe node`",
			"node", id, "what", what, "list", given, "record", record)
	}
	if given.Domain != "" && given.Domain != record.Domain {
		tell("domain", given.Domain, record.Domain)
	}
	if given.Spare && !record.Spare {
		tell("spare", given.Spare, record.Spare)
	}
	if given.State != "" && given.State != record.State {
		tell("state", given.State, record.State)
	}
	return nil
}

// followEvery is how often agents are looked for at the addresses of the node list while they are not found elsewhere.
const followEvery = 5 * time.Second

// elsewhere returns the addresses of the node list that differ from those in the records.
func (m *Membership) elsewhere(members []catalog.Node) map[block.NodeID]string {
	doubts := map[block.NodeID]string{}
	for _, given := range m.options.Nodes {
		for i := range members {
			if node := &members[i]; node.ID == given.ID && node.Address != given.Address {
				doubts[node.ID] = given.Address
			}
		}
	}
	return doubts
}

// FollowLoop follows agents until it is known of each where it is.
func (m *Membership) FollowLoop(ctx context.Context) {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for len(m.doubts) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			m.Follow(ctx)
		}
	}
}

// Follow looks for agents whose addresses are in doubt, by the node list, and takes those out of the doubts that it finds.
func (m *Membership) Follow(ctx context.Context) {
	if len(m.doubts) == 0 {
		return
	}
	incarnations, err := m.catalog.Incarnations(ctx)
	if err != nil {
		if ctx.Err() == nil {
			m.log.Warn("looking for agents at the addresses of the node list", "cause", err)
		}
		return
	}
	var mutex sync.Mutex
	var looks sync.WaitGroup
	for id, address := range maps.Clone(m.doubts) {
		looks.Go(func() {
			found, err := m.followOne(ctx, id, address, incarnations[id])
			if err != nil && ctx.Err() == nil {
				m.log.Warn("looking for an agent at the address of the node list", "node", id, "cause", err)
			}
			if found {
				mutex.Lock()
				defer mutex.Unlock()
				delete(m.doubts, id)
			}
		})
	}
	looks.Wait()
}

// followOne looks for an agent at the address in its node's record and at another, and has the record follow it. The other
// one holds only where the agent there has the contents that the catalog knows or, with nobody at the first, belongs to no
// cluster yet, or the catalog knows no contents of the node: a node list may be older than what people declared, and an
// agent that was replaced may still run.
func (m *Membership) followOne(ctx context.Context, id block.NodeID, address string, known block.Incarnation) (found bool, err error) {
	record, err := m.record(ctx, id)
	if err != nil || record.Address == address || record.State == catalog.NodeRemoved {
		return err == nil, err
	}
	here, isHere := m.whoIs(ctx, id, record.Address)
	if isHere && here.Incarnation == known {
		m.log.Warn("the node list has another address of a node than that at which its agent answers; correct the list", "node", id, "list", address, "record", record.Address)
		return true, nil
	}
	there, isThere := m.whoIs(ctx, id, address)
	if !isThere || there.Incarnation != known && (isHere || there.Cluster != "" && known != "") {
		return false, nil
	}
	next := record
	next.Address = address
	changed, err := m.catalog.ChangeNode(ctx, record, next)
	if err != nil {
		return false, err
	}
	m.agents.Enter(changed)
	m.log.Info("a node is at the address of the node list", "node", id, "was", record.Address, "now", address)
	return true, nil
}

// whoIs asks the agent at an address who it is, and reports whether it is a node's, of this cluster or of none.
func (m *Membership) whoIs(ctx context.Context, id block.NodeID, address string) (hello wire.HelloReply, is bool) {
	hello, err := m.ask(ctx, id, address)
	return hello, err == nil && hello.Node == id && (hello.Cluster == "" || hello.Cluster == m.catalog.Cluster().ID)
}

// ask asks the agent at an address who it is, where it must be that of a node if nodes have certificates.
func (m *Membership) ask(ctx context.Context, id block.NodeID, address string) (hello wire.HelloReply, err error) {
	ctx, cancel := context.WithTimeout(ctx, leastPatience)
	defer cancel()
	asked := newLink(address, m.agents.dial(id), &m.agents.Traffic)
	_, err = asked.call(ctx, wire.OpHello, wire.HelloRequest{Versions: wire.Understood}, nil, &hello)
	if err := asked.close(); err != nil {
		m.log.Debug("closing a connection", "address", address, "cause", err)
	}
	return hello, err
}
