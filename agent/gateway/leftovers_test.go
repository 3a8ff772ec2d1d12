package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/sweep"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/mem"
)

// TestNodesWithOneStore gives three agents one store, as a Service in front of one server does.
func TestNodesWithOneStore(t *testing.T) {
	c := newCluster(t, 8)
	shared := mem.New(0)
	for range 3 {
		c.addAgent(func(agent *testAgent) { agent.store = shared })
	}
	c.stopGateway()
	c.startGateway()
	serving := 0
	for _, n := range c.nodeStatus() {
		switch said := strings.Join(n.Warnings, "\n"); {
		case n.State == "up":
			serving++
		case !strings.Contains(said, "a store of its own"):
			t.Errorf("node %s is %s and says %q, not what to do", n.ID, n.State, said)
		}
	}
	if serving != 9 {
		t.Errorf("%d nodes serve, want 8 with stores of their own and one of the three", serving)
	}
	for i := range 10 {
		c.put(key(i), noise(20_000, uint64(i)), api.PutOptions{})
	}
	if result, err := c.gateway.Sweep(t.Context(), api.SweepRequest{}); err != nil || result.OrphansDeleted > 0 {
		t.Errorf("sweeping: %+v, %v", result, err)
	}
	for i := range 10 {
		c.check(key(i), noise(20_000, uint64(i)))
	}
}

func key(i int) string { return "k" + string(rune('a'+i)) }

func (c *cluster) nodeStatus() []api.NodeStatus {
	c.t.Helper()
	status, err := c.gateway.Status(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return status.Nodes
}

// ownMarker is a store in which the marker of the node is each node's own, and nothing else: as in copies that were made of
// a store before it had the marker.
type ownMarker struct {
	store.Store
	id string
}

func (o ownMarker) key(key string) string {
	if key == "restripe/node" {
		return key + "/" + o.id
	}
	return key
}

func (o ownMarker) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	return o.Store.ReadAt(ctx, o.key(key), p, offset)
}

func (o ownMarker) Create(ctx context.Context, key string, value []byte) error {
	return o.Store.Create(ctx, o.key(key), value)
}

func TestNodesWithOneIncarnation(t *testing.T) {
	c := newCluster(t, 6)
	c.agents[0].wrap = func(s store.Store) store.Store { return ownMarker{s, "n1"} }
	twin := c.addAgent(func(agent *testAgent) {
		agent.store = c.agents[0].store
		agent.wrap = func(s store.Store) store.Store { return ownMarker{s, "n7"} }
	})
	c.stopGateway()
	c.startGateway()
	c.await("one of the two serves", func() bool {
		states := map[block.NodeID]api.NodeStatus{}
		for _, n := range c.nodeStatus() {
			states[n.ID] = n
		}
		one, other := states["n1"], states[twin.id]
		if other.State == "up" {
			one, other = other, one
		}
		return one.State == "up" && other.State != "up" && strings.Contains(strings.Join(other.Warnings, "\n"), "one and the same store")
	})
}

// TestTooManyOrphans has a store hold many blocks that no record names.
func TestTooManyOrphans(t *testing.T) {
	c := newCluster(t, 8)
	c.put("k", noise(100_000, 1), api.PutOptions{})
	strays := func(count int) (keys []string) {
		for i := range count {
			address := block.Address{Node: "n1", Group: block.GroupID{Index: uint32(i)}, Stamp: block.Stamp{Salt: 9}}
			keys = append(keys, address.Key())
			if err := c.agents[0].store.Create(t.Context(), address.Key(), []byte("damaged")); err != nil {
				t.Fatal(err)
			}
		}
		return keys
	}
	strays(100)
	if result, err := c.gateway.Sweep(t.Context(), api.SweepRequest{}); err != nil || result.OrphansDeleted != 100 {
		t.Fatalf("sweeping 100 orphans: %+v, %v", result, err)
	}
	keys := strays(101)
	result, err := c.gateway.Sweep(t.Context(), api.SweepRequest{})
	if !errors.Is(err, sweep.ErrBrake) || result.OrphansDeleted != 0 || result.OrphansWithheld != 101 {
		t.Errorf("sweeping 101 orphans: %+v, %v", result, err)
	}
	c.present(keys)
	left := c.nodeStatus()[0].Leftovers
	if left == nil || !left.Withheld || left.Orphans != 101 {
		t.Errorf("of n1 it is said that it has %+v", left)
	}
	said := c.finding("node n1")
	if !strings.Contains(said.Text, "no record names 101 of its") || !strings.Contains(said.Cure, "sweep --node n1 --beyond-brake") {
		t.Errorf("the doctor says %+v", said)
	}
	if _, err := c.gateway.Sweep(t.Context(), api.SweepRequest{BeyondBrake: true}); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("sweeping every node beyond the brake: %v, want ErrBadRequest", err)
	}
	result, err = c.gateway.Sweep(t.Context(), api.SweepRequest{Node: "n1", BeyondBrake: true})
	if err != nil || result.OrphansDeleted != 101 {
		t.Errorf("sweeping beyond the brake: %+v, %v", result, err)
	}
	c.check("k", noise(100_000, 1))
}

// present fails where a value is not in the store of n1 any more.
func (c *cluster) present(keys []string) {
	c.t.Helper()
	for _, key := range keys {
		if _, err := c.agents[0].store.ReadAt(c.t.Context(), key, make([]byte, 10), 0); err != nil {
			c.t.Errorf("the orphan %s: %v", key, err)
		}
	}
}

// finding returns the first error that the doctor finds in a subject.
func (c *cluster) finding(subject string) api.Finding {
	c.t.Helper()
	findings, err := c.gateway.Doctor(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, finding := range findings {
		if finding.Subject == subject && finding.Severity == "error" {
			return finding
		}
	}
	c.t.Errorf("the doctor finds nothing wrong with %s", subject)
	return api.Finding{}
}

// stuckList is a store that is not listed to its end while it is stuck.
type stuckList struct {
	*mem.Store
	stuck *atomic.Bool
	lists *atomic.Int64
}

// Page waits while it is stuck.
func (s stuckList) Page(ctx context.Context, prefix, after string, limit int) ([]string, bool, error) {
	s.lists.Add(1)
	if s.stuck.Load() {
		<-ctx.Done()
		return nil, false, ctx.Err()
	}
	return s.Store.Page(ctx, prefix, after, limit)
}

// Blocks that died are deleted while stores are listed, however long that takes.
func TestTheDeadDoNotWaitForStoresThatAreListed(t *testing.T) {
	t.Parallel()
	var stuck atomic.Bool
	var lists atomic.Int64
	c := newCluster(t, 8, func(agent *testAgent) {
		agent.wrap = func(store.Store) store.Store { return stuckList{agent.store, &stuck, &lists} }
	})
	c.with(func(o *gateway.Options) { o.SweepEvery, o.OrphanEvery = 20*time.Millisecond, 50*time.Millisecond })
	c.await("stores are listed again and again", func() bool { return lists.Load() > 20 })
	c.put("k", noise(20_000, 1), api.PutOptions{})
	stuck.Store(true)
	seen := lists.Load()
	c.await("a store is being listed", func() bool { return lists.Load() > seen })
	if err := c.gateway.Delete(t.Context(), "k", nil); err != nil {
		t.Fatal(err)
	}
	c.await("the dead are deleted", func() bool {
		for _, agent := range c.agents {
			if c.blocksIn(agent) > 0 {
				return false
			}
		}
		return true
	})
	stuck.Store(false)
}
