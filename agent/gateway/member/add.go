package member

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// AddNode makes a node a member, once its agent was found to be what it should be; every gateway learns of it by the catalog. It takes
// new groups when it returns. In a dry run nothing is changed. The member is what was entered, or would be.
func AddNode(ctx context.Context, m *Membership, id block.NodeID, request api.AddRequest) (Member, error) {
	node := catalog.Node{
		ID: id, Address: request.Address, Domain: request.Domain, Spare: request.Spare,
		State: catalog.NodeUp, Since: time.Now().UnixMilli(),
	}
	if err := checkAdded(&node); err != nil {
		return Member{}, err
	}
	known, err := m.catalog.Nodes(ctx)
	if err != nil {
		return Member{}, err
	}
	if err := checkNew(&node, known); err != nil {
		return Member{}, err
	}
	is, err := checkAgent(ctx, m, &node)
	if err != nil {
		return Member{}, err
	}
	added := Member{Node: node, Trusted: true, crowded: isCrowded(&is), used: is.UsedBytes, capacity: is.CapacityBytes}
	if request.DryRun {
		return added, nil
	}
	added.Node, err = m.catalog.ChangeNode(ctx, catalog.Node{}, node)
	if errors.Is(err, catalog.ErrStale) {
		return Member{}, api.Refuse(api.ErrConflict, "somebody else added node %s at this moment; see `restripe node list`: %w", id, err)
	}
	if err != nil {
		return Member{}, err
	}
	m.log.Info("a node was added", "node", id, "address", node.Address)
	m.ForgetCounts()
	m.agents.Enter(added.Node)
	m.agents.Probe(ctx) // so that it takes blocks at once
	return added, nil
}

// checkAdded refuses what no node can be called, or where none can be.
func checkAdded(node *catalog.Node) error {
	if err := api.CheckNodeID(string(node.ID)); err != nil {
		return api.Refuse(api.ErrBadRequest, "%w", err)
	}
	if node.Address == "" {
		return api.Refuse(api.ErrBadRequest, "node %s: say at which address its agent is, as host:port", node.ID)
	}
	if host, port, err := net.SplitHostPort(node.Address); err != nil || host == "" || port == "" {
		return api.Refuse(api.ErrBadRequest, "address %q of node %s: want host:port, as the gateways reach the agent", node.Address, node.ID)
	}
	if len(node.Domain) > maxDomainBytes {
		return api.Refuse(api.ErrBadRequest, "a failure domain has at most %d bytes, this one has %d", maxDomainBytes, len(node.Domain))
	}
	return nil
}

// checkNew refuses a node that the catalog knows, and the address of another.
func checkNew(node *catalog.Node, known []catalog.Node) error {
	for i := range known {
		other := &known[i]
		switch {
		case other.ID == node.ID && other.IsExcluded():
			return api.Refuse(api.ErrConflict, "node %s was a member and is declared %s; run `restripe node up %s`, which makes it one again, "+
				"then `restripe node replace %s --address %s` if it has moved", node.ID, other.State, node.ID, node.ID, node.Address)
		case other.ID == node.ID:
			return api.Refuse(api.ErrConflict, "node %s is a member already, at %s and declared %s; if it has moved, run "+
				"`restripe node replace %s --address %s`; else give the new node a name of its own",
				node.ID, other.Address, other.State, node.ID, node.Address)
		case other.Address == node.Address && other.State != catalog.NodeRemoved:
			return api.Refuse(api.ErrConflict, "%s is the address of node %s; each node has an agent of its own: give that of node %s",
				node.Address, other.ID, node.ID)
		}
	}
	return nil
}

// checkAgent asks the agent at the node's address who it is, and refuses one that is another node's or another cluster's, or that does
// not answer. It returns what the agent says of its store.
func checkAgent(ctx context.Context, m *Membership, node *catalog.Node) (is store.Info, err error) {
	hello, err := m.ask(ctx, node.ID, node.Address)
	switch {
	case errors.Is(err, wire.ErrBadRequest), errors.Is(err, wire.ErrForbidden):
		return is, api.Refuse(api.ErrConflict, "the agent at %s cannot be node %s: %w", node.Address, node.ID, err)
	case err != nil:
		return is, api.Refuse(api.ErrUnavailable, "no agent of node %s answers at %s: start it there (`restripe agent --id %s`), or see to the "+
			"address, the network and the certificate: %w", node.ID, node.Address, node.ID, err)
	case hello.Node != node.ID:
		return is, api.Refuse(api.ErrConflict, "the agent at %s says it is node %s, not %s; add it as %s, or give the address of the agent "+
			"that was started with --id %s", node.Address, hello.Node, node.ID, hello.Node, node.ID)
	case hello.Cluster != "" && hello.Cluster != m.catalog.Cluster().ID:
		return is, api.Refuse(api.ErrConflict, "the store of node %s at %s belongs to cluster %s, and this is cluster %s; give the node "+
			"an empty store of its own, or remove it from the other cluster and empty its store",
			node.ID, node.Address, hello.Cluster, m.catalog.Cluster().ID)
	}
	if _, err := wire.Understood.Meet(hello.Versions, "the agent"); err != nil {
		return is, api.Refuse(api.ErrConflict, "node %s at %s: %w; install the same release on all", node.ID, node.Address, err)
	}
	if twin := sharing(m.agents, node.ID, hello.Incarnation); twin != nil {
		return is, api.Refuse(api.ErrConflict, "the agents of nodes %s at %s and %s at %s have one and the same store (%s): give each node "+
			"a store of its own", twin.Node.ID, twin.Node.Address, node.ID, node.Address, cmp.Or(hello.Store.Location, "it does not say where"))
	}
	return hello.Store, nil
}
