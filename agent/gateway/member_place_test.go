package gateway_test

import (
	"bytes"
	"errors"
	"net"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/store/mem"
	"github.com/restripe/restripe/agent/wire"
)

// Nodes that take over, that hang, and that are asked about over HTTP.

// Spares take no new groups, are the first to take over, and are taken where the others are too few.
func TestSparesSubstituteFirst(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	c.spares("n1", "n10")
	want := c.populate()
	for key := range want {
		if nodes := c.nodesOf(key); nodes["n1"]+nodes["n10"] > 0 {
			t.Fatalf("%s lies on spares: %v", key, nodes)
		}
	}
	if _, err := c.gateway.DrainNode(t.Context(), "n5", api.DrainRequest{}); err != nil {
		t.Fatal(err)
	}
	moved := c.relocated().SlotsMoved
	taken := c.member("n1").Slots + c.member("n10").Slots
	if moved == 0 || int64(moved) != taken || c.member("n1").Slots == 0 || c.member("n10").Slots == 0 {
		t.Errorf("%d slots were moved, %d and %d to the spares", moved, c.member("n1").Slots, c.member("n10").Slots)
	}
	want["new"] = noise(200_000, 3) // seven others are left, a group wants eight
	c.put("new", want["new"], api.PutOptions{})
	c.checkAll(want)
	c.audit()
}

// Groups that lie unevenly in their failure domains are spread again once there is room.
func TestFailureDomainsAreReestablished(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9).with(domains("abcdefghh"))
	c.answering()
	want := c.populate()
	if _, err := c.gateway.DownNode(t.Context(), "n3"); err != nil { // eight domains, then seven: two slots share h
		t.Fatal(err)
	}
	c.relocated()
	shared := func() (shared int) {
		t.Helper()
		views, err := c.catalog.ListGroups(t.Context(), block.GroupID{}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for i := range views {
			if home := views[i].Home; slices.Contains(home, "n8") && slices.Contains(home, "n9") {
				shared++
			}
		}
		return shared
	}
	if shared() == 0 {
		t.Fatal("no group has two slots in one domain: the test shows nothing")
	}
	if _, err := c.gateway.UpNode(t.Context(), "n3"); err != nil {
		t.Fatal(err)
	}
	c.relocated()
	if left := shared(); left != 0 {
		t.Errorf("%d groups still have two slots in one domain", left)
	}
	if again := c.relocated(); again.SlotsMoved+again.PlacesChanged != 0 {
		t.Errorf("and it does not come to rest: %+v", again)
	}
	c.checkAll(want)
	c.audit()
}

// A node that died is replaced by itself at another address with an empty store, and another one by a new node: both take
// new blocks at once, reads are served meanwhile, and repair fills them.
func TestReplacementsServeAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8) // every group lies on every node
	want := c.populate()
	died := c.agent("n2")
	died.stop()
	reborn := &testAgent{id: "n2", store: mem.New(0), address: "127.0.0.1:0"}
	c.startAgent(reborn)
	c.agents[slices.Index(c.agents, died)] = reborn
	if _, err := c.gateway.ReplaceNode(t.Context(), "n2", api.ReplaceRequest{Address: "nowhere"}); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("an address without a port: %v", err)
	}
	if node, err := c.gateway.ReplaceNode(t.Context(), "n2", api.ReplaceRequest{Address: reborn.address}); err != nil || node.Address != reborn.address {
		t.Fatalf("%+v, %v", node, err)
	}
	c.await("it takes new blocks", func() bool {
		return putWithin(t, c.gateway, "new", bytes.NewReader(noise(60_000, 1)), 60_000) == nil && c.nodesOf("new")["n2"] > 0
	})
	want["new"] = noise(60_000, 1)
	c.checkAll(want) // nothing is rebuilt yet
	if result := c.repaired(); result.SlotsRebuilt == 0 {
		t.Errorf("%+v", result)
	}
	for key := range want {
		if !c.whole(key) {
			t.Errorf("%s: %+v", key, c.stat(key).Groups[0].Slots)
		}
	}

	c.agent("n3").stop()
	c.noticed("n3", "suspect")
	added := c.addAgent()
	if _, err := c.gateway.ReplaceNode(t.Context(), "n3", api.ReplaceRequest{With: added.id}); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("a new node without an address: %v", err)
	}
	if node, err := c.gateway.ReplaceNode(t.Context(), "n3", api.ReplaceRequest{With: added.id, Address: added.address}); err != nil || node.State != "down" {
		t.Fatalf("%+v, %v", node, err)
	}
	want["newer"] = noise(60_000, 2)
	c.put("newer", want["newer"], api.PutOptions{})
	if c.nodesOf("newer")[added.id] == 0 {
		t.Error("the new node takes no blocks")
	}
	c.checkAll(want)
	c.repaired()
	c.relocated()
	if node := c.member("n3"); node.Slots != 0 {
		t.Errorf("%+v", node)
	}
	if err := removeNode(t.Context(), c.gateway, "n3"); err != nil {
		t.Error(err)
	}
	c.checkAll(want)
	c.agents = slices.DeleteFunc(c.agents, func(a *testAgent) bool { return a.id == "n3" })
	c.audit()
	survives(t, c, want)
}

// A node that takes connections and never answers is suspect within seconds; reads and writes go around it.
func TestHungNodeIsSuspect(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	want := c.populate()
	hung := c.agent("n7")
	hung.stop()
	listener, err := net.Listen("tcp", hung.address)
	if err != nil {
		t.Fatal(err)
	}
	var held []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			held = append(held, connection)
		}
	}()
	t.Cleanup(func() {
		err := listener.Close()
		<-done
		for _, connection := range held {
			err = errors.Join(err, connection.Close())
		}
		if err != nil {
			t.Error(err)
		}
	})
	c.noticed("n7", "suspect")
	began := time.Now()
	c.checkAll(want)
	want["new"] = noise(200_000, 5)
	c.put("new", want["new"], api.PutOptions{})
	c.check("new", want["new"])
	if c.nodesOf("new")["n7"] > 0 {
		t.Error("a suspect node was given blocks")
	}
	if took := time.Since(began); took > 8*time.Second { // a call waits for ten
		t.Errorf("reads and writes waited for it: %s", took)
	}
}

// A block that is missing on a node that drains is rebuilt elsewhere, from the others.
func TestDrainMeetsAMissingBlock(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	want := c.populate()
	drained := c.agent("n8")
	var gone string
	if err := drained.store.List(t.Context(), block.KeyPrefix, func(key string, _ int64) error {
		gone = key
		return nil
	}); err != nil || gone == "" {
		t.Fatalf("%q, %v", gone, err)
	}
	if err := drained.store.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if _, err := c.gateway.DrainNode(t.Context(), "n8", api.DrainRequest{}); err != nil {
		t.Fatal(err)
	}
	if result, err := c.gateway.Relocate(t.Context()); err != nil || result.GroupsFailed != 1 {
		t.Fatalf("%+v, %v", result, err)
	}
	result, err := c.gateway.Repair(t.Context(), false, false) // of what was reported
	if err != nil || result.SlotsRebuilt != 1 || len(result.Failed) > 0 {
		t.Errorf("%+v, %v", result, err)
	}
	if node := c.member("n8"); node.Slots != 0 {
		t.Errorf("%+v", node)
	}
	c.checkAll(want)
	c.audit()
}

// The names of a group's objects outlive the loss of every parity at once: m + 1 slots carry its manifest.
func TestManifestOutlivesTheParities(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	for _, slot := range c.stat("k").Groups[0].Slots[6:] {
		c.agent(slot.Node).store.Erase()
	}
	if result := c.repaired(); result.SlotsRebuilt != 2 {
		t.Fatalf("%+v", result)
	}
	view, err := c.catalog.Group(t.Context(), c.stat("k").Groups[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, slot := range []int{0, 6, 7} {
		item := view.Slots[slot][0]
		remote := wire.NewClient(c.agent(item.Node).address)
		var reply wire.HeaderReply
		_, err := remote.Call(t.Context(), wire.OpHeader, wire.HeaderRequest{Address: view.Address(slot, item)}, nil, &reply)
		if err = errors.Join(err, remote.Close()); err != nil {
			t.Fatal(err)
		}
		entries, err := block.DecodeManifest(reply.Header.Manifest)
		if err != nil || len(entries) != 1 || string(entries[0].Key) != "k" || entries[0].Length != int64(len(data)) {
			t.Errorf("slot %d carries %+v, %v", slot, entries, err)
		}
	}
}

// The requests about nodes, over HTTP.
func TestNodesOverHTTP(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	server := httptest.NewServer(c.gateway.Handler())
	t.Cleanup(server.Close)
	remote, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remote.Close)
	ctx := t.Context()
	list, err := remote.Nodes(ctx)
	if err != nil || len(list.Nodes) != 9 || list.Patience != (api.Patience{DownAfterSeconds: 30, OutAfterSeconds: 600}) {
		t.Fatalf("%+v, %v", list, err)
	}
	rate := int64(5 << 20)
	if node, err := remote.DrainNode(ctx, "n1", api.DrainRequest{BytesPerSecond: &rate}); err != nil || node.State != "draining" || node.Drain.BytesPerSecond != rate {
		t.Errorf("drain: %+v, %v", node, err)
	}
	if node, err := remote.UndrainNode(ctx, "n1"); err != nil || node.State != "up" {
		t.Errorf("undrain: %+v, %v", node, err)
	}
	if node, err := remote.DownNode(ctx, "n1"); err != nil || node.State != "down" || node.Since == nil {
		t.Errorf("down: %+v, %v", node, err)
	}
	if err := removeNode(ctx, remote, "n1"); err != nil {
		t.Errorf("remove: %v", err)
	}
	if _, err := remote.Node(ctx, "n1"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("a node that was removed: %v", err)
	}
	if node, err := remote.UpNode(ctx, "n1"); err != nil || node.Declared != "up" {
		t.Errorf("up: %+v, %v", node, err)
	}
	if _, err := remote.ReplaceNode(ctx, "n2", api.ReplaceRequest{With: "N?"}); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("replacing by a node of an impossible name: %v", err)
	}
	if err := removeNode(ctx, remote, "n2"); !errors.Is(err, api.ErrConflict) {
		t.Errorf("removing a node that is up: %v", err)
	}
	rack, spare := "rack9", true
	if node, err := remote.PlaceNode(ctx, "n9", api.PlaceRequest{Domain: &rack, Spare: &spare}); err != nil || node.Domain != rack || !node.Spare {
		t.Errorf("place: %+v, %v", node, err)
	}
	c.with() // whose node list says neither
	if node := c.member("n9"); node.Domain != rack || !node.Spare {
		t.Errorf("after a start of the gateway: %+v", node)
	}
	server.Config.Handler = c.gateway.Handler()
	if _, err := remote.SetPatience(ctx, api.Patience{DownAfterSeconds: 60, OutAfterSeconds: 10}); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("out before down: %v", err)
	}
	want := api.Patience{DownAfterSeconds: 20, OutAfterSeconds: -1}
	if now, err := remote.SetPatience(ctx, want); err != nil || now != want {
		t.Errorf("patience: %+v, %v", now, err)
	}
	list, err = remote.Nodes(ctx)
	if err != nil || list.Patience != want {
		t.Errorf("patience is kept as %+v, %v", list.Patience, err)
	}
}
