package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/agent/atomicfile"
	"github.com/restripe/restripe/agent/flock"
)

// Options say what to run. Directory is required.
type Options struct {
	Directory   string       // state directory; made if absent
	Binary      string       // the restripe program; default this very one
	Store       StoreKind    // default file
	Agents      int          // default as many as the directory has, or DefaultAgents; over Ceph one for each pool
	Ceph        *Ceph        // required over Ceph
	ClassFile   string       // default: one class for every key
	Ladder      string       // of that class, in a directory that is new; default: the gateway's
	Catalog     string       // as the gateway's flag has it; default the one that the directory was last run with, or a file in it
	Listen      string       // of the gateway; default a free loopback port, the same again at the next start
	Redis       string       // of the gateway for clients of Redis; default likewise
	Memcached   string       // of the gateway for clients of memcached; default likewise
	S3          string       // of the gateway for clients of S3; default likewise
	AllowRemote bool         // lets Listen be an address that other machines can reach
	Users       string       // file of those who may do something at the gateway, which is served over TLS then; default: everybody may
	Plain       bool         // without certificates, so that whoever reaches an agent's port may do everything
	Domains     int          // failure domains the agents are dealt to in turn; 0: each its own
	Logger      *slog.Logger // what happens to the processes; default discards

	GatewayArguments []string // further flags of the gateway
	AgentArguments   []string // further flags of each agent
}

// DefaultAgents hosts the gateway's built-in ladder, whose widest step is rs(12,2), with a node to spare: while one is down
// objects can still be stored, and its blocks are rebuilt on the spare one.
const DefaultAgents = 15

// Member is one node of the cluster.
type Member struct {
	ID      string `json:"id"`
	Address string `json:"address"` // of its agent
	Domain  string `json:"domain,omitempty"`
	Store   string `json:"-"` // URL
}

// Cluster is a running tree of processes. Its methods are safe for concurrent use.
type Cluster struct {
	options   Options
	lock      *os.File
	forker    *forker
	ports     ports
	members   []Member
	processes map[string]*process
	order     []*process // stores, agents, gateway: the order of starting

	doors       map[string]string // addresses of the gateway for other clients than those of HTTP, by the names of their flags
	renewal     sync.WaitGroup    // of certificates
	stopRenewal context.CancelFunc
}

// GatewayName names the gateway's process; agents are n1, n2, ... and their stores n1-store, n2-store, ...
const GatewayName = "gw1"

// StoreName returns the name of the process that is the store of an agent.
func StoreName(agent string) string { return agent + "-store" }

// Start launches a cluster and returns when the gateway serves. On an error nothing is left running.
func Start(ctx context.Context, options Options) (_ *Cluster, err error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(options.Directory, "logs"), 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	// One of an earlier release could be looked into. Whoever does not own it leaves it as it is.
	if err := os.Chmod(options.Directory, 0o700); err != nil && !errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("closing the state directory to others: %w", err)
	}
	lock, err := lockDirectory(options.Directory)
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: options, lock: lock, forker: newForker(), processes: map[string]*process{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	shape, fresh, err := loadShape(options)
	if err != nil {
		return nil, err
	}
	c.options.Agents = shape.Agents
	if fresh && options.Ladder != "" && options.ClassFile == "" {
		text := fmt.Sprintf("classes:\n- {name: default, ladder: %q, prefixes: ['']}\n", options.Ladder)
		if err := atomicfile.Write(c.path("classes.yaml"), []byte(text)); err != nil {
			return nil, err
		}
	}
	if err := c.startStores(ctx, shape); err != nil {
		return nil, err
	}
	if !options.Plain {
		if err := c.certify(); err != nil {
			return nil, err
		}
		renewal, stop := context.WithCancel(context.WithoutCancel(ctx))
		c.stopRenewal = stop
		c.renewal.Go(func() { c.renew(renewal) })
	}
	if err := c.startAgents(ctx, shape); err != nil {
		return nil, err
	}
	if err := c.startGateway(ctx, shape); err != nil {
		return nil, err
	}
	if err := shape.save(options.Directory); err != nil {
		return nil, err
	}
	return c, nil
}

func (o *Options) complete() error {
	if o.Directory == "" {
		return errors.New("launching a cluster: a state directory is required")
	}
	directory, err := filepath.Abs(o.Directory)
	if err != nil {
		return fmt.Errorf("launching a cluster: %w", err)
	}
	o.Directory = directory
	if o.Binary == "" {
		if o.Binary, err = os.Executable(); err != nil {
			return fmt.Errorf("finding the restripe program: %w", err)
		}
	}
	if o.Store == "" {
		o.Store = StoreFile
	}
	if o.Store == StoreCeph {
		if err := o.Ceph.complete(); err != nil {
			return err
		}
		o.Agents = len(o.Ceph.Pools)
	}
	if o.Agents < 0 || o.Agents > 1000 {
		return fmt.Errorf("launching a cluster: %d agents; want 1 to 1000", o.Agents)
	}
	if o.Users != "" {
		if o.Plain {
			return errors.New("launching a cluster: a gateway with users takes certificates")
		}
		if o.Users, err = filepath.Abs(o.Users); err != nil {
			return fmt.Errorf("launching a cluster: %w", err)
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

func (c *Cluster) path(parts ...string) string {
	return filepath.Join(append([]string{c.options.Directory}, parts...)...)
}

// add registers a process under its name.
func (c *Cluster) add(s spec) *process {
	p := newProcess(s, c.forker, &c.ports, c.options.Logger)
	c.processes[s.name] = p
	c.order = append(c.order, p)
	return p
}

// address returns the recorded address of a process, or a new one.
func (c *Cluster) address(s *shape, name string) (string, error) {
	if recorded := s.Addresses[name]; recorded != "" {
		return recorded, nil
	}
	return c.ports.take()
}

// startsAtOnce bounds how many processes start side by side.
const startsAtOnce = 4

// startAll starts processes side by side and records where they listen.
func (c *Cluster) startAll(ctx context.Context, s *shape, processes []*process) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(startsAtOnce)
	for _, p := range processes {
		group.Go(func() error { return p.first(ctx) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, p := range processes {
		s.Addresses[p.name] = p.address
	}
	return nil
}

func (c *Cluster) startStores(ctx context.Context, s *shape) error {
	var servers []*process
	for i := range c.options.Agents {
		member := Member{ID: "n" + strconv.Itoa(i+1)}
		switch {
		case c.options.Domains > 0:
			member.Domain = "d" + strconv.Itoa(i%c.options.Domains+1)
		case c.options.Store == StoreCeph:
			member.Domain = c.options.Ceph.Pools[i].Domain
		}
		directory := c.path("nodes", member.ID, "store")
		if err := os.MkdirAll(directory, 0o700); err != nil {
			return fmt.Errorf("making the directory of %s: %w", member.ID, err)
		}
		c.members = append(c.members, member)
		name := StoreName(member.ID)
		address, err := c.address(s, name)
		if err != nil {
			return err
		}
		server, ok, err := storeSpec(c.options.Store, name, directory, c.path("logs", name+".log"), address)
		if err != nil {
			return err
		}
		if ok {
			servers = append(servers, c.add(server))
		}
	}
	if err := c.startAll(ctx, s, servers); err != nil {
		return err
	}
	for i := range c.members {
		member := &c.members[i]
		if c.options.Store == StoreCeph {
			member.Store = c.options.Ceph.address(c.options.Ceph.Pools[i].Name)
			continue
		}
		member.Store = storeURL(c.options.Store, c.path("nodes", member.ID, "store"), s.Addresses[StoreName(member.ID)])
	}
	return nil
}

func (c *Cluster) startAgents(ctx context.Context, s *shape) error {
	var agents []*process
	for _, member := range c.members {
		address, err := c.address(s, member.ID)
		if err != nil {
			return err
		}
		arguments := []string{"agent", "--id", member.ID, "--store", member.Store, "--state", c.path("nodes", member.ID)}
		if c.options.Store == StoreMemcached || c.options.Store == StoreRedis {
			arguments = append(arguments, "--direct", member.Store)
		}
		agents = append(agents, c.add(spec{
			name: member.ID, log: c.path("logs", member.ID+".log"), address: address, movable: true,
			command: c.self(slices.Concat(arguments, c.certificateFlags(member.ID), c.options.AgentArguments)...),
		}))
	}
	if err := c.startAll(ctx, s, agents); err != nil {
		return err
	}
	for i := range c.members {
		c.members[i].Address = s.Addresses[c.members[i].ID]
	}
	text, err := yaml.Marshal(map[string][]Member{"nodes": c.members})
	if err != nil {
		return fmt.Errorf("writing the members: %w", err)
	}
	return atomicfile.Write(c.path("nodes.yaml"), text)
}

func (c *Cluster) startGateway(ctx context.Context, s *shape) error {
	address, movable := c.options.Listen, false
	if address == "" || isAnyPort(address) {
		var err error
		if address, err = c.address(s, GatewayName); err != nil {
			return err
		}
		movable = true
	}
	catalog, err := c.catalog()
	if err != nil {
		return err
	}
	if c.doors, err = c.openDoors(s); err != nil {
		return err
	}
	arguments := []string{"gateway", "--id", GatewayName, "--catalog", catalog, "--nodes", c.path("nodes.yaml"), "--audit", c.path("audit")}
	for _, door := range slices.Sorted(maps.Keys(c.doors)) {
		arguments = append(arguments, "--"+door, c.doors[door])
	}
	switch {
	case c.options.Users != "":
		arguments = append(arguments, "--users", c.options.Users, "--https")
		if c.options.AllowRemote {
			arguments = append(arguments, "--allow-remote")
		}
	case c.options.AllowRemote:
		arguments = append(arguments, "--allow-remote=anybody")
	}
	if c.options.ClassFile != "" {
		text, err := os.ReadFile(c.options.ClassFile)
		if err != nil {
			return fmt.Errorf("reading the class file: %w", err)
		}
		if err := atomicfile.Write(c.path("classes.yaml"), text); err != nil {
			return err
		}
	}
	if _, err := os.Stat(c.path("classes.yaml")); err == nil {
		arguments = append(arguments, "--classes", c.path("classes.yaml"))
	}
	arguments = append(append(arguments, c.certificateFlags(GatewayName)...), c.options.GatewayArguments...)
	gateway := c.add(spec{
		name: GatewayName, log: c.path("logs", GatewayName+".log"), address: address, movable: movable,
		command: c.self(arguments...),
	})
	if err := c.startAll(ctx, s, []*process{gateway}); err != nil {
		return err
	}
	return atomicfile.Write(c.path("gateway.addr"), []byte(gateway.address+"\n"))
}

// openDoors says where the gateway listens for other clients than those of HTTP: at the same ports at every start.
func (c *Cluster) openDoors(s *shape) (map[string]string, error) {
	doors := map[string]string{"redis": c.options.Redis, "memcached": c.options.Memcached, "s3": c.options.S3}
	for door, address := range doors {
		if address == "" || isAnyPort(address) {
			name := GatewayName + "-" + door
			address, err := c.address(s, name)
			if err == nil && !addressFree(address) { // somebody else has taken it since
				address, err = c.ports.take()
			}
			if err != nil {
				return nil, err
			}
			doors[door], s.Addresses[name] = address, address
		}
	}
	return doors, nil
}

// isAnyPort reports whether an address stands for any free port of this machine.
func isAnyPort(address string) bool { return address == "127.0.0.1:0" || address == "localhost:0" }

// catalog returns where the catalog is, and has the directory remember one that was named.
func (c *Cluster) catalog() (string, error) {
	remembered := c.path("catalog.addr")
	if named := c.options.Catalog; named != "" {
		if file, is := strings.CutPrefix(named, "@"); is {
			path, err := filepath.Abs(file)
			if err != nil {
				return "", err
			}
			named = "@" + path
		}
		return named, atomicfile.Write(remembered, []byte(named+"\n"))
	}
	text, err := os.ReadFile(remembered)
	if errors.Is(err, os.ErrNotExist) {
		return "sqlite:" + c.path("catalog.db"), nil
	}
	return strings.TrimSpace(string(text)), err
}

// Gateway returns the address clients reach the cluster at, host:port.
func (c *Cluster) Gateway() string { return c.processes[GatewayName].address }

// GatewayURL returns the URL clients reach the cluster at.
func (c *Cluster) GatewayURL() string {
	if c.options.Users != "" {
		return "https://" + c.Gateway()
	}
	return "http://" + c.Gateway()
}

// Redis returns the address at which the gateway serves clients of Redis.
func (c *Cluster) Redis() string { return c.doors["redis"] }

// Memcached returns the address at which the gateway serves clients of memcached.
func (c *Cluster) Memcached() string { return c.doors["memcached"] }

// S3 returns the address at which the gateway serves clients of S3.
func (c *Cluster) S3() string { return c.doors["s3"] }

// Directory returns the state directory, absolute.
func (c *Cluster) Directory() string { return c.options.Directory }

// Members returns the nodes.
func (c *Cluster) Members() []Member { return slices.Clone(c.members) }

// Names returns the names of all processes in the order they were started.
func (c *Cluster) Names() []string {
	names := make([]string, len(c.order))
	for i, p := range c.order {
		names[i] = p.name
	}
	return names
}

// Pids returns the process id of every process; 0 for one that does not run at the moment.
func (c *Cluster) Pids() map[string]int {
	pids := map[string]int{}
	for _, p := range c.order {
		pids[p.name] = p.pid()
	}
	return pids
}

func (c *Cluster) process(name string) (*process, error) {
	p, there := c.processes[name]
	if !there {
		return nil, fmt.Errorf("%w: %q; there are %s", ErrNoProcess, name, strings.Join(c.Names(), ", "))
	}
	return p, nil
}

// Kill ends a process by SIGKILL and returns when it is gone. It is started again at once, as after any other death.
func (c *Cluster) Kill(name string) error {
	p, err := c.process(name)
	if err != nil {
		return err
	}
	return p.kill()
}

// Halt ends a process by SIGKILL and keeps it down until Restart.
func (c *Cluster) Halt(name string) error {
	p, err := c.process(name)
	if err != nil {
		return err
	}
	return p.halt()
}

// Restart lets a halted or dying process run and returns once it serves. A process that serves is left alone.
func (c *Cluster) Restart(ctx context.Context, name string) error {
	p, err := c.process(name)
	if err != nil {
		return err
	}
	return p.resume(ctx)
}

// Stop ends every process, the gateway first and the stores last, and gives the state directory free. It may be called
// again.
func (c *Cluster) Stop() error {
	if c.lock == nil {
		return nil
	}
	if c.stopRenewal != nil {
		c.stopRenewal()
		c.renewal.Wait()
	}
	for _, class := range [][]*process{c.gateways(), c.agents(), c.stores()} {
		var group errgroup.Group
		for _, p := range class {
			group.Go(func() error { p.stop(); return nil })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	c.forker.close()
	err := flock.Release(c.lock)
	c.lock = nil
	if err != nil {
		return fmt.Errorf("giving the state directory free: %w", err)
	}
	return nil
}

func (c *Cluster) pick(is func(name string) bool) []*process {
	var picked []*process
	for _, p := range c.order {
		if is(p.name) {
			picked = append(picked, p)
		}
	}
	return picked
}

func (c *Cluster) gateways() []*process {
	return c.pick(func(name string) bool { return name == GatewayName })
}
func (c *Cluster) stores() []*process {
	return c.pick(func(name string) bool { return strings.HasSuffix(name, StoreName("")) })
}
func (c *Cluster) agents() []*process {
	return c.pick(func(name string) bool { return name != GatewayName && !strings.HasSuffix(name, StoreName("")) })
}
