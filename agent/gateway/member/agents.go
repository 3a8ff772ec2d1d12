package member

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

	"golang.org/x/sync/semaphore"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// attachTries is how often a node is attached for one call: it may be started again in between.
const attachTries = 3

// Agents is the gateway's view of the nodes: one connection each, whether it answered last, and the handshake that
// registers a store's contents with the catalog before the agent serves.
type Agents struct {
	catalog *catalog.Catalog
	cluster catalog.Cluster
	timeout time.Duration
	dial    DialTo
	log     *slog.Logger

	gateway string        // who declares nodes out
	Turns   atomic.Uint64 // of Place
	Traffic wire.Traffic  // of all calls, of nodes that are members no more too

	Direct func(node block.NodeID, address string) // is told where the store of a node can be read, as its agent says; nil: nobody is

	Lost     atomic.Bool // a store lost its contents, or a node was given up: blocks wait for repair
	mutex    sync.RWMutex
	Nodes    map[block.NodeID]*Agent
	patience patience                           // as the catalog said last
	known    map[block.NodeID]block.Incarnation // contents of stores, likewise; nil: it was not read yet. It is replaced, not changed
	reading  *semaphore.Weighted                // one refresh at a time

	Clock func() time.Time // that other gateways see
	views views

	timelines timelines
}

// Agent is one node: what is declared of it, the connection to its agent, and what it answered last.
type Agent struct {
	Node catalog.Node
	link *link

	attaching sync.Mutex   // one handshake at a time
	Replaced  atomic.Int64 // times that its store was found to have other contents than the catalog knew
	busy      atomic.Int64 // calls under way
	chosen    atomic.Int64 // times it was chosen as a substitute
	probed    atomic.Bool  // by the loop of probes, now

	mutex      sync.Mutex
	ours       bool // it was greeted, and is the node and of the cluster it should be, since it last could not be reached
	Reachable  bool
	problem    error // why not, where it is not
	Hello      wire.HelloReply
	greetedAt  time.Time        // when that came
	obeys      *wire.Allegiance // what it answered last to the timeline it was shown; nil: it was shown none yet
	throughput throughput
	Health     Health
	leftovers  *api.Leftovers // as the last search of its store found them; nil before
}

// DialTo returns how the agent of a node is reached; nil: TCP.
type DialTo func(id block.NodeID) wire.Dial

// NewAgents returns the agents of no nodes yet, for the gateway of that name; a request to one of them may take timeout.
func NewAgents(c *catalog.Catalog, gateway string, timeout time.Duration, dial DialTo, log *slog.Logger) *Agents {
	return &Agents{
		catalog: c, cluster: c.Cluster(), gateway: gateway, timeout: timeout, dial: dial, log: log, Nodes: map[block.NodeID]*Agent{},
		patience: patienceOf(catalog.Membership{}), Clock: time.Now, timelines: timelines{catalog: c},
		views: views{own: catalog.View{Gateway: gateway}, reading: semaphore.NewWeighted(1)}, reading: semaphore.NewWeighted(1),
	}
}

// Enter makes node a member, or gives a member what changed of it. Calls under way at an old address end in errors.
func (a *Agents) Enter(node catalog.Node) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	was := a.Nodes[node.ID]
	if was != nil && (was.Node == node || was.Node.Version > node.Version) {
		return
	}
	if node.IsGone() && (was == nil || !was.Node.IsGone()) {
		a.Lost.Store(true)
	}
	if was != nil && was.Node.Out != "" && node.Out == "" {
		a.views.returned(node.ID, a.patience)
	}
	made := &Agent{Node: node}
	if was != nil && was.Node.Address == node.Address {
		was.mutex.Lock()
		made.link, made.ours, made.Health, made.leftovers = was.link, was.ours, was.Health, was.leftovers
		made.obeys, made.greetedAt = was.obeys, was.greetedAt
		made.Reachable, made.problem, made.Hello, made.throughput = was.Reachable, was.problem, was.Hello, was.throughput
		if was.Node.IsExcluded() && !node.IsExcluded() {
			made.Reachable = false // until its contents are registered again
		}
		was.mutex.Unlock()
		made.chosen.Store(was.chosen.Load())
	} else {
		made.link = newLink(node.Address, a.dial(node.ID), &a.Traffic)
		if was != nil {
			if err := was.link.close(); err != nil {
				a.log.Debug("closing the connection to an old address", "node", node.ID, "cause", err)
			}
		}
	}
	a.Nodes[node.ID] = made
	if a.Direct != nil && node.State == catalog.NodeRemoved {
		a.Direct(node.ID, "")
	}
}

// Get returns a member; ErrUnavailable where a node is none, or was removed.
func (a *Agents) Get(id block.NodeID) (*Agent, error) {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	found, ok := a.Nodes[id]
	if !ok {
		return nil, api.Refuse(api.ErrUnavailable, "node %s is not a member of the cluster; start its agent and add it to the node list", id)
	}
	if found.Node.State == catalog.NodeRemoved {
		return nil, api.Refuse(api.ErrUnavailable, "node %s was removed from the cluster; declare it up to make it a member again", id)
	}
	return found, nil
}

// IsRemoved reports whether a node was a member and is none any more.
func (a *Agents) IsRemoved(id block.NodeID) bool {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	found := a.Nodes[id]
	return found != nil && found.Node.State == catalog.NodeRemoved
}

// All returns every node that was not removed, ordered by id.
func (a *Agents) All() []*Agent {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	list := make([]*Agent, 0, len(a.Nodes))
	for _, found := range a.Nodes {
		if found.Node.State != catalog.NodeRemoved {
			list = append(list, found)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Node.ID < list[j].Node.ID })
	return list
}

// Roster is a digest of what is known of the nodes: who is a member, what is declared of it, whether it is trusted to answer
// and what contents it has. It differs where the prospects of a repair do, but for room in stores.
func (a *Agents) Roster() (digest uint64) {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	for id, target := range a.Nodes {
		trusted, _, hello := target.State()
		hash := fnv.New64a()
		fmt.Fprintln(hash, id, target.Node.Version, trusted, hello.Incarnation) // a hash never fails
		digest += hash.Sum64()
	}
	return digest
}

// Call sends one request to a node. An agent that does not serve yet is attached first. A call that the node has not
// answered when it turns suspect or down ends as one whose connection was lost: its outcome is unknown. The reply payload
// belongs to the caller.
func (a *Agents) Call(ctx context.Context, id block.NodeID, op wire.Op, request any, payload []byte, reply any) ([]byte, error) {
	if target, err := a.Get(id); err != nil {
		return nil, err
	} else if target.isSilent() {
		return nil, fmt.Errorf("node %s: %w: it does not answer probes", id, wire.ErrUnreachable)
	}
	return a.CallSuspect(ctx, id, op, request, payload, reply)
}

// CallSuspect is call, but for a node that did not answer the last probes too: for what nobody else can answer.
func (a *Agents) CallSuspect(ctx context.Context, id block.NodeID, op wire.Op, request any, payload []byte, reply any) ([]byte, error) {
	target, err := a.Get(id)
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
func (a *Agents) ask(ctx context.Context, target *Agent, op wire.Op, request any, payload []byte, reply any) ([]byte, error) {
	if !target.isOurs() { // nothing is asked of, let alone deleted on, a node that may be another cluster's
		if _, err := a.greet(ctx, target, "", nil); err != nil {
			if errors.Is(err, api.ErrUnavailable) {
				target.set(false, err)
			}
			return nil, err
		}
	}
	answer, err := target.link.call(ctx, op, request, payload, reply)
	for tries := 0; errors.Is(err, wire.ErrUnregistered) && tries < attachTries; tries++ {
		if err = a.attach(ctx, target); err == nil {
			answer, err = target.link.call(ctx, op, request, payload, reply)
		}
	}
	if errors.Is(err, wire.ErrUnregistered) { // it does not stay up, which says nothing of its blocks
		return nil, fmt.Errorf("%w: it was attached %d times and does not serve: %w", wire.ErrUnreachable, attachTries, err)
	}
	if errors.Is(err, wire.ErrNotObeyed) && op != wire.OpDelete { // it may not have been shown the timeline yet
		shown, failure := a.timelines.read(ctx)
		if failure != nil {
			return nil, failure
		}
		hello, failure := show(ctx, a, target, "", shown)
		if failure != nil {
			return nil, failure
		}
		if answer := hello.Allegiance; answer == nil || answer.Refused() {
			return nil, err
		}
		answer, err = target.link.call(ctx, op, request, payload, reply)
	}
	return answer, err
}

// attach registers what the store holds with the catalog and then lets the agent serve (rule 17 of the protocol: the
// catalog knows an incarnation before anything under it is served or acknowledged).
func (a *Agents) attach(ctx context.Context, target *Agent) error {
	target.attaching.Lock()
	defer target.attaching.Unlock()
	known, err := a.catalog.Incarnations(ctx) // before the agent is asked
	if err != nil {
		return fmt.Errorf("reading incarnations: %w", err)
	}
	shown, err := a.timelines.read(ctx)
	if err != nil {
		return err
	}
	hello, err := show(ctx, a, target, known[target.Node.ID], shown)
	if err != nil {
		return err
	}
	if hello.Registered && target.Node.IsExcluded() {
		return nil
	}
	if err := a.register(ctx, target, known[hello.Node], hello); err != nil || hello.Registered { // it may have been excluded for a while
		return err
	}
	if err := readViews(ctx, a); err != nil { // after the agent was asked
		return err
	}
	request := wire.AttachRequest{
		Cluster: a.cluster.ID, Incarnation: hello.Incarnation, FingerprintKey: a.cluster.FingerprintKey, Timeline: shown,
		Start: hello.Start, Water: a.views.waterOf(target.Node.ID),
	}
	if _, err := target.link.call(ctx, wire.OpAttach, request, nil, nil); err != nil {
		return fmt.Errorf("attaching the agent: %w", err)
	}
	a.log.Info("agent attached", "node", hello.Node, "incarnation", hello.Incarnation, "store", hello.Store.Location)
	return nil
}

// register tells the catalog of contents that it does not know. If those it knew are lost, every block of them is
// suspect and waits for repair.
func (a *Agents) register(ctx context.Context, target *Agent, was block.Incarnation, hello wire.HelloReply) error {
	if was == hello.Incarnation {
		return nil
	}
	if err := a.catalog.RegisterIncarnation(ctx, hello.Node, was, hello.Incarnation); err != nil {
		return fmt.Errorf("registering the contents of the store: %w", err)
	}
	if was != "" {
		a.log.Warn("a store has lost its contents", "node", hello.Node, "was", was, "now", hello.Incarnation)
		a.Lost.Store(true)
		target.Replaced.Add(1)
	}
	return nil
}

// greet asks an agent who it is and takes note of the answer, unless it is of another node or of another cluster: a store
// belongs to one catalog, and to any other all its blocks would look like orphans. The agent is told which contents the
// catalog knows, empty where that was not looked up, and shown how far it has come, nil where that was not.
func (a *Agents) greet(
	ctx context.Context, target *Agent, known block.Incarnation, shown *wire.Timeline,
) (hello wire.HelloReply, err error) {
	request := wire.HelloRequest{
		Cluster: a.cluster.ID, Known: known, Timeline: shown, Water: a.views.waterOf(target.Node.ID), Versions: wire.Understood,
	}
	if _, err := target.link.call(ctx, wire.OpHello, request, nil, &hello); err != nil {
		return hello, fmt.Errorf("greeting the agent: %w", err)
	}
	if hello.Node != target.Node.ID {
		return hello, api.Refuse(api.ErrUnavailable, "the agent at %s says it is node %s, not %s; correct the node list", target.Node.Address, hello.Node, target.Node.ID)
	}
	if _, err := wire.Understood.Meet(hello.Versions, "the agent"); err != nil {
		return hello, api.Refuse(api.ErrUnavailable, "node %s at %s: %v", hello.Node, target.Node.Address, err)
	}
	if hello.Cluster != "" && hello.Cluster != a.cluster.ID {
		return hello, api.Refuse(api.ErrUnavailable, "the store of node %s at %s belongs to cluster %s, and this catalog is of cluster %s; run the gateway with the catalog of that cluster, or give the node a store of its own",
			hello.Node, target.Node.Address, hello.Cluster, a.cluster.ID)
	}
	if twin := a.twin(target, hello.Incarnation); twin != nil {
		return hello, api.Refuse(api.ErrUnavailable, "the agents of nodes %s at %s and %s at %s have one and the same store (%s): "+
			"give each node a store of its own; node %s is left alone until then",
			twin.Node.ID, twin.Node.Address, hello.Node, target.Node.Address, hello.Store.Location, hello.Node)
	}
	target.greeted(hello)
	if a.Direct != nil {
		a.Direct(hello.Node, hello.Direct)
	}
	a.views.heard(hello.Node, block.Watermark{Contents: hello.Incarnation, Mark: hello.Water})
	return hello, nil
}

// twin returns a member that shows the contents that target shows now for the first time: two nodes with one store, or with
// copies of one, fail together. Who was there first keeps its contents.
func (a *Agents) twin(target *Agent, incarnation block.Incarnation) *Agent {
	if target.shows(incarnation) {
		return nil
	}
	return sharing(a, target.Node.ID, incarnation)
}

// sharing returns a member other than that of an id which shows the same contents.
func sharing(a *Agents, id block.NodeID, incarnation block.Incarnation) *Agent {
	for _, other := range a.All() {
		if other.Node.ID != id && other.shows(incarnation) {
			return other
		}
	}
	return nil
}

// refresh takes over what the catalog says of the members: other gateways may have entered nodes or new addresses, and registered
// contents. Contents are read last, and only what is read as a whole is taken over.
func (a *Agents) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, greatestPatience)
	defer cancel()
	if err := a.reading.Acquire(ctx, 1); err != nil {
		return err
	}
	defer a.reading.Release(1)
	nodes, err := a.catalog.Nodes(ctx)
	if err != nil {
		return warn(ctx, a, "reading the members", err)
	}
	for _, node := range nodes {
		a.Enter(node)
	}
	membership, err := a.catalog.Membership(ctx)
	if err != nil {
		return warn(ctx, a, "reading the patience with nodes", err)
	}
	known, err := a.catalog.Incarnations(ctx)
	if err != nil {
		return warn(ctx, a, "reading incarnations", err)
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.patience, a.known = patienceOf(membership), known
	return nil
}

// warn says why something of the catalog could not be read, unless the gateway is closing.
func warn(ctx context.Context, a *Agents, doing string, err error) error {
	if ctx.Err() == nil {
		a.log.Warn(doing, "cause", err)
	}
	return err
}

// Registered returns the contents of stores that the catalog knows, as it was read last: at most a moment before they changed, as the
// catalog tells of that, or job.SafetyPeriod. nil: it was not read yet. The map is not changed any more.
func Registered(a *Agents) map[block.NodeID]block.Incarnation {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	return a.known
}

// Probe greets every agent once, judges by that who is up, and gives up who has been silent for too long.
func (a *Agents) Probe(ctx context.Context) {
	read := a.reread(ctx, true)
	var probes sync.WaitGroup
	for _, target := range a.All() {
		probes.Go(func() { a.look(ctx, target, read) })
	}
	probes.Wait()
	a.confer(ctx)
}

// ProbeLoop is probe once a second for as long as ctx lives, but that no node's answer is waited for before others are
// asked again. Beside it, what the catalog says of members, and other gateways of nodes, is taken over as it changes.
func (a *Agents) ProbeLoop(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	isFirst := true
	work.Go(func() { job.Watched(ctx, a.catalog.Watch(ctx, catalog.SubjectMembers), job.Slowly, a.refresh) })
	work.Go(func() {
		job.Watched(ctx, a.catalog.Watch(ctx, catalog.SubjectViews), func() time.Duration { return beat(a) },
			func(ctx context.Context) error { return hear(ctx, a) })
	})
	job.Every(ctx, time.Second, func(ctx context.Context) {
		read := a.reread(ctx, isFirst)
		isFirst = false
		for _, target := range a.All() {
			if target.probed.Swap(true) {
				continue
			}
			work.Go(func() {
				defer target.probed.Store(false)
				a.look(ctx, target, read)
			})
		}
		a.confer(ctx)
	})
}

// records are what the catalog says of the members' contents, and of itself; nil where it says nothing.
type records struct {
	incarnations map[block.NodeID]block.Incarnation
	timeline     *wire.Timeline
}

// reread returns what a round of probes shows; anew says that members are read before it.
func (a *Agents) reread(ctx context.Context, anew bool) (read records) {
	ctx, cancel := context.WithTimeout(ctx, greatestPatience)
	defer cancel()
	if anew {
		_ = a.refresh(ctx) // it is said, and what was read before holds
	}
	read.incarnations = Registered(a)
	var err error
	if read.timeline, err = a.timelines.read(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("reading how far the catalog has come", "cause", err)
	}
	return read
}

// look greets one agent, attaches it where it does not serve yet, and takes note of how that went.
func (a *Agents) look(ctx context.Context, target *Agent, read records) {
	ctx, stop := context.WithTimeout(ctx, greatestPatience)
	defer stop()
	target.mutex.Lock()
	timeout := target.Health.timeout()
	target.mutex.Unlock()
	began := time.Now()
	greeting, cancel := context.WithTimeout(ctx, timeout)
	hello, err := show(greeting, a, target, read.incarnations[target.Node.ID], read.timeline)
	cancel()
	took := time.Since(began)
	isKnown := read.incarnations == nil || target.Node.IsExcluded() || read.incarnations[hello.Node] == hello.Incarnation
	if err == nil && !(hello.Registered && isKnown) {
		err = a.attach(ctx, target)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return // the gateway is closing, which says nothing of the node
	}
	if target.judge(err, took, a.patient().down) {
		if err := target.link.renew(); err != nil {
			a.log.Debug("closing the connection to a node that does not answer", "node", target.Node.ID, "cause", err)
		}
	}
}

// judge takes note of a probe, problem nil where it was answered, and reports whether the node has turned suspect or down
// by it. Who it is has to be asked again after every miss; whether it is reachable is in doubt once it is suspect, or says
// that it is another node or that its store does not answer.
func (t *Agent) judge(problem error, took, downAfter time.Duration) (worse bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.problem = problem
	if problem == nil {
		t.Health, t.Reachable = t.Health.answer(time.Now(), took), true
		return false
	}
	was := t.Health.State
	t.Health, t.ours = t.Health.miss(time.Now(), downAfter), false
	t.Reachable = t.Reachable && t.Health.State == HealthUp && !errors.Is(problem, api.ErrUnavailable) && !errors.Is(problem, wire.ErrDown)
	return t.Health.State != was
}

func (t *Agent) set(reachable bool, problem error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.Reachable, t.problem = reachable, problem
	t.ours = t.ours && reachable
}

// isSilent reports whether the node has not answered the last probes: nothing is worth waiting for before it has answered
// the next one, which comes within a second.
func (t *Agent) isSilent() bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return !t.ours && (t.Health.State == healthSuspect || t.Health.State == healthDown)
}

func (t *Agent) isOurs() bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.ours
}

// shows reports whether the node was greeted and has these contents.
func (t *Agent) shows(incarnation block.Incarnation) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.ours && t.Hello.Incarnation == incarnation
}

func (t *Agent) greeted(hello wire.HelloReply) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.Hello, t.ours, t.greetedAt = hello, true, time.Now()
	if hello.Allegiance != nil {
		t.obeys = hello.Allegiance
	}
	t.throughput.note(&hello, time.Now())
}

// trusted reports whether the node answered last and is not suspect. The caller holds the mutex.
func (t *Agent) trusted() bool {
	return t.Reachable && (t.Health.State == HealthUp || t.Health.State == "")
}

// State returns whether the node is trusted to answer, why not, and what it said of itself.
func (t *Agent) State() (reachable bool, problem error, hello wire.HelloReply) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.trusted(), t.problem, t.Hello
}

// Peer is the agent of a member as others are to call it.
type Peer struct {
	Address string
	Speaks  uint8 // newest version of the protocol that it said to understand; 0: it has not been greeted, or said none
}

// Peer returns where the agent of a member is reached, and what it understands.
func (a *Agents) Peer(id block.NodeID) (Peer, error) {
	target, err := a.Get(id)
	if err != nil {
		return Peer{}, err
	}
	_, _, hello := target.State()
	return Peer{target.Node.Address, hello.Versions.Most}, nil
}

// Close ends all connections. Calls under way end in errors.
func (a *Agents) Close() error {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	var errs []error
	for _, target := range a.Nodes {
		errs = append(errs, target.link.close())
	}
	return errors.Join(errs...)
}

// GoneBlock reports whether err means that the block itself is lost or wrong, in contrast to a node that does not
// answer.
func GoneBlock(err error) bool {
	return errors.Is(err, wire.ErrNotFound) || errors.Is(err, wire.ErrCorrupt)
}

// Unanswered reports whether err means the node or its store did not answer.
func Unanswered(err error) bool {
	return errors.Is(err, wire.ErrUnreachable) || errors.Is(err, store.ErrDown) || errors.Is(err, wire.ErrBusy) ||
		errors.Is(err, wire.ErrNotObeyed) || errors.Is(err, api.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// Load orders nodes by how much is asked of them now; one that does not answer comes last.
func (a *Agents) Load(id block.NodeID) int64 {
	target, err := a.Get(id)
	if err != nil {
		return math.MaxInt64
	}
	if reachable, _, _ := target.State(); !reachable {
		return math.MaxInt64
	}
	return target.busy.Load()
}
