package sim

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/wire"
)

// process is one start of an agent or a gateway. Once it has died nothing that its goroutines still do has an effect.
type process struct {
	name  string
	died  chan struct{}
	once  sync.Once
	skew  atomic.Int64 // of its clock, nanoseconds
	close func()       // ends its goroutines, at leisure
}

func newProcess(name string, skew time.Duration) *process {
	p := &process{name: name, died: make(chan struct{})}
	p.skew.Store(int64(skew))
	return p
}

func (p *process) isAlive() bool {
	select {
	case <-p.died:
		return false
	default:
		return true
	}
}

func (p *process) now() time.Time { return time.Now().Add(time.Duration(p.skew.Load())) }

// kill ends a process between two instructions.
func (p *process) kill(n *network) {
	p.once.Do(func() {
		close(p.died)
		n.forget(p.name)
		if p.close != nil {
			go p.close()
		}
	})
}

// silence is after which agents forget a gateway: longer than any trouble keeps one away from them, as a copy of the catalog
// counts for the right one after that.
const silence = 2 * time.Minute

// keepEvery is how often agents write the high-water marks of their stores: often enough that they rise while there is trouble.
const keepEvery = 200 * time.Millisecond

// agent is a node with its disk, and the process that serves it, if any.
type agent struct {
	journal *journal
	network *network
	id      block.NodeID
	disk    *disk
	memory  int64 // for buffers

	mutex   sync.Mutex
	process *process
	mistook *disk // another node's, which somebody starts the agent on; nil: its own
}

// mistake has the agent start on another disk from now on, nil on its own.
func (a *agent) mistake(other *disk) {
	if a.isAlive() {
		a.crash()
	}
	a.mutex.Lock()
	a.mistook = other
	a.mutex.Unlock()
	a.start()
}

// isMistaken reports whether the agent is started on another node's disk.
func (a *agent) isMistaken() bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.mistook != nil
}

func (a *agent) start() {
	mounted := a.disk
	a.mutex.Lock()
	if a.mistook != nil {
		mounted = a.mistook
	}
	a.mutex.Unlock()
	p := newProcess(string(a.id), 0)
	n, err := node.New(node.Options{
		ID: a.id, Store: &mount{disk: mounted, process: p}, Logger: slog.New(logger{journal: a.journal, who: string(a.id)}),
		Dial: a.network.dialer(p), RunTime: time.Minute, DeliverWait: 2 * time.Second, AdmitWait: 2 * time.Second,
		MemoryBytes: a.memory, RunBytes: a.memory, ParkedBytes: a.memory / 4, HeaderBytes: a.memory / 8,
		Silence: silence, KeepEvery: keepEvery,
	})
	if err != nil {
		a.journal.violate(Setup, "agent %s does not start: %v", a.id, err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := wire.NewServer(wire.ServerOptions{AllowRemote: true})
	listener := a.network.listen(string(a.id))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// Why serving ends does not matter: the process has died.
		_ = server.Serve(ctx, listener, watched(n, mounted))
	}()
	p.close = func() {
		cancel()
		<-ended
		// The process has died: nobody is left to tell.
		_ = n.Close()
	}
	a.mutex.Lock()
	a.process = p
	a.mutex.Unlock()
	a.journal.write(string(a.id), "started")
}

// watched is what a node over a disk answers, and looks at what it makes others believe: an agent that attaches, writes or
// vouches for blocks has seen what its store holds now.
func watched(n *node.Node, d *disk) wire.Handler {
	return func(ctx context.Context, op wire.Op, header []byte, payload *wire.Payload) (any, []byte, func(), error) {
		losses := d.losses()
		reply, data, release, err := n.Handle(ctx, op, header, payload)
		vouches := op == wire.OpAttach || op == wire.OpWrite || op == wire.OpInspect
		if err == nil && vouches && losses > 0 && d.losses() == losses && !d.ledger.astray.Load() {
			d.ledger.checkBelieved(d)
		}
		return reply, data, release, err
	}
}

func (a *agent) isAlive() bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.process != nil && a.process.isAlive()
}

func (a *agent) crash() {
	a.mutex.Lock()
	p := a.process
	a.mutex.Unlock()
	a.journal.write(string(a.id), "crashes")
	p.kill(a.network)
}

// server is a gateway: its name, and the process that serves under it, if any.
type server struct {
	plan    *plan
	journal *journal
	network *network
	links   *links
	agents  []*agent
	name    string // in the network
	id      string // of the gateway

	mutex   sync.Mutex
	skew    time.Duration // of its clock
	starts  int
	process *process
	gateway *gateway.Gateway // nil while it is not ready
}

// start begins a new process and returns at once; the gateway serves when it has opened the catalog.
func (s *server) start() {
	s.mutex.Lock()
	p := newProcess(s.name, s.skew)
	s.process, s.gateway = p, nil
	s.mutex.Unlock()
	go s.run(p)
}

// next names a start of the gateway.
func (s *server) next() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.starts++
	return fmt.Sprintf("%s.%d", s.name, s.starts)
}

// run serves until the process dies, and anew whenever the catalog says that a start is over.
func (s *server) run(p *process) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-p.died
		cancel()
	}()
	for p.isAlive() {
		start := s.next()
		made, records, err := s.open(ctx, p, start)
		if err != nil {
			s.journal.write(s.name, "does not start: %v", err)
			if wait(ctx, time.Second) != nil {
				return
			}
			continue
		}
		s.journal.write(s.name, "serves, %s", start)
		s.mutex.Lock()
		if s.process == p {
			s.gateway = made
		}
		s.mutex.Unlock()
		select {
		case <-p.died:
		case <-records.Over():
			s.journal.write(s.name, "start %s is over: %v", start, records.Err())
			s.mutex.Lock()
			if s.process == p {
				s.gateway = nil
			}
			s.mutex.Unlock()
		}
		// If the process has died nobody is left to tell.
		_ = made.Close()
	}
}

func (s *server) open(ctx context.Context, p *process, start string) (*gateway.Gateway, *catalog.Catalog, error) {
	options := []catalog.Option{catalog.WithClock(p.now), catalog.WithGrace(s.plan.grace), catalog.WithPatience(s.plan.patience)}
	if s.plan.pieces > 0 {
		options = append(options, catalog.WithHolding(2))
	}
	records, err := catalog.Open(ctx, &link{links: s.links, process: p}, catalog.Owner(s.id, start), options...)
	if err != nil {
		return nil, nil, err
	}
	nodes := make([]catalog.Node, len(s.agents))
	for i, a := range s.agents {
		nodes[i] = catalog.Node{ID: a.id, Address: string(a.id)}
	}
	made, err := gateway.New(ctx, gateway.Options{
		Catalog: records, ID: s.id, Start: start, Classes: s.plan.classes, Nodes: nodes,
		Logger: slog.New(logger{journal: s.journal, who: s.name}), MemoryBytes: 2 * s.plan.memory, ReadGroups: 2,
		PieceGroups: s.plan.pieces, CacheBytes: s.plan.cache,
		CallTimeout: s.plan.callTimeout, AttemptTime: s.plan.attemptTime, Retention: 10 * time.Minute,
		SweepEvery: s.plan.sweepEvery, OrphanEvery: s.plan.orphanEvery, ScrubEvery: s.plan.scrubEvery, HeatGroups: 1024,
		CompactEvery: s.plan.compactEvery, CompactSettled: -1,
		Now: p.now, Clock: p.now, Dial: s.network.dialer(p),
	})
	return made, records, err
}

// jump sets the clock of the gateway, while it runs.
func (s *server) jump(skew time.Duration) (was time.Duration) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	was, s.skew = s.skew, skew
	if s.process != nil {
		s.process.skew.Store(int64(skew))
	}
	return was
}

// serving returns the gateway and its process; nil where there is none at work.
func (s *server) serving() (*gateway.Gateway, *process) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.gateway == nil || !s.process.isAlive() {
		return nil, nil
	}
	return s.gateway, s.process
}

func (s *server) isAlive() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.process != nil && s.process.isAlive()
}

func (s *server) crash() {
	s.mutex.Lock()
	p := s.process
	s.mutex.Unlock()
	s.journal.write(s.name, "crashes")
	p.kill(s.network)
}

// cluster is the agents and the gateways, alive or not.
type cluster struct {
	agents  []*agent
	servers []*server
}

// names are all that the network connects.
func (c *cluster) names() []string {
	names := []string{catalogName}
	for _, a := range c.agents {
		names = append(names, string(a.id))
	}
	for _, s := range c.servers {
		names = append(names, s.name)
	}
	return names
}
