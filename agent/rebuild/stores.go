package rebuild

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// reader reads the stores through their agents.
type reader struct {
	options Options
	report  *Report
	nodes   []*storeNode
	byID    map[block.NodeID]*storeNode
	cluster catalog.Cluster
}

// storeNode is one member and what it said.
type storeNode struct {
	node    catalog.Node
	client  *wire.Client
	hello   wire.HelloReply
	problem error // it does not answer
	blocks  int
}

func (n *storeNode) report() NodeReport {
	report := NodeReport{ID: n.node.ID, Address: n.node.Address, Incarnation: n.hello.Incarnation, Blocks: n.blocks}
	if n.problem != nil {
		report.Problem = n.problem.Error()
	}
	return report
}

// client returns a client of the agent of a node.
func (o *Options) client(member catalog.Node) *wire.Client {
	options := wire.ClientOptions{}
	if o.Certificates != nil {
		options.Dial = o.Certificates.DialAgent(string(member.ID))
	}
	return wire.NewClientWith(member.Address, options)
}

// callTimeout bounds one request to an agent. A listing passes over all keys of its store.
const callTimeout = 2 * time.Minute

func (n *storeNode) call(ctx context.Context, op wire.Op, request, reply any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := n.client.Call(ctx, op, request, nil, reply); err != nil {
		return fmt.Errorf("node %s: %w", n.node.ID, err)
	}
	return nil
}

func (r *reader) close() {
	for _, node := range r.nodes {
		_ = node.client.Close() // only reads: an error of closing loses nothing
	}
}

// greet asks every agent who it is, learns of which cluster they are, and has them serve.
func (r *reader) greet(ctx context.Context) error {
	r.byID = map[block.NodeID]*storeNode{}
	var workers errgroup.Group
	for _, member := range r.options.Nodes {
		node := &storeNode{node: member, client: r.options.client(member)}
		r.nodes = append(r.nodes, node)
		r.byID[member.ID] = node
		workers.Go(func() error {
			node.problem = node.call(ctx, wire.OpHello, wire.HelloRequest{Versions: wire.Understood}, &node.hello)
			return nil
		})
	}
	_ = workers.Wait() // each node keeps its own error
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, node := range r.nodes {
		if err := r.meet(node); err != nil {
			return err
		}
	}
	if r.cluster.ID == "" {
		return errors.New("no store belongs to a cluster: there is nothing to rebuild a catalog from")
	}
	if r.cluster.FingerprintKey == [16]byte{} {
		return fmt.Errorf("no store of cluster %s has the key of its fingerprints, which a catalog needs: an earlier release wrote them, and no gateway of this one has served them", r.cluster.ID)
	}
	for _, node := range r.nodes {
		if node.problem != nil || node.hello.Cluster == "" || node.hello.Registered {
			continue
		}
		request := wire.AttachRequest{Cluster: r.cluster.ID, Incarnation: node.hello.Incarnation, FingerprintKey: r.cluster.FingerprintKey}
		if err := node.call(ctx, wire.OpAttach, request, nil); err != nil {
			return fmt.Errorf("attaching the agent: %w", err)
		}
	}
	return nil
}

// meet judges what one node said of itself.
func (r *reader) meet(node *storeNode) error {
	hello := &node.hello
	switch {
	case node.problem != nil && !r.options.Missing:
		return fmt.Errorf("%w; start its agent, say with --tls who asks if agents have certificates, or go on without its blocks with --missing", node.problem)
	case node.problem != nil:
		r.report.Problems = append(r.report.Problems, Problem{Kind: ProblemNode, Node: node.node.ID, Text: fmt.Sprintf("it does not answer, its blocks count as lost: %v", node.problem)})
		return nil
	case hello.Node != node.node.ID:
		return fmt.Errorf("the agent at %s is node %s, the node list says %s; correct the list", node.node.Address, hello.Node, node.node.ID)
	case hello.Cluster == "": // a new store, or one that lost its contents
		return nil
	case r.cluster.ID != "" && hello.Cluster != r.cluster.ID:
		return fmt.Errorf("the store of node %s belongs to cluster %s, others to cluster %s; list the nodes of one cluster", hello.Node, hello.Cluster, r.cluster.ID)
	}
	r.cluster.ID = hello.Cluster
	if len(hello.FingerprintKey) != len(r.cluster.FingerprintKey) {
		return nil
	}
	key := [16]byte(hello.FingerprintKey)
	if r.cluster.FingerprintKey != [16]byte{} && r.cluster.FingerprintKey != key {
		return fmt.Errorf("node %s has fingerprints of another key than the others: its store is of another cluster", hello.Node)
	}
	r.cluster.FingerprintKey = key
	return nil
}

// list returns all blocks of all stores, by group.
func (r *reader) list(ctx context.Context) (map[block.GroupID][]block.Address, error) {
	groups := map[block.GroupID][]block.Address{}
	var mutex sync.Mutex
	workers, ctx := errgroup.WithContext(ctx)
	for _, node := range r.nodes {
		if node.problem != nil || node.hello.Cluster == "" {
			continue
		}
		workers.Go(func() error {
			return node.list(ctx, func(addresses []block.Address) {
				mutex.Lock()
				defer mutex.Unlock()
				for _, address := range addresses {
					groups[address.Group] = append(groups[address.Group], address)
				}
				r.options.Progress("groups", 0, len(groups))
			})
		})
	}
	return groups, workers.Wait()
}

func (n *storeNode) list(ctx context.Context, visit func([]block.Address)) error {
	for after := ""; ; {
		var page wire.ListReply
		err := n.call(ctx, wire.OpList, wire.ListRequest{After: after}, &page)
		if errors.Is(err, wire.ErrUnsupported) {
			return fmt.Errorf("the store of node %s cannot list its blocks, so nobody knows them: %w", n.node.ID, err)
		}
		if err != nil {
			return fmt.Errorf("listing blocks: %w", err)
		}
		n.blocks += len(page.Addresses)
		visit(page.Addresses)
		if !page.More || len(page.Addresses) == 0 {
			return nil
		}
		after = page.Addresses[len(page.Addresses)-1].Key()
	}
}

// headers reads the headers of blocks. One that cannot be read is a problem, not an error; a node that stops answering is.
func (r *reader) headers(ctx context.Context, id block.GroupID, addresses []block.Address) (found []Found, problems []Problem, err error) {
	found = make([]Found, len(addresses))
	failures := make([]error, len(addresses))
	var workers errgroup.Group
	for i, address := range addresses {
		node := r.byID[address.Node]
		workers.Go(func() error {
			var reply wire.HeaderReply
			failures[i] = node.call(ctx, wire.OpHeader, wire.HeaderRequest{Address: address}, &reply)
			found[i] = Found{Header: reply.Header, Incarnation: node.hello.Incarnation}
			return nil
		})
	}
	_ = workers.Wait() // each block keeps its own error
	var read []Found
	for i, failure := range failures {
		switch {
		case failure == nil:
			read = append(read, found[i])
		case errors.Is(failure, store.ErrNotFound), errors.Is(failure, store.ErrCorrupt), errors.Is(failure, wire.ErrNotFound), errors.Is(failure, wire.ErrCorrupt), errors.Is(failure, wire.ErrUnsupported):
			problems = append(problems, Problem{Kind: ProblemUnreadable, Node: addresses[i].Node, Group: &id, Text: failure.Error()})
		default:
			return nil, nil, fmt.Errorf("reading the header of block %s: %w", addresses[i], failure)
		}
	}
	return read, problems, nil
}
