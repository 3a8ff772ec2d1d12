//go:build review

package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/store/mem"
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

// One small object takes about as much room as its scheme says.
func TestReviewRoomOfOneSmallObject(t *testing.T) {
	c := newCluster(t, 14)
	_, g := c.custom("defaults", func(o *gateway.Options) { o.Classes = gateway.DefaultClasses() })
	defer g.Close()
	data := noise(60_000, 1)
	if _, err := g.Put(t.Context(), "k", bytes.NewReader(data), gateway.PutOptions{Size: 60_000}); err != nil {
		t.Fatal(err)
	}
	var stored int64
	for _, agent := range c.agents {
		if err := agent.store.List(t.Context(), block.KeyPrefix, func(_ string, size int64) error { stored += size; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if stored > 5*60_000 {
		t.Errorf("60000 bytes under rep(3) take %d bytes in the stores, %.1f times", stored, float64(stored)/60_000)
	}
}

// A put goes on for longer than the announced time of an attempt as long as bytes come in.
func TestReviewSlowPutOutlivesItsDeadline(t *testing.T) {
	c := newCluster(t, 8)
	_, g := c.custom("hasty", func(o *gateway.Options) { o.AttemptTime = 200 * time.Millisecond })
	defer g.Close()
	data := noise(64<<10*4, 1)
	body, feed := io.Pipe()
	go func() {
		for at := 0; at < len(data); at += 32 << 10 {
			if _, err := feed.Write(data[at : at+32<<10]); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
			g.Sweep(context.Background(), false)
		}
		feed.Close()
	}()
	if _, err := g.Put(t.Context(), "k", body, gateway.PutOptions{Size: int64(len(data))}); err != nil {
		t.Errorf("%.300v", err)
	}
}

// A registration that comes late does not leave the catalog with contents that are no more.
func TestReviewLateRegistrationHeals(t *testing.T) {
	c := newCluster(t, 8)
	was, err := c.catalog.Incarnations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.agents[0].store.Erase()
	c.put("k", noise(60_000, 1), gateway.PutOptions{})                                  // registers the new contents
	if err := c.catalog.RegisterIncarnation(t.Context(), "n1", was["n1"]); err != nil { // another gateway's, of before
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second) // three probes
	_, err = c.gateway.Put(t.Context(), "k2", bytes.NewReader(noise(60_000, 1)), gateway.PutOptions{Size: 60_000})
	if err != nil {
		t.Errorf("puts fail: %.300v", err)
	}
}

// Clients that upload slowly do not keep others from writing.
func TestReviewSlowUploadsDoNotStopOthers(t *testing.T) {
	c := newCluster(t, 14)
	_, g := c.custom("defaults", func(o *gateway.Options) { o.Classes = gateway.DefaultClasses() })
	defer g.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var slow sync.WaitGroup
	for i := range 6 {
		body, feed := io.Pipe()
		slow.Go(func() {
			g.Put(ctx, fmt.Sprint("slow", i), body, gateway.PutOptions{Size: 4 << 20})
		})
		if i < 5 { // five groups fill the budget
			feed.Write([]byte("the first bytes are here"))
		}
		defer feed.CloseWithError(io.ErrClosedPipe)
	}
	small, stop := context.WithTimeout(t.Context(), 4*time.Second)
	defer stop()
	if _, err := g.Put(small, "k", strings.NewReader("x"), gateway.PutOptions{Size: 1}); err != nil {
		t.Errorf("a put of one byte: %v", err)
	}
	cancel()
}

// A transition that another gateway pauses and resumes has one runner.
func TestReviewResumedElsewhereRunsOnce(t *testing.T) {
	c := newCluster(t, 9)
	_, other := c.newGateway("gw-b")
	defer other.Close()
	c.put("k", noise(64<<10*40, 1), gateway.PutOptions{})
	begun, err := c.gateway.StartTransition(t.Context(), gateway.TransitionRequest{Selector: gateway.Selector{Class: "default"}, To: "rs(3,2)", BytesPerSecond: 200 << 10})
	if err != nil {
		t.Fatal(err)
	}
	c.await("some groups are done", func() bool {
		now, err := c.gateway.Transition(t.Context(), begun.ID)
		return err == nil && now.GroupsDone > 0
	})
	if _, err := other.PauseTransition(t.Context(), begun.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := other.ResumeTransition(t.Context(), begun.ID, nil); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2500 * time.Millisecond)
	a, _ := c.gateway.Transition(t.Context(), begun.ID)
	b, _ := other.Transition(t.Context(), begun.ID)
	time.Sleep(1500 * time.Millisecond)
	a2, _ := c.gateway.Transition(t.Context(), begun.ID)
	b2, _ := other.Transition(t.Context(), begun.ID)
	if a2.Attempts > a.Attempts && b2.Attempts > b.Attempts && (a.Attempts != b.Attempts || a2.Attempts != b2.Attempts) {
		t.Errorf("both work: attempts here %d then %d, there %d then %d", a.Attempts, a2.Attempts, b.Attempts, b2.Attempts)
	}
	t.Logf("%v/%v %v/%v groups done %d %d", a.Attempts, a2.Attempts, b.Attempts, b2.Attempts, a2.GroupsDone, b2.GroupsDone)
	if _, err := other.CancelTransition(t.Context(), begun.ID); err != nil {
		t.Error(err)
	}
	now, err := c.gateway.Transition(t.Context(), begun.ID)
	t.Logf("%v %v", now.State, err)
}

// An address that another agent answers at by now, as pods' addresses do, costs a degraded read and no more.
func TestReviewAddressTakenByAnotherAgent(t *testing.T) {
	c := newCluster(t, 9)
	data := noise(60_000, 1)
	c.put("k", data, gateway.PutOptions{Scheme: "rs(6,2)"})
	stat, err := c.gateway.Stat(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	for _, agent := range c.agents {
		if agent.id != stat.Groups[0].Slots[0].Node {
			continue
		}
		agent.stop()
		other := &testAgent{id: "stranger", store: mem.New(0), address: agent.address}
		c.startAgent(other)
		defer other.stop()
	}
	if got, err := c.read("k"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("at once: %v", err)
	}
	time.Sleep(2500 * time.Millisecond)
	if got, err := c.read("k"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("after probes: %v", err)
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
