package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// agents is the gateway's view of the nodes: one connection each, whether it answered last, and the handshake that
// registers a store's contents with the catalog before the agent serves.
type agents struct {
	catalog *catalog.Catalog
	cluster catalog.Cluster
	timeout time.Duration
	log     *slog.Logger

	lost  atomic.Bool // a store lost its contents: its blocks wait for repair
	mutex sync.RWMutex
	nodes map[block.NodeID]*agent
}

type agent struct {
	node   catalog.Node
	client *wire.Client

	attaching sync.Mutex   // one handshake at a time
	busy      atomic.Int64 // calls under way

	mutex     sync.Mutex
	ours      bool // it was greeted, and is the node and of the cluster it should be, since it last could not be reached
	reachable bool
	problem   error // why not, where it is not
	hello     wire.HelloReply
}

func newAgents(c *catalog.Catalog, timeout time.Duration, log *slog.Logger) *agents {
	return &agents{catalog: c, cluster: c.Cluster(), timeout: timeout, log: log, nodes: map[block.NodeID]*agent{}}
}

// enter makes node a member, or gives a member what changed of it. Calls under way at an old address end in errors.
func (a *agents) enter(node catalog.Node) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	was := a.nodes[node.ID]
	if was != nil && was.node == node {
		return
	}
	made := &agent{node: node}
	if was != nil && was.node.Address == node.Address {
		made.client = was.client
		made.reachable, made.problem, made.hello = was.state()
		made.ours = was.isOurs()
	} else {
		made.client = wire.NewClient(node.Address)
		if was != nil {
			if err := was.client.Close(); err != nil {
				a.log.Debug("closing the connection to an old address", "node", node.ID, "cause", err)
			}
		}
	}
	a.nodes[node.ID] = made
}

func (a *agents) get(id block.NodeID) (*agent, error) {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	found, ok := a.nodes[id]
	if !ok {
		return nil, refuse(ErrUnavailable, "node %s is not a member of the cluster; start its agent and add it to the node list", id)
	}
	return found, nil
}

// all returns every node, ordered by id.
func (a *agents) all() []*agent {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	list := make([]*agent, 0, len(a.nodes))
	for _, found := range a.nodes {
		list = append(list, found)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].node.ID < list[j].node.ID })
	return list
}

// call sends one request to a node. An agent that does not serve yet is attached first. The reply payload belongs to
// the caller.
func (a *agents) call(ctx context.Context, id block.NodeID, op wire.Op, request any, payload []byte, reply any) ([]byte, error) {
	target, err := a.get(id)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	target.busy.Add(1)
	defer target.busy.Add(-1)
	if !target.isOurs() { // nothing is asked of, let alone deleted on, a node that may be another cluster's
		if _, err := a.greet(ctx, target); err != nil {
			if errors.Is(err, wire.ErrUnreachable) || errors.Is(err, ErrUnavailable) {
				target.set(false, err)
			}
			return nil, fmt.Errorf("node %s: %w", id, err)
		}
	}
	answer, err := target.client.Call(ctx, op, request, payload, reply)
	if errors.Is(err, wire.ErrUnregistered) {
		if err = a.attach(ctx, target); err == nil {
			answer, err = target.client.Call(ctx, op, request, payload, reply)
		}
	}
	if errors.Is(err, wire.ErrUnreachable) {
		target.set(false, err)
	}
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", id, err)
	}
	return answer, nil
}

// attach registers what the store holds with the catalog and then lets the agent serve (rule 17 of the protocol: the
// catalog knows an incarnation before anything under it is served or acknowledged).
func (a *agents) attach(ctx context.Context, target *agent) error {
	target.attaching.Lock()
	defer target.attaching.Unlock()
	known, err := a.catalog.Incarnations(ctx) // before the agent is asked
	if err != nil {
		return fmt.Errorf("reading incarnations: %w", err)
	}
	hello, err := a.greet(ctx, target)
	if err != nil {
		return err
	}
	if hello.Registered {
		return nil
	}
	if err := a.register(ctx, known[hello.Node], hello); err != nil {
		return err
	}
	request := wire.AttachRequest{Cluster: a.cluster.ID, Incarnation: hello.Incarnation, FingerprintKey: a.cluster.FingerprintKey}
	if _, err := target.client.Call(ctx, wire.OpAttach, request, nil, nil); err != nil {
		return fmt.Errorf("attaching the agent: %w", err)
	}
	a.log.Info("agent attached", "node", hello.Node, "incarnation", hello.Incarnation, "store", hello.Store.Location)
	return nil
}

// register tells the catalog of contents that it does not know. If those it knew are lost, every block of them is
// suspect and waits for repair.
func (a *agents) register(ctx context.Context, was block.Incarnation, hello wire.HelloReply) error {
	if was == hello.Incarnation {
		return nil
	}
	if err := a.catalog.RegisterIncarnation(ctx, hello.Node, was, hello.Incarnation); err != nil {
		return fmt.Errorf("registering the contents of the store: %w", err)
	}
	if was != "" {
		a.log.Warn("a store has lost its contents", "node", hello.Node, "was", was, "now", hello.Incarnation)
		a.lost.Store(true)
	}
	return nil
}

// greet asks an agent who it is and takes note of the answer, unless it is of another node or of another cluster: a store
// belongs to one catalog, and to any other all its blocks would look like orphans.
func (a *agents) greet(ctx context.Context, target *agent) (hello wire.HelloReply, err error) {
	if _, err := target.client.Call(ctx, wire.OpHello, wire.HelloRequest{}, nil, &hello); err != nil {
		return hello, fmt.Errorf("greeting the agent: %w", err)
	}
	if hello.Node != target.node.ID {
		return hello, refuse(ErrUnavailable, "the agent at %s says it is node %s, not %s; correct the node list", target.node.Address, hello.Node, target.node.ID)
	}
	if hello.Cluster != "" && hello.Cluster != a.cluster.ID {
		return hello, refuse(ErrUnavailable, "the store of node %s at %s belongs to cluster %s, and this catalog is of cluster %s; run the gateway with the catalog of that cluster, or give the node a store of its own",
			hello.Node, target.node.Address, hello.Cluster, a.cluster.ID)
	}
	target.greeted(hello)
	return hello, nil
}

// refresh takes over what the catalog says of the members: other gateways may have entered nodes or new addresses.
func (a *agents) refresh(ctx context.Context) {
	nodes, err := a.catalog.Nodes(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.log.Warn("reading the members", "cause", err)
		}
		return
	}
	for _, node := range nodes {
		a.enter(node)
	}
}

// probe greets every agent once and notes who answers.
func (a *agents) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	a.refresh(ctx)
	incarnations, err := a.catalog.Incarnations(ctx)
	if err != nil && ctx.Err() == nil {
		a.log.Warn("reading incarnations", "cause", err)
	}
	var group errgroup.Group
	for _, target := range a.all() {
		group.Go(func() error {
			hello, err := a.greet(ctx, target)
			if err == nil && !hello.Registered {
				err = a.attach(ctx, target)
			} else if known := incarnations[hello.Node]; err == nil && known != "" {
				err = a.register(ctx, known, hello) // another gateway's registration of earlier contents came late
			}
			target.set(err == nil, err)
			return nil
		})
	}
	_ = group.Wait() // members never return errors: each notes its own
}

func (t *agent) set(reachable bool, problem error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.reachable, t.problem = reachable, problem
	t.ours = t.ours && reachable
}

func (t *agent) isOurs() bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.ours
}

func (t *agent) greeted(hello wire.HelloReply) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.hello, t.ours = hello, true
}

// state returns whether the node answered last, why not, and what it said of itself.
func (t *agent) state() (reachable bool, problem error, hello wire.HelloReply) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.reachable, t.problem, t.hello
}

func (a *agents) address(id block.NodeID) (string, error) {
	target, err := a.get(id)
	if err != nil {
		return "", err
	}
	return target.node.Address, nil
}

func (a *agents) close() error {
	var errs []error
	for _, target := range a.all() {
		errs = append(errs, target.client.Close())
	}
	return errors.Join(errs...)
}

// goneBlock reports whether err means that the block itself is lost or wrong, in contrast to a node that does not
// answer. A store that lost its contents in the middle of a request has lost the block too.
func goneBlock(err error) bool {
	return errors.Is(err, wire.ErrNotFound) || errors.Is(err, wire.ErrCorrupt) || errors.Is(err, wire.ErrUnregistered)
}

// unanswered reports whether err means the node or its store did not answer.
func unanswered(err error) bool {
	return errors.Is(err, wire.ErrUnreachable) || errors.Is(err, store.ErrDown) || errors.Is(err, wire.ErrBusy) ||
		errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// load orders nodes by how much is asked of them now; one that does not answer comes last.
func (a *agents) load(id block.NodeID) int64 {
	target, err := a.get(id)
	if err != nil {
		return math.MaxInt64
	}
	if reachable, _, _ := target.state(); !reachable {
		return math.MaxInt64
	}
	return target.busy.Load()
}
