package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	runtimelog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/operator/console"
	"github.com/restripe/restripe/operator/console/review"
	"github.com/restripe/restripe/policies/compile"
	"github.com/restripe/restripe/web"
)

// defaultConsole is where a console listens unless told otherwise.
const defaultConsole = "127.0.0.1:7482"

// consoleFlags are the flags of console.
type consoleFlags struct {
	listen, kubeconfig, audit string
	callers                   callerFlags
	https, allowRemote        bool
	tls                       *string
}

// callerFlags say who callers are.
type callerFlags struct {
	users        string
	clusterUsers bool
}

func (f *callerFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.users, "users", "", "file of people and programs: their tokens and access keys, and what they may do")
	flags.BoolVar(&f.clusterUsers, "cluster-users", false, "let the cluster say who callers are and what they may do")
}

func (f *callerFlags) check(command *cobra.Command) error {
	if f.users != "" && f.clusterUsers {
		return misuse(command, "--users and --cluster-users both say who callers are: give one of them")
	}
	return nil
}

func consoleCommand(s *session) *cobra.Command {
	var f consoleFlags
	command := &cobra.Command{
		Use: "console", Short: "Serve what the web and the terminal see and steer",
		Long: "Serve one contract over gRPC, gRPC-Web and JSON until interrupted: what is safe, what it costs, what moves and why; plans,\n" +
			"policies, transitions, nodes, objects; and an append-only audit log of every change. Everything comes from an API server\n" +
			"and from the gateways that its StorageBackends name.\n\n" +
			"On a loopback address whoever reaches it may do everything, as with the other commands. With --users callers need a token\n" +
			"of that file, with --cluster-users one of the cluster, which also says what they may do; other machines are answered with\n" +
			"one of these and --allow-remote alone. --https serves them over TLS.",
		Example: "  restripe console\n" +
			"  restripe console --listen 10.0.0.5:7482 --users users.yaml --https --tls console-tls --allow-remote",
		Args: cobra.NoArgs,
	}
	kubeconfig := kubeconfigFlag(command)
	flags := command.Flags()
	flags.StringVar(&f.listen, "listen", defaultConsole, "address to serve on, host:port; port 0: any free one")
	f.callers.add(flags)
	flags.BoolVar(&f.https, "https", false, "serve callers over TLS, with the certificate of --tls")
	f.tls = servingFlag(command)
	flags.StringVar(&f.audit, "audit", "", "directory of the audit log (default console/audit in the state directory of `restripe up`)")
	flags.BoolVar(&f.allowRemote, "allow-remote", false, "allow an address that other machines can reach; without --https tokens cross the network in the clear")
	command.RunE = func(command *cobra.Command, _ []string) error {
		f.kubeconfig = *kubeconfig
		if err := f.callers.check(command); err != nil {
			return err
		}
		return s.runConsole(command, &f)
	}
	return command
}

func (s *session) runConsole(command *cobra.Command, f *consoleFlags) (err error) {
	encrypted, err := serving(command, f.https, *f.tls, pki.RoleConsole)
	if err != nil {
		return err
	}
	config, err := operatorConfig(f.kubeconfig)
	if err != nil {
		return err
	}
	authority, err := f.callers.authority(config)
	if err != nil {
		return err
	}
	if err := console.CheckListen(f.listen, f.allowRemote, f.https, authority.Method()); err != nil {
		return misuse(command, "--listen: %w", err)
	}
	state, err := stateDirectory()
	if err != nil {
		return err
	}
	log := s.serverLog()
	runtimelog.SetLogger(logr.FromSlogHandler(log.Handler()))
	who, err := credentials()
	if err != nil {
		return err
	}
	options := console.Options{RESTConfig: config, Credentials: who, Authority: authority, AuditDirectory: f.audit, TLS: encrypted, Logger: log}
	server, err := newConsole(options, state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("listening: %w; choose another address with --listen", err)
	}
	if err := s.announce("console", authorityText(authority), listener.Addr().String()); err != nil {
		return errors.Join(err, listener.Close())
	}
	return server.Serve(command.Context(), listener)
}

// newConsole returns a console that keeps what it remembers in a state directory, and the audit log there, too, unless
// another directory is named.
func newConsole(options console.Options, state string) (*console.Server, error) {
	sandbox, err := newSandbox()
	if err != nil {
		return nil, err
	}
	options.Compiler = compile.Compiler{Sandbox: sandbox.evaluate}
	options.AuditDirectory = cmp.Or(options.AuditDirectory, filepath.Join(state, "console", "audit"))
	options.HistoryDirectory, options.Pages, options.Version = filepath.Join(state, "console", "history"), web.Pages(), versionText()
	return console.New(options)
}

// authority is who says who callers are.
func (f *callerFlags) authority(config *rest.Config) (access.Authority, error) {
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
