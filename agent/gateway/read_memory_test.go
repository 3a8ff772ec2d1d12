package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
)

// What is read to decode a fragment is in the memory of the gateway's budget, whoever asks for it.

// newSticking is a cluster whose node n4 can be stuck.
func newSticking(t *testing.T) (*cluster, *stuckStore) {
	t.Helper()
	stuck := &stuckStore{}
	c := newCluster(t, 8, func(agent *testAgent) {
		if agent.id == "n4" {
			agent.wrap = func(inner store.Store) store.Store {
				stuck.Store = inner
				return stuck
			}
		}
	})
	return c, stuck
}

// readAt reads a few bytes of an object.
func (c *cluster) readAt(ctx context.Context, key string, offset int64) error {
	reader, err := c.gateway.Open(ctx, key)
	if err != nil {
		return err
	}
	if c.reads != "" {
		reader.RepairOnRead(c.reads)
	}
	return reader.WriteTo(ctx, &bytes.Buffer{}, offset, 10)
}

// holdDecodes takes the memory of decoding until release, which the test calls.
func holdDecodes(t *testing.T, g *gateway.Gateway) (release func()) {
	t.Helper()
	release, held := g.HoldDecodes()
	if !held {
		t.Fatal("somebody decodes already")
	}
	return release
}

// A fragment that is missing is decoded once there is memory for it.
func TestDecodingWaitsForMemory(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	c.reads = api.RepairNever // which rebuilds what is damaged
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	c.damage("k", 2)
	cell := int64(c.stat("k").Groups[0].CellBytes)
	release := holdDecodes(t, c.gateway)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := c.readAt(ctx, "k", 2*cell); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a degraded read without memory to decode in: %v", err)
	}
	if err := c.readAt(t.Context(), "k", cell); err != nil {
		t.Errorf("a read that decodes nothing: %v", err)
	}
	release()
	c.check("k", data)
}

// A read that takes long is not hedged while there is no memory to decode in.
func TestHedgesNeedMemory(t *testing.T) {
	t.Parallel()
	c, stuck := newSticking(t)
	key, offset := c.putOn("n4", "rs(6,2)")
	stuck.stick()
	release := holdDecodes(t, c.gateway)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := c.readAt(ctx, key, offset); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read of a node that is stuck, without memory to decode in: %v", err)
	}
	if hedges := counted(t, c.gateway, "restripe_gateway_hedged_reads_total"); hedges != 0 {
		t.Errorf("%d hedges without memory", hedges)
	}
	release()
	if err := c.readAt(t.Context(), key, offset); err != nil {
		t.Errorf("with memory: %v", err)
	}
	if hedges := counted(t, c.gateway, "restripe_gateway_hedged_reads_won_total"); hedges != 1 {
		t.Errorf("%d hedges have won with memory, want 1", hedges)
	}
}

// A copy that is late is not asked for again by the hedge, which reads another.
func TestAHedgeReadsAnotherCopy(t *testing.T) {
	t.Parallel()
	c, stuck := newSticking(t)
	key, offset := c.putOn("n4", "rep(3)")
	stuck.stick()
	defer stuck.release()
	before := 0
	for range 10 { // on a busy machine the other copy may be late as well
		if err := c.readAt(t.Context(), key, offset); err != nil {
			t.Fatal(err)
		}
		hedges := counted(t, c.gateway, "restripe_gateway_hedged_reads_total")
		if hedges-before == 1 {
			return
		}
		before = hedges
	}
	t.Errorf("%d hedges for 10 reads of a copy that is late: none took one alone", before)
}

// putOn puts objects until one has a data column on a node, and returns its key and an offset that is there.
func (c *cluster) putOn(id, scheme string) (key string, offset int64) {
	c.t.Helper()
	for i := range 100 {
		key := fmt.Sprint("on ", id, " ", i)
		c.put(key, noise(60_000, uint64(i)), api.PutOptions{Scheme: scheme})
		group := c.stat(key).Groups[0]
		for _, slot := range group.Slots {
			if slot.Role == "data" && string(slot.Node) == id {
				return key, int64(slot.Slot) * int64(group.CellBytes)
			}
		}
	}
	c.t.Fatalf("of 100 objects none has data on %s", id)
	return "", 0
}

// Many readers share the memory of one decode, each with more fragments fetched ahead than have room side by side, and all
// end.
func TestReadersShareTheMemoryOfOneDecode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	const cell = 64 << 10 / 6 // of class default
	g := c.newGateway("small", func(o *gateway.Options) { o.MemoryBytes = 8 * 7 * cell })
	want := map[string][]byte{}
	for i := range 8 {
		key := fmt.Sprint("k", i)
		want[key] = noise(300_000, uint64(i))
		c.put(key, want[key], api.PutOptions{Scheme: "rs(6,2)"})
		c.damage(key, i%6)
	}
	c.agents[1].stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var readers errgroup.Group
	for range 5 {
		for key, data := range want {
			readers.Go(func() error {
				reader, err := g.Open(ctx, key)
				if err != nil {
					return err
				}
				var got bytes.Buffer
				if err := reader.WriteTo(ctx, &got, 0, reader.Size()); err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
				if !bytes.Equal(got.Bytes(), data) {
					return fmt.Errorf("%s: other bytes", key)
				}
				return nil
			})
		}
	}
	if err := readers.Wait(); err != nil {
		t.Fatal(err)
	}
	if degradedReads(t, g) < 5*8 {
		t.Errorf("%d fragments were decoded: the test shows nothing", degradedReads(t, g))
	}
	release, held := g.HoldDecodes()
	if !held {
		t.Fatal("memory of decodes is not given back")
	}
	release()
}

// Hedges are a tenth of the fragments that readers get, beyond a burst and what comes with time, however many blocks one
// takes to decode.
func TestDecodingDoesNotPayForHedges(t *testing.T) {
	t.Parallel()
	c, stuck := newSticking(t)
	key, offset := c.putOn("n4", "rs(6,2)")
	stuck.stick()
	const reads = 100
	began := time.Now()
	var readers errgroup.Group
	for range reads {
		readers.Go(func() error {
			return c.readAt(t.Context(), key, offset)
		})
	}
	if err := readers.Wait(); err != nil {
		t.Fatal(err)
	}
	const burst, perSecond = 32, 32
	hedges := float64(counted(t, c.gateway, "restripe_gateway_hedged_reads_total"))
	if most := burst + perSecond*time.Since(began).Seconds() + 0.1*reads; hedges > most || hedges < reads {
		t.Errorf("%.0f hedges, want %d to %.0f", hedges, reads, most)
	}
}
