package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/operator/apiserver"
	"github.com/restripe/restripe/tui/cli/program"
)

// defaultAPIServer is where an API server listens unless told otherwise.
const defaultAPIServer = "127.0.0.1:7484"

// apiServerServer makes the command that keeps what is declared where there is no Kubernetes cluster.
func apiServerServer(s *session) *program.Server {
	var options apiserver.Options
	command := &cobra.Command{
		Use: "api-server", Short: "Keep what is declared, where there is no Kubernetes cluster",
		Long: "Run a Kubernetes API server with the kinds of Restripe alone, until interrupted, for an operator and a console on this machine.\n" +
			"The directory keeps what is declared, and gets the file kubeconfig, with all rights, for the user that runs this. `restripe up`\n" +
			"runs an API server of its own.",
		Example: "  restripe api-server --dir /var/lib/restripe/api\n  restripe api-server --config /etc/restripe/api-server.yaml",
		Args:    cobra.NoArgs,
	}
	flags := command.Flags()
	flags.StringVar(&options.Directory, "dir", "", "directory that keeps what is declared (required)")
	flags.StringVar(&options.Listen, "listen", defaultAPIServer, "loopback address to serve on, host:port; port 0: any free one")
	check := func(report *program.Report) {
		if options.Directory == "" {
			report.Misuse("dir", "say where to keep what is declared: --dir DIRECTORY")
		}
	}
	serve := func(ctx context.Context) error { return s.serveAPI(ctx, options) }
	return &program.Server{Command: command, Check: check, Serve: serve}
}

// notifySocket names the environment variable by which a service manager says where it listens.
const notifySocket = "NOTIFY_SOCKET"

// serveAPI runs an API server until ctx ends.
func (s *session) serveAPI(ctx context.Context, options apiserver.Options) error {
	options.Logger = s.Log()
	// The libraries of the API server tell the service manager that they serve before the kinds are there, and then take the
	// socket out of the environment, so that nothing could tell the watchdog anything.
	socket, managed := os.LookupEnv(notifySocket)
	if err := os.Unsetenv(notifySocket); err != nil {
		return fmt.Errorf("clearing %s: %w", notifySocket, err)
	}
	server, err := apiserver.Start(ctx, options)
	if err != nil {
		return err
	}
	if managed {
		if err := os.Setenv(notifySocket, socket); err != nil {
			return errors.Join(fmt.Errorf("setting %s: %w", notifySocket, err), server.Stop())
		}
	}
	if err := s.Announce("API server", server.Kubeconfig(), options.Listen); err != nil {
		return errors.Join(err, server.Stop())
	}
	program.Lives(ctx, options.Logger, func(context.Context) error { return nil })
	select {
	case <-ctx.Done():
	case <-server.Done():
	}
	return server.Stop()
}
