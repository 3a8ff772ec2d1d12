package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/decorate"
)

// Calls under way to a node that stops answering: they are given up when the node turns suspect, however long a call may
// take else.

// hanging is a store that answers nothing while it hangs.
type hanging struct {
	gate atomic.Pointer[chan struct{}]
}

func (h *hanging) wrap(inner store.Store) store.Store {
	fault := &decorate.Fault{Rule: func(decorate.Call) decorate.Effect {
		if gate := h.gate.Load(); gate != nil {
			return decorate.Effect{Gate: *gate}
		}
		return decorate.Effect{}
	}}
	return fault.Wrap(inner)
}

func (h *hanging) hang() {
	gate := make(chan struct{})
	h.gate.Store(&gate)
}

func (h *hanging) release() {
	if gate := h.gate.Swap(nil); gate != nil {
		close(*gate)
	}
}

// newHanging is a cluster some of whose nodes can hang, with a gateway that waits for an hour for one call.
func newHanging(t *testing.T, ids ...block.NodeID) (*cluster, *hanging) {
	t.Helper()
	h := &hanging{}
	c := newCluster(t, 9, func(agent *testAgent) {
		if slices.Contains(ids, agent.id) {
			agent.wrap = h.wrap
		}
	})
	t.Cleanup(h.release)
	c.with(func(o *gateway.Options) { o.CallTimeout = time.Hour }).answering()
	return c, h
}

// A write that waits for a node when it turns suspect goes to another node. What it may have written there is nobody's.
func TestWritesDoNotWaitForANodeThatTurnsSuspect(t *testing.T) {
	t.Parallel()
	c, h := newHanging(t, "n7")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h.hang()
	want := noise(128<<10, 1) // of two groups: of nine nodes each leaves out another one
	if _, err := c.gateway.Put(ctx, "k", bytes.NewReader(want), api.PutOptions{Size: int64(len(want))}); err != nil {
		t.Fatalf("putting while a node hangs: %v", err)
	}
	if c.nodesOf("k")["n7"] > 0 {
		t.Errorf("it lies on the node that hangs: %v", c.nodesOf("k"))
	}
	c.check("k", want)
	patch := noise(100, 2)
	if _, err := c.gateway.Update(ctx, "k", 1000, patch, nil); err != nil {
		t.Errorf("updating while a node hangs: %v", err)
	}
	copy(want[1000:], patch)
	h.release()
	c.noticed("n7", "up")
	c.check("k", want)
	c.audit()
}

// Where more nodes do not answer than a code survives, a read waits for them: they may be back in a moment.
func TestReadsWaitForNodesThatNobodyCanReplace(t *testing.T) {
	t.Parallel()
	c, h := newHanging(t, "n3", "n5", "n7")
	want := c.populate()
	h.hang()
	for _, id := range []block.NodeID{"n3", "n5", "n7"} {
		c.noticed(id, "suspect")
	}
	read := make(chan error, len(want))
	for key, data := range want {
		go func() {
			got, err := c.read(key)
			if err == nil && !bytes.Equal(got, data) {
				err = fmt.Errorf("%s reads back other bytes", key)
			}
			read <- err
		}()
	}
	h.release()
	for range want {
		if err := <-read; err != nil {
			t.Error(err)
		}
	}
}

// A pass of repair that waits for a node when it turns suspect goes on without it, and the next one does not ask it.
func TestRepairDoesNotWaitForANodeThatTurnsSuspect(t *testing.T) {
	t.Parallel()
	c, h := newHanging(t, "n7")
	want := c.populate()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	gone := c.agent("n1")
	if err := gone.store.List(ctx, block.KeyPrefix, func(key string, _ int64) error { return gone.store.Delete(ctx, key) }); err != nil {
		t.Fatal(err)
	}
	h.hang()
	for range 2 {
		if _, err := c.gateway.Repair(ctx, true, false); err != nil {
			t.Fatalf("repairing while a node hangs: %v", err)
		}
	}
	for key := range want {
		for _, slot := range c.stat(key).Groups[0].Slots {
			if slot.State != "ok" && slot.Node != "n7" {
				t.Errorf("slot %d of %s is %s on %s", slot.Slot, key, slot.State, slot.Node)
			}
		}
	}
	h.release()
	c.noticed("n7", "up")
	c.checkAll(want)
	c.audit()
}
