package gateway_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/decorate"
)

// A group that no node is free for is known to be so by the records: its nodes are left alone.
func TestARepairInVainAsksNobody(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	c := newCluster(t, 8, func(agent *testAgent) {
		agent.wrap = func(inner store.Store) store.Store {
			fault := &decorate.Fault{Rule: func(call decorate.Call) decorate.Effect {
				if strings.HasPrefix(call.Key, "b/") {
					asked.Add(1)
				}
				return decorate.Effect{}
			}}
			return fault.Wrap(inner)
		}
	})
	c.reads = api.RepairNever
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	lost := c.agent(c.stat("k").Groups[0].Slots[2].Node)
	lost.stop()
	c.noticed(lost.id, "suspect")
	if _, err := c.gateway.DownNode(t.Context(), lost.id); err != nil {
		t.Fatal(err)
	}
	c.check("k", data)
	if asked.Load() == 0 {
		t.Fatal("a read asks no store for blocks: the test shows nothing")
	}
	wanted := func() bool {
		t.Helper()
		c.gateway.TakeLoss()
		if _, err := c.gateway.Relocate(t.Context()); err != nil {
			t.Fatal(err)
		}
		return c.gateway.TakeLoss()
	}
	if !wanted() {
		t.Error("a look at all groups finds nothing that is lost")
	}
	// What a read above asked twice, and did not wait for, may come to its store as late as now: a repair that asks does so each time.
	for left := 10; ; left-- {
		asked.Store(0)
		result, err := c.gateway.Repair(t.Context(), false, false)
		if err != nil || len(result.Failed) != 1 || !strings.Contains(result.Failed[0], "no other node is free") {
			t.Errorf("%+v, %v", result, err)
		}
		asked := asked.Load()
		if asked == 0 {
			break
		}
		if left == 0 {
			t.Errorf("stores were asked %d times", asked)
			break
		}
	}
	if wanted() {
		t.Error("what could not be repaired is to be looked for at once")
	}
	c.addAgent()
	c.with() // enters it
	c.noticed(lost.id, "down")
	c.repaired()
	if !c.whole("k") {
		t.Errorf("with one more node: %+v", c.stat("k").Groups)
	}
}

// A replicated group survives the loss of more slots than two where they are of different stripes.
func TestRepairOfMoreSlotsThanOneStripeSurvives(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rep(3)"})
	for slot := range 5 {
		c.damage("k", slot)
	}
	result, err := c.gateway.Repair(t.Context(), true, true)
	if err != nil || len(result.Failed) > 0 || result.SlotsRebuilt != 5 {
		t.Fatalf("%+v, %v", result, err)
	}
	if !c.whole("k") {
		t.Errorf("%+v", c.stat("k").Groups)
	}
	c.check("k", data)
	c.audit()
	for slot := 5; slot < 8; slot++ { // a column and both its copies
		c.damage("k", slot)
	}
	result, err = c.gateway.Repair(t.Context(), true, true)
	if err != nil || len(result.Failed) != 1 || !strings.Contains(result.Failed[0], api.ErrDataLoss.Error()) {
		t.Errorf("with nothing left of a stripe: %+v, %v", result, err)
	}
}
