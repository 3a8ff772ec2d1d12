package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/tui/cli/daemon"
	"github.com/restripe/restripe/tui/cli/program"
)

// gatewayVariable names the environment variable with the gateway's address.
const gatewayVariable = "RESTRIPE_GATEWAY"

// session is what all commands of one call share.
type session struct {
	program.Streams
	gateway string // flag --gateway
	plugin  bool   // of kubectl, rather than a program by itself
}

// Execute runs one command line, of which the first is the name that the program was called by, and returns the exit code. SIGINT
// and SIGTERM end the command in order.
func Execute(line []string, in io.Reader, out, messages io.Writer) int {
	ctx, cancel := program.UntilSignal()
	defer cancel()
	arguments, plugin := calledBy(line)
	return (&session{Streams: program.Streams{In: in, Out: out, Messages: messages}, plugin: plugin}).run(ctx, arguments)
}

func execute(ctx context.Context, arguments []string, in io.Reader, out, messages io.Writer) int {
	return (&session{Streams: program.Streams{In: in, Out: out, Messages: messages}}).run(ctx, arguments)
}

func (s *session) run(ctx context.Context, arguments []string) int {
	return program.Run(ctx, newRoot(s), arguments, s.Streams, func(err error) string {
		if errors.Is(err, client.ErrUnreachable) {
			return "Start a cluster with `restripe up`, or name a gateway with --gateway or " + gatewayVariable + "."
		}
		return ""
	})
}

// Root makes the whole command line.
func Root(streams *program.Streams) *cobra.Command { return newRoot(&session{Streams: *streams}) }

func newRoot(s *session) *cobra.Command {
	root := program.Family(&cobra.Command{
		Use:   programName,
		Short: "Keep objects as safe and as cheap as you say, re-striping them in place",
		Long: "Restripe stores objects over stores you already have (directories, memcached, Redis, Ceph) under replication\n" +
			"or erasure codes, and takes them from one code to another in place while they are read and written.",
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.PersistentFlags().StringVar(&s.gateway, "gateway", "",
		"address of the gateway, host:port, or of several, separated by commas, of which the next is asked while one is away\n"+
			"(default "+gatewayVariable+", else "+daemon.DefaultListen+")")
	root.AddGroup(
		&cobra.Group{ID: "objects", Title: "Stored objects:"},
		&cobra.Group{ID: "codes", Title: "Codes and transitions by hand:"},
		&cobra.Group{ID: "declared", Title: "Declared objects (policies, transitions, backends, schemes):"},
		&cobra.Group{ID: "cluster", Title: "Cluster:"},
		&cobra.Group{ID: "run", Title: "Running it:"},
	)
	for group, commands := range map[string][]*cobra.Command{
		"objects": {putCommand(s), getCommand(s), listCommand(s), statCommand(s), removeCommand(s), moveCommand(s), adoptCommand(s), exportCommand(s)},
		"codes": {
			transitionCommand(s), planCommand(s), explainObject(s, explainReliability(s, explainCommand(s))), layoutCommand(s),
			laddersCommand(s), classesCommand(s),
		},
		"declared": {
			lintCommand(s), renderCommand(s), applyCommand(s), diffCommand(s), describeCommand(s), deleteCommand(s), schemaCommand(s),
			importCommand(s), temperatureCommand(s), approveCommand(s), pauseCommand(s), resumeCommand(s), cancelCommand(s), rollbackCommand(s),
		},
		"cluster": {
			statusCommand(s), nodeCommand(s), doctorCommand(s), sweepCommand(s), repairCommand(s), scrubCommand(s), compactCommand(s),
			catalogCommand(s), cephCommand(s), auditCommand(s),
		},
		"run": {
			upCommand(s), daemon.Agent(&s.Streams).Complete(), daemon.Gateway(&s.Streams).Complete(), apiServerServer(s).Complete(),
			operatorServer(s).Complete(), consoleServer(s).Complete(), program.CheckConfig(&s.Streams, servers(s)), evaluateCommand(s),
			pkiCommand(s), tuiCommand(s), demoCommand(s), program.VersionCommand(&s.Streams),
		},
	} {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	program.MarkUsage(root)
	if s.plugin {
		asPlugin(root)
	}
	return root
}

// servers are the commands whose flags may be in a file, by their names.
func servers(s *session) map[string]func() *program.Server {
	all := daemon.Servers(&s.Streams)
	all["api-server"] = func() *program.Server { return apiServerServer(s) }
	all["operator"] = func() *program.Server { return operatorServer(s) }
	all["console"] = func() *program.Server { return consoleServer(s) }
	return all
}

// The environment that says who asks a gateway, and whom it believes. The first two may be @FILE, with the value in that file.
const (
	tokenVariable       = "RESTRIPE_TOKEN"
	accessKeyVariable   = "RESTRIPE_ACCESS_KEY" // ID:SECRET
	authoritiesVariable = "RESTRIPE_CA"         // a file of certificates; those of the system where it is not set
	tlsVariable         = "RESTRIPE_TLS"        // a directory with a certificate of the cluster
)

// credentials reads the environment.
func credentials() (options client.Options, err error) {
	if directory := os.Getenv(tlsVariable); directory != "" {
		if options, err = shown(directory); err != nil {
			return options, fmt.Errorf("%s: %w", tlsVariable, err)
		}
		return options, nil
	}
	if options.Token, err = secretVariable(tokenVariable); err != nil {
		return options, err
	}
	key, err := secretVariable(accessKeyVariable)
	if err != nil {
		return options, err
	}
	if key != "" {
		var both bool
		if options.KeyID, options.Secret, both = strings.Cut(key, ":"); !both {
			return options, fmt.Errorf("%s: want ID:SECRET", accessKeyVariable)
		}
	}
	options.TLS, err = believed()
	return options, err
}

// shown is what somebody shows to gateways who has the certificate in a directory.
func shown(directory string) (options client.Options, err error) {
	own, err := pki.Load(directory)
	if err != nil {
		return options, err
	}
	options.TLS = own.Client("", pki.RoleGateway)
	return options, nil
}

// believed is whom to believe by the environment; nil: the authorities of the system.
func believed() (*tls.Config, error) {
	path := os.Getenv(authoritiesVariable)
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", authoritiesVariable, err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	if !config.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: %s has no certificate in PEM", authoritiesVariable, path)
	}
	if err := pki.CheckAuthorities(path, text); err != nil {
		return nil, fmt.Errorf("%s: %w", authoritiesVariable, err)
	}
	return config, nil
}

// secretVariable returns a value of the environment: itself, or what is in the file after an @.
func secretVariable(variable string) (string, error) {
	value := os.Getenv(variable)
	name, isFile := strings.CutPrefix(value, "@")
	if !isFile {
		return value, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", variable, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// client returns a client of the gateway that the flag, the environment or the default names.
func (s *session) client() (*client.Client, error) {
	options, err := credentials()
	if err != nil {
		return nil, err
	}
	address := s.gateway
	if address == "" {
		address = os.Getenv(gatewayVariable)
	}
	if address == "" {
		address = daemon.DefaultListen
	}
	return client.NewWith(address, options)
}

// asking makes a command without arguments that asks the gateway one thing and shows the answer.
func asking[T any](s *session, use, short string, ask func(*client.Client, context.Context) (T, error), show func(*formatValue, T) error) *cobra.Command {
	command := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
	format := outputFlag(command, "table", "json", "yaml")
	command.RunE = func(command *cobra.Command, _ []string) error {
		return s.withClient(func(c *client.Client) error {
			answer, err := ask(c, command.Context())
			if err != nil {
				return err
			}
			return show(format, answer)
		})
	}
	return command
}

// withClient runs work with a client and drops its connections afterwards.
func (s *session) withClient(work func(*client.Client) error) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	defer c.Close()
	return work(c)
}
