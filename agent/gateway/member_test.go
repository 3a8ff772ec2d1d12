package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// Nodes that are emptied, given up, taken back and replaced.

// domains deals agents to failure domains, by the letters of a word.
func domains(word string) func(*gateway.Options) {
	return func(options *gateway.Options) {
		for i := range options.Nodes {
			options.Nodes[i].Domain = string(word[i])
		}
	}
}

// spares makes spares of some nodes.
func (c *cluster) spares(ids ...block.NodeID) {
	c.t.Helper()
	spare := true
	for _, id := range ids {
		if _, err := c.gateway.PlaceNode(c.t.Context(), id, api.PlaceRequest{Spare: &spare}); err != nil {
			c.t.Fatal(err)
		}
	}
}

// with replaces the gateway of the cluster by one with other options.
func (c *cluster) with(changes ...func(*gateway.Options)) *cluster {
	c.t.Helper()
	c.stopGateway()
	c.catalog, c.gateway = c.makeGateway("gw", changes...)
	return c
}

// relocated moves what belongs elsewhere and demands that nothing fails.
func (c *cluster) relocated() api.RelocationResult {
	c.t.Helper()
	result, err := c.gateway.Relocate(c.t.Context())
	if err != nil || len(result.Failed) > 0 {
		c.t.Fatalf("moving blocks to where they belong: %+v, %v", result, err)
	}
	return result
}

func (c *cluster) member(id block.NodeID) api.NodeInfo {
	c.t.Helper()
	node, err := c.gateway.Node(c.t.Context(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	return node
}

// record returns what the catalog says of a node.
func (c *cluster) record(id block.NodeID) catalog.Node {
	c.t.Helper()
	nodes, err := c.catalog.Nodes(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	at := slices.IndexFunc(nodes, func(node catalog.Node) bool { return node.ID == id })
	if at < 0 {
		c.t.Fatalf("the catalog does not know node %s", id)
	}
	return nodes[at]
}

// nodesOf lists the nodes of an object's groups, with how many slots each has that are not empty.
func (c *cluster) nodesOf(key string) map[block.NodeID]int {
	c.t.Helper()
	nodes := map[block.NodeID]int{}
	for _, group := range c.stat(key).Groups {
		for _, slot := range group.Slots {
			if slot.Blocks > 0 {
				nodes[slot.Node]++
			}
		}
	}
	return nodes
}

// impatient has nodes given up after a few seconds.
func (c *cluster) impatient() {
	c.t.Helper()
	if _, err := c.gateway.SetPatience(c.t.Context(), api.Patience{DownAfterSeconds: 1, OutAfterSeconds: 2}); err != nil {
		c.t.Fatal(err)
	}
}

// repaired repairs everything and demands that nothing fails.
func (c *cluster) repaired() api.RepairResult {
	c.t.Helper()
	result, err := c.gateway.Repair(c.t.Context(), true, false)
	if err != nil || len(result.Failed) > 0 {
		c.t.Fatalf("repair: %+v, %v", result, err)
	}
	return result
}

// blocksIn counts the blocks a store holds.
func (c *cluster) blocksIn(agent *testAgent) (count int) {
	c.t.Helper()
	if err := agent.store.List(c.t.Context(), block.KeyPrefix, func(string, int64) error {
		count++
		return nil
	}); err != nil {
		c.t.Fatal(err)
	}
	return count
}

// populate stores objects of every kind and returns them.
func (c *cluster) populate() map[string][]byte {
	c.t.Helper()
	want := map[string][]byte{}
	for i := range 12 {
		large, small := fmt.Sprint("large", i), fmt.Sprint("small", i)
		want[large], want[small] = noise(100_000+i, uint64(i)), noise(500+i, uint64(100+i))
		c.put(large, want[large], api.PutOptions{Scheme: []string{"rep(3)", "rs(3,2)", "rs(6,2)"}[i%3]})
		c.put(small, want[small], api.PutOptions{})
	}
	for i := range 3 { // slots of several blocks
		key, patch := fmt.Sprint("large", i), noise(3000, uint64(50+i))
		if _, err := c.gateway.Update(c.t.Context(), key, 20_000, patch, nil); err != nil {
			c.t.Fatal(err)
		}
		copy(want[key][20_000:], patch)
	}
	return want
}

func (c *cluster) checkAll(want map[string][]byte) {
	c.t.Helper()
	for key, data := range want {
		c.check(key, data)
	}
}

// A node that is drained serves until nothing lies on it, gets nothing new, and can then be removed; its blocks were copied,
// not decoded.
func TestDrainEmptiesANode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	want := c.populate()
	want["firm/k"] = noise(700_000, 200) // its ladder ends in m = 3: a slot of each group has no blocks yet
	c.put("firm/k", want["firm/k"], api.PutOptions{Scheme: "rs(3,2)"})
	node, err := c.gateway.DrainNode(t.Context(), "n1", api.DrainRequest{})
	if err != nil || node.State != "draining" || node.Slots == 0 || node.Drain.SlotsTotal <= node.Slots {
		t.Fatalf("%+v, %v", node, err)
	}
	if err := removeNode(t.Context(), c.gateway, "n1"); !errors.Is(err, api.ErrConflict) {
		t.Errorf("removing a node with blocks: %v", err)
	}
	result := c.relocated()
	if int64(result.SlotsMoved) != node.Slots || result.BytesSent == 0 || int64(result.SlotsMoved+result.PlacesChanged) != node.Drain.SlotsTotal {
		t.Errorf("%+v, of %d slots, %+v", result, node.Slots, node.Drain)
	}
	want["new"] = noise(200_000, 9)
	c.put("new", want["new"], api.PutOptions{})
	if node := c.member("n1"); node.Slots != 0 || node.Drain.SlotsLeft != 0 || node.Drain.ETASeconds != 0 {
		t.Errorf("after the drain: %+v, %+v", node, node.Drain)
	}
	c.checkAll(want)
	c.audit() // deletes what was left on the node
	if left := c.blocksIn(c.agent("n1")); left != 0 {
		t.Errorf("%d blocks are left in its store", left)
	}
	if err := removeNode(t.Context(), c.gateway, "n1"); err != nil {
		t.Fatal(err)
	}
	c.agent("n1").stop()
	if _, err := c.gateway.Node(t.Context(), "n1"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("asking for a node that was removed: %v", err)
	}
	for key := range want {
		if !c.whole(key) || c.nodesOf(key)["n1"] > 0 {
			t.Errorf("%s lies on %v", key, c.nodesOf(key))
		}
	}
	done := c.transition(api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: "rs(6,2)"})
	if done.State != api.TransitionDone {
		t.Errorf("a transition after the removal: %+v", done)
	}
	c.checkAll(want)
	c.with() // its node list still names n1
	if node := c.record("n1"); node.State != catalog.NodeRemoved {
		t.Errorf("a gateway started over has made it %+v", node)
	}
	c.checkAll(want)
}

// A drain stands still while it is paused, is remembered by a gateway that starts, goes on when resumed, and ends when it is
// undone.
func TestDrainIsPausedResumedAndUndone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	want := c.populate()
	paused, resumed, rate := true, false, int64(1<<30)
	if _, err := c.gateway.DrainNode(t.Context(), "n2", api.DrainRequest{Paused: &paused, BytesPerSecond: &rate}); err != nil {
		t.Fatal(err)
	}
	if result := c.relocated(); result.SlotsMoved != 0 {
		t.Errorf("while it was paused: %+v", result)
	}
	c.with()
	node := c.member("n2")
	if node.State != "draining" || !node.Drain.Paused || node.Drain.BytesPerSecond != rate || node.Slots == 0 {
		t.Fatalf("after a start of the gateway: %+v, %+v", node, node.Drain)
	}
	c.put("new", noise(200_000, 9), api.PutOptions{})
	if c.nodesOf("new")["n2"] > 0 {
		t.Error("a node whose drain is paused was given new blocks")
	}
	if _, err := c.gateway.DrainNode(t.Context(), "n2", api.DrainRequest{Paused: &resumed}); err != nil {
		t.Fatal(err)
	}
	if result := c.relocated(); int64(result.SlotsMoved) != node.Slots {
		t.Errorf("resumed: %+v, of %d slots", result, node.Slots)
	}
	if node, err := c.gateway.UndrainNode(t.Context(), "n2"); err != nil || node.State != "up" || node.Drain != nil {
		t.Errorf("undone: %+v, %v", node, err)
	}
	c.await("it is given blocks again", func() bool {
		c.put("new", noise(200_000, 9), api.PutOptions{})
		return c.nodesOf("new")["n2"] > 0
	})
	c.checkAll(want)
	c.audit()
}

// Clients write and read while a node is drained, and two gateways work on it at once.
func TestDrainUnderLoad(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	other := c.newGateway("gw-b")
	want := c.populate()
	if _, err := c.gateway.DrainNode(t.Context(), "n3", api.DrainRequest{}); err != nil {
		t.Fatal(err)
	}
	c.await("both gateways know", func() bool {
		list, err := other.Nodes(t.Context())
		return err == nil && slices.ContainsFunc(list.Nodes, func(n api.NodeInfo) bool { return n.ID == "n3" && n.State == "draining" })
	})
	ended := make(chan error, 1)
	go func() {
		_, err := other.Relocate(context.WithoutCancel(t.Context()))
		ended <- err
	}()
	for round := 0; c.member("n3").Slots > 0 && round < 50; round++ {
		for i := range 3 {
			key := fmt.Sprint("large", (round+i)%12)
			if _, err := c.gateway.Update(t.Context(), key, int64(round), []byte("patched"), nil); err != nil {
				t.Errorf("updating %s: %v", key, err)
			}
			copy(want[key][round:], "patched")
		}
		c.check(fmt.Sprint("large", round%12), want[fmt.Sprint("large", round%12)])
		if _, err := c.gateway.Relocate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if left := c.member("n3").Slots; left > 0 {
		t.Errorf("%d slots are left", left)
	}
	c.checkAll(want)
	c.audit()
	survives(t, c, want)
}

// A node that is silent for long is given up by the gateways, its slots are rebuilt on others, and when it comes back it is
// swept before it takes blocks again: nothing stale is served or kept.
func TestNodeIsGivenUpAndTakenBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	want := c.populate()
	lost := c.agent("n4")
	had := c.blocksIn(lost)
	c.newGateway("gw-b") // watches too: one of them declares
	lost.stop()
	c.noticed("n4", "suspect")
	c.checkAll(want)
	c.impatient()
	c.noticed("n4", "out")
	record := c.record("n4")
	if record.State != catalog.NodeUp || record.Out == "" || !record.Fenced {
		t.Fatalf("%+v", record)
	}
	if result := c.repaired(); result.SlotsRebuilt == 0 {
		t.Errorf("%+v", result)
	}
	for key := range want {
		if !c.whole(key) || c.nodesOf(key)["n4"] > 0 {
			t.Errorf("%s lies on %v", key, c.nodesOf(key))
		}
	}
	want["large1"] = noise(90_000, 77) // what it holds of these is of the past now
	c.put("large1", want["large1"], api.PutOptions{})
	if err := c.gateway.Delete(t.Context(), "large2", nil); err != nil {
		t.Fatal(err)
	}
	delete(want, "large2")

	c.startAgent(lost)
	c.await("its agent answers", func() bool { return len(c.member("n4").Warnings) == len(c.member("n1").Warnings) })
	if node := c.member("n4"); node.State != "out" || !node.Fenced {
		t.Errorf("before it was swept: %+v", node)
	}
	for i := range 20 {
		c.put("new", noise(200_000, uint64(i)), api.PutOptions{})
		if c.nodesOf("new")["n4"] > 0 {
			t.Fatal("a node was given blocks before its store was swept")
		}
	}
	if c.blocksIn(lost) != had {
		t.Errorf("%d of %d old blocks are left, and nobody has swept", c.blocksIn(lost), had)
	}
	want["new"] = noise(200_000, 19)
	c.await("it is taken back", func() bool {
		c.relocated()
		return c.member("n4").State == "up"
	})
	if left := c.blocksIn(lost); left != 0 {
		t.Errorf("%d of its %d old blocks are left", left, had)
	}
	if record := c.record("n4"); record.Out != "" || record.Fenced {
		t.Errorf("%+v", record)
	}
	c.checkAll(want)
	c.await("it is given blocks again", func() bool {
		want["new"] = noise(200_000, 20)
		c.put("new", want["new"], api.PutOptions{})
		return c.nodesOf("new")["n4"] > 0
	})
	c.audit()
	survives(t, c, want)
}

// What a node that was given up still holds and nobody has rebuilt is as good as ever when it comes back.
func TestNodeComesBackBeforeRepair(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	want := c.populate()
	c.impatient()
	lost := c.agent("n5")
	lost.stop()
	c.noticed("n5", "out")
	c.startAgent(lost)
	c.await("it is taken back", func() bool {
		if _, err := c.gateway.Relocate(t.Context()); err != nil {
			t.Fatal(err)
		}
		return c.member("n5").State == "up"
	})
	for key := range want {
		if !c.whole(key) {
			t.Errorf("%s: %+v", key, c.stat(key).Groups)
		}
	}
	c.checkAll(want)
	c.audit()
	survives(t, c, want)
}

// What a person declares goes before what gateways find: a node that is declared down is emptied though it answers, and is
// not taken back by anybody but a person; its own return is fenced.
func TestDeclarationsWin(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	want := c.populate()
	if node, err := c.gateway.DownNode(t.Context(), "n6"); err != nil || node.State != "down" || node.Slots == 0 {
		t.Fatalf("%+v, %v", node, err)
	}
	if result := c.relocated(); result.SlotsMoved == 0 {
		t.Errorf("%+v", result)
	}
	if node := c.member("n6"); node.State != "down" || node.Slots != 0 {
		t.Errorf("%+v", node)
	}
	if _, err := c.gateway.DrainNode(t.Context(), "n6", api.DrainRequest{}); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("draining a node that is declared down: %v", err)
	}
	if node, err := c.gateway.UpNode(t.Context(), "n6"); err != nil || node.State != "out" || !node.Fenced {
		t.Errorf("up: %+v, %v", node, err)
	}
	c.relocated()
	if node := c.member("n6"); node.State != "up" || c.blocksIn(c.agent("n6")) != 0 {
		t.Errorf("swept: %+v with %d blocks", node, c.blocksIn(c.agent("n6")))
	}
	if _, err := c.gateway.DownNode(t.Context(), "nobody"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("a node nobody knows: %v", err)
	}
	if err := removeNode(t.Context(), c.gateway, "n6"); !errors.Is(err, api.ErrConflict) {
		t.Errorf("removing a node that may be given blocks: %v", err)
	}
	c.checkAll(want)
	c.audit()
}

// Who was removed, or almost, becomes a member again by being declared up and by nothing else.
func TestRemovedNodesStayRemoved(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	for _, state := range []catalog.NodeState{catalog.NodeRemoving, catalog.NodeRemoved} {
		was := c.record("n1")
		next := was
		next.State = state
		was, err := c.catalog.ChangeNode(t.Context(), was, next)
		if err != nil {
			t.Fatal(err)
		}
		for what, declare := range map[string]func() (api.NodeInfo, error){
			"down": func() (api.NodeInfo, error) { return c.gateway.DownNode(t.Context(), "n1") },
			"drain": func() (api.NodeInfo, error) {
				return c.gateway.DrainNode(t.Context(), "n1", api.DrainRequest{})
			},
			"undrain": func() (api.NodeInfo, error) { return c.gateway.UndrainNode(t.Context(), "n1") },
			"replace": func() (api.NodeInfo, error) {
				return c.gateway.ReplaceNode(t.Context(), "n1", api.ReplaceRequest{Address: "localhost:1"})
			},
			"replace by another": func() (api.NodeInfo, error) {
				return c.gateway.ReplaceNode(t.Context(), "n1", api.ReplaceRequest{With: "n9"})
			},
			"replace another": func() (api.NodeInfo, error) {
				return c.gateway.ReplaceNode(t.Context(), "n2", api.ReplaceRequest{With: "n1"})
			},
		} {
			if _, err := declare(); !errors.Is(err, api.ErrBadRequest) {
				t.Errorf("%s while it is %s: %v", what, state, err)
			}
		}
		if record := c.record("n1"); record != was {
			t.Errorf("%+v has become %+v", was, record)
		}
	}
	if record := c.record("n2"); record.State != catalog.NodeUp {
		t.Errorf("a node that was to be replaced by one that was removed: %+v", record)
	}
	if node, err := c.gateway.UpNode(t.Context(), "n1"); err != nil || node.Declared != "up" {
		t.Errorf("up: %+v, %v", node, err)
	}
}

// Two gateways declare at once: one change is made, the other is made on top of it, and none is lost.
func TestDeclarationsAreComparedAndSet(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	was := c.record("n1")
	out := was
	out.Out = "gw-b"
	changed, err := c.catalog.ChangeNode(t.Context(), was, out)
	if err != nil || !changed.Fenced || changed.Version != was.Version+1 {
		t.Fatalf("%+v, %v", changed, err)
	}
	if _, err := c.catalog.ChangeNode(t.Context(), was, out); !errors.Is(err, catalog.ErrStale) {
		t.Errorf("a change of what is no more: %v", err)
	}
	if _, err := c.gateway.DrainNode(t.Context(), "n1", api.DrainRequest{}); err != nil {
		t.Fatal(err)
	}
	if record := c.record("n1"); record.Out != "gw-b" || record.State != catalog.NodeDraining {
		t.Errorf("%+v", record)
	}
}

// A gateway that hears no node gives up none: it is as likely cut off itself.
func TestACutOffGatewayGivesUpNobody(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	c.impatient()
	for _, agent := range c.agents[:5] {
		agent.stop()
	}
	for _, agent := range c.agents[:5] {
		c.noticed(agent.id, "down")
	}
	c.during(3*time.Second, func() {
		for _, agent := range c.agents {
			if record := c.record(agent.id); record.Out != "" {
				t.Fatalf("%+v", record)
			}
		}
	})
}
