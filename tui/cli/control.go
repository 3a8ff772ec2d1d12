package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/operator"
	"github.com/restripe/restripe/operator/apiserver"
	"github.com/restripe/restripe/operator/console/access"
	"github.com/restripe/restripe/operator/controller"
	"github.com/restripe/restripe/web"
)

// The control plane's part of a state directory: what the API server keeps, and the lock of the operator that acts.
const (
	controlFolder    = "control"
	operatorLockFile = "operator.lock"
)

// controlKubeconfig returns the kubeconfig in the state directory of `restripe up`.
func controlKubeconfig(directory string) string {
	return filepath.Join(directory, controlFolder, "kubeconfig")
}

// localBackend is the StorageBackend that stands for the cluster of `restripe up`.
const localBackend = "local"

// controlOptions say how a control plane runs.
type controlOptions struct {
	directory string // state directory of the cluster
	backend   string // the name under which the cluster is declared
	intervals controller.Intervals
	logger    *slog.Logger
	console   string // address that the console listens on
}

// controlPlane is an API server, an operator and a console in this process. What ends by itself is started again.
type controlPlane struct {
	options controlOptions
	path    string            // of the kubeconfig
	server  *apiserver.Server // supervise's alone once it runs
	address string            // of the console
	console net.Listener      // supervise's alone once it runs; nil while the console has it or is to listen again
	cancel  context.CancelFunc
	ended   chan struct{} // closed when supervise returns; nil before operate
	err     error         // of the last end; to be read after ended
}

// startControl starts an API server and returns when it serves. The operator and the console start with operate.
func startControl(ctx context.Context, options controlOptions) (*controlPlane, error) {
	c := &controlPlane{options: options}
	var err error
	if c.console, err = net.Listen("tcp", options.console); err != nil {
		return nil, fmt.Errorf("listening for the console: %w; name another address with --console, 127.0.0.1:0 for any free port", err)
	}
	c.address = c.console.Addr().String()
	if c.server, err = c.serve(ctx); err != nil {
		return nil, errors.Join(err, c.console.Close())
	}
	c.path = c.server.Kubeconfig()
	return c, nil
}

func (c *controlPlane) serve(ctx context.Context) (*apiserver.Server, error) {
	return apiserver.Start(ctx, apiserver.Options{Directory: filepath.Join(c.options.directory, controlFolder), Logger: c.options.logger})
}

// kubeconfig returns the path of the kubeconfig. It stays the same when the API server is started again.
func (c *controlPlane) kubeconfig() string { return c.path }

// consolePage says where the console is. The address stays the same when the console is started again.
func (c *controlPlane) consolePage() string {
	page := "http://" + c.address
	if web.Pages() == nil {
		page += " (for `restripe tui`: this program was built without the web interface)"
	}
	return page
}

// operate declares the cluster as a backend and runs the operator and the console until stop.
func (c *controlPlane) operate(ctx context.Context, gateway string, store launch.StoreKind) error {
	if err := declareMachine(ctx, c.server, c.options.backend, gateway, store); err != nil {
		return err
	}
	lifetime, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel, c.ended = cancel, make(chan struct{})
	go c.supervise(lifetime)
	return nil
}

// declareMachine applies the StorageBackend of the cluster, so that policies can name it.
func declareMachine(ctx context.Context, server *apiserver.Server, name, gateway string, store launch.StoreKind) error {
	api, err := newAPIServer(server.RESTConfig())
	if err != nil {
		return err
	}
	backend := kindNamed("backend").object()
	backend.SetName(name)
	backend.Object["spec"] = map[string]any{"type": string(store), "gateways": []any{"http://" + gateway}}
	text, err := backend.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encoding the backend %s: %w", name, err)
	}
	err = api.Patch(ctx, backend, client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("restripe-up"), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("declaring the backend %s: %w", name, err)
	}
	return nil
}

// Pauses before the control plane is started again; they double up to the longest.
const (
	firstControlPause   = 200 * time.Millisecond
	longestControlPause = 30 * time.Second
	stableControl       = time.Minute // one that ran this long starts over with the first pause
)

// supervise runs the operator and the console, and starts them and the API server again when one ends by itself. The data
// plane goes on without them.
func (c *controlPlane) supervise(ctx context.Context) {
	defer close(c.ended)
	pause := firstControlPause
	for {
		began := time.Now()
		err := c.round(ctx)
		if ctx.Err() != nil {
			c.err = errors.Join(err, c.closeConsole(), c.server.Stop())
			return
		}
		if time.Since(began) > stableControl {
			pause = firstControlPause
		}
		c.options.logger.Warn("the control plane ended, starting it again; objects are served meanwhile", "error", err, "after", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longestControlPause)
	}
}

// round runs the operator and the console until the context ends, or one of them or the API server ends by itself.
func (c *controlPlane) round(ctx context.Context) error {
	select {
	case <-c.server.Done():
		old := c.server.Stop()
		server, err := c.serve(ctx)
		if err != nil {
			return errors.Join(err, old)
		}
		c.server = server
	default:
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := []func(context.Context) error{c.operator, c.serveConsole, c.apiServer}
	failures := make([]error, len(parts))
	var running sync.WaitGroup
	for i, part := range parts {
		running.Go(func() {
			defer cancel()
			failures[i] = part(ctx)
		})
	}
	running.Wait()
	return errors.Join(failures...)
}

// apiServer waits for the API server to end by itself.
func (c *controlPlane) apiServer(ctx context.Context) error {
	select {
	case <-c.server.Done():
		return errors.New("the API server ended")
	case <-ctx.Done():
		return nil
	}
}

func (c *controlPlane) operator(ctx context.Context) error {
	return operator.Run(ctx, operator.Options{
		RESTConfig: c.server.RESTConfig(), Intervals: c.options.intervals, Logger: c.options.logger,
		Election: operator.Election{LockFile: filepath.Join(c.options.directory, operatorLockFile)},
	})
}

// serveConsole runs the console for the user of this machine.
func (c *controlPlane) serveConsole(ctx context.Context) (err error) {
	if c.console == nil {
		if c.console, err = net.Listen("tcp", c.address); err != nil {
			return fmt.Errorf("listening: %w", err)
		}
	}
	server, err := newConsole(c.server.RESTConfig(), access.Local(), c.options.directory, "", c.options.logger)
	if err != nil {
		return err
	}
	listener := c.console
	c.console = nil
	return errors.Join(server.Serve(ctx, listener), server.Close())
}

// closeConsole closes the listener of a console that does not run.
func (c *controlPlane) closeConsole() error {
	if c.console == nil {
		return nil
	}
	return c.console.Close()
}

// stop ends the operator first and the API server then.
func (c *controlPlane) stop() error {
	if c.ended == nil {
		return errors.Join(c.closeConsole(), c.server.Stop())
	}
	c.cancel()
	<-c.ended
	return c.err
}

// machine is a whole cluster on this machine.
type machine struct {
	cluster *launch.Cluster
	control *controlPlane // nil without a control plane
}

// startMachine starts the data plane and, where control is not nil, the control plane beside it. On an error nothing is
// left running.
func startMachine(ctx context.Context, options launch.Options, control *controlOptions) (_ *machine, err error) {
	m := &machine{}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.stop())
		}
	}()
	if err := os.MkdirAll(options.Directory, 0o755); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	controlled := make(chan error, 1)
	if control != nil {
		go func() {
			var err error
			m.control, err = startControl(ctx, *control)
			controlled <- err
		}()
	} else {
		controlled <- nil
	}
	m.cluster, err = launch.Start(ctx, options)
	failed := <-controlled
	if err != nil {
		// The control plane of a directory that is in use does not start either: once said is enough.
		return nil, fmt.Errorf("starting the cluster: %w", err)
	}
	if failed != nil {
		return nil, fmt.Errorf("starting the control plane: %w; --no-operator does without", failed)
	}
	if control == nil {
		return m, nil
	}
	if err := m.control.operate(ctx, m.cluster.Gateway(), options.Store); err != nil {
		return nil, fmt.Errorf("starting the operator: %w", err)
	}
	return m, nil
}

// stop ends everything in order: what decides, what serves declared objects, what serves stored ones.
func (m *machine) stop() error {
	var failed []error
	if m.control != nil {
		failed = append(failed, m.control.stop())
	}
	if m.cluster != nil {
		failed = append(failed, m.cluster.Stop())
	}
	return errors.Join(failed...)
}
