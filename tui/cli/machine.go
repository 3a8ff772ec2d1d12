package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"k8s.io/client-go/rest"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/operator/console"
	"github.com/restripe/restripe/operator/gateways"
	"github.com/restripe/restripe/operator/local"
	"github.com/restripe/restripe/web"
)

// localBackend is the StorageBackend that stands for the cluster of `restripe up`.
const localBackend = "local"

// localConsole makes the console of a cluster on this machine: for the user of it, or for those of a file.
func localConsole(directory, users string, log *slog.Logger) func(*rest.Config, *gateways.Observers) (*console.Server, error) {
	return func(config *rest.Config, observers *gateways.Observers) (_ *console.Server, err error) {
		options := console.Options{RESTConfig: config, Observers: observers, Authority: access.Local(), Logger: log}
		if users != "" {
			if options.Authority, err = access.Users(users, nil); err != nil {
				return nil, err
			}
			options.Credentials, err = shown(launch.CertificateIn(directory, launch.ConsoleName))
		} else {
			options.Credentials, err = credentials()
		}
		if err != nil {
			return nil, err
		}
		return newConsole(options, directory)
	}
}

// machine is a whole cluster on this machine.
type machine struct {
	cluster *launch.Cluster
	control *local.Plane // nil without a control plane
}

// errControl is the error of startMachine where the control plane does not start.
var errControl = errors.New("starting the control plane")

// startMachine starts the data plane and, where control is not nil, the control plane beside it. On an error nothing is
// left running.
func startMachine(ctx context.Context, options launch.Options, control *local.Options) (_ *machine, err error) {
	m := &machine{}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.stop())
		}
	}()
	if err := os.MkdirAll(options.Directory, 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	controlled := make(chan error, 1)
	if control != nil {
		go func() {
			var err error
			m.control, err = local.Start(ctx, *control)
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
		return nil, fmt.Errorf("%w: %w", errControl, failed)
	}
	if control == nil {
		return m, nil
	}
	reach := local.Reach{Gateway: m.cluster.GatewayURL(), Store: options.Store}
	if options.Users != "" {
		if reach.Credentials, err = shown(m.cluster.Certificate(launch.OperatorName)); err != nil {
			return nil, fmt.Errorf("starting the operator: %w", err)
		}
	}
	if err := m.control.Operate(ctx, reach); err != nil {
		return nil, fmt.Errorf("starting the operator: %w", err)
	}
	return m, nil
}

// stop ends everything in order: what decides, what serves declared objects, what serves stored ones.
func (m *machine) stop() error {
	var failed []error
	if m.control != nil {
		failed = append(failed, m.control.Stop())
	}
	if m.cluster != nil {
		failed = append(failed, m.cluster.Stop())
	}
	return errors.Join(failed...)
}

// consolePage says where the console is.
func (m *machine) consolePage() string {
	page := "http://" + m.control.Console()
	if web.Pages() == nil {
		page += " (for `restripe tui`: this program was built without the web interface)"
	}
	return page
}
