//go:build review

package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
)

// custom makes another gateway over the cluster with options changed.
func (c *cluster) custom(id string, change func(*gateway.Options)) (*catalog.Catalog, *gateway.Gateway) {
	c.t.Helper()
	c.starts++
	start := fmt.Sprintf("start%d", c.starts)
	records, err := catalog.Open(c.t.Context(), c.engine, catalog.Owner(id, start), catalog.WithGrace(0))
	if err != nil {
		c.t.Fatal(err)
	}
	var nodes []catalog.Node
	for _, agent := range c.agents {
		nodes = append(nodes, catalog.Node{ID: agent.id, Address: agent.address})
	}
	options := gateway.Options{
		Catalog: records, ID: id, Start: start, Classes: c.classes, Nodes: nodes, SweepEvery: -1,
		CallTimeout: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
	}
	change(&options)
	made, err := gateway.New(c.t.Context(), options)
	if err != nil {
		c.t.Fatal(err)
	}
	return records, made
}

// One node is gone for good and another store was emptied: six of eight blocks are there and a ninth node is free.
func TestReviewRepairWhileANodeIsGone(t *testing.T) {
	c := newCluster(t, 10)
	data := noise(60_000, 1)
	c.put("k", data, gateway.PutOptions{Scheme: "rs(6,2)"})
	stat, err := c.gateway.Stat(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	byID := map[block.NodeID]*testAgent{}
	for _, agent := range c.agents {
		byID[agent.id] = agent
	}
	byID[stat.Groups[0].Slots[0].Node].stop()
	c.await("it is noticed", func() bool {
		status, err := c.gateway.Status(t.Context())
		return err == nil && status.NotWhole == 1
	})
	result, err := c.gateway.Repair(t.Context(), true, true)
	t.Logf("one node gone: %+v, %v", result, err)
	if result.SlotsRebuilt == 0 {
		t.Error("the block of the node that is gone is not rebuilt on a free one")
	}
	byID[stat.Groups[0].Slots[1].Node].store.Erase()
	result, err = c.gateway.Repair(t.Context(), true, true)
	t.Logf("and a store emptied: %+v, %v", result, err)
	if result.SlotsRebuilt == 0 {
		t.Error("the lost block is not rebuilt from the six that are there")
	}
}

// Updates that write their objects anew at the same time all get on.
func TestReviewRewritesDoNotWaitInACircle(t *testing.T) {
	c := newCluster(t, 9)
	for i := range 6 {
		c.put(fmt.Sprint("k", i), noise(64<<10*10, uint64(i)), gateway.PutOptions{})
	}
	c.agents[0].stop()
	_, g := c.custom("small", func(o *gateway.Options) { o.MemoryBytes = 600 << 10 }) // room for one group and a dozen reads
	defer g.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var updates sync.WaitGroup
	for i := range 6 {
		updates.Go(func() {
			if _, err := g.Update(ctx, fmt.Sprint("k", i), 64<<10*7, noise(64<<10*2, 1), nil); err != nil {
				t.Errorf("k%d: %.200v", i, err)
			}
		})
	}
	updates.Wait()
}
