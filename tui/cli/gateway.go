package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
)

// gatewayFlags are the flags of `restripe gateway`.
type gatewayFlags struct {
	id, catalog, classes, nodes, listen string
	grace                               time.Duration
	allowRemote, lifeline               *bool
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
	flags.StringVar(&f.catalog, "catalog", "", "catalog: sqlite:FILE for one gateway, redis://host:port for several (required)")
	flags.StringVar(&f.classes, "classes", "", "class file (default: one class for every key, ladder rep(3),rs(4,2),rs(12,2))")
	flags.StringVar(&f.nodes, "nodes", "", "YAML file of the agents: a list nodes of id, address, domain and state (default: those the catalog knows)")
	flags.StringVar(&f.listen, "listen", defaultListen, "address to listen on")
	flags.DurationVar(&f.grace, "grace", time.Minute, "how long replaced blocks stay, so that reads under way can finish")
	f.allowRemote, f.lifeline = remoteFlag(command), lifelineFlag(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if f.catalog == "" {
			return misuse(command, "say where the catalog is: --catalog sqlite:FILE or --catalog redis://host:port")
		}
		if err := checkListen(command, f.listen, *f.allowRemote); err != nil {
			return err
		}
		ctx, cancel := s.withLifeline(command.Context(), *f.lifeline)
		defer cancel()
		return s.serveGateway(ctx, f)
	}
	return command
}

// serveGateway runs a gateway until ctx ends.
func (s *session) serveGateway(ctx context.Context, f gatewayFlags) (err error) {
	limitMemory()
	options := gateway.Options{ID: f.id, Start: rand.Text(), Logger: s.serverLog()}
	if f.classes != "" {
		if options.Classes, err = gateway.LoadClasses(f.classes); err != nil {
			return err
		}
	}
	if f.nodes != "" {
		if options.Nodes, err = loadNodes(f.nodes); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("listening for clients: %w; choose another address with --listen", err)
	}
	if options.Catalog, options.CatalogWarnings, err = openCatalog(ctx, f.catalog, f.id, options.Start, f.grace); err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, options.Catalog.Close()) }()
	g, err := gateway.New(ctx, options)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if err := s.announce("gateway", f.id, listener.Addr().String()); err != nil {
		return errors.Join(err, listener.Close())
	}
	return serveHTTP(ctx, listener, g.Handler())
}

// gatewayMemory is what the collector keeps a gateway's memory to, above the buffers it budgets: without it garbage would
// double them. GOMEMLIMIT overrides it.
const gatewayMemory = 208 << 20

func limitMemory() {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(gatewayMemory)
	}
}

// Bounds on slow clients, and on the wait for requests under way when the gateway stops.
const (
	headerPatience = 10 * time.Second
	idlePatience   = 2 * time.Minute
	drainPatience  = 5 * time.Second
)

// serveHTTP serves until ctx ends, then lets requests under way finish for a while.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerPatience, IdleTimeout: idlePatience}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving clients: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainPatience)
	defer cancel()
	err := server.Shutdown(drain)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	if err != nil {
		return fmt.Errorf("ending the service: %w", err)
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving clients: %w", err)
	}
	return nil
}

// loadNodes reads a file of nodes.
func loadNodes(path string) ([]catalog.Node, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the node file: %w", err)
	}
	nodes, err := parseNodes(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return nodes, nil
}

// parseNodes reads the YAML of a node file. Unknown fields are refused.
func parseNodes(text []byte) ([]catalog.Node, error) {
	var file struct {
		Nodes []struct {
			ID      string `json:"id"`
			Address string `json:"address"`
			Domain  string `json:"domain"`
			State   string `json:"state"`
		} `json:"nodes"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("node file: %w", err)
	}
	if len(file.Nodes) == 0 {
		return nil, fmt.Errorf("node file: no nodes; give at least one entry with id and address under \"nodes:\"")
	}
	seen := map[string]bool{}
	var nodes []catalog.Node
	for i, entry := range file.Nodes {
		if err := checkNodeID(entry.ID); err != nil {
			return nil, fmt.Errorf("node %d: %w", i+1, err)
		}
		if seen[entry.ID] {
			return nil, fmt.Errorf("node %d: id %q is used twice", i+1, entry.ID)
		}
		seen[entry.ID] = true
		if _, _, err := net.SplitHostPort(entry.Address); err != nil {
			return nil, fmt.Errorf("node %d (%s): address %q: want host:port", i+1, entry.ID, entry.Address)
		}
		state := catalog.NodeState(entry.State)
		switch state {
		case "", catalog.NodeUp, catalog.NodeDown, catalog.NodeDraining:
		default:
			return nil, fmt.Errorf("node %d (%s): state %q: want up, draining (serves, takes no blocks) or down (not expected back: repair rebuilds its blocks elsewhere)", i+1, entry.ID, entry.State)
		}
		nodes = append(nodes, catalog.Node{ID: block.NodeID(entry.ID), Address: entry.Address, Domain: entry.Domain, State: state})
	}
	return nodes, nil
}

// checkNodeID holds ids to 1 to 63 characters of [a-z0-9-].
func checkNodeID(id string) error {
	if id == "" || len(id) > 63 {
		return fmt.Errorf("id %q: want 1 to 63 characters", id)
	}
	for _, r := range id {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return fmt.Errorf("id %q: want only a-z, 0-9 and -", id)
		}
	}
	return nil
}
