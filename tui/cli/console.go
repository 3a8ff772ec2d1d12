package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	runtimelog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/agent/serve"
	"github.com/restripe/restripe/operator/console"
	"github.com/restripe/restripe/operator/console/review"
	"github.com/restripe/restripe/policies/compile"
	"github.com/restripe/restripe/tui/cli/daemon"
	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/web"
)

// defaultConsole is where a console listens unless told otherwise.
const defaultConsole = "127.0.0.1:7482"

// consoleFlags are the flags of console.
type consoleFlags struct {
	listen, health, audit string
	where                 *serverFlags
	callers               callerFlags
	https, allowRemote    bool
	tls                   *string

	config    *rest.Config     // of the API server
	who       access.Authority // says who callers are
	encrypted *tls.Config      // nil: they are served in the clear
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

// check reports whether one of them at most says who callers are.
func (f *callerFlags) check(report *program.Report) bool {
	if f.users != "" && f.clusterUsers {
		report.Misuse("cluster-users", "--users and --cluster-users both say who callers are: give one of them")
		return false
	}
	return true
}

// servingFlag adds the flag that names the certificate of what is served to people.
func servingFlag(command *cobra.Command) *string {
	return command.Flags().String("tls", "", "directory with the certificate that --https serves with, its key and whom to believe, "+
		"as `restripe pki issue` makes it with --host")
}

// serving returns the configuration of a server for people, of the certificate that --tls names; nil without --https.
func serving(command *cobra.Command, https bool, directory string, role pki.Role) (*tls.Config, error) {
	switch {
	case !https && directory == "":
		return nil, nil
	case !https:
		return nil, program.Misuse(command, "--tls names the certificate that --https serves with: add --https")
	case directory == "":
		return nil, program.Misuse(command, "--https takes a certificate: name the directory of one with --tls")
	}
	source, err := daemon.Certificates(directory, role)
	if err != nil {
		return nil, err
	}
	return source.Serving(), nil
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
			"one of these and --allow-remote alone. --https serves them over TLS.",
		Example: "  restripe console\n" +
			"  restripe console --listen 10.0.0.5:7482 --users users.yaml --https --tls console-tls --allow-remote\n" +
			"  restripe console --config /etc/restripe/console.yaml",
		Args: cobra.NoArgs,
	}
	f.where = s.serverFlags(command)
	flags := command.Flags()
	flags.StringVar(&f.listen, "listen", defaultConsole, "address to serve on, host:port; port 0: any free one")
	flags.StringVar(&f.health, "health-listen", "", "address that answers /healthz and /readyz to everybody, host:port (default: none)")
	f.callers.add(flags)
	flags.BoolVar(&f.https, "https", false, "serve callers over TLS, with the certificate of --tls")
	f.tls = servingFlag(command)
	flags.StringVar(&f.audit, "audit", "", "directory of the audit log (default console/audit in the state directory of 'restripe up')")
	flags.BoolVar(&f.allowRemote, "allow-remote", false, "allow an address that other machines can reach; without --https tokens cross the network in the clear")
	return &program.Server{
		Command: command,
		Check:   f.check,
		Serve:   func(ctx context.Context) error { return s.runConsole(ctx, &f) },
	}
}

// check looks at the flags and reads the files that they name.
func (f *consoleFlags) check(report *program.Report) {
	if !f.callers.check(report) {
		return
	}
	var err error
	f.encrypted, err = serving(report.Command(), f.https, *f.tls, pki.RoleConsole)
	report.Add("tls", err)
	f.config, err = operatorConfig(f.where)
	report.Add("kubeconfig", err)
	if err == nil || !f.callers.clusterUsers {
		f.who, err = f.callers.authority(f.config)
		report.Add("users", err)
	}
	if f.who != nil {
		if err := console.CheckListen(f.listen, f.allowRemote, f.https, f.who.Method()); err != nil {
			report.Misuse("listen", "--listen: %w", err)
		}
	}
	if f.health != "" { // which tells nothing that anybody is to be asked for
		if err := console.CheckListen(f.health, f.allowRemote, true, access.ByToken); err != nil {
			report.Misuse("health-listen", "--health-listen: %w", err)
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
	who, err := credentials()
	if err != nil {
		return err
	}
	options := console.Options{
		RESTConfig: f.config, Credentials: who, Authority: f.who, AuditDirectory: f.audit, TLS: f.encrypted, Logger: log,
	}
	server, err := newConsole(options, state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("listening: %w; choose another address with --listen", err)
	}
	address := listener.Addr().String()
	alive := func(ctx context.Context) error { return consoleAnswers(ctx, address, f.https) }
	serving, stop := context.WithCancel(ctx)
	defer stop()
	if f.health != "" {
		health, failed := answerHealth(serving, f.health, alive)
		if failed != nil {
			return errors.Join(failed, listener.Close())
		}
		defer func() {
			stop()
			err = errors.Join(err, <-health.ended)
		}()
	}
	if err := s.Announce("console", authorityText(f.who), address); err != nil {
		return errors.Join(err, listener.Close())
	}
	program.Lives(serving, log, alive)
	return server.Serve(serving, listener)
}

// answerHealth says at an address of its own whether a server is alive, until the context ends: probes of Kubernetes come from outside of
// the pod, which the address of the console may be closed to.
func answerHealth(ctx context.Context, address string, alive func(context.Context) error) (*healthServer, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening: %w; choose another address with --health-listen", err)
	}
	answer := func(w http.ResponseWriter, r *http.Request) {
		status, text := http.StatusOK, "ok"
		if err := alive(r.Context()); err != nil {
			status, text = http.StatusServiceUnavailable, err.Error()
		}
		http.Error(w, text, status)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", answer)
	mux.HandleFunc("GET /readyz", answer)
	ended := make(chan error, 1)
	go func() { ended <- serve.Until(ctx, listener, serve.Server(mux), nil) }()
	return &healthServer{listener.Addr().String(), ended}, nil
}

type healthServer struct {
	address string
	ended   <-chan error // is sent what it ended with
}

// consoleAnswers reports why a console does not answer on this machine.
func consoleAnswers(ctx context.Context, address string, encrypted bool) (err error) {
	scheme, transport := "http://", &http.Transport{DisableKeepAlives: true}
	if encrypted { // by which name it is reached is for others to check
		scheme, transport.TLSClientConfig = "https://", &tls.Config{InsecureSkipVerify: true} //nolint:gosec // it asks itself
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+address+"/healthz", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
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
func newConsole(options console.Options, state string) (*console.Server, error) {
	sandbox, err := newSandbox()
	if err != nil {
		return nil, err
	}
	options.Compiler = compile.Compiler{Sandbox: sandbox.evaluate}
	options.AuditDirectory = cmp.Or(options.AuditDirectory, filepath.Join(state, "console", "audit"))
	options.HistoryDirectory, options.Pages, options.Version = filepath.Join(state, "console", "history"), web.Pages(), program.Version()
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
