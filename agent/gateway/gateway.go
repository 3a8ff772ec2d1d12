package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/wire"
)

// Options configure a Gateway. Catalog, ID and Start are required.
type Options struct {
	Catalog *catalog.Catalog // owned by the caller, who closes it after the Gateway
	ID      string           // stable name of this gateway; its unfinished work of an earlier start is settled by it
	Start   string           // random name of this start; Catalog was opened for catalog.Owner(ID, Start)
	Classes []api.Class      // what the cluster begins with, and class files change; default DefaultClasses
	Nodes   []catalog.Node   // entered into the catalog at start; nodes already there stay
	Logger  *slog.Logger     // default slog.Default

	CatalogWarnings []string // what the catalog's engine may lose, in whole sentences with the cure; the doctor repeats them

	MemoryBytes int64         // bound on buffers: of groups being written (three eighths), batches of small objects (one eighth), reads and what they decode from (one eighth each), updates (a quarter); default 128 MiB
	CallTimeout time.Duration // one request to an agent; default 30 s
	AttemptTime time.Duration // deadline announced for an attempt; extended while it is worked on; default 5 min
	Retention   time.Duration // how long settled attempts are remembered; default 24 h
	SweepEvery  time.Duration // default 5 s; negative: only on request
	OrphanEvery time.Duration // how often stores are listed for leftovers; default 10 min; negative: only on request
	ScrubEvery  time.Duration // from one scrub of all groups to the next; default a week; negative: only on request

	HeatGroups int              // most groups whose accesses are counted, at up to 64 bytes each; default heat.DefaultGroups
	Now        func() time.Time // the clock of temperature, and of nothing else; default time.Now

	Dial  wire.Dial        // how agents are reached; default TCP
	Clock func() time.Time // by which attempts expire and graves fall due, which no rule depends on; default time.Now
}

// Gateway serves objects. Create it with New; it works until Close.
type Gateway struct {
	options Options
	catalog *catalog.Catalog
	agents  *agents
	memory  memory
	pool    *kernel.Pool
	log     *slog.Logger
	codes   codeCache
	batches batches
	jobs    jobs
	scrub   scrubber
	classes registry
	heat    thermometer
	load    loadWindow
	hedge   hedge
	mending mending
	metrics *metrics
	members relocations

	slots     slotCounts
	lookAgain atomic.Bool // the next look at where blocks lie takes the members for changed

	reported reported // groups in which a block was found missing or wrong
	repairs  repairs
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
		options.Classes = api.DefaultClasses()
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
	setDefault(&options.ScrubEvery, scrubEvery)
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Clock == nil {
		options.Clock = time.Now
	}
	g := &Gateway{
		options: options, catalog: options.Catalog, log: options.Logger.With("gateway", options.ID),
		memory: memory{
			groups: newBudget(options.MemoryBytes * 3 / 8), batches: newBudget(options.MemoryBytes / 8),
			reads: newBudget(options.MemoryBytes / 8), decodes: newBudget(options.MemoryBytes / 8), updates: newBudget(options.MemoryBytes * 3 / 16), rewrites: newBudget(options.MemoryBytes / 16),
		},
		pool: &kernel.Pool{},
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
	members, err := g.enterNodes(ctx)
	if err != nil {
		return err
	}
	g.agents = newAgents(g.catalog, g.options.CallTimeout, g.options.Dial, g.log)
	g.agents.gateway = g.options.ID
	for _, node := range members {
		g.agents.enter(node)
	}
	g.metrics = newMetrics()
	g.heat.init(g)
	if err := g.enterClasses(ctx); err != nil {
		return err
	}
	if err := g.refreshClasses(ctx); err != nil {
		return fmt.Errorf("reading the classes: %w", err)
	}
	if err := g.heat.restore(ctx); err != nil {
		return err
	}
	g.batches.init(g)
	g.jobs.init(g)
	g.repairs.init(g)
	g.scrub.init(g)
	doubts := g.elsewhere(members)
	g.follow(ctx, doubts)
	g.agents.probe(ctx) // one round before the first put, so that it knows which nodes are there
	g.background(g.agents.probeLoop)
	g.background(func(ctx context.Context) { g.followLoop(ctx, doubts) })
	g.background(g.classLoop)
	g.background(g.heat.exchangeLoop)
	g.background(g.heat.walkLoop)
	g.background(g.heat.countLoop)
	g.background(g.scrub.loop)
	if g.options.SweepEvery > 0 {
		g.background(g.sweepLoop)
		g.background(g.repairs.reportedLoop) // beside each other: a long repair must not keep others waiting, nor dead blocks
		g.background(g.repairs.recordsLoop)
		g.background(g.memberLoop)
		g.background(g.relocationLoop)
	}
	return g.jobs.takeUp(ctx)
}

// background runs work until it returns or the gateway closes; Close waits for it.
func (g *Gateway) background(work func(ctx context.Context)) {
	g.work.Add(1)
	go func() {
		defer g.work.Done()
		work(g.ctx)
	}()
}

// Close stops taking requests, waits for running attempts to settle, and returns. Transitions stay as they are and go on
// at the next start.
func (g *Gateway) Close() error {
	g.stop()
	g.work.Wait()
	g.heat.saveLast()
	return g.agents.close()
}
