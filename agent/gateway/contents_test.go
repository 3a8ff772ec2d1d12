package gateway_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
)

// blocksOf lists the blocks in the store of an agent.
func (c *cluster) blocksOf(agent int) (keys []string) {
	c.t.Helper()
	if err := c.agents[agent].store.List(c.t.Context(), block.KeyPrefix, func(key string, _ int64) error {
		keys = append(keys, key)
		return nil
	}); err != nil {
		c.t.Fatal(err)
	}
	return keys
}

// A store whose contents are in doubt, and which has lost one block of many: that one is rebuilt, the others are found and
// stay where they are.
func TestBlocksOfAStoreInDoubtAreFound(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	data := noise(64<<10*6*8, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	before := c.blocksOf(0)
	if len(before) < 4 {
		t.Fatalf("the store has %d blocks: the test shows nothing", len(before))
	}
	for _, key := range []string{before[0], "restripe/incarnation"} {
		if err := c.agents[0].store.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	c.await("the store is in doubt", func() bool {
		status, err := c.gateway.Status(t.Context())
		return err == nil && status.NotWhole > 1
	})
	result, err := c.gateway.Repair(t.Context(), false, false)
	if err != nil || len(result.Failed) > 0 || result.SlotsRebuilt != 1 {
		t.Errorf("%d slots were rebuilt where one was lost, %v, %v", result.SlotsRebuilt, result.Failed, err)
	}
	if !c.whole("k") {
		t.Errorf("%+v", c.stat("k"))
	}
	status, err := c.gateway.Status(t.Context())
	if err != nil || status.NotWhole != 0 || status.CanLose != 2 {
		t.Errorf("%d of %d groups are not whole, can lose %d, %v", status.NotWhole, status.Groups, status.CanLose, err)
	}
	after := map[string]bool{}
	for _, key := range c.blocksOf(0) {
		after[key] = true
	}
	for _, key := range before[1:] {
		if !after[key] {
			t.Errorf("block %s was there, and was written anew", key)
		}
	}
	c.audit()
}

// What a read found missing is no secret: the status counts the group as not whole until it is rebuilt.
func TestTheStatusCountsWhatAReadMissed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	if _, err := c.gateway.PauseRepair(t.Context()); err != nil {
		t.Fatal(err)
	}
	for agent := range c.agents {
		if keys := c.blocksOf(agent); len(keys) > 0 && c.slotOf("k", c.agents[agent].id) == 0 {
			if err := c.agents[agent].store.Delete(t.Context(), keys[0]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !bytes.Equal(c.get("k"), data) {
		t.Error("the object reads back as another")
	}
	status, err := c.gateway.Status(t.Context())
	if err != nil || status.NotWhole != 1 || status.CanLose != 1 {
		t.Errorf("a read met a missing block, and %d groups are not whole, can lose %d, %v", status.NotWhole, status.CanLose, err)
	}
	if result, err := c.gateway.Repair(t.Context(), false, false); err != nil || result.SlotsRebuilt != 1 {
		t.Errorf("repairing: %+v, %v", result, err)
	}
	status, err = c.gateway.Status(t.Context())
	if err != nil || status.NotWhole != 0 || status.CanLose != 2 {
		t.Errorf("after the repair %d groups are not whole, can lose %d, %v", status.NotWhole, status.CanLose, err)
	}
}

// slotOf returns which slot of the first group of an object lies on a node, -1 for none.
func (c *cluster) slotOf(key string, id block.NodeID) int {
	c.t.Helper()
	for _, slot := range c.stat(key).Groups[0].Slots {
		if slot.Node == id {
			return slot.Slot
		}
	}
	return -1
}

// A disk is put back as it was a while ago, under the marker that the catalog knows. Other gateways than those that are there
// now had heard how far it had come.
func TestAStoreThatWasSetBackIsFoundByItsMark(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8, func(agent *testAgent) { agent.keep = time.Millisecond })
	c.put("before", noise(64<<10*6, 1), api.PutOptions{Scheme: "rs(6,2)"})
	victim := c.agents[0]
	saved := map[string][]byte{}
	if err := victim.store.List(t.Context(), "", func(key string, size int64) error {
		saved[key] = make([]byte, size)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for key, value := range saved {
		if _, err := victim.store.ReadAt(t.Context(), key, value, 0); err != nil {
			t.Fatal(err)
		}
	}
	water := func() int64 {
		views, err := c.catalog.Views(t.Context())
		if err != nil || len(views) != 1 {
			t.Fatalf("%d views, %v", len(views), err)
		}
		return views[0].Water[victim.id].Mark
	}
	c.await("the catalog has the mark of the store", func() bool { return water() > 0 })
	was := water()
	c.put("since", noise(64<<10*6*8, 2), api.PutOptions{Scheme: "rs(6,2)"})
	c.await("the catalog has a higher mark of the store", func() bool { return water() > was })
	c.stopGateway()
	victim.stop()
	victim.store.Erase()
	for key, value := range saved {
		if err := victim.store.Create(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	c.startAgent(victim)
	c.startGateway()
	c.await("the store has a new name", func() bool {
		known, err := c.catalog.Incarnations(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return string(known[victim.id]) != string(saved["restripe/incarnation"])
	})
	c.answering()
	if status, err := c.gateway.Status(t.Context()); err != nil || status.NotWhole < 2 {
		t.Errorf("%d groups are not whole, %v", status.NotWhole, err)
	}
	result, err := c.gateway.Repair(t.Context(), false, false)
	if err != nil || len(result.Failed) > 0 || result.SlotsRebuilt == 0 {
		t.Errorf("%+v, %v", result, err)
	}
	for _, key := range []string{"before", "since"} {
		if !c.whole(key) {
			t.Errorf("%+v", c.stat(key))
		}
	}
	c.audit()
}
