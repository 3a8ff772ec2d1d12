package operator

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	runtimelog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	operatormetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/flock"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	definitions "github.com/restripe/restripe/operator/config"
	"github.com/restripe/restripe/operator/controller"
	"github.com/restripe/restripe/operator/gateways"
)

// Options say how the operator runs. RESTConfig is required.
type Options struct {
	RESTConfig    *rest.Config
	Election      Election
	Clock         clock.WithTicker     // default: the real one
	Dial          gateways.Dialer      // reaches gateways; default: over HTTP, without saying who asks
	Observers     *gateways.Observers  // to be shared with others in the process, who close them; default: its own, by Dial
	Intervals     controller.Intervals // how often things are looked at again; zero fields have defaults
	MetricsListen string               // host:port for Prometheus; default: none
	MetricsUsers  access.Authority     // says who may see figures; nil: everybody may
	MetricsTLS    *tls.Config          // figures are served over it; nil: without TLS
	HealthListen  string               // host:port that answers /healthz and /readyz, to everybody; default: none
	Logger        *slog.Logger         // default: slog.Default

	// Started, where it is given, is called once the operator knows what is declared, with what asks whether it still does. ctx ends
	// with the operator.
	Started func(ctx context.Context, alive func(ctx context.Context) error)
}

// shutdownPatience bounds the wait for reconcilers that are in the middle of something.
const shutdownPatience = 10 * time.Second

// healthPatience bounds the wait of who asks whether the operator is ready for what is declared.
const healthPatience = 2 * time.Second

// reconcileTimeout bounds one look at one object, gateways that do not answer included.
const reconcileTimeout = 2 * time.Minute

// Run runs the operator until the context ends, which is no error, or until it can no longer be the one that acts.
// It can be stopped and killed at any moment; the next run goes on.
func Run(ctx context.Context, options Options) (err error) {
	log := cmp.Or(options.Logger, slog.Default())
	if options.RESTConfig == nil {
		return errors.New("running the operator: a configuration of the API server is required")
	}
	if path := options.Election.LockFile; path != "" {
		held, err := lock(ctx, path, log)
		if err != nil && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, flock.Release(held)) }()
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Dial == nil {
		options.Dial = gateways.Dial(gateways.Credentials{})
	}
	if options.Observers == nil {
		options.Observers = gateways.NewObservers(options.Dial, options.Clock.Now)
		defer options.Observers.Close()
	}
	m, err := newManager(&options, log)
	if err != nil {
		return err
	}
	if options.Started != nil {
		if err := m.Add(started{m, options.Started}); err != nil {
			return fmt.Errorf("running the operator: %w", err)
		}
	}
	shown := &declared{reader: m.GetClient(), log: log}
	if err := operatormetrics.Registry.Register(shown); err == nil { // else another operator of this process has its own there
		defer operatormetrics.Registry.Unregister(shown)
	}
	if err := m.Start(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("running the operator: %w", err)
	}
	return nil
}

// started calls Options.Started, whether or not this operator is the one that acts.
type started struct {
	manager manager.Manager
	call    func(ctx context.Context, alive func(ctx context.Context) error)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (started) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable; the manager calls it once its caches have been filled.
func (s started) Start(ctx context.Context) error {
	s.call(ctx, func(ctx context.Context) error {
		return s.manager.GetClient().List(ctx, &v1alpha1.StorageBackendList{}, client.Limit(1))
	})
	<-ctx.Done()
	return nil
}

func newManager(options *Options, log *slog.Logger) (manager.Manager, error) {
	logger := logr.FromSlogHandler(quiet{log.Handler()})
	runtimelog.SetLogger(logger)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the kinds: %w", err)
	}
	m, err := manager.New(rest.CopyConfig(options.RESTConfig), manager.Options{
		Scheme: scheme, Logger: logger,
		Metrics: options.metrics(), HealthProbeBindAddress: cmp.Or(options.HealthListen, "0"),
		// A reconciler that has just written must not decide by what was before.
		Client:                        client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
		LeaderElection:                options.Election.LeaseNamespace != "",
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       options.Election.LeaseNamespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(shutdownPatience),
		Controller: config.Controller{
			SkipNameValidation:    ptr.To(true), // several operators may run in one process, in turn
			ReconciliationTimeout: reconcileTimeout,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("reaching the API server at %s: %w", options.RESTConfig.Host, err)
	}
	server, err := discovery.NewDiscoveryClientForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("asking the API server what it serves: %w", err)
	}
	warnings, err := definitions.Served(server)
	if err != nil {
		return nil, fmt.Errorf("running the operator at %s: %w", m.GetConfig().Host, err)
	}
	for _, warning := range warnings {
		log.Warn("definitions are of another release", "cause", warning)
	}
	knows := func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), healthPatience)
		defer cancel()
		return m.GetClient().List(ctx, &v1alpha1.StorageBackendList{}, client.Limit(1))
	}
	if err := errors.Join(m.AddHealthzCheck("runs", healthz.Ping), m.AddReadyzCheck("declared", knows)); err != nil {
		return nil, fmt.Errorf("answering about health: %w", err)
	}
	recorder, err := recorderOf(m, server, log)
	if err != nil {
		return nil, err
	}
	err = controller.Register(m, controller.Options{
		Clock: options.Clock, Observers: options.Observers, Events: recorder, Intervals: options.Intervals, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// metricsRight is what it takes to see figures.
var metricsRight = access.Right{Verb: access.Metrics, Resource: access.Backends}

// metrics says how figures are served.
func (o *Options) metrics() metricsserver.Options {
	served := metricsserver.Options{BindAddress: cmp.Or(o.MetricsListen, "0")}
	if o.MetricsUsers != nil {
		served.FilterProvider = func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
			return func(_ logr.Logger, handler http.Handler) (http.Handler, error) {
				return access.Guard(o.MetricsUsers, metricsRight, handler), nil
			}, nil
		}
	}
	if o.MetricsTLS != nil {
		served.SecureServing = true
		served.TLSOpts = []func(*tls.Config){func(config *tls.Config) {
			config.GetCertificate, config.MinVersion = o.MetricsTLS.GetCertificate, o.MetricsTLS.MinVersion
		}}
	}
	return served
}

// recorderOf returns what writes Events, or nil for an API server that has none: conditions say all that they would.
func recorderOf(m manager.Manager, server discovery.DiscoveryInterface, log *slog.Logger) (events.EventRecorder, error) {
	_, err := server.ServerResourcesForGroupVersion(eventsv1.SchemeGroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		log.Debug("the API server has no Events; conditions and this log tell what happens")
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("asking the API server at %s for Events: %w", m.GetConfig().Host, err)
	}
	return m.GetEventRecorder(v1alpha1.FieldOwner), nil
}
