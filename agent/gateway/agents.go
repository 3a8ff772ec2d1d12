package gateway

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// agents is the gateway's view of the nodes: one connection each, whether it answered last, and the handshake that
// registers a store's contents with the catalog before the agent serves.
type agents struct {
	catalog *catalog.Catalog
	cluster catalog.Cluster
	timeout time.Duration
	dial    wire.Dial // nil: TCP
	log     *slog.Logger

	gateway string // who declares nodes out

	lost     atomic.Bool // a store lost its contents, or a node was given up: blocks wait for repair
	mutex    sync.RWMutex
	nodes    map[block.NodeID]*agent
	patience patience // as the catalog said last
}

type agent struct {
	node catalog.Node
	link *link

	attaching sync.Mutex   // one handshake at a time
	busy      atomic.Int64 // calls under way
	chosen    atomic.Int64 // times it was chosen as a substitute
	probed    atomic.Bool  // by the loop of probes, now

	mutex      sync.Mutex
	ours       bool // it was greeted, and is the node and of the cluster it should be, since it last could not be reached
	reachable  bool
	problem    error // why not, where it is not
	hello      wire.HelloReply
	throughput throughput
	health     health
}

func newAgents(c *catalog.Catalog, timeout time.Duration, dial wire.Dial, log *slog.Logger) *agents {
	return &agents{
		catalog: c, cluster: c.Cluster(), timeout: timeout, dial: dial, log: log, nodes: map[block.NodeID]*agent{},
		patience: patienceOf(catalog.Membership{}),
	}
}

// enter makes node a member, or gives a member what changed of it. Calls under way at an old address end in errors.
func (a *agents) enter(node catalog.Node) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	was := a.nodes[node.ID]
	if was != nil && (was.node == node || was.node.Version > node.Version) {
		return
	}
	if node.IsGone() && (was == nil || !was.node.IsGone()) {
		a.lost.Store(true)
	}
	made := &agent{node: node}
	if was != nil && was.node.Address == node.Address {
		was.mutex.Lock()
		made.link, made.ours, made.health = was.link, was.ours, was.health
		made.reachable, made.problem, made.hello, made.throughput = was.reachable, was.problem, was.hello, was.throughput
		if was.node.IsExcluded() && !node.IsExcluded() {
			made.reachable = false // until its contents are registered again
		}
		was.mutex.Unlock()
		made.chosen.Store(was.chosen.Load())
	} else {
		made.link = newLink(node.Address, a.dial)
		if was != nil {
			if err := was.link.close(); err != nil {
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
		return nil, api.Refuse(api.ErrUnavailable, "node %s is not a member of the cluster; start its agent and add it to the node list", id)
	}
	if found.node.State == catalog.NodeRemoved {
		return nil, api.Refuse(api.ErrUnavailable, "node %s was removed from the cluster; declare it up to make it a member again", id)
	}
	return found, nil
}

func (a *agents) isRemoved(id block.NodeID) bool {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	found := a.nodes[id]
	return found != nil && found.node.State == catalog.NodeRemoved
}

// all returns every node that was not removed, ordered by id.
func (a *agents) all() []*agent {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	list := make([]*agent, 0, len(a.nodes))
	for _, found := range a.nodes {
		if found.node.State != catalog.NodeRemoved {
			list = append(list, found)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].node.ID < list[j].node.ID })
	return list
}

// roster is a digest of what is known of the nodes: who is a member, what is declared of it, whether it is trusted to answer
// and what contents it has. It differs where the prospects of a repair do, but for room in stores.
func (a *agents) roster() (digest uint64) {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	for id, target := range a.nodes {
		trusted, _, hello := target.state()
		hash := fnv.New64a()
		fmt.Fprintln(hash, id, target.node.Version, trusted, hello.Incarnation) // a hash never fails
		digest += hash.Sum64()
	}
	return digest
}

// call sends one request to a node. An agent that does not serve yet is attached first. A call that the node has not
// answered when it turns suspect or down ends as one whose connection was lost: its outcome is unknown. The reply payload
// belongs to the caller.
func (a *agents) call(ctx context.Context, id block.NodeID, op wire.Op, request any, payload []byte, reply any) ([]byte, error) {
	if target, err := a.get(id); err != nil {
		return nil, err
	} else if target.isSilent() {
		return nil, fmt.Errorf("node %s: %w: it does not answer probes", id, wire.ErrUnreachable)
	}
	return a.insist(ctx, id, op, request, payload, reply)
}

// insist is call, but for a node that did not answer the last probes too: for what nobody else can answer.
func (a *agents) insist(ctx context.Context, id block.NodeID, op wire.Op, request any, payload []byte, reply any) ([]byte, error) {
	target, err := a.get(id)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	target.busy.Add(1)
	defer target.busy.Add(-1)
	answer, err := a.ask(ctx, target, op, request, payload, reply)
	if errors.Is(err, wire.ErrUnreachable) {
		target.set(false, err)
	}
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", id, err)
	}
	return answer, nil
}

// ask is one call of a node within ctx.
func (a *agents) ask(ctx context.Context, target *agent, op wire.Op, request any, payload []byte, reply any) ([]byte, error) {
	if !target.isOurs() { // nothing is asked of, let alone deleted on, a node that may be another cluster's
		if _, err := a.greet(ctx, target); err != nil {
			if errors.Is(err, api.ErrUnavailable) {
				target.set(false, err)
			}
			return nil, err
		}
	}
	answer, err := target.link.call(ctx, op, request, payload, reply)
	if errors.Is(err, wire.ErrUnregistered) {
		if err = a.attach(ctx, target); err == nil {
			answer, err = target.link.call(ctx, op, request, payload, reply)
		}
	}
	return answer, err
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
	if _, err := target.link.call(ctx, wire.OpAttach, request, nil, nil); err != nil {
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
	if _, err := target.link.call(ctx, wire.OpHello, wire.HelloRequest{}, nil, &hello); err != nil {
		return hello, fmt.Errorf("greeting the agent: %w", err)
	}
	if hello.Node != target.node.ID {
		return hello, api.Refuse(api.ErrUnavailable, "the agent at %s says it is node %s, not %s; correct the node list", target.node.Address, hello.Node, target.node.ID)
	}
	if hello.Cluster != "" && hello.Cluster != a.cluster.ID {
		return hello, api.Refuse(api.ErrUnavailable, "the store of node %s at %s belongs to cluster %s, and this catalog is of cluster %s; run the gateway with the catalog of that cluster, or give the node a store of its own",
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
	membership, err := a.catalog.Membership(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.log.Warn("reading the patience with nodes", "cause", err)
		}
		return
	}
	a.setPatience(patienceOf(membership))
}

// probe greets every agent once, judges by that who is up, and gives up who has been silent for too long.
func (a *agents) probe(ctx context.Context) {
	incarnations := a.reread(ctx)
	var probes sync.WaitGroup
	for _, target := range a.all() {
		probes.Go(func() { a.look(ctx, target, incarnations) })
	}
	probes.Wait()
	a.giveUp(ctx)
}

// probeLoop is probe once a second for as long as ctx lives, but that no node's answer is waited for before others are
// asked again.
func (a *agents) probeLoop(ctx context.Context) {
	var probes sync.WaitGroup
	defer probes.Wait()
	every(ctx, time.Second, func(ctx context.Context) {
		incarnations := a.reread(ctx)
		for _, target := range a.all() {
			if target.probed.Swap(true) {
				continue
			}
			probes.Go(func() {
				defer target.probed.Store(false)
				a.look(ctx, target, incarnations)
			})
		}
		a.giveUp(ctx)
	})
}

// reread takes over what the catalog says of members and returns what it says of their contents; nil where it says nothing.
func (a *agents) reread(ctx context.Context) map[block.NodeID]block.Incarnation {
	ctx, cancel := context.WithTimeout(ctx, greatestPatience)
	defer cancel()
	a.refresh(ctx)
	incarnations, err := a.catalog.Incarnations(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.log.Warn("reading incarnations", "cause", err)
		}
		return nil
	}
	return incarnations
}

// look greets one agent, attaches it where it does not serve yet, and takes note of how that went.
func (a *agents) look(ctx context.Context, target *agent, incarnations map[block.NodeID]block.Incarnation) {
	ctx, stop := context.WithTimeout(ctx, greatestPatience)
	defer stop()
	target.mutex.Lock()
	timeout := target.health.timeout()
	target.mutex.Unlock()
	began := time.Now()
	greeting, cancel := context.WithTimeout(ctx, timeout)
	hello, err := a.greet(greeting, target)
	cancel()
	took := time.Since(began)
	if err == nil && !hello.Registered {
		err = a.attach(ctx, target)
	} else if err == nil && incarnations != nil && !target.node.IsExcluded() {
		// Another gateway's registration of earlier contents came late, or the node was excluded for a while.
		err = a.register(ctx, incarnations[hello.Node], hello)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return // the gateway is closing, which says nothing of the node
	}
	if target.judge(err, took, a.patient().down) {
		if err := target.link.renew(); err != nil {
			a.log.Debug("closing the connection to a node that does not answer", "node", target.node.ID, "cause", err)
		}
	}
}

// judge takes note of a probe, problem nil where it was answered, and reports whether the node has turned suspect or down
// by it. Who it is has to be asked again after every miss; whether it is reachable is in doubt once it is suspect, or says
// that it is another node or that its store does not answer.
func (t *agent) judge(problem error, took, downAfter time.Duration) (worse bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.problem = problem
	if problem == nil {
		t.health, t.reachable = t.health.answer(time.Now(), took), true
		return false
	}
	was := t.health.state
	t.health, t.ours = t.health.miss(time.Now(), downAfter), false
	t.reachable = t.reachable && t.health.state == healthUp && !errors.Is(problem, api.ErrUnavailable) && !errors.Is(problem, wire.ErrDown)
	return t.health.state != was
}

func (t *agent) set(reachable bool, problem error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.reachable, t.problem = reachable, problem
	t.ours = t.ours && reachable
}

// isSilent reports whether the node has not answered the last probes: nothing is worth waiting for before it has answered
// the next one, which comes within a second.
func (t *agent) isSilent() bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return !t.ours && (t.health.state == healthSuspect || t.health.state == healthDown)
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
	t.throughput.note(&hello, time.Now())
}

// trusted reports whether the node answered last and is not suspect. The caller holds the mutex.
func (t *agent) trusted() bool {
	return t.reachable && (t.health.state == healthUp || t.health.state == "")
}

// state returns whether the node is trusted to answer, why not, and what it said of itself.
func (t *agent) state() (reachable bool, problem error, hello wire.HelloReply) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.trusted(), t.problem, t.hello
}

func (a *agents) address(id block.NodeID) (string, error) {
	target, err := a.get(id)
	if err != nil {
		return "", err
	}
	return target.node.Address, nil
}

func (a *agents) close() error {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	var errs []error
	for _, target := range a.nodes {
		errs = append(errs, target.link.close())
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
		errors.Is(err, api.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
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
