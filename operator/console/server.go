package console

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/audit"
	"github.com/restripe/restripe/operator/api/console/v1/consolev1connect"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/console/history"
	"github.com/restripe/restripe/operator/console/packed"
	"github.com/restripe/restripe/operator/console/signal"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/gateways"
)

// Options say how a console runs. RESTConfig, Authority, Compiler and AuditDirectory are required.
type Options struct {
	RESTConfig       *rest.Config
	Authority        access.Authority
	Compiler         Compiler
	Observers        *gateways.Observers  // to be shared with others in the process, who close them; nil: the console has its own
	Credentials      gateways.Credentials // shown to gateways
	AuditDirectory   string
	HistoryDirectory string // empty: the history is kept in memory alone

	TLS       *tls.Config // callers are served over it; nil: without TLS
	Pages     fs.FS       // the web pages; nil: there are none
	Version   string
	Intervals Intervals
	Logger    *slog.Logger     // default: slog.Default
	Now       func() time.Time // default: time.Now

	AuditFileBytes int64 // default: that of package audit
	HistorySamples int   // default: that of package history
}

// Intervals say how often the console does what nobody asks for.
type Intervals struct {
	Look     time.Duration // at the gateways; heat, scrubs and compactions every fifth time; default 2 s
	Patience time.Duration // with one question to one gateway, but for those of Observers that are shared; default 5 s
	Sample   time.Duration // of heat and sizes for the history; default 5 min
	Stream   time.Duration // least time between two messages of a watch; default 250 ms
	recheck  time.Duration // of the rights of who watches; default 30 s
}

const (
	defaultLook   = 2 * time.Second
	defaultSample = 5 * time.Minute
	defaultStream = 250 * time.Millisecond
)

// Server is a console. New makes it, Run lets it see, Handler serves it, Close ends it.
//
// Each part serves the calls about one subject, and has what it needs for them.
type Server struct {
	*sources
	*auditing
	*watching
	*texts
	*applying
	*policies
	*plans
	*heats
	*nodes
	*compactions
	*balances
	*objects
	*overviews
	*transitions

	options  Options
	began    time.Time
	declared *signal.Signal // something declared changed
	packed   packed.Files

	stopping  chan struct{} // closed when watches must end
	stopOnce  sync.Once
	closeOnce sync.Once
	closed    error
}

// compilesAtOnce bounds the work of reading texts: CUE is a language.
const compilesAtOnce = 2

var _ consolev1connect.ConsoleHandler = (*Server)(nil)

// New opens the audit log and the history, and returns a console that sees nothing yet.
func New(options Options) (*Server, error) {
	if options.RESTConfig == nil || options.Authority == nil || options.Compiler == nil || options.AuditDirectory == "" {
		return nil, errors.New(
			"starting the console: a configuration of the API server, an authority, a compiler and a directory for the audit log are required",
		)
	}
	options.Intervals.Look = cmp.Or(options.Intervals.Look, defaultLook)
	options.Intervals.Patience = cmp.Or(options.Intervals.Patience, quickPatience)
	options.Intervals.Sample = cmp.Or(options.Intervals.Sample, defaultSample)
	options.Intervals.Stream = cmp.Or(options.Intervals.Stream, defaultStream)
	options.Intervals.recheck = cmp.Or(options.Intervals.recheck, recheck)
	if options.Now == nil {
		options.Now = time.Now
	}
	config := rest.CopyConfig(options.RESTConfig)
	config.UserAgent = "restripe-console"
	config.QPS = -1 // people and four watches ask little; the API server has its own limits
	c, err := newClient(config)
	if err != nil {
		return nil, err
	}
	s := &Server{options: options, began: options.Now(), declared: &signal.Signal{}, stopping: make(chan struct{})}
	s.assemble(c)
	if options.Pages != nil {
		if s.packed, err = packed.Pack(options.Pages); err != nil {
			return nil, fmt.Errorf("starting the console: %w", err)
		}
	}
	if s.audit, err = audit.Open(options.AuditDirectory, audit.Options{FileBytes: options.AuditFileBytes, Now: options.Now}); err != nil {
		return nil, fmt.Errorf("starting the console: %w", err)
	}
	if err := s.audit.Damage(); err != nil {
		s.log.Error("nothing can be changed through this console", "cause", err)
	}
	if s.history, err = history.Open(options.HistoryDirectory, history.Options{Samples: options.HistorySamples}); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the console: %w", err), s.audit.Close())
	}
	return s, nil
}

// assemble makes the parts, each of those before it. The audit log and the history are still to be opened.
func (s *Server) assemble(c client.WithWatch) {
	o := &s.options
	s.auditing = &auditing{authority: o.Authority, metrics: newMetrics(), log: cmp.Or(o.Logger, slog.Default())}
	world := newWorld(c, o.Now, s.declared, &outside{auditing: s.auditing, known: map[types.UID]declaredState{}, own: map[types.UID]bool{}})
	s.watching = &watching{changed: &signal.Signal{}, pace: o.Intervals.Stream}
	observers := o.Observers
	if observers == nil {
		observers = gateways.NewObservers(gateways.DialWithin(o.Intervals.Patience, o.Credentials), o.Now)
	}
	s.sources = &sources{world: world, now: o.Now, backends: &seenBackends{
		declared: world.backends, redeclare: s.declared, changed: s.changed, observers: observers,
		interval: o.Intervals.Look, patience: o.Intervals.Patience, credentials: o.Credentials, now: o.Now,
	}}
	s.texts = &texts{s.sources, o.Compiler, make(chan struct{}, compilesAtOnce)}
	s.applying = &applying{s.texts, s.auditing}
	s.policies = &policies{s.sources, s.auditing, s.watching, o.Compiler}
	s.heats = &heats{sources: s.sources, watching: s.watching, interval: o.Intervals.Sample}
	s.plans = &plans{s.sources, s.texts, s.heats}
	s.nodes = &nodes{s.sources, s.auditing, s.watching}
	s.compactions = &compactions{s.sources, s.auditing}
	s.balances = &balances{s.sources, s.auditing}
	s.objects = &objects{s.sources, s.auditing}
	s.transitions = &transitions{sources: s.sources, auditing: s.auditing, watching: s.watching, compiler: o.Compiler}
	s.overviews = &overviews{s.sources, s.watching, s.nodes, s.transitions}
}

// Run watches the API server and looks at the gateways until the context ends. Sources that do not answer are no error:
// the views tell of them.
func (s *Server) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { s.world.run(ctx) })
	running.Go(func() { s.backends.run(ctx) })
	running.Go(func() { s.pass(ctx) })
	running.Go(func() { s.sample(ctx) })
	running.Wait()
	if s.options.Observers == nil {
		s.backends.observers.Close()
	}
}

// pass tells views of what was declared.
func (s *Server) pass(ctx context.Context) {
	for {
		declared := s.declared.Wait()
		s.changed.Notify()
		select {
		case <-declared:
		case <-ctx.Done():
			return
		}
	}
}

// StopWatches ends every watch, so that connections can be closed; call it before the HTTP server is shut down.
func (s *Server) StopWatches() { s.stopOnce.Do(func() { close(s.stopping) }) }

// Close closes the audit log and the history. No call may be under way, and Run must have ended.
func (s *Server) Close() error {
	s.StopWatches()
	s.closeOnce.Do(func() { s.closed = errors.Join(s.audit.Close(), s.history.Close()) })
	return s.closed
}

// classKey names a class at a backend.
type classKey struct{ backend, class string }

// policiesByClass are the policies by the class that each declares; of several the first has it.
func (w *world) policiesByClass() map[classKey]*v1alpha1.RedundancyPolicy {
	byClass := map[classKey]*v1alpha1.RedundancyPolicy{}
	for _, policy := range w.policies.all() {
		key := classKey{policy.Spec.BackendRef, decide.ClassName(policy)}
		if byClass[key] == nil {
			byClass[key] = policy
		}
	}
	return byClass
}

func compareText(a, b string) int { return cmp.Compare(a, b) }
