package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
)

// countingStore counts the bytes that are read.
type countingStore struct {
	store.Store
	bytes *atomic.Int64
}

func (s countingStore) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	n, err := s.Store.ReadAt(ctx, key, p, offset)
	s.bytes.Add(int64(n))
	return n, err
}

// A read of a whole object that misses a block takes k blocks of each stripe, not k more to decode what it misses: what it
// reads for itself decodes as well.
func TestADegradedReadTakesEachBlockOnce(t *testing.T) {
	t.Parallel()
	for _, away := range []bool{false, true} {
		t.Run(fmt.Sprintf("away=%v", away), func(t *testing.T) {
			t.Parallel()
			var read atomic.Int64
			c := newCluster(t, 8, func(agent *testAgent) {
				agent.wrap = func(inner store.Store) store.Store { return countingStore{inner, &read} }
			})
			c.reads = api.RepairNever // which takes blocks, too
			const cell = 8 << 10
			data := noise(6*cell, 1)
			c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
			group := c.stat("k").Groups[0]
			if group.CellBytes != cell {
				t.Fatalf("cells of %d bytes, want %d", group.CellBytes, cell)
			}
			c.check("k", data)
			healthy := read.Swap(0)
			if away {
				c.agent(group.Slots[2].Node).stop()
				_, _ = c.read("k") // the gateway takes note
				read.Store(0)
			} else {
				c.lose("k", 2)
			}
			c.check("k", data)
			// On a busy machine a node may be taken for slow, and the others are read in its place.
			hedges := int64(counted(t, c.gateway, "restripe_gateway_hedged_reads_total"))
			if degraded := read.Load(); degraded > healthy+cell+6*cell*hedges {
				t.Errorf("the stores read %d bytes for a degraded read, %d for a healthy one", degraded, healthy)
			}
			if degradedReads(t, c.gateway) == 0 {
				t.Error("nothing was decoded: the test shows nothing")
			}
		})
	}
}

// Many readers of one object, each of which reads it in pieces of any kind, while blocks are missing: every one gets its
// bytes, and no buffer is given back under another.
func TestSharedBuffersAreNobodyElses(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	objects := map[string][]byte{}
	for i := range 4 {
		key := fmt.Sprint("k", i)
		objects[key] = noise(200_000+100*i, uint64(i))
		c.put(key, objects[key], api.PutOptions{Scheme: "rs(6,2)"})
		c.lose(key, i)
		c.lose(key, i+2)
	}
	var readers errgroup.Group
	for i := range 2 {
		for key, want := range objects {
			readers.Go(func() error {
				for round := range 3 {
					reader, err := c.gateway.Open(t.Context(), key)
					if err != nil {
						return err
					}
					from := int64((i*7919 + round*54729) % len(want))
					var both errgroup.Group
					for _, span := range [][2]int64{{0, int64(len(want))}, {from, int64(len(want)) - from}} { // of one Reader
						both.Go(func() error {
							var got bytes.Buffer
							err := reader.WriteTo(t.Context(), &got, span[0], span[1])
							if err == nil && got.String() != string(want[span[0]:span[0]+span[1]]) {
								err = fmt.Errorf("%s: other bytes in %d+%d", key, span[0], span[1])
							}
							return err
						})
					}
					if err := both.Wait(); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	if err := readers.Wait(); err != nil {
		t.Fatal(err)
	}
	c.await("memory of decodes is given back", func() bool { // once the nodes have answered that were asked for more than was needed
		release, held := c.gateway.HoldDecodes()
		if held {
			release()
		}
		return held
	})
}
