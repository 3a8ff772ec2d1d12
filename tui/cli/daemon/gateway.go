package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/audit"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/open"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/class"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/tui/cli/program"
)

// gatewayFlags are the flags of a gateway.
type gatewayFlags struct {
	id, catalog, classes, nodes, users, audit string

	listen, redis, memcached, s3 string   // addresses; of all but the first empty for none
	domains                      []string // of S3

	grace        time.Duration
	https, flush bool
	cache        uint // MiB
	tls          *string
	remote       *Remote
	lifeline     *bool
	traces       *traceFlags

	options gateway.Options // what tls, users, classes and nodes name
}

// Gateway makes the command that runs a gateway.
func Gateway(s *program.Streams) *program.Server {
	var f gatewayFlags
	command := &cobra.Command{
		Use: "gateway", Short: "Run a gateway: what clients talk to",
		Example: "  restripe gateway --catalog sqlite:/var/lib/restripe/catalog.db --nodes nodes.yaml --classes classes.yaml\n" +
			"  restripe gateway --config /etc/restripe/gateway.yaml",
		Args: cobra.NoArgs,
	}
	flags := command.Flags()
	flags.StringVar(&f.id, "id", "gw1", "name of this gateway, the same at every start and no other's")
	flags.StringVar(&f.catalog, "catalog", "", "catalog: "+open.Addresses+", of which a file is for one gateway, "+
		"or @FILE with one of them; with a password it is in such a file, or in "+CatalogVariable+" (required)")
	flags.StringVar(&f.classes, "classes", "", "class file (default: one class for every key, ladder rep(3),rs(4,2),rs(12,2))")
	flags.StringVar(&f.nodes, "nodes", "", "YAML file of the agents: a list nodes of id, address, domain, spare and state (default: those the catalog knows)")
	flags.StringVar(&f.listen, "listen", DefaultListen, "address to listen on")
	flags.StringVar(&f.redis, "redis", "", "address to serve clients of Redis at, such as 127.0.0.1:6379 (default: none are served)")
	flags.StringVar(&f.memcached, "memcached", "",
		"address to serve clients of memcached at, such as 127.0.0.1:11211 (default: none are served)")
	flags.BoolVar(&f.flush, "memcached-flush", false,
		"let flush_all of clients of memcached delete all objects that the client may list and delete")
	flags.UintVar(&f.cache, "cache", 64,
		"MiB of memory for small objects that clients read, beside what else the gateway needs; 0: none are kept")
	flags.StringVar(&f.s3, "s3", "", "address to serve clients of S3 at, such as 127.0.0.1:9000 (default: none are served)")
	flags.StringSliceVar(&f.domains, "s3-domain", nil,
		"name of this gateway below which those of buckets may be put, as in BUCKET.s3.example.org (default: buckets are in paths alone)")
	flags.StringVar(&f.users, "users", "", "file of people and programs: their tokens and access keys, and what they may do "+
		"(default: whoever reaches the gateway may do everything)")
	flags.BoolVar(&f.https, "https", false, "serve all clients over TLS, with the certificate of --tls, "+
		"which names hosts for them (pki issue --host)")
	flags.StringVar(&f.audit, "audit", "", "directory of the audit log of what changes the cluster, of this gateway alone "+
		"(default: none is kept)")
	flags.DurationVar(&f.grace, "grace", time.Minute, "how long replaced blocks stay, so that reads under way can finish; of small objects at most 5s")
	f.tls, f.remote, f.lifeline, f.traces = TLSFlag(command), RemoteFlag(command), lifelineFlag(command), newTraceFlags(command)
	return &program.Server{
		Command: command, Check: f.check, OnlyTyped: []string{launch.LifelineFlag},
		Serve: func(ctx context.Context) error {
			ctx, cancel := withLifeline(ctx, s, *f.lifeline)
			defer cancel()
			return serveGateway(ctx, s, &f)
		},
	}
}

// check looks at the flags and reads the files that they name.
func (f *gatewayFlags) check(report *program.Report) {
	var err error
	if f.catalog, err = SecretAddress(report.Command(), "catalog", f.catalog, CatalogVariable); err != nil {
		report.Add("catalog", err)
	} else if f.catalog == "" {
		report.Misuse("catalog", "say where the catalog is: --catalog ADDRESS, which is "+open.Addresses)
	} else if err := open.Check(f.catalog); err != nil {
		report.Add("catalog", fmt.Errorf("--catalog: %w", err))
	}
	f.traces.check(report)
	asks := f.users != "" && f.https
	for _, door := range f.doors() {
		report.Add(door.flag, f.remote.Check(report.Command(), door.flag, *door.address, asks, "name who may with --users, and serve --https"))
	}
	if f.https && *f.tls == "" {
		report.Misuse("https", "--https takes a certificate: name the directory of one with --tls")
	}
	f.options = gateway.Options{
		ID: f.id, Release: program.Version(), HTTPS: f.https, MemcachedFlush: f.flush, CacheBytes: int64(f.cache) << 20,
	}
	for _, domain := range f.domains {
		f.options.S3Domains = append(f.options.S3Domains, strings.ToLower(strings.Trim(domain, ".")))
	}
	f.options.Certificates, err = Certificates(*f.tls, pki.RoleGateway)
	report.Add("tls", err)
	if f.users != "" {
		f.options.Users, err = access.Users(f.users, nil)
		report.Add("users", prefixed("users", err))
	}
	if f.classes != "" {
		f.options.Classes, err = class.LoadClasses(f.classes)
		report.Add("classes", prefixed("classes", err))
	}
	if f.nodes != "" {
		f.options.Nodes, err = member.LoadNodes(f.nodes)
		report.Add("nodes", prefixed("nodes", err))
	}
}

// prefixed puts the flag that names a file before what is wrong with that file.
func prefixed(flag string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("--%s: %w", flag, err)
}

// serveGateway runs a gateway until ctx ends, and anew each time its catalog is claimed.
func serveGateway(ctx context.Context, s *program.Streams, f *gatewayFlags) (err error) {
	memory := int64(gatewayMemory) + f.options.CacheBytes
	if f.redis != "" || f.memcached != "" {
		memory += gateway.ProtocolBytes
	}
	if f.s3 != "" {
		memory += gateway.S3Bytes
	}
	limitMemory(memory)
	stop, err := f.traces.start(ctx, s, "restripe-gateway", f.id)
	defer stop()
	if err != nil {
		return err
	}
	f.options.Logger = s.Log()
	if f.audit != "" {
		if f.options.Audit, err = audit.Open(f.audit, audit.Options{}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.options.Audit.Close()) }()
		if err := f.options.Audit.Damage(); err != nil {
			f.options.Logger.Error("nothing can be changed through this gateway", "cause", err)
		}
	}
	for first := true; ; first = false {
		listeners, err := f.open()
		if err != nil {
			return err
		}
		announce := func() error { return nil }
		if first {
			announce = func() error { return s.Announce("gateway", f.id, f.listen) }
		}
		if err := serveStart(ctx, f, f.options, listeners, announce); !errors.Is(err, catalog.ErrClaimed) {
			return err
		}
		f.options.Logger.Warn("the catalog was claimed: the gateway starts anew")
	}
}

// door is an address at which clients of one kind are served.
type door struct {
	flag    string
	address *string
	serve   func(*gateway.Gateway, context.Context, net.Listener) error
}

// doors are those that are to be open.
func (f *gatewayFlags) doors() []door {
	all := []door{
		{"listen", &f.listen, (*gateway.Gateway).Serve},
		{"redis", &f.redis, (*gateway.Gateway).ServeRedis},
		{"memcached", &f.memcached, (*gateway.Gateway).ServeMemcached},
		{"s3", &f.s3, (*gateway.Gateway).ServeS3},
	}
	return slices.DeleteFunc(all, func(d door) bool { return d.flag != "listen" && *d.address == "" })
}

// doorways are the listeners of doors, in their order.
type doorways []net.Listener

func (d doorways) close() error {
	var errs []error
	for _, listener := range d {
		errs = append(errs, listener.Close())
	}
	return errors.Join(errs...)
}

// open listens at all doors, and notes the ports that it was given.
func (f *gatewayFlags) open() (doorways, error) {
	var opened doorways
	for _, d := range f.doors() {
		listener, err := net.Listen("tcp", *d.address)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listening for clients: %w; choose another address with --%s", err, d.flag), opened.close())
		}
		*d.address = listener.Addr().String()
		opened = append(opened, listener)
	}
	return opened, nil
}

// serveStart runs one start of a gateway until ctx ends or the catalog says that it is over. It closes the listeners.
func serveStart(ctx context.Context, f *gatewayFlags, options gateway.Options, listeners doorways, announce func() error) (err error) {
	options.Start, options.CatalogAddress = rand.Text(), open.WithoutSecrets(f.catalog)
	if options.Catalog, options.CatalogWarnings, err = open.Catalog(ctx, f.catalog, f.id, options.Start, f.grace); err != nil {
		return errors.Join(err, listeners.close())
	}
	defer func() { err = errors.Join(err, options.Catalog.Close()) }()
	g, err := gateway.New(ctx, options)
	if err != nil {
		return errors.Join(err, listeners.close())
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if err := announce(); err != nil {
		return errors.Join(err, listeners.close())
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
	program.Lives(serving, options.Logger, g.CatalogAnswers)
	var serves errgroup.Group
	for i, d := range f.doors() {
		serves.Go(func() error {
			defer stop() // of the others
			return d.serve(g, serving, listeners[i])
		})
	}
	return errors.Join(serves.Wait(), options.Catalog.Err())
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
