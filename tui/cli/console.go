package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	runtimelog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/operator/console"
	"github.com/restripe/restripe/operator/console/review"
	"github.com/restripe/restripe/operator/gateways"
	"github.com/restripe/restripe/policies/compile"
	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/web"
)

// defaultConsole is where a console listens unless told otherwise.
const defaultConsole = "127.0.0.1:7482"

// consoleFlags are the flags of console.
type consoleFlags struct {
	listen, kubeconfig, users, audit string
	clusterUsers, allowRemote        bool

	config *rest.Config     // of the API server
	who    access.Authority // says who callers are
}

func consoleServer(s *session) *program.Server {
	var f consoleFlags
	command := &cobra.Command{
		Use: "console", Short: "Serve what the web and the terminal see and steer",
		Long: "Serve one contract over gRPC, gRPC-Web and JSON until interrupted: what is safe, what it costs, what moves and why; plans,\n" +
			"policies, transitions, nodes, objects; and an append-only audit log of every change. Everything comes from an API server\n" +
			"and from the gateways that its StorageBackends name.\n\n" +
			"On a loopback address whoever reaches it may do everything, as with the other commands. With --users callers need a token\n" +
			"of that file, with --cluster-users one of the cluster, which also says what they may do; other machines are answered with\n" +
			"one of these and --allow-remote alone.",
		Example: "  restripe console\n  restripe console --listen 10.0.0.5:7482 --users users.yaml --allow-remote\n" +
			"  restripe console --config /etc/restripe/console.yaml",
		Args: cobra.NoArgs,
	}
	kubeconfig := kubeconfigFlag(command)
	flags := command.Flags()
	flags.StringVar(&f.listen, "listen", defaultConsole, "address to serve on, host:port; port 0: any free one")
	flags.StringVar(&f.users, "users", "", "file of people and programs: their tokens and access keys, and what they may do")
	flags.BoolVar(&f.clusterUsers, "cluster-users", false, "let the cluster say who callers are and what they may do")
	flags.StringVar(&f.audit, "audit", "", "directory of the audit log (default console/audit in the state directory of `restripe up`)")
	flags.BoolVar(&f.allowRemote, "allow-remote", false, "allow an address that other machines can reach; tokens cross the network in the clear")
	return &program.Server{
		Command: command,
		Check: func(report *program.Report) {
			f.kubeconfig = *kubeconfig
			f.check(report)
		},
		Serve: func(ctx context.Context) error { return s.runConsole(ctx, &f) },
	}
}

// check looks at the flags and reads the files that they name.
func (f *consoleFlags) check(report *program.Report) {
	if f.users != "" && f.clusterUsers {
		report.Misuse("cluster-users", "--users and --cluster-users both say who callers are: give one of them")
		return
	}
	var err error
	f.config, err = operatorConfig(f.kubeconfig)
	report.Add("kubeconfig", err)
	if err == nil || !f.clusterUsers {
		f.who, err = f.authority(f.config)
		report.Add("users", err)
	}
	if f.who != nil {
		if err := console.CheckListen(f.listen, f.allowRemote, f.who.Method()); err != nil {
			report.Misuse("listen", "--listen: %w", err)
		}
	}
	_, err = credentials()
	report.Add("", err)
}

func (s *session) runConsole(ctx context.Context, f *consoleFlags) (err error) {
	state, err := stateDirectory()
	if err != nil {
		return err
	}
	log := s.Log()
	runtimelog.SetLogger(logr.FromSlogHandler(log.Handler()))
	server, err := newConsole(f.config, nil, f.who, state, f.audit, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("listening: %w; choose another address with --listen", err)
	}
	address := listener.Addr().String()
	if err := s.Announce("console", authorityText(f.who), address); err != nil {
		return errors.Join(err, listener.Close())
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	program.Lives(serving, log, func(ctx context.Context) error { return consoleAnswers(ctx, address) })
	return server.Serve(serving, listener)
}

// consoleAnswers reports why a console does not answer on this machine.
func consoleAnswers(ctx context.Context, address string) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("the console does not answer itself: %w", err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the console answers itself %s", answer.Status)
	}
	return nil
}

// newConsole returns a console that keeps what it remembers in a state directory, and the audit log there, too, unless
// another directory is named.
func newConsole(config *rest.Config, observers *gateways.Observers, authority access.Authority, state, audit string, log *slog.Logger) (*console.Server, error) {
	sandbox, err := newSandbox()
	if err != nil {
		return nil, err
	}
	who, err := credentials()
	if err != nil {
		return nil, err
	}
	return console.New(console.Options{
		RESTConfig: config, Credentials: who, Observers: observers, Authority: authority,
		Compiler:         compile.Compiler{Sandbox: sandbox.evaluate},
		AuditDirectory:   cmp.Or(audit, filepath.Join(state, "console", "audit")),
		HistoryDirectory: filepath.Join(state, "console", "history"), Pages: web.Pages(), Version: program.Version(), Logger: log,
	})
}

// authority is who says who callers are.
func (f *consoleFlags) authority(config *rest.Config) (access.Authority, error) {
	switch {
	case f.users != "":
		return access.Users(f.users, nil)
	case f.clusterUsers:
		return review.Cluster(config, nil)
	}
	return access.Local(), nil
}

func authorityText(authority access.Authority) string {
	switch authority.Method() {
	case access.ByToken:
		return "(for users of its file)"
	case access.ByCluster:
		return "(for users of the cluster)"
	}
	return "(for this machine)"
}
