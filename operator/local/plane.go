// Package local runs a control plane in this process: an API server, an operator and a console. It is the part of
// `restripe up` that decides; the data plane goes on without it.
package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/operator"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/apiserver"
	"github.com/restripe/restripe/operator/console"
	"github.com/restripe/restripe/operator/controller"
	"github.com/restripe/restripe/operator/gateways"
)

// The control plane's part of a state directory: what the API server keeps, and the lock of the operator that acts.
const (
	folder   = "control"
	lockFile = "operator.lock"
)

// Kubeconfig returns where the kubeconfig of a control plane with a state directory is.
func Kubeconfig(directory string) string {
	return filepath.Join(directory, folder, "kubeconfig")
}

// Options say how a control plane runs.
type Options struct {
	Directory string               // state directory of the cluster
	Backend   string               // the name under which the cluster is declared
	Intervals controller.Intervals // the zero Intervals: the operator's own
	Logger    *slog.Logger
	Listen    string // address that the console listens on
	// Console makes the console, which shares the observers with the operator; the control plane serves and closes it. It is
	// called again when the console ended by itself.
	Console func(config *rest.Config, observers *gateways.Observers) (*console.Server, error)
}

// ErrListen is the error of Start where the console cannot have its address.
var ErrListen = errors.New("listening for the console")

// Plane is an API server, an operator and a console in this process. What ends by itself is started again.
type Plane struct {
	options  Options
	path     string            // of the kubeconfig
	server   *apiserver.Server // supervise's alone once it runs
	address  string            // of the console
	listener net.Listener      // supervise's alone once it runs; nil while the console has it or is to listen again
	reach    Reach             // the cluster
	cancel   context.CancelFunc
	ended    chan struct{} // closed when supervise returns; nil before Operate
	err      error         // of the last end; to be read after ended
}

// Start starts an API server and returns when it serves. The operator and the console start with Operate. The caller stops it.
func Start(ctx context.Context, options Options) (*Plane, error) {
	p := &Plane{options: options}
	var err error
	if p.listener, err = net.Listen("tcp", options.Listen); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrListen, err)
	}
	p.address = p.listener.Addr().String()
	if p.server, err = p.serve(ctx); err != nil {
		return nil, errors.Join(err, p.listener.Close())
	}
	p.path = p.server.Kubeconfig()
	return p, nil
}

func (p *Plane) serve(ctx context.Context) (*apiserver.Server, error) {
	return apiserver.Start(ctx, apiserver.Options{Directory: filepath.Join(p.options.Directory, folder), Logger: p.options.Logger})
}

// Kubeconfig returns the path of the kubeconfig. It stays the same when the API server is started again.
func (p *Plane) Kubeconfig() string { return p.path }

// Console returns the address of the console. It stays the same when the console is started again.
func (p *Plane) Console() string { return p.address }

// Backend returns the name under which the cluster is declared.
func (p *Plane) Backend() string { return p.options.Backend }

// Reach says how a cluster is reached.
type Reach struct {
	Gateway     string // URL
	Store       launch.StoreKind
	Credentials gateways.Credentials // that the operator shows
}

// Operate declares the cluster as a backend and runs the operator and the console until Stop.
func (p *Plane) Operate(ctx context.Context, cluster Reach) error {
	p.reach = cluster
	if err := declare(ctx, p.server, p.options.Backend, cluster); err != nil {
		return err
	}
	lifetime, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel, p.ended = cancel, make(chan struct{})
	go p.supervise(lifetime)
	return nil
}

// declare applies the StorageBackend of the cluster, so that policies can name it.
func declare(ctx context.Context, server *apiserver.Server, name string, cluster Reach) error {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("registering the kinds: %w", err)
	}
	api, err := client.New(server.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("reaching the API server: %w", err)
	}
	backend := &unstructured.Unstructured{}
	backend.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("StorageBackend"))
	backend.SetName(name)
	backend.Object["spec"] = map[string]any{"type": string(cluster.Store), "gateways": []any{cluster.Gateway}}
	err = api.Apply(ctx, client.ApplyConfigurationFromUnstructured(backend), client.FieldOwner("restripe-up"), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("declaring the backend %s: %w", name, err)
	}
	return nil
}

// Pauses before the control plane is started again; they double up to the longest.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 30 * time.Second
	stable       = time.Minute // one that ran this long starts over with the first pause
)

// supervise runs the operator and the console, and starts them and the API server again when one ends by itself. The data
// plane goes on without them.
func (p *Plane) supervise(ctx context.Context) {
	defer close(p.ended)
	pause := firstPause
	for {
		began := time.Now()
		err := p.round(ctx)
		if ctx.Err() != nil {
			p.err = errors.Join(err, p.closeConsole(), p.server.Stop())
			return
		}
		if time.Since(began) > stable {
			pause = firstPause
		}
		p.options.Logger.Warn("the control plane ended, starting it again; objects are served meanwhile", "cause", err, "after", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// round runs the operator and the console until the context ends, or one of them or the API server ends by itself.
func (p *Plane) round(ctx context.Context) error {
	select {
	case <-p.server.Done():
		old := p.server.Stop()
		server, err := p.serve(ctx)
		if err != nil {
			return errors.Join(err, old)
		}
		p.server = server
	default:
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	observers := gateways.NewObservers(gateways.Dial(p.reach.Credentials), time.Now)
	defer observers.Close()
	parts := []func(context.Context, *gateways.Observers) error{p.operator, p.serveConsole, p.apiServer}
	failures := make([]error, len(parts))
	var running sync.WaitGroup
	for i, part := range parts {
		running.Go(func() {
			defer cancel()
			failures[i] = part(ctx, observers)
		})
	}
	running.Wait()
	return errors.Join(failures...)
}

// apiServer waits for the API server to end by itself.
func (p *Plane) apiServer(ctx context.Context, _ *gateways.Observers) error {
	select {
	case <-p.server.Done():
		return errors.New("the API server ended")
	case <-ctx.Done():
		return nil
	}
}

func (p *Plane) operator(ctx context.Context, observers *gateways.Observers) error {
	return operator.Run(ctx, operator.Options{
		RESTConfig: p.server.RESTConfig(), Observers: observers, Intervals: p.options.Intervals, Logger: p.options.Logger,
		Election: operator.Election{LockFile: filepath.Join(p.options.Directory, lockFile)},
	})
}

// serveConsole runs the console for the user of this machine.
func (p *Plane) serveConsole(ctx context.Context, observers *gateways.Observers) (err error) {
	if p.listener == nil {
		if p.listener, err = net.Listen("tcp", p.address); err != nil {
			return fmt.Errorf("listening: %w", err)
		}
	}
	server, err := p.options.Console(p.server.RESTConfig(), observers)
	if err != nil {
		return err
	}
	listener := p.listener
	p.listener = nil
	return errors.Join(server.Serve(ctx, listener), server.Close())
}

// closeConsole closes the listener of a console that does not run.
func (p *Plane) closeConsole() error {
	if p.listener == nil {
		return nil
	}
	return p.listener.Close()
}

// Stop ends the operator first and the API server then.
func (p *Plane) Stop() error {
	if p.ended == nil {
		return errors.Join(p.closeConsole(), p.server.Stop())
	}
	p.cancel()
	<-p.ended
	return p.err
}
