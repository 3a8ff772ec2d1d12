package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/kernel"
)

// Options configure a Gateway. Catalog, ID and Start are required.
type Options struct {
	Catalog *catalog.Catalog // owned by the caller, who closes it after the Gateway
	ID      string           // stable name of this gateway; its unfinished work of an earlier start is settled by it
	Start   string           // random name of this start; Catalog was opened for catalog.Owner(ID, Start)
	Classes []Class          // default DefaultClasses
	Nodes   []catalog.Node   // entered into the catalog at start; nodes already there stay
	Logger  *slog.Logger     // default slog.Default

	CatalogWarnings []string // what the catalog's engine may lose, in whole sentences with the cure; the doctor repeats them

	MemoryBytes int64         // bound on buffers: of groups being written (three eighths), batches of small objects (one eighth), reads and updates (a quarter each); default 128 MiB
	CallTimeout time.Duration // one request to an agent; default 30 s
	AttemptTime time.Duration // deadline announced for an attempt; extended while it is worked on; default 5 min
	Retention   time.Duration // how long settled attempts are remembered; default 24 h
	SweepEvery  time.Duration // default 5 s; negative: only on request
	OrphanEvery time.Duration // how often stores are listed for leftovers; default 10 min; negative: only on request
}

// Gateway serves objects. Create it with New; it works until Close.
type Gateway struct {
	options Options
	catalog *catalog.Catalog
	agents  *agents
	memory  memory
	printer *kernel.Fingerprinter
	pool    *kernel.Pool
	log     *slog.Logger
	codes   codeCache
	batches batches
	jobs    jobs
	metrics *metrics

	reported reported // groups in which a block was found missing or wrong
	ctx      context.Context
	stop     context.CancelFunc
	work     sync.WaitGroup
}

// New starts a gateway: it settles what its earlier start left undone, enters the given nodes, and resumes the
// transitions it owns.
func New(ctx context.Context, options Options) (*Gateway, error) {
	if options.Catalog == nil || options.ID == "" || options.Start == "" {
		return nil, fmt.Errorf("starting a gateway: a catalog, an id and a start are required")
	}
	if len(options.Classes) == 0 {
		options.Classes = DefaultClasses()
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	setDefault(&options.MemoryBytes, 128<<20)
	setDefault(&options.CallTimeout, 30*time.Second)
	setDefault(&options.AttemptTime, 5*time.Minute)
	setDefault(&options.Retention, 24*time.Hour)
	setDefault(&options.SweepEvery, 5*time.Second)
	setDefault(&options.OrphanEvery, 10*time.Minute)
	cluster := options.Catalog.Cluster()
	printer := kernel.NewFingerprinter(kernel.Key(cluster.FingerprintKey))
	g := &Gateway{
		options: options, catalog: options.Catalog, log: options.Logger.With("gateway", options.ID),
		memory: memory{
			groups: newBudget(options.MemoryBytes * 3 / 8), batches: newBudget(options.MemoryBytes / 8),
			reads: newBudget(options.MemoryBytes / 4), updates: newBudget(options.MemoryBytes * 3 / 16), rewrites: newBudget(options.MemoryBytes / 16),
		},
		printer: printer, pool: &kernel.Pool{},
	}
	g.ctx, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := g.open(ctx); err != nil {
		g.stop()
		return nil, fmt.Errorf("starting gateway %s: %w", options.ID, err)
	}
	return g, nil
}

func setDefault[T int64 | time.Duration](value *T, absent T) {
	if *value == 0 {
		*value = absent
	}
}

func (g *Gateway) open(ctx context.Context) error {
	if err := g.catalog.AbortOwn(ctx, g.options.ID, g.options.Start); err != nil {
		return fmt.Errorf("settling attempts of an earlier start: %w", err)
	}
	known, err := g.catalog.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("reading the members: %w", err)
	}
	members := map[block.NodeID]catalog.Node{}
	for _, node := range known {
		members[node.ID] = node
	}
	for _, node := range g.options.Nodes {
		was, there := members[node.ID]
		if node.State == "" {
			node.State = catalog.NodeUp
			if there {
				node.State = was.State
			}
		}
		if !there || was != node {
			if err := g.catalog.PutNode(ctx, node); err != nil {
				return fmt.Errorf("entering node %s: %w", node.ID, err)
			}
		}
		members[node.ID] = node
	}
	g.agents = newAgents(g.catalog, g.options.CallTimeout, g.log)
	for _, node := range members {
		g.agents.enter(node)
	}
	g.metrics = newMetrics()
	g.batches.init(g)
	g.jobs.init(g)
	g.agents.probe(ctx) // one round before the first put, so that it knows which nodes are there
	g.background(func(ctx context.Context) { every(ctx, time.Second, g.agents.probe) })
	if g.options.SweepEvery > 0 {
		g.background(g.sweepLoop)
		g.background(g.repairLoop)
	}
	return g.jobs.resumeOwned(ctx)
}

// background runs work until it returns or the gateway closes; Close waits for it.
func (g *Gateway) background(work func(ctx context.Context)) {
	g.work.Add(1)
	go func() {
		defer g.work.Done()
		work(g.ctx)
	}()
}

// every calls work at once and then at each tick until ctx ends.
func every(ctx context.Context, period time.Duration, work func(ctx context.Context)) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		work(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Close stops taking requests, waits for running attempts to settle, and returns. Transitions stay as they are and go on
// at the next start.
func (g *Gateway) Close() error {
	g.stop()
	g.work.Wait()
	return g.agents.close()
}

// classFor returns the class a key belongs to: the named one, else the one with the longest matching prefix.
func (g *Gateway) classFor(key, name string) (*Class, error) {
	var best *Class
	longest := -1
	for i := range g.options.Classes {
		class := &g.options.Classes[i]
		if name != "" {
			if class.Name == name {
				return class, nil
			}
			continue
		}
		for _, prefix := range class.Prefixes {
			if strings.HasPrefix(key, prefix) && len(prefix) > longest {
				best, longest = class, len(prefix)
			}
		}
	}
	if best != nil {
		return best, nil
	}
	names := make([]string, len(g.options.Classes))
	for i := range g.options.Classes {
		names[i] = g.options.Classes[i].Name
	}
	if name != "" {
		return nil, refuse(ErrBadRequest, "there is no class %q; the classes are %s", name, strings.Join(names, ", "))
	}
	return nil, refuse(ErrBadRequest, "no class has a prefix that matches key %.80q; name one of %s", key, strings.Join(names, ", "))
}

const maxKeyBytes = 4096

func checkKey(key string) error {
	if key == "" || len(key) > maxKeyBytes {
		return refuse(ErrBadRequest, "a key has 1 to %d bytes, this one has %d", maxKeyBytes, len(key))
	}
	return nil
}

// memory bounds the gateway's buffers. Each kind has a budget of its own, so that none waits in a circle: an update may
// read its object and write it anew as groups, and what was read for that waits for the group to have room (rewrites, one
// at a time). Groups are filled at the pace of their clients, which batches of small objects must not wait for.
type memory struct {
	groups, batches, reads, updates, rewrites budget
}

// budget is a number of bytes that may be in use at once.
type budget struct {
	bytes int64
	used  *semaphore.Weighted
}

func newBudget(bytes int64) budget { return budget{bytes: bytes, used: semaphore.NewWeighted(bytes)} }

// reserve takes bytes, waiting its turn. One request larger than the whole budget gets the budget.
func (b budget) reserve(ctx context.Context, bytes int64) (release func(), err error) {
	bytes = min(bytes, b.bytes)
	if err := b.used.Acquire(ctx, bytes); err != nil {
		return nil, fmt.Errorf("waiting for buffer memory: %w", err)
	}
	return func() { b.used.Release(bytes) }, nil
}

// reported is the set of groups with blocks found missing or wrong, waiting for repair.
type reported struct {
	mutex  sync.Mutex
	groups map[block.GroupID]bool
}

func (r *reported) add(id block.GroupID) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.groups == nil {
		r.groups = map[block.GroupID]bool{}
	}
	r.groups[id] = true
}

func (r *reported) take() []block.GroupID {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	ids := make([]block.GroupID, 0, len(r.groups))
	for id := range r.groups {
		ids = append(ids, id)
	}
	r.groups = nil
	return ids
}
