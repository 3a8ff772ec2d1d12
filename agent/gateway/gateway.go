package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/audit"
	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/balance"
	"github.com/restripe/restripe/agent/gateway/cache"
	"github.com/restripe/restripe/agent/gateway/class"
	"github.com/restripe/restripe/agent/gateway/compact"
	"github.com/restripe/restripe/agent/gateway/direct"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/gateway/load"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/gateway/relocate"
	"github.com/restripe/restripe/agent/gateway/repair"
	"github.com/restripe/restripe/agent/gateway/scrub"
	"github.com/restripe/restripe/agent/gateway/server"
	"github.com/restripe/restripe/agent/gateway/sweep"
	"github.com/restripe/restripe/agent/gateway/temperature"
	"github.com/restripe/restripe/agent/gateway/transition"
	"github.com/restripe/restripe/agent/gateway/values"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/agent/serve"
	"github.com/restripe/restripe/agent/wire"
)

// Options configure a Gateway. Catalog, ID and Start are required.
type Options struct {
	Catalog *catalog.Catalog // owned by the caller, who closes it after the Gateway
	ID      string           // stable name of this gateway; its unfinished work of an earlier start is settled by it
	Release string           // of the program; empty: it is not said
	Start   string           // random name of this start; Catalog was opened for catalog.Owner(ID, Start)
	Classes []api.Class      // what the cluster begins with, and class files change; default DefaultClasses
	Nodes   []catalog.Node   // entered into the catalog at start; nodes already there stay
	Logger  *slog.Logger     // default slog.Default

	// Certificates say who the gateway is to agents, which have to be those of its nodes. nil: nobody says who they are.
	Certificates *pki.Source

	Users access.Authority // says who clients are and what they may do; nil: nobody is asked
	Audit *audit.Log       // of changes of the cluster; owned by the caller, who closes it after the Gateway; nil: none is kept
	HTTPS bool             // clients are served over TLS, with Certificates, and may show certificates of the cluster

	S3Domains      []string // below which the names of hosts are those of buckets, for clients of S3
	MemcachedFlush bool     // clients of memcached may delete all objects that they may list and delete by one command

	CatalogAddress  string   // where the catalog is, without secrets
	CatalogWarnings []string // what the catalog's engine may lose, in whole sentences with the cure; the doctor repeats them

	// MemoryBytes bounds buffers: of groups being written (three eighths), batches of small objects (one eighth), reads and what
	// they decode from (one eighth each), updates (a quarter), and besides small objects on their way in (an eighth) and objects that
	// are copied (a sixteenth). Default 128 MiB.
	MemoryBytes int64
	CacheBytes  int64         // for small objects that clients read, beside MemoryBytes; default none
	ReadGroups  int           // of how many groups a read has the records at a time; default 64
	PieceGroups int           // how many groups a put commits at a time; default as many as an update of the catalog takes
	CallTimeout time.Duration // one request to an agent; default 30 s
	// ReadPatience is how long reads wait for another one's repair of what they miss, counted from its beginning; default 1 s.
	ReadPatience time.Duration
	AttemptTime  time.Duration // deadline announced for an attempt; extended while it is worked on; default 5 min
	Retention    time.Duration // how long settled attempts are remembered; default 24 h
	SweepEvery   time.Duration // default 5 s; negative: only on request
	OrphanEvery  time.Duration // how often stores are listed for leftovers; default 10 min; negative: only on request
	ScrubEvery   time.Duration // from one scrub of all groups to the next; default a week; negative: only on request

	CompactEvery   time.Duration // from one look for dead space to the next, where nothing died; default 10 min; negative: never
	CompactSettled time.Duration // how long a group of small objects is left alone; default 30 s; negative: not at all
	HotKeysGather  time.Duration // for how long hot keys are gathered that are moved together; default 5 s; negative: none are moved

	HeatGroups int              // most groups whose accesses are counted, at up to 64 bytes each; default heat.DefaultGroups
	Now        func() time.Time // the clock of temperature, and of nothing else; default time.Now

	Dial  wire.Dial        // how agents are reached; default TCP, with certificates within TLS
	Clock func() time.Time // by which attempts expire and graves fall due, which no rule depends on; default time.Now
}

// dialTo returns how the agent of a node is reached.
func (o *Options) dialTo(id block.NodeID) wire.Dial {
	if o.Dial != nil || o.Certificates == nil {
		return o.Dial
	}
	return o.Certificates.DialAgent(string(id))
}

// Gateway serves objects. Create it with New; it works until Close. What it does is in its parts, whose methods are its own.
type Gateway struct {
	*member.Membership
	*class.Registry
	*object.Objects
	*temperature.Thermometer
	*transition.Coordinator
	*repair.Repairs
	*relocate.Relocator
	*scrub.Scrubber
	*sweep.Sweeper
	*compact.Compactor
	*balance.Balancer

	options    Options
	catalog    *catalog.Catalog
	agents     *member.Agents
	groups     *group.Groups
	direct     *direct.Stores
	background *job.Background

	values       *values.Store
	objectCounts *job.Recent[map[string]objectCount] // by class

	load    load.Window
	metrics *metrics
	log     *slog.Logger
}

// New starts a gateway: it settles what its earlier start left undone, enters the given nodes, and resumes the
// transitions it owns.
func New(ctx context.Context, options Options) (*Gateway, error) {
	if err := options.complete(); err != nil {
		return nil, fmt.Errorf("starting a gateway: %w", err)
	}
	g := &Gateway{
		options: options, catalog: options.Catalog, log: options.Logger.With("gateway", options.ID), metrics: newMetrics(),
		background: job.NewBackground(ctx),
	}
	if err := g.build(ctx); err != nil {
		g.background.Stop()
		return nil, fmt.Errorf("starting gateway %s: %w", options.ID, err)
	}
	g.start(ctx)
	if err := g.TakeUp(ctx); err != nil {
		g.background.Stop()
		return nil, fmt.Errorf("starting gateway %s: %w", options.ID, err)
	}
	return g, nil
}

// complete fills defaults in.
func (o *Options) complete() error {
	if o.Catalog == nil || o.ID == "" || o.Start == "" {
		return errors.New("a catalog, an id and a start are required")
	}
	if o.HTTPS && o.Certificates == nil {
		return errors.New("serving over TLS takes certificates")
	}
	if len(o.Classes) == 0 {
		o.Classes = api.DefaultClasses()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	setDefault(&o.MemoryBytes, 128<<20)
	if o.ReadGroups == 0 {
		o.ReadGroups = 64
	}
	setDefault(&o.CallTimeout, 30*time.Second)
	setDefault(&o.AttemptTime, 5*time.Minute)
	setDefault(&o.Retention, 24*time.Hour)
	setDefault(&o.SweepEvery, 5*time.Second)
	setDefault(&o.OrphanEvery, 10*time.Minute)
	setDefault(&o.ScrubEvery, scrub.DefaultEvery)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return nil
}

func setDefault[T int64 | time.Duration](value *T, absent T) {
	if *value == 0 {
		*value = absent
	}
}

// build puts the parts together, each over those before it, and reads what the catalog says of nodes, classes and heat.
func (g *Gateway) build(ctx context.Context) (err error) {
	o := &g.options
	if err := g.catalog.AbortOwn(ctx, o.ID, o.Start); err != nil {
		return fmt.Errorf("settling attempts of an earlier start: %w", err)
	}
	g.agents = member.NewAgents(g.catalog, o.ID, o.CallTimeout, o.dialTo, g.log)
	g.agents.Clock = o.Clock
	g.direct = direct.New(g.log)
	g.agents.Direct = g.direct.Learn
	g.Membership, err = member.Open(ctx, g.catalog, g.agents, g.log, member.Options{
		Release: o.Release,
		ID:      o.ID, Nodes: o.Nodes, Background: g.background,
		Reported: func(id block.GroupID) bool { return g.groups.Reported.Has(id) },
	})
	if err != nil {
		return err
	}
	g.objectCounts = job.NewRecent(g.background, g.countObjects)
	g.Registry = class.New(g.catalog, g.log, o.Classes)
	g.Thermometer = temperature.New(g.catalog, g.Registry, g.log, temperature.Options{ID: o.ID, Groups: o.HeatGroups, Now: o.Now})
	g.Registry.OnChange(g.Thermometer.ClassesChanged)
	if err := g.Registry.Begin(ctx); err != nil {
		return err
	}
	if err := g.Thermometer.Restore(ctx); err != nil {
		return err
	}
	g.groups = group.New(g.catalog, g.agents, g.log, group.Options{MemoryBytes: o.MemoryBytes, AttemptTime: o.AttemptTime, Clock: o.Clock})
	g.Repairs = repair.New(g.catalog, g.agents, g.Membership, g.groups, g.log, repair.Options{
		ID: o.ID, SweepEvery: o.SweepEvery, Clock: o.Clock, Metrics: g.metrics.registry,
	})
	kept := cache.New(o.CacheBytes)
	g.Objects = object.New(object.Parts{
		Catalog: g.catalog, Agents: g.agents, Groups: g.groups, Classes: g.Registry, Repairs: g.Repairs, Heat: g.Thermometer,
		Direct: g.direct, Cache: kept, Background: g.background, Logger: g.log, ReadGroups: o.ReadGroups, PieceGroups: o.PieceGroups,
		Sparse:       func() { g.Died() },
		ReadPatience: o.ReadPatience, Hot: func(class, key string) { g.Compactor.Hot(class, key) },
	})
	g.values = values.New(values.Parts{
		Objects: g.Objects, Classes: g.Registry, Users: o.Users, MemoryBytes: valueBytes,
		Count:     g.CountObjects,
		Certified: func(state *tls.ConnectionState) (*access.User, error) { return server.Certified(o.Certificates, state) },
	})
	g.metrics.objects(&g.Objects.Counters, g.catalog.SweptPieces)
	g.catalog.Raw().Observe(g.metrics.observe)
	g.metrics.registry.MustRegister(stores{g.agents}, traffic{g.agents}, certificates{g}, view{g}, group.Caches{})
	g.metrics.registry.MustRegister(g.Packing, g.ReadRepairs, g.direct, kept)
	g.Relocator = relocate.New(g.catalog, g.agents, g.Membership, g.groups, g.Repairs, g.log, o.ID)
	g.Balancer = balance.New(balance.Parts{
		Catalog: g.catalog, Agents: g.agents, Members: g.Membership, Relocator: g.Relocator, Heat: g.HeatNow, Logger: g.log,
		ID: o.ID, Start: o.Start, Metrics: g.metrics.registry,
	})
	g.Coordinator = transition.New(transition.Parts{
		Catalog: g.catalog, Agents: g.agents, Groups: g.groups, Classes: g.Registry, Objects: g.Objects, Repairs: g.Repairs,
		Relocator: g.Relocator, Heat: g.Thermometer, Background: g.background, Logger: g.log, ID: o.ID, Now: o.Now, Moved: g.moved,
	})
	g.Scrubber = scrub.New(g.catalog, g.agents, g.groups, g.Repairs, g.log, scrub.Options{
		ID: o.ID, Start: o.Start, Every: o.ScrubEvery, Metrics: g.metrics.registry,
	})
	g.Compactor = compact.New(compact.Parts{
		Catalog: g.catalog, Groups: g.groups, Objects: g.Objects, Classes: g.Registry, Heat: g.Thermometer, Load: &g.load,
		Logger: g.log,
	}, compact.Options{
		ID: o.ID, Start: o.Start, Every: o.CompactEvery, Settled: o.CompactSettled, Gather: o.HotKeysGather,
		Clock: o.Clock, Now: o.Now, Metrics: g.metrics.registry,
	})
	g.Sweeper = sweep.New(g.catalog, g.agents, g.Membership, g.log, sweep.Options{
		ID: o.ID, Clock: o.Clock, Retention: o.Retention, SweepEvery: o.SweepEvery, OrphanEvery: o.OrphanEvery,
		Died: g.Compactor.Died, Metrics: g.metrics.registry,
	})
	return nil
}

// start begins what goes on for as long as the gateway lives.
func (g *Gateway) start(ctx context.Context) {
	g.Follow(ctx)
	g.agents.Probe(ctx) // one round before the first put, so that it knows which nodes are there
	loops := []func(context.Context){
		g.agents.ProbeLoop, g.FollowLoop, g.Registry.Loop, g.ExchangeLoop, g.WalkLoop, g.CountLoop, g.Scrubber.Loop,
	}
	if g.options.SweepEvery > 0 {
		loops = append(loops,
			g.Sweeper.Loop, g.SearchLoop, g.MemberLoop, g.Relocator.Loop, g.Balancer.Loop,
			g.countLoop, g.Compactor.Loop, g.HotLoop,
			g.ControlLoop, g.ReportedLoop, g.RecordsLoop, // beside each other: a long repair must not keep others waiting
			g.Coordinator.Loop,
		)
	}
	for _, loop := range loops {
		g.background.Go(loop)
	}
}

// moved takes note of what a transition cost.
func (g *Gateway) moved(cost api.Traffic) {
	g.metrics.addMoved(cost)
	g.load.Move(time.Now(), cost.BytesRead+cost.BytesSent+cost.BytesWritten)
}

// Handler serves the gateway's HTTP interface to whoever asks.
func (g *Gateway) Handler() http.Handler { return g.server().Handler() }

// Serve serves the gateway's HTTP interface until the context ends, but not to pages of other sites that a browser shows. It
// closes the listener.
func (g *Gateway) Serve(ctx context.Context, listener net.Listener) error {
	s := g.server()
	onlyLoopback := g.options.Users == nil && serve.LoopbackHost(listener.Addr().String())
	if config := g.doors(); config != nil {
		config.NextProtos = []string{"http/1.1"}
		listener = tls.NewListener(listener, config)
	}
	return serve.Until(ctx, listener, serve.Server(s.Guard(s.Handler(), onlyLoopback)), nil)
}

// Values are the objects of the gateway, for the protocols of keys and values.
func (g *Gateway) Values() *values.Store { return g.values }

func (g *Gateway) server() *server.Server {
	return server.New(server.Parts{
		Catalog: g.catalog, CatalogAddress: g.options.CatalogAddress,
		Members: g.Membership, Classes: g.Registry, Objects: g.Objects, Heat: g.Thermometer,
		Transitions: g.Coordinator, Repairs: g.Repairs, Scrubber: g.Scrubber, Sweeper: g.Sweeper, Compactor: g.Compactor,
		Balancer: g.Balancer,
		Overview: g, Load: &g.load,
		Users: g.options.Users, Audit: g.options.Audit, Certificates: g.options.Certificates,
		Logger: g.log, Closing: g.background.Context(), Requests: g.metrics.requests, Unaudited: g.metrics.unaudited,
		Metrics: g.metrics.handler(),
	})
}

// Relocate takes nodes back that were given up and answer again, and then moves blocks to where they belong, once.
func (g *Gateway) Relocate(ctx context.Context) (api.RelocationResult, error) {
	if err := g.TakeBack(ctx); err != nil {
		return api.RelocationResult{}, err
	}
	return g.Relocator.Relocate(ctx)
}

// Close stops taking requests, waits for running attempts to settle, and returns. Transitions stay as they are and go on
// at the next start.
func (g *Gateway) Close() error {
	g.background.Stop()
	g.SaveLast()
	g.Leave()
	g.direct.Close()
	return g.agents.Close()
}
