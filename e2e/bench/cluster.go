//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/sqlite"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/e2e/bench/gauge"
)

const (
	agentPort   = ":7481"
	gatewayPort = ":7480"
)

// cluster is agents over directories in memory, a proxy agent that holds no blocks, and a gateway, each in its namespace.
type cluster struct {
	network *network
	agents  map[string]*process // the proxy among them
	gateway *process
	client  *client.Client
	state   string
}

// startCluster runs so many agents, the proxy and a gateway with the given classes. Everything is new: no block, no
// object.
func (b *bench) startCluster(ctx context.Context, n *network, nodes int, classes string) (_ *cluster, err error) {
	state, err := b.directory("cluster")
	if err != nil {
		return nil, err
	}
	c := &cluster{network: n, agents: map[string]*process{}, state: state}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	members := []launch.Member{{ID: proxyName, Address: n.address(proxyName) + agentPort}}
	for i := range nodes {
		members = append(members, launch.Member{ID: nodeName(i), Address: n.address(nodeName(i)) + agentPort})
	}
	for _, member := range members {
		if err := c.startAgent(ctx, b.binary, member); err != nil {
			return nil, err
		}
	}
	if err := c.startGateway(ctx, b.binary, members, classes); err != nil {
		return nil, err
	}
	return c, nil
}

// startAgent starts an agent over a directory of its own.
func (c *cluster) startAgent(ctx context.Context, binary string, member launch.Member) error {
	store := filepath.Join(c.state, member.ID)
	if err := os.Mkdir(store, 0o755); err != nil {
		return fmt.Errorf("making a store: %w", err)
	}
	agent, err := startProcess(ctx, member.ID, store+".log", binary,
		"agent", "--id", member.ID, "--store", "file:"+store, "--listen", member.Address, "--allow-remote=anybody")
	if err == nil {
		c.agents[member.ID] = agent
	}
	return err
}

func (c *cluster) startGateway(ctx context.Context, binary string, members []launch.Member, classes string) error {
	nodes, err := yaml.Marshal(map[string][]launch.Member{"nodes": members})
	if err != nil {
		return fmt.Errorf("writing the members: %w", err)
	}
	for name, text := range map[string][]byte{"nodes.yaml": nodes, "classes.yaml": []byte(classes)} {
		if err := os.WriteFile(filepath.Join(c.state, name), text, 0o644); err != nil {
			return fmt.Errorf("writing the gateway's files: %w", err)
		}
	}
	database := filepath.Join(c.state, "catalog.db")
	if err := sparesProxy(ctx, database, members[0].Address); err != nil {
		return fmt.Errorf("keeping blocks off the proxy: %w", err)
	}
	address := c.network.address(gatewayName) + gatewayPort
	c.gateway, err = startProcess(ctx, gatewayName, filepath.Join(c.state, "gateway.log"), binary,
		"gateway", "--catalog", "sqlite:"+database, "--nodes", filepath.Join(c.state, "nodes.yaml"),
		"--classes", filepath.Join(c.state, "classes.yaml"), "--listen", address, "--allow-remote=anybody")
	if err != nil {
		return err
	}
	if c.client, err = client.New(address); err != nil {
		return err
	}
	return c.client.Healthy(ctx)
}

// sparesProxy enters the proxy into a new catalog as a node that serves and takes no blocks.
func sparesProxy(ctx context.Context, database, address string) (err error) {
	engine, err := sqlite.Open(ctx, database)
	if err != nil {
		return err
	}
	opened, err := catalog.Open(ctx, engine, catalog.Owner("bench", "preparation"))
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	node := catalog.Node{ID: block.NodeID(proxyName), Address: address, State: catalog.NodeDraining}
	_, err = opened.ChangeNode(ctx, catalog.Node{}, node)
	return errors.Join(err, opened.Close())
}

// stop ends every process and gives the memory of the stores free.
func (c *cluster) stop() error {
	var errs []error
	if c.client != nil {
		c.client.Close()
	}
	if c.gateway != nil {
		errs = append(errs, c.gateway.stop())
	}
	for _, name := range slices.Sorted(maps.Keys(c.agents)) {
		errs = append(errs, c.agents[name].stop())
	}
	return errors.Join(append(errs, os.RemoveAll(c.state))...)
}

// cpu returns the CPU time that the gateway and all agents have used.
func (c *cluster) cpu() (total time.Duration, err error) {
	for _, p := range append(slices.Collect(maps.Values(c.agents)), c.gateway) {
		used, err := processTime(p.pid())
		if err != nil {
			return 0, fmt.Errorf("%s: %w", p.name, err)
		}
		total += used
	}
	return total, nil
}

// memory is the peak of resident memory of the processes of a cluster, bytes.
type memory struct {
	gateway, agent, proxy int64 // agent: the largest but for the proxy
}

func (c *cluster) memory() (m memory, err error) {
	if m.gateway, err = gauge.Peak(c.gateway.pid()); err != nil {
		return m, err
	}
	for name, agent := range c.agents {
		peak, err := gauge.Peak(agent.pid())
		if err != nil {
			return m, err
		}
		if name == proxyName {
			m.proxy = peak
		} else {
			m.agent = max(m.agent, peak)
		}
	}
	return m, nil
}
