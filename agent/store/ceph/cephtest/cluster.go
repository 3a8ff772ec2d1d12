//go:build ceph

package cephtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ceph/go-ceph/rados"
)

// Options say what to start; the zero Options are a cluster of three hosts with one OSD each, over memstore.
type Options struct {
	Hosts       int  // buckets of type host, node1, node2, ... below the root default; default 3
	OSDsPerHost int  // default 1; node1 has OSDs 0, 1, ...
	Bluestore   bool // the OSDs keep their objects in files instead of in memory

	// CacheBytes is the cache of an OSD over BlueStore, in which it then keeps what it read, as Ceph has it by default; 0: 32 MiB, and
	// nothing that was read.
	CacheBytes int64
}

// Cluster is a running Ceph cluster. Its methods are safe for concurrent use.
type Cluster struct {
	options   Options
	directory string
	fsid      string
	port      int
	forker    *forker

	mutex     sync.Mutex
	processes map[string]*process // by name of the daemon: mon.a, mgr.x, osd.0, ...
	admin     *rados.Conn
}

// startPatience bounds each wait for a daemon to do what it was started for.
const startPatience = 90 * time.Second

// TB is the part of testing.TB that Start takes.
type TB interface {
	Helper()
	Logf(format string, values ...any)
	Errorf(format string, values ...any)
	Fatalf(format string, values ...any)
	Failed() bool
	Cleanup(func())
	Context() context.Context
}

// Start starts a cluster that ends with the test, and fails the test where that is not possible.
func Start(t TB, options Options) *Cluster {
	t.Helper()
	began := time.Now()
	directory, err := os.MkdirTemp("", "ceph-") // sockets have short paths
	if err != nil {
		t.Fatalf("making a folder for a Ceph cluster: %v", err)
	}
	c, err := Launch(t.Context(), directory, options)
	if err != nil {
		err = errors.Join(err, os.RemoveAll(directory))
		t.Fatalf("this test needs a real Ceph cluster: %v", err)
	}
	t.Logf("Ceph with %d OSDs runs after %v", len(c.OSDs()), time.Since(began).Round(10*time.Millisecond))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the daemons logged last:\n%s", c.tails())
		}
		if err := errors.Join(c.Stop(), os.RemoveAll(directory)); err != nil {
			t.Errorf("stopping Ceph: %v", err)
		}
	})
	return c
}

// Launch starts a cluster whose daemons keep everything in directory, which must be empty and have a short path. They
// end with Stop, or with this process. On an error nothing is left running.
func Launch(ctx context.Context, directory string, options Options) (_ *Cluster, err error) {
	if options.Hosts == 0 {
		options.Hosts = 3
	}
	if options.OSDsPerHost == 0 {
		options.OSDsPerHost = 1
	}
	for _, program := range []string{"ceph-mon", "ceph-osd", "ceph-mgr", "ceph-authtool", "monmaptool"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%s is not in PATH: run e2e/ceph.sh, or apt-get install ceph-mon ceph-osd ceph-mgr ceph-common: %w", program, err)
		}
	}
	c := &Cluster{options: options, directory: directory, forker: newForker(), processes: map[string]*process{}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("starting Ceph: %w", err), errors.New(c.tails()), c.Stop())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for _, step := range []func(context.Context) error{c.prepare, c.startMonitor, c.connect, c.makeOSDs, c.startManager, c.startOSDs} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Config returns the path of the ceph.conf, which names no keyring.
func (c *Cluster) Config() string { return c.path("ceph.conf") }

// Keyring returns the path of the keyring of client.admin.
func (c *Cluster) Keyring() string { return c.path("admin.keyring") }

// OSDs returns the numbers of all OSDs.
func (c *Cluster) OSDs() []int {
	all := make([]int, c.options.Hosts*c.options.OSDsPerHost)
	for i := range all {
		all[i] = i
	}
	return all
}

// Hosts returns the names of the hosts in CRUSH.
func (c *Cluster) Hosts() []string {
	names := make([]string, c.options.Hosts)
	for i := range names {
		names[i] = "node" + strconv.Itoa(i+1)
	}
	return names
}

// HostOSDs returns the numbers of the OSDs of a host.
func (c *Cluster) HostOSDs(host string) []int {
	var on []int
	for _, id := range c.OSDs() {
		if c.hostOf(id) == host {
			on = append(on, id)
		}
	}
	return on
}

func (c *Cluster) hostOf(osd int) string { return "node" + strconv.Itoa(osd/c.options.OSDsPerHost+1) }

func (c *Cluster) path(parts ...string) string {
	return filepath.Join(append([]string{c.directory}, parts...)...)
}

// prepare writes the configuration and the keyrings.
func (c *Cluster) prepare(ctx context.Context) error {
	for _, name := range []string{"run", "log", "crash", "mon.a", "mgr.x"} {
		if err := os.MkdirAll(c.path(name), 0o755); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c.port = listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return err
	}
	if c.fsid, err = newUUID(); err != nil {
		return err
	}
	if err := os.WriteFile(c.Config(), []byte(c.configuration()), 0o644); err != nil {
		return err
	}
	keys := [][]string{
		{c.path("daemons.keyring"), "mon.", "mon", "allow *"},
		{c.path("daemons.keyring"), "mgr.x", "mon", "allow profile mgr", "osd", "allow *", "mds", "allow *"},
		{c.Keyring(), "client.admin", "mon", "allow *", "osd", "allow *", "mgr", "allow *", "mds", "allow *"},
	}
	for _, id := range c.OSDs() {
		keys = append(keys, []string{c.path("daemons.keyring"), "osd." + strconv.Itoa(id), "mon", "allow profile osd", "osd", "allow *", "mgr", "allow profile osd"})
	}
	for _, key := range keys {
		arguments := []string{key[0], "--gen-key", "-n", key[1]}
		if _, err := os.Stat(key[0]); errors.Is(err, os.ErrNotExist) {
			arguments = append(arguments, "--create-keyring")
		}
		for i := 2; i < len(key); i += 2 {
			arguments = append(arguments, "--cap", key[i], key[i+1])
		}
		if err := c.tool(ctx, "ceph-authtool", arguments...); err != nil {
			return err
		}
	}
	return c.tool(ctx, "ceph-authtool", c.path("daemons.keyring"), "--import-keyring", c.Keyring())
}

// tool runs a program that ends by itself.
func (c *Cluster) tool(ctx context.Context, program string, arguments ...string) error {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = c.directory
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(arguments, " "), err, output)
	}
	return nil
}

func (c *Cluster) startMonitor(ctx context.Context) error {
	if err := c.tool(ctx, "monmaptool", "--create", "--clobber", "--fsid", c.fsid, "--addv", "a", fmt.Sprintf("[v2:127.0.0.1:%d]", c.port),
		"--set-min-mon-release", "16", c.path("monmap")); err != nil {
		return err
	}
	if err := c.tool(ctx, "ceph-mon", "-c", c.Config(), "--mkfs", "-i", "a", "--monmap", c.path("monmap"), "--keyring", c.path("daemons.keyring")); err != nil {
		return err
	}
	return c.run("mon.a", "ceph-mon", "-i", "a")
}

// connect opens the connection that the mon commands of this package go through.
func (c *Cluster) connect(ctx context.Context) error {
	admin, err := c.Connect()
	if err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.admin = admin
	return ctx.Err()
}

// makeOSDs makes the stores of the OSDs and their places in CRUSH.
func (c *Cluster) makeOSDs(ctx context.Context) error {
	for _, host := range c.Hosts() {
		if _, err := c.Command("osd crush add-bucket", map[string]any{"name": host, "type": "host"}); err != nil {
			return err
		}
		if _, err := c.Command("osd crush move", map[string]any{"name": host, "args": []string{"root=default"}}); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for _, id := range c.OSDs() {
		uuid, err := newUUID()
		if err != nil {
			return err
		}
		if _, err := c.Command("osd new", map[string]any{"uuid": uuid}); err != nil {
			return err
		}
		if _, err := c.Command("osd crush add", map[string]any{"id": id, "weight": json.RawMessage("1.0"), "args": []string{"host=" + c.hostOf(id)}}); err != nil {
			return err
		}
		group.Go(func() error {
			if err := os.MkdirAll(c.path("osd."+strconv.Itoa(id)), 0o755); err != nil {
				return err
			}
			return c.tool(ctx, "ceph-osd", "-c", c.Config(), "-i", strconv.Itoa(id), "--mkfs", "--osd-uuid", uuid)
		})
	}
	return group.Wait()
}

func (c *Cluster) startManager(context.Context) error {
	return c.run("mgr.x", "ceph-mgr", "-i", "x")
}

func (c *Cluster) startOSDs(ctx context.Context) error {
	for _, id := range c.OSDs() {
		if err := c.runOSD(id); err != nil {
			return err
		}
	}
	return c.await(ctx, "all OSDs are up", c.alive, func() (bool, error) { return c.allUp() })
}

// run starts a daemon that is not running.
func (c *Cluster) run(name, program string, arguments ...string) error {
	arguments = append([]string{"-f", "-c", c.Config()}, arguments...)
	p, err := c.forker.start(name, program, c.path("log", name+".out"), arguments)
	if err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.processes[name] = p
	return nil
}

// alive returns an error that names a daemon that has ended without being told to.
func (c *Cluster) alive() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for name, p := range c.processes {
		if !p.running() {
			return fmt.Errorf("%s has ended", name)
		}
	}
	return nil
}

// tails returns the ends of the daemons' logs.
func (c *Cluster) tails() string {
	names, err := filepath.Glob(c.path("log", "*"))
	if err != nil {
		return err.Error()
	}
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil || len(text) == 0 {
			continue
		}
		fmt.Fprintf(&all, "---- %s\n%s\n", filepath.Base(name), text[max(0, len(text)-2000):])
	}
	return all.String()
}

// Stop ends every daemon and waits for its end; the folder stays. It may be called again.
func (c *Cluster) Stop() error {
	c.mutex.Lock()
	admin, processes := c.admin, c.processes
	c.admin, c.processes = nil, map[string]*process{}
	c.mutex.Unlock()
	if admin != nil {
		admin.Shutdown()
	}
	var errs []error
	for _, p := range processes {
		errs = append(errs, p.kill())
	}
	c.forker.close()
	return errors.Join(errs...)
}
