//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

// repairWay is one way to rebuild what a node lost.
type repairWay struct {
	name  string
	shape stripe.RepairShape // empty: as the product chooses
	whole bool               // every hop waits for the whole of a cell
}

// The ways that are compared. The first is the product's; the last is BiEC's: whoever repairs gathers, decodes and writes
// back.
var (
	repairInBand    = repairWay{"in-band, pipelined", "", false}
	repairStar      = repairWay{"star, whole cells", stripe.RepairStar, true}
	repairInitiator = repairWay{"initiator, whole cells", stripe.RepairInitiator, true}
	repairStreaming = repairWay{"initiator, pipelined", stripe.RepairInitiator, false}
)

var repairWays = []repairWay{repairInBand, repairStar, repairStreaming, repairInitiator}

// repairSchemes are those of the TriEC paper's evaluation, as far as they differ in kind.
var repairSchemes = []stripe.Scheme{stripe.RS(3, 2), stripe.RS(6, 3), stripe.RS(10, 4)}

// nodeRepair is the repair of all that one node held.
type nodeRepair struct {
	scheme  stripe.Scheme
	rate    int // megabits per second
	round   int
	way     repairWay
	cell    int64 // bytes
	elapsed time.Duration
	result  api.RepairResult
	moved   transfer
	cpu     time.Duration
}

// repairResults are all that was measured of repair.
type repairResults struct {
	nodes  []nodeRepair
	blocks blockRepairs
	reads  readsUnderRepair
}

// repairs measures the repair of a node, of one block, and reads beside it.
func (b *bench) repairs(ctx context.Context) (results repairResults, err error) {
	widest := repairSchemes[len(repairSchemes)-1]
	n, err := newNetwork(ctx, widest.K+widest.M)
	if err != nil {
		return results, err
	}
	defer func() { err = errors.Join(err, n.close(ctx)) }()
	if results.blocks, err = b.lostBlock(ctx, n, widest); err != nil {
		return results, fmt.Errorf("one lost block of %s: %w", widest, err)
	}
	objects, err := newCorpus(b.options.objects, b.options.objectBytes)
	if err != nil {
		return results, err
	}
	for _, scheme := range repairSchemes {
		if err := b.lostNodes(ctx, n, scheme, objects, &results); err != nil {
			return results, fmt.Errorf("nodes of %s: %w", scheme, err)
		}
	}
	if results.reads, err = b.readUnderRepair(ctx, n); err != nil {
		return results, fmt.Errorf("reads under repair: %w", err)
	}
	return results, nil
}

// repairClass is the one class of these clusters.
func repairClass(scheme stripe.Scheme, groupBytes int64) string {
	return fmt.Sprintf("classes:\n- {name: default, prefixes: [''], ladder: '%s', packBelow: '0', groupBytes: '%d'}\n", scheme, groupBytes)
}

// lostNodes has one node after the other lose all it holds, and every way rebuild it, at every rate.
func (b *bench) lostNodes(ctx context.Context, n *network, scheme stripe.Scheme, objects corpus, results *repairResults) (err error) {
	nodes := scheme.K + scheme.M
	b.say("repair of nodes under %s: starting %d agents, a proxy and a gateway", scheme, nodes)
	c, err := b.startCluster(ctx, n, nodes, repairClass(scheme, b.options.objectBytes))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	if err := c.repairOnlyWhenAsked(ctx); err != nil {
		return err
	}
	if err := objects.put(ctx, c.client, ""); err != nil {
		return err
	}
	members := []string{gatewayName, proxyName}
	for i := range nodes {
		members = append(members, nodeName(i))
	}
	turn := 0
	for at, rate := range b.options.rates {
		for round := range b.options.rounds[at] {
			for i := range repairWays {
				one := nodeRepair{scheme: scheme, rate: rate, round: round, way: repairWays[(i+round)%len(repairWays)]}
				if err := b.loseAndRepair(ctx, c, nodeName(turn%nodes), members, &one); err != nil {
					return fmt.Errorf("%s at %d Mb/s: %w", one.way.name, rate, err)
				}
				turn++
				results.nodes = append(results.nodes, one)
			}
			if err := objects.verify(ctx, c.client, ""); err != nil {
				return fmt.Errorf("verifying afterwards: %w", err)
			}
		}
	}
	return nil
}

// repairOnlyWhenAsked keeps the gateway from repairing by itself, and lifts its limits.
func (c *cluster) repairOnlyWhenAsked(ctx context.Context) error {
	if _, err := c.client.PauseRepair(ctx); err != nil {
		return err
	}
	none := int64(0)
	_, err := c.client.ThrottleRepair(ctx, api.ThrottleRequest{BytesPerSecond: &none, NodeBytesPerSecond: &none, DomainBytesPerSecond: &none})
	return err
}

// loseAndRepair empties the store of a node and has it rebuilt over shaped links.
func (b *bench) loseAndRepair(ctx context.Context, c *cluster, node string, members []string, one *nodeRepair) error {
	if err := b.empty(ctx, c, node); err != nil {
		return err
	}
	if err := c.network.shape(ctx, members, one.rate); err != nil {
		return err
	}
	cpu, err := c.cpu()
	if err != nil {
		return err
	}
	before, err := countDevices()
	if err != nil {
		return err
	}
	one.result, err = c.client.RepairAs(ctx, api.RepairRequest{Shape: string(one.way.shape), Whole: one.way.whole, Proxy: proxyName})
	if err != nil {
		return err
	}
	after, err := countDevices()
	if err != nil {
		return err
	}
	used, err := c.cpu()
	if err != nil {
		return err
	}
	if err := c.network.free(ctx, members); err != nil {
		return err
	}
	if len(one.result.Failed) > 0 || one.result.SlotsRebuilt == 0 {
		return fmt.Errorf("%d slots were rebuilt; failures: %v", one.result.SlotsRebuilt, one.result.Failed)
	}
	one.elapsed = time.Duration(one.result.ElapsedSeconds * float64(time.Second))
	one.moved, one.cpu = transferBetween(before, after), used-cpu
	one.cell = one.result.Measured.BytesWritten / one.result.Measured.BlocksWritten
	b.say("%4d Mb/s  round %d  %-10s %-24s %7.2fs  %8s MB rebuilt, %8s MB between agents", one.rate, one.round+1, one.scheme, one.way.name,
		one.elapsed.Seconds(), megabytes(one.result.BytesRebuilt), megabytes(one.moved.delivered.bytes))
	return nil
}

// empty has a node lose its store and come back, and waits until the gateway has seen that.
func (b *bench) empty(ctx context.Context, c *cluster, node string) error {
	if err := c.agents[node].stop(); err != nil {
		return err
	}
	store := filepath.Join(c.state, node)
	if err := errors.Join(os.RemoveAll(store), os.Mkdir(store, 0o755)); err != nil {
		return fmt.Errorf("emptying a store: %w", err)
	}
	agent, err := startProcess(ctx, node, store+".log", b.binary,
		"agent", "--id", node, "--store", "file:"+store, "--listen", c.network.address(node)+agentPort, "--allow-remote=anybody")
	if err != nil {
		return err
	}
	c.agents[node] = agent
	return c.await(ctx, "the loss is seen", func(ctx context.Context) (bool, error) {
		status, err := c.client.Status(ctx)
		if err != nil {
			return false, err
		}
		for i := range status.Nodes {
			if string(status.Nodes[i].ID) == node && status.Nodes[i].State == "up" {
				return status.NotWhole > 0, nil
			}
		}
		return false, nil
	})
}

// awaitPatience is how long the bench waits for what should be so within seconds.
const awaitPatience = time.Minute

// await looks until holds says so.
func (c *cluster) await(ctx context.Context, what string, holds func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, awaitPatience, fmt.Errorf("after %s it does not hold that %s", awaitPatience, what))
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		held, err := holds(ctx)
		if held || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
