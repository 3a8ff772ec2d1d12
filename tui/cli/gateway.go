package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/audit"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/open"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/class"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/pki"
)

// gatewayFlags are the flags of `restripe gateway`.
type gatewayFlags struct {
	id, catalog, classes, nodes, listen, users, audit string
	grace                                             time.Duration
	https                                             bool
	tls                                               *string
	remote                                            *remote
	lifeline                                          *bool
}

func gatewayCommand(s *session) *cobra.Command {
	var f gatewayFlags
	command := &cobra.Command{
		Use: "gateway", Short: "Run a gateway: what clients talk to",
		Example: "  restripe gateway --catalog sqlite:/var/lib/restripe/catalog.db --nodes nodes.yaml --classes classes.yaml",
		Args:    cobra.NoArgs,
	}
	flags := command.Flags()
	flags.StringVar(&f.id, "id", "gw1", "name of this gateway, the same at every start and no other's")
	flags.StringVar(&f.catalog, "catalog", "", "catalog: sqlite:FILE for one gateway, redis://host:port for several, "+
		"or @FILE with one of them; with a password it is in such a file, or in "+catalogVariable+" (required)")
	flags.StringVar(&f.classes, "classes", "", "class file (default: one class for every key, ladder rep(3),rs(4,2),rs(12,2))")
	flags.StringVar(&f.nodes, "nodes", "", "YAML file of the agents: a list nodes of id, address, domain, spare and state (default: those the catalog knows)")
	flags.StringVar(&f.listen, "listen", defaultListen, "address to listen on")
	flags.StringVar(&f.users, "users", "", "file of people and programs: their tokens and access keys, and what they may do "+
		"(default: whoever reaches the gateway may do everything)")
	flags.BoolVar(&f.https, "https", false, "serve clients over TLS, with the certificate of --tls, "+
		"which names hosts for them (pki issue --host)")
	flags.StringVar(&f.audit, "audit", "", "directory of the audit log of what changes the cluster, of this gateway alone "+
		"(default: none is kept)")
	flags.DurationVar(&f.grace, "grace", time.Minute, "how long replaced blocks stay, so that reads under way can finish")
	f.tls, f.remote, f.lifeline = tlsFlag(command), remoteFlag(command), lifelineFlag(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		var err error
		if f.catalog, err = secretAddress(command, "catalog", f.catalog, catalogVariable); err != nil {
			return err
		}
		if f.catalog == "" {
			return misuse(command, "say where the catalog is: --catalog sqlite:FILE or --catalog redis://host:port")
		}
		asks := f.users != "" && f.https
		if err := f.remote.check(command, "listen", f.listen, asks, "name who may with --users, and serve --https"); err != nil {
			return err
		}
		if f.https && *f.tls == "" {
			return misuse(command, "--https takes a certificate: name the directory of one with --tls")
		}
		ctx, cancel := s.withLifeline(command.Context(), *f.lifeline)
		defer cancel()
		return s.serveGateway(ctx, f)
	}
	return command
}

// serveGateway runs a gateway until ctx ends, and anew each time its catalog is claimed.
func (s *session) serveGateway(ctx context.Context, f gatewayFlags) (err error) {
	limitMemory(gatewayMemory)
	options := gateway.Options{ID: f.id, Release: versionText(), HTTPS: f.https, Logger: s.serverLog()}
	if options.Certificates, err = certificates(*f.tls, pki.RoleGateway); err != nil {
		return err
	}
	if f.users != "" {
		if options.Users, err = access.Users(f.users, nil); err != nil {
			return err
		}
	}
	if f.classes != "" {
		if options.Classes, err = class.LoadClasses(f.classes); err != nil {
			return err
		}
	}
	if f.nodes != "" {
		if options.Nodes, err = member.LoadNodes(f.nodes); err != nil {
			return err
		}
	}
	if f.audit != "" {
		if options.Audit, err = audit.Open(f.audit, audit.Options{}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, options.Audit.Close()) }()
		if err := options.Audit.Damage(); err != nil {
			options.Logger.Error("nothing can be changed through this gateway", "error", err)
		}
	}
	for first := true; ; first = false {
		listener, err := net.Listen("tcp", f.listen)
		if err != nil {
			return fmt.Errorf("listening for clients: %w; choose another address with --listen", err)
		}
		f.listen = listener.Addr().String()
		announce := func() error { return nil }
		if first {
			announce = func() error { return s.announce("gateway", f.id, f.listen) }
		}
		if err := serveStart(ctx, f, options, listener, announce); !errors.Is(err, catalog.ErrClaimed) {
			return err
		}
		options.Logger.Warn("the catalog was claimed: the gateway starts anew")
	}
}

// serveStart runs one start of a gateway until ctx ends or the catalog says that it is over. It closes the listener.
func serveStart(ctx context.Context, f gatewayFlags, options gateway.Options, listener net.Listener, announce func() error) (err error) {
	options.Start = rand.Text()
	if options.Catalog, options.CatalogWarnings, err = open.Catalog(ctx, f.catalog, f.id, options.Start, f.grace); err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, options.Catalog.Close()) }()
	g, err := gateway.New(ctx, options)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if err := announce(); err != nil {
		return errors.Join(err, listener.Close())
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-options.Catalog.Over():
			stop()
		case <-serving.Done():
		}
	}()
	return errors.Join(g.Serve(serving, listener), options.Catalog.Err())
}

// gatewayMemory is what the collector keeps a gateway's memory to, above the buffers it budgets: without it garbage would
// double them.
const gatewayMemory = 208 << 20

// limitMemory has the collector keep the memory of this process to so many bytes, unless GOMEMLIMIT says otherwise.
func limitMemory(bytes int64) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(bytes)
	}
}
