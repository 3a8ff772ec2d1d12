package controller

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/gateways"
)

// Options configure the controllers.
type Options struct {
	Clock     clock.WithTicker     // default: the real one
	Observers *gateways.Observers  // of the backends; required
	Events    events.EventRecorder // nil: the API server has no Events
	Intervals Intervals
	Logger    *slog.Logger // default: slog.Default
}

// Intervals say how often things are looked at that nobody tells of.
type Intervals struct {
	Look     time.Duration // gateways: nodes, heat and classes; default 10 s
	Progress time.Duration // a transition that runs; default 2 s
}

// The defaults of Intervals.
const (
	defaultLook     = 10 * time.Second
	defaultProgress = 2 * time.Second
)

// concurrency is how many objects of a kind are looked at at once: gateways answer slowly.
const concurrency = 8

// The shape of waiting after an error: of the API server or of a gateway.
const (
	firstBackoff   = 50 * time.Millisecond
	longestBackoff = 30 * time.Second
)

// base is what all reconcilers have.
type base struct {
	client       client.Client
	clock        clock.WithTicker
	intervals    Intervals
	observers    *gateways.Observers
	announcer    *announcer
	declarations *declarationCache
}

// observe returns what the gateways of a backend say, or said not long ago.
func (b *base) observe(ctx context.Context, backend *v1alpha1.StorageBackend) (*gateways.Snapshot, error) {
	observer, err := b.observers.Of(backend)
	if err != nil {
		return nil, err
	}
	return observer.Observe(ctx, b.intervals.Look/2)
}

// Register adds the controllers to a manager.
func Register(m manager.Manager, options Options) error {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	if options.Intervals.Look <= 0 {
		options.Intervals.Look = defaultLook
	}
	if options.Intervals.Progress <= 0 {
		options.Intervals.Progress = defaultProgress
	}
	if err := index(context.Background(), m.GetFieldIndexer()); err != nil {
		return err
	}
	b := base{
		client: m.GetClient(), clock: options.Clock, intervals: options.Intervals,
		observers:    options.Observers,
		announcer:    &announcer{events: options.Events, log: options.Logger},
		declarations: &declarationCache{},
	}
	for name, add := range map[string]func(manager.Manager, base) error{
		"backends": addBackends, "walks": addWalks, "schemes": addSchemes, "policies": addPolicies, "transitions": addTransitions,
	} {
		if err := add(m, b); err != nil {
			return fmt.Errorf("adding the controller of %s: %w", name, err)
		}
	}
	return nil
}

// settings are those of every controller: its queue goes by the clock that was passed in.
func (b *base) settings() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: concurrency,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, longestBackoff),
		UsePriorityQueue:        ptr.To(false),
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: b.clock})
		},
	}
}

// again asks to be called at a time, or not at all for the zero time.
func (b *base) again(at time.Time) reconcile.Result {
	if at.IsZero() {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: max(time.Millisecond, at.Sub(b.clock.Now()))}
}

// spread is the interval give or take a tenth, so that what began together does not stay together.
func spread(interval time.Duration) time.Duration {
	return interval - interval/10 + rand.N(max(1, interval/5))
}
