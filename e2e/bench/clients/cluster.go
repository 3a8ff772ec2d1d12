package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/e2e/bench/gauge"
)

// agents is how many a cluster has.
const agents = 9

// cluster is one that runs: of the program of now, or of an earlier one.
type cluster struct {
	name                   string
	http, redis, memcached string // addresses; an earlier one has the first alone
	s3                     string // likewise
	gateway                int    // its process
	processes              []int  // of gateway, agents and stores
	members                []launch.Member
	stop                   func() error
}

// target loads the cluster, of which the gateway counts.
func (c *cluster) target(name string, run func(ctx context.Context, round int) (outcome, error)) target {
	return target{name: name, memory: c.gateway, processes: []int{c.gateway}, run: run}
}

// target loads the peer at an address.
func (p *peers) target(name, address string, run func(ctx context.Context, round int) (outcome, error)) target {
	return target{name: name, memory: p.pids[address], processes: []int{p.pids[address]}, run: run}
}

// start starts a cluster over a kind of store, as `restripe up` does, with these classes.
func (b *bench) start(ctx context.Context, store launch.StoreKind, classes ...api.ClassSpec) (*cluster, error) {
	return b.startNodes(ctx, store, agents, nil, classes...)
}

// startCold starts one whose gateway keeps no objects in memory.
func (b *bench) startCold(ctx context.Context, store launch.StoreKind, classes ...api.ClassSpec) (*cluster, error) {
	return b.startNodes(ctx, store, agents, []string{"--cache", "0"}, classes...)
}

// startNodes starts one of so many nodes, whose gateway has further flags.
func (b *bench) startNodes(
	ctx context.Context, store launch.StoreKind, nodes int, flags []string, classes ...api.ClassSpec,
) (_ *cluster, err error) {
	state, file, err := b.folder(classes)
	if err != nil {
		return nil, err
	}
	b.say("starting %d agents over %s, and a gateway", nodes, store)
	running, err := launch.Start(ctx, launch.Options{
		Directory: state, Binary: b.binary, Store: store, Agents: nodes, ClassFile: file, GatewayArguments: flags,
	})
	if err != nil {
		return nil, fmt.Errorf("starting a cluster: %w", err)
	}
	c := &cluster{
		name: "gateway", http: running.Gateway(), redis: running.Redis(), memcached: running.Memcached(), s3: running.S3(),
		members: running.Members(),
		stop:    func() error { return errors.Join(running.Stop(), os.RemoveAll(filepath.Dir(state))) },
	}
	for name, pid := range running.Pids() {
		if name == launch.GatewayName {
			c.gateway = pid
		}
		c.processes = append(c.processes, pid)
	}
	if err := c.untilUp(ctx, nodes); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// byDefault is a class of all keys.
func byDefault(ladder, scheme string) api.ClassSpec {
	return api.ClassSpec{Name: "default", Ladder: ladder, Default: scheme, Prefixes: []string{""}}
}

// folder makes one for a cluster, and its class file.
func (b *bench) folder(classes []api.ClassSpec) (state, file string, err error) {
	folder, err := os.MkdirTemp(b.directory, "cluster-")
	if err != nil {
		return "", "", err
	}
	text, err := yaml.Marshal(map[string][]api.ClassSpec{"classes": classes})
	if err != nil {
		return "", "", err
	}
	file = filepath.Join(folder, "classes.yaml")
	return filepath.Join(folder, "state"), file, os.WriteFile(file, text, 0o600)
}

// earlierName is what the earlier program is called in tables.
const earlierName = "an earlier commit"

// earlier runs a cluster of the earlier program, which is not started as those of now are.
func (b *bench) earlier(ctx context.Context, store launch.StoreKind, classes ...api.ClassSpec) (_ *cluster, err error) {
	state, file, err := b.folder(classes)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	b.say("starting %d agents over %s, and a gateway, of %s", agents, store, b.before)
	c := &cluster{name: earlierName, http: net.JoinHostPort("127.0.0.1", port)}
	command := exec.Command(b.before, "up", "--store", string(store), "--agents", strconv.Itoa(agents), "--no-operator", "--dir", state,
		"--classes", file, "--listen", c.http)
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the earlier program: %w", err)
	}
	c.stop = func() error {
		return errors.Join(command.Process.Signal(os.Interrupt), command.Wait(), os.RemoveAll(filepath.Dir(state)))
	}
	if err = c.untilUp(ctx, agents); err == nil {
		c.processes, err = descendants(command.Process.Pid)
	}
	if err == nil {
		c.gateway, err = gatewayAmong(c.processes)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the earlier program, %s: %w", b.before, err), c.stop())
	}
	return c, nil
}

// patiently asks until something has come about.
func patiently(ctx context.Context, every time.Duration, holds func() (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if done, err := holds(); done || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// startPatience is how long all agents may take to be there for the gateway, which on a busy machine is long.
const startPatience = 2 * time.Minute

// untilUp waits until the gateway has all agents.
func (c *cluster) untilUp(ctx context.Context, nodes int) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	up, last := 0.0, errors.New("it was not asked")
	err := patiently(ctx, 50*time.Millisecond, func() (bool, error) {
		var metrics map[string]float64
		metrics, last = c.metrics(ctx)
		up = metrics["restripe_node_up"]
		return up == float64(nodes), nil // who does not listen yet may soon
	})
	if err != nil {
		return fmt.Errorf("the gateway at %s has %.0f of %d agents after %s: %w", c.http, up, nodes, startPatience, errors.Join(last, err))
	}
	return nil
}

// metrics are the gateway's.
func (c *cluster) metrics(ctx context.Context) (map[string]float64, error) {
	return gauge.Metrics(ctx, "http://"+c.http)
}

// without is all processes but one.
func without(pids []int, pid int) []int {
	return slices.DeleteFunc(slices.Clone(pids), func(one int) bool { return one == pid })
}
