package gateway_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/decorate"
)

// Nodes whose stores are full while what they hold is changed.

// newFilling is a cluster whose node n1 takes no more blocks while full is set.
func newFilling(t *testing.T, agents int) (c *cluster, full *atomic.Bool) {
	t.Helper()
	full = new(atomic.Bool)
	c = newCluster(t, agents, func(agent *testAgent) {
		if agent.id != "n1" {
			return
		}
		agent.wrap = func(inner store.Store) store.Store {
			return (&decorate.Fault{Rule: func(call decorate.Call) decorate.Effect {
				if full.Load() && strings.HasPrefix(call.Key, block.KeyPrefix) {
					return decorate.FullDisk(call)
				}
				return decorate.Effect{}
			}}).Wrap(inner)
		}
	})
	return c, full
}

// roles counts the slots of an object's groups on a node: those of data, and parities.
func (c *cluster) roles(key string, id block.NodeID, columns int) (data, parities int) {
	c.t.Helper()
	for _, group := range c.stat(key).Groups {
		for _, slot := range group.Slots {
			switch {
			case slot.Node != id:
			case slot.Slot < columns:
				data++
			default:
				parities++
			}
		}
	}
	return data, parities
}

// A transition that would stage parities on a node that is full has them move to a node that has room: those that are there
// and those that are to be there. What need not be written anew stays.
func TestTransitionsGoAroundAFullNode(t *testing.T) {
	t.Parallel()
	c, full := newFilling(t, 10)
	want := map[string][]byte{"k": noise(64<<10*10, 1), "firm/k": noise(64<<10*10, 2)}
	c.put("k", want["k"], api.PutOptions{Scheme: "rep(3)"})
	c.put("firm/k", want["firm/k"], api.PutOptions{Scheme: "rs(3,2)"})
	data, parities := c.roles("k", "n1", 6)
	if data == 0 || parities == 0 {
		t.Fatalf("%d cells and %d parities are on the node: the test shows nothing", data, parities)
	}
	full.Store(true)
	for class, to := range map[string]string{"default": "rs(6,2)", "firm": "rs(3,3)"} {
		done := c.transition(api.TransitionRequest{Selector: api.Selector{Class: class}, To: to})
		if done.State != api.TransitionDone || done.GroupsDone != 10 {
			t.Errorf("the transition to %s: %+v", to, done)
		}
	}
	if after, left := c.roles("k", "n1", 6); after != data || left != 0 {
		t.Errorf("%d of %d cells and %d parities are on the full node", after, data, left)
	}
	c.checkAll(want)
	c.audit()
	survives(t, c, want)
}

// Where no other node is free a transition says which node is full and what to do, and goes on once that is done.
func TestATransitionSaysWhichNodeIsFull(t *testing.T) {
	t.Parallel()
	c, full := newFilling(t, 8)
	want := noise(64<<10*8, 1)
	c.put("k", want, api.PutOptions{Scheme: "rep(3)"})
	full.Store(true)
	begun, err := c.gateway.StartTransition(t.Context(), api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: "rs(6,2)"})
	if err != nil {
		t.Fatal(err)
	}
	c.await("the transition says that n1 is full", func() bool {
		now, err := c.gateway.Transition(t.Context(), begun.ID)
		return err == nil && strings.Contains(now.Error, "node n1 takes no new blocks; make room on it") && strings.Contains(now.Error, store.ErrFull.Error())
	})
	full.Store(false)
	if done := c.ended(begun.ID); done.State != api.TransitionDone || done.GroupsDone != 8 {
		t.Errorf("after room was made: %+v", done)
	}
	c.check("k", want)
	c.audit()
}

// Updates and repairs of what lies on a node that is full end on others.
func TestUpdatesAndRepairsGoAroundAFullNode(t *testing.T) {
	t.Parallel()
	c, full := newFilling(t, 10)
	want := map[string][]byte{}
	for i := range 10 {
		key := fmt.Sprint("k", i)
		want[key] = noise(60<<10, uint64(i))
		c.put(key, want[key], api.PutOptions{Scheme: "rs(6,2)"})
	}
	full.Store(true)
	for key, data := range want {
		if _, err := c.gateway.Update(t.Context(), key, 1000, []byte("patched"), nil); err != nil {
			t.Errorf("updating %s: %v", key, err)
		}
		copy(data[1000:], "patched")
	}
	full.Store(false)
	want["gone"] = noise(64<<10*3, 60) // of three groups, one of which at least lies there, too
	c.put("gone", want["gone"], api.PutOptions{Scheme: "rs(6,2)"})
	full.Store(true)
	n1 := c.agent("n1")
	if err := n1.store.List(t.Context(), block.KeyPrefix, func(key string, _ int64) error { return n1.store.Delete(t.Context(), key) }); err != nil {
		t.Fatal(err)
	}
	if result := c.repaired(); result.SlotsRebuilt == 0 {
		t.Errorf("%+v: the test shows nothing", result)
	}
	if left := c.blocksIn(n1); left != 0 {
		t.Errorf("%d blocks are in a store that is full", left)
	}
	c.checkAll(want)
	c.audit()
	survives(t, c, want)
}
