package node

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/blockstore"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// Options configure a Node. ID and Store are required; zero fields take the defaults.
type Options struct {
	ID     block.NodeID
	Store  store.Store  // owned by the caller, who closes it after the Node
	Logger *slog.Logger // default slog.Default
	Dial   wire.Dial    // how other agents are reached; default TCP, with certificates within TLS

	// Certificates say who the node is to gateways and other agents, and who they have to be. nil: nobody says who they are,
	// and nothing is encrypted.
	Certificates *pki.Source

	Release string // of the program, told to gateways; empty: it is not said
	Direct  string // address at which gateways may read the store by themselves, as package open takes it; empty: they may not

	// MemoryBytes bounds the buffers of reads, writes and inspections together. Default 96 MiB.
	MemoryBytes int64
	// RunBytes bounds what all runs together gather, and so the largest run. Default 128 MiB.
	RunBytes int64
	// ParkedBytes bounds the messages that wait for a run that is not there yet. Default 32 MiB.
	ParkedBytes int64
	// HeaderBytes bounds the cache of block headers. Default 16 MiB.
	HeaderBytes int64

	// AdmitWait is how long a run waits for room before it is refused with ErrBusy. Runs of one attempt hold room on
	// several nodes while they wait for each other, so two attempts can block each other: this bound is what frees
	// them. Default 5 s.
	AdmitWait time.Duration
	// DeliverWait is how long a message waits for its run. Default 5 s.
	DeliverWait time.Duration
	// RunTime bounds the life of a run. Default 10 min.
	RunTime time.Duration
	// Silence is how long a gateway that is obeyed must not be heard before another start may delete that no gateway named
	// which is obeyed. Default 1 min.
	Silence time.Duration
	// KeepEvery is how often the high-water mark of the store is written while blocks are. A store that went back by less is
	// not noticed. 0: a minute.
	KeepEvery time.Duration
	// Remembered is how many finished runs are remembered, to answer repeated requests. Default 1024.
	Remembered int
}

// Node serves one store. Create it with New; it works until Close. Its methods are safe for concurrent use. What it answers
// is in its parts, whose methods are its own.
type Node struct {
	*background
	*identity
	*blocks
	*worker

	id       block.NodeID
	store    store.Store
	start    string
	counters *counters

	certificates *pki.Source // nil: it lets everybody in
	release      string
	direct       string
}

// background is what goes on beside requests: it ends with ctx, and work is what has not ended yet.
type background struct {
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup
}

// New makes a node. It does not touch the store yet: a node whose store is down starts, and says so when asked.
func New(options Options) (*Node, error) {
	if len(options.ID) < 1 || len(options.ID) > 63 || options.Store == nil {
		return nil, fmt.Errorf("starting node %q: a name of 1 to 63 characters and a store are required", options.ID)
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	setDefault(&options.MemoryBytes, 96<<20)
	setDefault(&options.RunBytes, 128<<20)
	setDefault(&options.ParkedBytes, 32<<20)
	setDefault(&options.HeaderBytes, 16<<20)
	setDefault(&options.AdmitWait, 5*time.Second)
	setDefault(&options.DeliverWait, 5*time.Second)
	setDefault(&options.RunTime, 10*time.Minute)
	setDefault(&options.Silence, time.Minute)
	setDefault(&options.KeepEvery, time.Minute)
	setDefault(&options.Remembered, 1024)
	if own := options.Certificates; own != nil {
		if is := own.Identity(); is.Role != pki.RoleAgent || is.Name != string(options.ID) {
			return nil, fmt.Errorf("starting node %s: its certificate is that of %s; issue it one with `restripe pki issue agent %s`",
				options.ID, is, options.ID)
		}
		if options.Dial == nil {
			options.Dial = own.DialAgent("")
		}
	}
	return build(&options), nil
}

// build puts the parts together, each over those before it.
func build(o *Options) *Node {
	n := &Node{
		background: &background{}, id: o.ID, store: o.Store, start: rand.Text(), counters: &counters{},
		certificates: o.Certificates, release: o.Release, direct: o.Direct,
	}
	n.ctx, n.stop = context.WithCancel(context.Background())
	pool, headers, runs := &kernel.Pool{}, blockstore.NewHeaders(o.HeaderBytes), newRuns(o)
	log := o.Logger.With("node", string(o.ID))
	obeys := &allegiance{id: o.ID, store: o.Store, log: log, silence: o.Silence, keepEvery: o.KeepEvery}
	n.identity = &identity{
		id: o.ID, store: o.Store, log: log, obeys: obeys, renewing: semaphore.NewWeighted(1),
		lost: func(cause error) {
			headers.Clear()
			runs.void(cause)
		},
	}
	reading := &reader{background: n.background, store: o.Store, headers: headers, pool: pool, counters: n.counters}
	n.blocks = &blocks{
		id: o.ID, store: o.Store, identity: n.identity, reader: reading, pool: pool, counters: n.counters,
		memory: semaphore.NewWeighted(o.MemoryBytes), memoryBytes: o.MemoryBytes,
	}
	n.worker = &worker{
		background: n.background, id: o.ID, identity: n.identity, reader: reading, blocks: n.blocks, runs: runs,
		peers: &peers{dial: o.Dial}, pool: pool, counters: n.counters,
		runBytes: o.RunBytes, admitWait: o.AdmitWait, deliverWait: o.DeliverWait, runTime: o.RunTime,
	}
	return n
}

func setDefault[T ~int | ~int64](value *T, absent T) {
	if *value <= 0 {
		*value = absent
	}
}

// ID returns the node's name.
func (n *Node) ID() block.NodeID { return n.id }

// Close cancels every run, ends the connections to other agents and waits. Stop serving first. The store stays open.
func (n *Node) Close() error {
	n.stop()
	n.work.Wait()
	return n.peers.close()
}

// Handle is the node's wire.Handler.
func (n *Node) Handle(ctx context.Context, op wire.Op, header []byte, payload *wire.Payload) (any, []byte, func(), error) {
	switch op {
	case wire.OpHello:
		return answer(ctx, header, n.hello)
	case wire.OpAttach:
		return answer(ctx, header, func(ctx context.Context, request wire.AttachRequest) (any, error) {
			if request.Start != "" && request.Start != n.start {
				return nil, fmt.Errorf("attaching node %s: %w: it was started again since it was asked", n.id, wire.ErrUnregistered)
			}
			return n.attach(ctx, request)
		})
	case wire.OpRead:
		var request wire.ReadRequest
		if err := wire.Decode(header, &request); err != nil {
			return nil, nil, nil, err
		}
		data, release, err := n.read(ctx, request)
		return nil, data, release, err
	case wire.OpWrite:
		return answer(ctx, header, func(ctx context.Context, request wire.WriteRequest) (any, error) {
			return n.write(ctx, request, payload.Bytes)
		})
	case wire.OpInspect:
		return answer(ctx, header, n.inspect)
	case wire.OpHeader:
		return answer(ctx, header, n.header)
	case wire.OpRun:
		return answer(ctx, header, func(ctx context.Context, request wire.RunRequest) (any, error) {
			return n.run(ctx, &request, payload.Bytes)
		})
	case wire.OpDeliver, wire.OpDeliverLast:
		return answer(ctx, header, func(ctx context.Context, request wire.DeliverRequest) (any, error) {
			return nil, n.deliver(ctx, request, op == wire.OpDeliverLast, payload)
		})
	case wire.OpDelete:
		return answer(ctx, header, n.delete)
	case wire.OpWitness:
		return answer(ctx, header, func(ctx context.Context, request wire.WitnessRequest) (any, error) {
			return nil, n.obeys.witness(ctx, request)
		})
	case wire.OpList:
		return answer(ctx, header, n.list)
	default:
		return nil, nil, nil, fmt.Errorf("%w: operation %d is not known to this release; run one release on all agents and gateways", wire.ErrUnsupported, op)
	}
}

// answer decodes a request and passes it on.
func answer[Request, Reply any](ctx context.Context, header []byte, serve func(context.Context, Request) (Reply, error)) (any, []byte, func(), error) {
	var request Request
	if err := wire.Decode(header, &request); err != nil {
		return nil, nil, nil, err
	}
	reply, err := serve(ctx, request)
	return reply, nil, nil, err
}

func (n *Node) hello(ctx context.Context, request wire.HelloRequest) (any, error) {
	if _, err := wire.Understood.Meet(request.Versions, "the gateway"); err != nil {
		return nil, err
	}
	if err := n.checkOwner(ctx); err != nil {
		return nil, err
	}
	if err := n.told(ctx, request.Cluster, request.Known); err != nil {
		return nil, err
	}
	incarnation, err := n.confirm(ctx)
	if err != nil {
		return nil, err
	}
	cluster, err := n.boundCluster(ctx)
	if err != nil {
		return nil, err
	}
	if cluster == request.Cluster {
		if incarnation, err = n.identity.compare(ctx, incarnation, request.Water); err != nil {
			return nil, err
		}
	}
	info, err := n.store.Info(ctx)
	if err != nil {
		return nil, down(fmt.Errorf("node %s: asking the store about itself: %w", n.id, err))
	}
	key, err := n.boundPrintKey(ctx)
	if err != nil {
		return nil, err
	}
	var answer *wire.Allegiance
	if request.Timeline != nil && cluster == request.Cluster {
		if answer, err = n.obeys.show(ctx, request.Timeline, n.identity.registeredAs(incarnation)); err != nil {
			return nil, err
		}
	}
	starts, water, err := n.obeys.list(ctx, incarnation)
	if err != nil {
		return nil, err
	}
	return wire.HelloReply{
		FingerprintKey: key, Node: n.id, Incarnation: incarnation, Start: n.start, Cluster: cluster, Store: info,
		Registered: n.identity.registeredAs(incarnation), Counters: n.counters.read(),
		Allegiance: answer, Starts: starts, Water: water, Versions: wire.Understood, Release: n.release, Direct: n.direct,
	}, nil
}
