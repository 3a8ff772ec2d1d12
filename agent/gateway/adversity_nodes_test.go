package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/store/mem"
)

// Nodes that leave, return, move and lie; gateways that hand work to each other.

// noticed awaits that the gateway holds a node to be in a state.
func (c *cluster) noticed(id block.NodeID, state string) {
	c.t.Helper()
	c.await(fmt.Sprintf("node %s is noticed to be %s", id, state), func() bool {
		status, err := c.gateway.Status(c.t.Context())
		return err == nil && slices.ContainsFunc(status.Nodes, func(node api.NodeStatus) bool {
			return node.ID == id && node.State == state
		})
	})
}

// whole reports whether every slot of the object's first group is stored on a node that answers.
func (c *cluster) whole(key string) bool {
	return !slices.ContainsFunc(c.stat(key).Groups[0].Slots, func(slot api.SlotStat) bool { return slot.State != "ok" })
}

// Groups that wait for a node when their transition is paused are still taken along when it goes on.
func TestPausedTransitionKeepsItsWaitingGroups(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	const groups = 24
	data := noise(64<<10*groups, 1)
	c.put("k", data, api.PutOptions{})
	c.agents[0].stop() // most groups have a slot there
	begun, err := c.gateway.StartTransition(t.Context(), api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: "rs(3,2)"})
	if err != nil {
		t.Fatal(err)
	}
	c.await("groups wait", func() bool {
		now, err := c.gateway.Transition(t.Context(), begun.ID)
		return err == nil && strings.HasPrefix(now.Error, "waiting with ") && strings.Contains(now.Error, "n1") && now.Attempts > groups
	})
	paused, err := c.gateway.PauseTransition(t.Context(), begun.ID)
	if err != nil || paused.State != api.TransitionPaused || paused.GroupsDone == groups {
		t.Fatalf("paused: %+v, %v", paused, err)
	}
	c.startAgent(c.agents[0])
	if _, err := c.gateway.ResumeTransition(t.Context(), begun.ID, nil); err != nil {
		t.Fatal(err)
	}
	if done := c.ended(begun.ID); done.State != api.TransitionDone || done.GroupsTotal != groups || done.GroupsDone+done.GroupsSkipped != groups || done.Error != "" {
		t.Errorf("at the end: %+v", done)
	}
	for _, group := range c.stat("k").Groups {
		if group.Scheme != "rs(3,2)" {
			t.Errorf("group %s was left under %s", group.ID, group.Scheme)
		}
	}
	c.check("k", data)
	c.noticed("n1", "up") // so that its dead blocks are deleted
	c.audit()
}

// A transition that meets a damaged block, in whichever slot, has it rebuilt and goes on with the right bytes.
func TestTransitionRebuildsDamagedBlocks(t *testing.T) {
	t.Parallel()
	for class, to := range map[string]string{"odd": "rs(5,2)", "default": "rs(3,2)"} {
		t.Run(class, func(t *testing.T) {
			c := newCluster(t, 9)
			prefix := map[string]string{"odd": "odd/"}[class]
			slots := map[string]int{"odd": 7, "default": 8}[class]
			want := map[string][]byte{}
			for slot := range slots {
				key := fmt.Sprint(prefix, slot)
				want[key] = noise(60_000, uint64(slot))
				c.put(key, want[key], api.PutOptions{})
				c.damage(key, slot)
			}
			done := c.transition(api.TransitionRequest{Selector: api.Selector{Class: class}, To: to})
			if done.State != api.TransitionDone || done.GroupsDone != int64(slots) || done.Attempts <= done.GroupsDone {
				t.Fatalf("%+v", done)
			}
			for key, data := range want {
				c.check(key, data)
			}
			if result, err := c.gateway.Repair(t.Context(), true, true); err != nil || len(result.Failed) > 0 { // of what the plans did not read
				t.Errorf("repair: %+v, %v", result, err)
			}
			c.audit()
			survives(t, c, want)
		})
	}
}

// What lay on a node that is gone for good is rebuilt on a free one.
func TestRepairReplacesANodeThatIsGone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	gone := c.agent(c.stat("k").Groups[0].Slots[0].Node)
	gone.stop()
	if _, err := c.catalog.ChangeNode(t.Context(), c.record(gone.id), catalog.Node{ID: gone.id, Address: gone.address, State: catalog.NodeDown}); err != nil {
		t.Fatal(err)
	}
	var rebuilt int
	c.await("the lost slot is rebuilt", func() bool {
		result, err := c.gateway.Repair(t.Context(), true, true)
		rebuilt += result.SlotsRebuilt
		return err == nil && len(result.Failed) == 0 && rebuilt > 0
	})
	if slot := c.stat("k").Groups[0].Slots[0]; rebuilt != 1 || slot.Node == gone.id || !c.whole("k") {
		t.Errorf("%d slots were rebuilt, and then: %+v", rebuilt, c.stat("k"))
	}
	c.check("k", data)
}

// What lies on a node that is away is left alone, and what others lost meanwhile is rebuilt.
func TestRepairLeavesANodeThatIsAwayAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	was := c.stat("k").Groups[0].Slots
	away := c.agent(was[0].Node)
	away.stop()
	c.noticed(away.id, "suspect")
	if result, err := c.gateway.Repair(t.Context(), true, true); err != nil || len(result.Failed) > 0 || result.SlotsRebuilt != 0 {
		t.Errorf("with a node away: %+v, %v", result, err)
	}
	c.agent(was[1].Node).store.Erase()
	if result, err := c.gateway.Repair(t.Context(), true, true); err != nil || len(result.Failed) > 0 || result.SlotsRebuilt != 1 {
		t.Errorf("with a node away and another store emptied: %+v, %v", result, err)
	}
	c.check("k", data)
	now := c.stat("k").Groups[0].Slots
	if now[0].Node != away.id || now[0].State != "unreachable" || now[1].State != "ok" {
		t.Errorf("slots: %+v", now)
	}
	c.startAgent(away)
	c.await("the node is back with what it had", func() bool { return c.whole("k") })
	c.noticed(away.id, "up")
	c.audit()
	survives(t, c, map[string][]byte{"k": data})
}

// A node that is entered through the catalog, and one that changes its address, are served to without a restart.
func TestGatewayLearnsOfNewNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 7) // one too few for class default
	data := noise(60_000, 1)
	if err := putWithin(t, c.gateway, "k", bytes.NewReader(data), int64(len(data))); !errors.Is(err, api.ErrTooFewNodes) {
		t.Fatalf("on seven nodes: %v", err)
	}
	added := c.addAgent()
	entered, err := c.catalog.ChangeNode(t.Context(), catalog.Node{}, catalog.Node{ID: added.id, Address: added.address, State: catalog.NodeUp})
	if err != nil {
		t.Fatal(err)
	}
	c.await("the new node is used", func() bool {
		return putWithin(t, c.gateway, "k", bytes.NewReader(data), int64(len(data))) == nil
	})
	c.check("k", data)
	stopOld := added.stop
	added.address = "127.0.0.1:0" // another one: the old one is still taken
	c.startAgent(added)
	stopOld()
	moved := entered
	moved.Address = added.address
	if _, err := c.catalog.ChangeNode(t.Context(), entered, moved); err != nil {
		t.Fatal(err)
	}
	c.await("it is found at its new address", func() bool { return c.whole("k") })
	c.check("k", data)
	c.audit()
}

// An address that another agent answers at by now, as pods' addresses do, costs a degraded read; the other agent's blocks
// are left alone.
func TestAddressTakenByAnotherAgent(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	replaced := c.agent(c.stat("k").Groups[0].Slots[0].Node)
	replaced.stop()
	stranger := &testAgent{id: "stranger", store: mem.New(0), address: replaced.address}
	c.startAgent(stranger)
	t.Cleanup(func() { stranger.stop() })
	theirs := block.Address{Node: stranger.id, Group: block.GroupID{Stamp: block.Stamp{Sequence: 1}}, Stamp: block.Stamp{Sequence: 1}}
	if err := stranger.store.Create(t.Context(), theirs.Key(), []byte("of another cluster")); err != nil {
		t.Fatal(err)
	}
	c.check("k", data) // at once
	c.noticed(replaced.id, "suspect")
	c.check("k", data) // and once it is known
	for range 2 {
		if _, err := c.gateway.Sweep(t.Context(), api.SweepRequest{}); err != nil {
			t.Errorf("sweep: %v", err)
		}
	}
	if _, err := stranger.store.ReadAt(t.Context(), theirs.Key(), make([]byte, 1), 0); err != nil {
		t.Errorf("a block of another agent: %v", err)
	}
	stranger.stop()
	c.startAgent(replaced)
	c.await("the node is back at its address", func() bool { return c.whole("k") })
}

// A registration of contents that are no more is refused, whatever the gateway knew when it asked the agent.
func TestLateRegistrationIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	incarnation := func() block.Incarnation {
		t.Helper()
		known, err := c.catalog.Incarnations(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return known["n1"]
	}
	before := incarnation()
	c.agents[0].store.Erase()
	c.put("k", noise(60_000, 1), api.PutOptions{}) // registers the new contents
	after := incarnation()
	if after == before {
		t.Fatal("the store was emptied and the catalog does not know")
	}
	for _, was := range []block.Incarnation{"", before, after} {
		if err := c.catalog.RegisterIncarnation(t.Context(), "n1", was, before); !errors.Is(err, catalog.ErrStale) {
			t.Errorf("registering what was there before, over %q: %v", was, err)
		}
	}
	if now := incarnation(); now != after {
		t.Fatalf("the catalog holds contents %s, the store %s", now, after)
	}
	c.put("k2", noise(60_000, 2), api.PutOptions{})
	if !c.whole("k") {
		t.Errorf("%+v", c.stat("k"))
	}
	c.audit()
}

// A transition that another gateway pauses and resumes is that gateway's: the first one lets go of it.
func TestTransitionResumedElsewhereHasOneRunner(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	other := c.newGateway("gw-b")
	const groups = 60
	data := noise(64<<10*groups, 1)
	c.put("k", data, api.PutOptions{})
	begun, err := c.gateway.StartTransition(t.Context(), api.TransitionRequest{
		Selector: api.Selector{Class: "default"}, To: "rs(3,2)", BytesPerSecond: 512 << 10,
	})
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
	// A gateway shows the record of a transition that it does not run, and live numbers of one that it runs.
	var shown api.Transition
	runs := func(g *gateway.Gateway) bool {
		job, err := c.catalog.Job(t.Context(), begun.ID)
		if err != nil {
			t.Fatal(err)
		}
		var record struct{ Transition api.Transition }
		if err := json.Unmarshal(job.Body, &record); err != nil {
			t.Fatal(err)
		}
		if job.Owner != "gw-b" {
			t.Fatalf("the transition is of %s, after gw-b resumed it", job.Owner)
		}
		if shown, err = g.Transition(t.Context(), begun.ID); err != nil {
			t.Fatal(err)
		}
		return !reflect.DeepEqual(shown, record.Transition)
	}
	c.await("the first gateway lets go of it", func() bool { return !runs(c.gateway) })
	if shown.State != api.TransitionRunning {
		t.Fatalf("it ended before the first gateway let go: %+v", shown)
	}
	if !runs(other) {
		t.Error("the gateway that resumed it does not run it")
	}
	unlimited := int64(0)
	if _, err := other.ResumeTransition(t.Context(), begun.ID, &unlimited); err != nil {
		t.Fatal(err)
	}
	if done := c.ended(begun.ID); done.State != api.TransitionDone {
		t.Errorf("%+v", done)
	}
	for _, group := range c.stat("k").Groups {
		if group.Scheme != "rs(3,2)" {
			t.Errorf("group %s was left under %s", group.ID, group.Scheme)
		}
	}
	c.check("k", data)
	c.audit()
}

// Keys of any bytes name the same object in every request of the HTTP interface, whatever paths mean elsewhere.
func TestKeysOverHTTP(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	server := httptest.NewServer(c.gateway.Handler())
	t.Cleanup(server.Close)
	transport, err := client.New(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.Close)
	ctx := t.Context()
	keys := []string{
		".", "..", "/", "//", "///", "a/", "/a", "a//b", "a/./b", "a/../b", "../../etc", "%2F", "%2e%2e", "100%", "a b", "a+b",
		"?x=1#y", "a;b=c", "ä", "\xff\x00\n", `"quoted"`, "stat/k", strings.Repeat("k", 1000),
	}
	for i, key := range keys {
		if _, err := transport.Put(ctx, key, bytes.NewReader(noise(200+i, uint64(i))), client.PutOptions{Size: int64(200 + i), SizeKnown: true}); err != nil {
			t.Fatalf("put of %q: %v", key, err)
		}
	}
	for i, key := range keys {
		want := noise(200+i, uint64(i))
		c.check(key, want) // under exactly that key
		if _, err := transport.Update(ctx, key, 5, strings.NewReader("patch"), 5); err != nil {
			t.Errorf("update of %q: %v", key, err)
		}
		copy(want[5:], "patch")
		content, err := transport.Get(ctx, key, client.Range{})
		if err != nil {
			t.Errorf("get of %q: %v", key, err)
			continue
		}
		got, err := io.ReadAll(content)
		if err = errors.Join(err, content.Close()); err != nil || !bytes.Equal(got, want) {
			t.Errorf("get of %q: %d bytes, %v", key, len(got), err)
		}
		if stat, err := transport.Stat(ctx, key); err != nil || stat.Key64 != api.EncodeKey(key) {
			t.Errorf("stat of %q: %+v, %v", key, stat, err)
		}
	}
	seen := map[string]bool{}
	for object, err := range transport.Objects(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		key, err := api.DecodeKey(object.Key64)
		if err != nil {
			t.Fatal(err)
		}
		seen[key] = true
	}
	for _, key := range keys {
		if !seen[key] {
			t.Errorf("%q is not listed", key)
		}
		if err := transport.Delete(ctx, key); err != nil {
			t.Errorf("delete of %q: %v", key, err)
		}
		if _, err := c.read(key); !errors.Is(err, catalog.ErrNoObject) {
			t.Errorf("%q after its delete: %v", key, err)
		}
	}
	if len(seen) != len(keys) {
		t.Errorf("%d objects are listed, %d were put", len(seen), len(keys))
	}
	if status := statusOfPut(t, server.URL+"/v1/objects/", "x"); status != http.StatusBadRequest {
		t.Errorf("a put without a key: status %d", status)
	}
}

// statusOfPut sends a put to a path as it stands.
func statusOfPut(t *testing.T, url, body string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}

// A repair pass ends though clients keep writing new groups faster than it looks at them.
func TestRepairEndsWhileObjectsKeepComing(t *testing.T) {
	c := newCluster(t, 8)
	c.put("k", noise(64<<10*20, 1), api.PutOptions{})
	done := make(chan struct{})
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					c.put(fmt.Sprint("new", i), noise(8000, uint64(i)), api.PutOptions{})
				}
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	result, err := c.gateway.Repair(ctx, true, false)
	close(done)
	writers.Wait()
	if err != nil || len(result.Failed) > 0 || result.GroupsChecked < 20 {
		t.Errorf("%+v, %v", result, err)
	}
}

// What nobody knows to be wrong yet must not become too much by dropping a parity: going down in m reads what stays first.
func TestLoweringMReadsWhatStays(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	want := noise(60_000, 7)
	c.put("firm/k", want, api.PutOptions{Scheme: "rs(3,3)"})
	for _, slot := range []int{0, 1, 6} { // two cells of the first stripe, and row 0
		c.damage("firm/k", slot)
	}
	done := c.transition(api.TransitionRequest{Selector: api.Selector{Class: "firm"}, To: "rs(3,2)"})
	if done.State != api.TransitionDone || done.GroupsDone != 1 {
		t.Fatalf("%+v", done)
	}
	c.check("firm/k", want)
	c.audit()
	survives(t, c, map[string][]byte{"firm/k": want})
}
