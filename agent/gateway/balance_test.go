package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/store/mem"
)

// Nodes that are added by a request, and blocks that are moved onto them.

const narrowClasses = `classes:
- {name: default, ladder: 'rs(4,2)', prefixes: [''], packBelow: 0, groupBytes: 64KiB}
`

// newNarrowCluster is a cluster of six nodes and more over all of which, at first, each group lies, and whose gateway works in the
// background.
func newNarrowCluster(t *testing.T, agents int, changes ...func(*gateway.Options)) *cluster {
	t.Helper()
	classes, err := api.ParseClasses([]byte(narrowClasses))
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, 0)
	c.stopGateway()
	c.classes = classes
	for range agents {
		c.addAgent()
	}
	c.with(append([]func(*gateway.Options){awake}, changes...)...)
	c.answering()
	return c
}

// brimful puts objects that fill groups, and returns them.
func (c *cluster) brimful(objects int) map[string][]byte {
	c.t.Helper()
	want := map[string][]byte{}
	for i := range objects {
		key := fmt.Sprint("object", i)
		want[key] = noise(128<<10, uint64(i))
		c.put(key, want[key], api.PutOptions{})
	}
	return want
}

// added makes agents members by requests.
func (c *cluster) added(agents ...*testAgent) {
	c.t.Helper()
	for _, agent := range agents {
		node, err := member.AddNode(c.t.Context(), c.gateway.Membership, agent.id, api.AddRequest{Address: agent.address})
		if err != nil || node.Node.State != catalog.NodeUp {
			c.t.Fatalf("adding node %s: %+v, %v", agent.id, node, err)
		}
	}
}

// bytesOn counts the bytes of slots on each node by the records.
func (c *cluster) bytesOn() (nodes map[block.NodeID]int64, all int64) {
	c.t.Helper()
	nodes = map[block.NodeID]int64{}
	for groups, err := range c.catalog.GroupRecords(c.t.Context()) {
		if err != nil {
			c.t.Fatal(err)
		}
		for i := range groups {
			for slot := range groups[i].Slots {
				id, _ := groups[i].Place(slot)
				nodes[id] += member.SlotBytes(&groups[i], slot)
				all += member.SlotBytes(&groups[i], slot)
			}
		}
	}
	return nodes, all
}

// shared demands that so many nodes each hold the same bytes, within 5 % or one slot.
func (c *cluster) shared(nodes int, slot int64) {
	c.t.Helper()
	held, all := c.bytesOn()
	fair := float64(all) / float64(nodes)
	for _, agent := range c.agents {
		if off := math.Abs(float64(held[agent.id]) - fair); off > max(fair/20, float64(slot)) {
			c.t.Errorf("node %s holds %d bytes of a share of %.0f: %v", agent.id, held[agent.id], fair, held)
		}
	}
}

func (c *cluster) balance() api.Balance {
	c.t.Helper()
	balance, err := c.gateway.Balance(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return balance
}

// balanced waits until the balance has ended.
func (c *cluster) balanced() api.Balance {
	c.t.Helper()
	c.await("the balance ends", func() bool { return c.balance().State == api.BalanceDone })
	return c.balance()
}

const slotBytes = 16 << 10 // of a column of a full group of newNarrowCluster

// Two nodes that are added to six get their share, over which no more is moved than they lack.
func TestBalanceFillsNewNodes(t *testing.T) {
	t.Parallel()
	c := newNarrowCluster(t, 6)
	want := c.brimful(24)
	n7, n8 := c.addAgent(), c.addAgent()
	c.added(n7, n8)
	if held, _ := c.bytesOn(); held["n7"]+held["n8"] != 0 {
		t.Fatal("something was moved though nobody asked for it")
	}
	want["new"] = noise(128<<10, 77)
	for i := range 4 {
		c.put(fmt.Sprint("new", i), want["new"], api.PutOptions{})
		want[fmt.Sprint("new", i)] = want["new"]
	}
	delete(want, "new")
	if held, _ := c.bytesOn(); held["n7"] == 0 || held["n8"] == 0 {
		t.Fatalf("new groups do not go to new nodes: %v", held)
	}
	c.await("the doctor says that a node holds little", func() bool { return c.doctorSays("node n7", "of its share of what is stored") })
	before, all := c.bytesOn()
	least := int64(0)
	for _, agent := range c.agents {
		least += max(0, all/8-before[agent.id])
	}
	unlimited := int64(0)
	plan, err := c.gateway.Plan(t.Context(), &unlimited)
	if err != nil || plan.Even || plan.Bytes < least-2*slotBytes || plan.Bytes > least+2*slotBytes || len(plan.Nodes) != 8 {
		t.Fatalf("%+v, %v; nodes lack %d bytes", plan, err, least)
	}
	if _, err := c.gateway.StartBalance(t.Context(), api.BalanceRequest{BytesPerSecond: &unlimited}); err != nil {
		t.Fatal(err)
	}
	done := c.balanced()
	if done.BytesMoved != plan.Bytes || done.SlotsMoved != plan.Slots || done.BytesLeft() != 0 || done.GroupsFailed != 0 || done.Note != "" {
		t.Errorf("%+v; the plan was %+v", done, plan)
	}
	// One block over the network for each that is moved, but for what requests and replies add.
	if sent := float64(done.BytesSent); sent < float64(plan.Bytes) || sent > 1.03*float64(plan.Bytes) {
		t.Errorf("%d bytes were sent for %d", done.BytesSent, plan.Bytes)
	}
	after, _ := c.bytesOn()
	gained := after["n7"] + after["n8"] - before["n7"] - before["n8"]
	if off := math.Abs(float64(gained-plan.Bytes)) / float64(plan.Bytes); off > 0.03 {
		t.Errorf("the new nodes have %d bytes more, and %d were to be moved", gained, plan.Bytes)
	}
	c.shared(8, slotBytes)
	c.await("the doctor does not say so any more", func() bool { return !c.doctorSays("node n7", "of its share of what is stored") })
	if plan, err := c.gateway.Plan(t.Context(), nil); err != nil || !plan.Even || plan.Bytes != 0 {
		t.Errorf("after it: %+v, %v", plan, err)
	}
	c.checkAll(want)
	c.audit()
}

// With d nodes added to N that are even, d/(N+d) of all bytes are moved, and no more.
func TestBalanceMovesTheLeast(t *testing.T) {
	t.Parallel()
	for _, d := range []int{1, 2, 3} {
		c := newNarrowCluster(t, 6)
		want := c.brimful(20)
		for range d {
			c.added(c.addAgent())
		}
		_, all := c.bytesOn()
		bound := float64(all) * float64(d) / float64(6+d)
		unlimited := int64(0)
		if _, err := c.gateway.StartBalance(t.Context(), api.BalanceRequest{BytesPerSecond: &unlimited}); err != nil {
			t.Fatal(err)
		}
		moved := float64(c.balanced().BytesMoved)
		if moved < bound-slotBytes*float64(d) || moved > bound+slotBytes*float64(d) {
			t.Errorf("%d of %d nodes are new: %.0f bytes were moved, the least is %.0f", d, 6+d, moved, bound)
		}
		t.Logf("%d new: moved %.4f of all bytes, the least is %.4f", d, moved/float64(all), bound/float64(all))
		c.shared(6+d, slotBytes)
		c.checkAll(want)
		c.audit()
	}
}

// A node is added only if its agent is what it should be.
func TestAddNodeRefuses(t *testing.T) {
	t.Parallel()
	c := newNarrowCluster(t, 6)
	other := newNarrowCluster(t, 6)
	fresh := c.addAgent()
	reserved := c.addAgent()
	reserved.stop()
	taken := &testAgent{id: "n20", store: c.agent("n2").store, address: "127.0.0.1:0"} // whose store is n2's
	c.startAgent(taken)
	t.Cleanup(taken.stop)
	for _, wrong := range []struct {
		id      block.NodeID
		request api.AddRequest
		class   error
		says    string
	}{
		{"N7", api.AddRequest{Address: fresh.address}, api.ErrBadRequest, "want only a-z"},
		{"n7", api.AddRequest{}, api.ErrBadRequest, "say at which address"},
		{"n7", api.AddRequest{Address: "nowhere"}, api.ErrBadRequest, "want host:port"},
		{"n7", api.AddRequest{Address: ":7400"}, api.ErrBadRequest, "want host:port"},
		{"n7", api.AddRequest{Address: fresh.address, Domain: strings.Repeat("x", 64)}, api.ErrBadRequest, "at most 63 bytes"},
		{"n8", api.AddRequest{Address: reserved.address}, api.ErrUnavailable, "start it there"},
		{"n9", api.AddRequest{Address: fresh.address}, api.ErrConflict, "says it is node n7, not n9"},
		{"n1", api.AddRequest{Address: fresh.address}, api.ErrConflict, "is a member already, at " + c.agent("n1").address},
		{"n9", api.AddRequest{Address: c.agent("n1").address}, api.ErrConflict, "is the address of node n1"},
		{"n1", api.AddRequest{Address: other.agent("n1").address}, api.ErrConflict, "is a member already"},
		{"n20", api.AddRequest{Address: taken.address}, api.ErrConflict, "this store is node n2's"},
	} {
		for _, dry := range []bool{true, false} {
			wrong.request.DryRun = dry
			_, err := member.AddNode(t.Context(), c.gateway.Membership, wrong.id, wrong.request)
			if !errors.Is(err, wrong.class) || !strings.Contains(err.Error(), wrong.says) {
				t.Errorf("adding %s with %+v: %v", wrong.id, wrong.request, err)
			}
		}
	}
	strange := other.addAgent() // n7 of another cluster
	other.added(strange)
	_, err := member.AddNode(t.Context(), c.gateway.Membership, "n7", api.AddRequest{Address: strange.address})
	if !errors.Is(err, api.ErrConflict) || !strings.Contains(err.Error(), "belongs to cluster") {
		t.Errorf("an agent of another cluster: %v", err)
	}
	if _, err := member.AddNode(t.Context(), c.gateway.Membership, "n7", api.AddRequest{Address: fresh.address, DryRun: true}); err != nil {
		t.Errorf("a dry run of what can be done: %v", err)
	}
	if list, err := c.gateway.Nodes(t.Context()); err != nil || len(list.Nodes) != 6 {
		t.Errorf("%d nodes after what was refused, %v", len(list.Nodes), err)
	}
	second := c.newGateway("second", awake, func(o *gateway.Options) { o.Nodes = nil })
	c.added(fresh)
	c.await("the other gateway knows the node", func() bool {
		node, err := second.Node(t.Context(), "n7")
		return err == nil && node.State == "up"
	})
	if _, err := c.gateway.DrainNode(t.Context(), "n7", api.DrainRequest{}); err != nil {
		t.Fatal(err)
	}
	c.await("it is removed", func() bool {
		done, err := c.gateway.RemoveNode(t.Context(), "n7")
		return done && err == nil
	})
	_, err = member.AddNode(t.Context(), c.gateway.Membership, "n7", api.AddRequest{Address: fresh.address})
	if !errors.Is(err, api.ErrConflict) || !strings.Contains(err.Error(), "restripe node up n7") {
		t.Errorf("adding a node that was removed: %v", err)
	}
}

// slowly is a rate at which a balance of these tests takes its time.
var slowly = int64(1 << 20)

// moving waits until a balance has moved something, and has more to move.
func (c *cluster) moving() {
	c.t.Helper()
	c.await("something was moved", func() bool { return c.balance().SlotsMoved > 0 })
	if balance := c.balance(); balance.BytesLeft() == 0 {
		c.t.Fatalf("it is over already: %+v", balance)
	}
}

// A balance is paused, resumed at another rate, and cancelled; another one ends it.
func TestBalanceIsPausedAndCancelled(t *testing.T) {
	t.Parallel()
	c := newNarrowCluster(t, 6)
	want := c.brimful(24)
	for name, steer := range map[string]func() error{
		"pause":  func() error { _, err := c.gateway.PauseBalance(t.Context()); return err },
		"resume": func() error { _, err := c.gateway.ResumeBalance(t.Context()); return err },
		"cancel": func() error { _, err := c.gateway.CancelBalance(t.Context()); return err },
	} {
		if err := steer(); !errors.Is(err, api.ErrConflict) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s of none: %v", name, err)
		}
	}
	negative := int64(-1)
	if _, err := c.gateway.StartBalance(t.Context(), api.BalanceRequest{BytesPerSecond: &negative}); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("a negative rate: %v", err)
	}
	c.added(c.addAgent(), c.addAgent())
	if _, err := c.gateway.StartBalance(t.Context(), api.BalanceRequest{BytesPerSecond: &slowly}); err != nil {
		t.Fatal(err)
	}
	c.moving()
	other := c.newGateway("other") // which steers what the first carries out
	paused, err := other.PauseBalance(t.Context())
	if err != nil || paused.State != api.BalancePaused {
		t.Fatalf("%+v, %v", paused, err)
	}
	var held map[block.NodeID]int64
	c.await("nothing is under way", func() bool {
		before := held
		held, _ = c.bytesOn()
		return before["n7"] == held["n7"] && before["n8"] == held["n8"]
	})
	if is := c.balance(); is.State != api.BalancePaused || is.Number != 1 {
		t.Fatalf("%+v", is)
	}
	faster := slowly * 2
	is, err := c.gateway.StartBalance(t.Context(), api.BalanceRequest{BytesPerSecond: &faster})
	if err != nil || is.State != api.BalancePaused || is.BytesPerSecond != faster {
		t.Errorf("another rate while it is paused: %+v, %v", is, err)
	}
	if is, err := c.gateway.ResumeBalance(t.Context()); err != nil || is.State != api.BalanceRunning || is.BytesPerSecond != faster {
		t.Fatalf("%+v, %v", is, err)
	}
	c.await("it goes on", func() bool { return c.balance().SlotsMoved > paused.SlotsMoved })
	cancelled, err := c.gateway.CancelBalance(t.Context())
	if err != nil || cancelled.State != api.BalanceCancelled || cancelled.Finished == nil {
		t.Fatalf("%+v, %v", cancelled, err)
	}
	before, _ := c.bytesOn()
	c.during(100*time.Millisecond, func() {})
	if after, _ := c.bytesOn(); before["n7"] != after["n7"] || c.balance().State != api.BalanceCancelled {
		t.Errorf("something was moved after it was cancelled: %v, %v", before, after)
	}
	unlimited := int64(0)
	is, err = c.gateway.StartBalance(t.Context(), api.BalanceRequest{BytesPerSecond: &unlimited})
	if err != nil || is.Number != 2 || is.BytesMoved != 0 {
		t.Fatalf("%+v, %v", is, err)
	}
	c.balanced()
	c.shared(8, slotBytes)
	c.checkAll(want)
	c.audit()
}

// A balance goes on at another gateway when that which carried it out is closed, and at its next start.
func TestBalanceGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	c := newNarrowCluster(t, 6)
	want := c.brimful(24)
	c.added(c.addAgent(), c.addAgent())
	plan, err := c.gateway.Plan(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := c.bytesOn()
	if _, err := c.gateway.StartBalance(t.Context(), api.BalanceRequest{BytesPerSecond: &slowly}); err != nil {
		t.Fatal(err)
	}
	c.moving()
	c.stopGateway()
	other, made := c.makeGateway("other", awake)
	c.catalog, c.gateway = other, made
	c.await("the other one has it", func() bool { return strings.HasPrefix(c.balance().Owner, "other/") })
	unlimited := int64(0)
	if _, err := c.gateway.StartBalance(t.Context(), api.BalanceRequest{BytesPerSecond: &unlimited}); err != nil {
		t.Fatal(err)
	}
	done := c.balanced()
	after, _ := c.bytesOn()
	gained := after["n7"] + after["n8"] - before["n7"] - before["n8"]
	if done.Number != 1 || math.Abs(float64(gained-plan.Bytes)) > 0.03*float64(plan.Bytes) ||
		math.Abs(float64(done.BytesMoved-plan.Bytes)) > 0.03*float64(plan.Bytes) {
		t.Errorf("%+v: %d bytes were moved, the plan was %d", done, gained, plan.Bytes)
	}
	c.shared(8, slotBytes)
	c.checkAll(want)
	c.audit()
}

// severed is an engine that takes no changes once it is cut off.
type severed struct {
	kv.Engine
	off atomic.Bool
}

// Update implements kv.Engine.
func (e *severed) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	if e.off.Load() {
		return nil, errors.New("cut off")
	}
	return e.Engine.Update(ctx, checks, writes)
}

// A gateway that stops to change anything, as one that was killed, has its balance taken over; back again, it leaves that alone.
func TestBalanceIsTakenOver(t *testing.T) {
	t.Parallel()
	c := newNarrowCluster(t, 6)
	want := c.brimful(24)
	c.added(c.addAgent(), c.addAgent())
	plan, err := c.gateway.Plan(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := c.bytesOn()
	engine := &severed{Engine: c.engine}
	dies := c.newGateway("dies", awake, c.over(engine))
	if _, err := dies.StartBalance(t.Context(), api.BalanceRequest{BytesPerSecond: &slowly}); err != nil {
		t.Fatal(err)
	}
	c.await("it moves", func() bool {
		balance, err := dies.Balance(t.Context())
		return err == nil && balance.SlotsMoved > 0
	})
	engine.off.Store(true)
	c.await("the other one has it", func() bool { return strings.HasPrefix(c.balance().Owner, "gw/") })
	engine.off.Store(false)
	done := c.balanced()
	after, _ := c.bytesOn()
	gained := after["n7"] + after["n8"] - before["n7"] - before["n8"]
	if done.Number != 1 || math.Abs(float64(gained-plan.Bytes)) > 0.03*float64(plan.Bytes) {
		t.Errorf("%+v: the new nodes gained %d bytes, the plan was %d", done, gained, plan.Bytes)
	}
	c.shared(8, slotBytes)
	c.checkAll(want)
	c.await("what the first had begun is settled", func() bool {
		for range c.catalog.AllIntents(t.Context()) {
			return false
		}
		return true
	})
	c.audit()
}

// While a balance goes on a node is drained, blocks are lost and rebuilt, and objects are put, written over and deleted.
func TestBalanceBesideOtherWork(t *testing.T) {
	t.Parallel()
	c := newNarrowCluster(t, 7)
	want := c.brimful(30)
	c.added(c.addAgent(), c.addAgent(), c.addAgent())
	if _, err := c.gateway.StartBalance(t.Context(), api.BalanceRequest{BytesPerSecond: &slowly}); err != nil {
		t.Fatal(err)
	}
	c.moving()
	if _, err := c.gateway.DrainNode(t.Context(), "n1", api.DrainRequest{}); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		key := fmt.Sprint("object", i)
		want[key] = noise(128<<10, uint64(200+i))
		c.put(key, want[key], api.PutOptions{})
		gone := fmt.Sprint("object", 10+i)
		if err := c.gateway.Delete(t.Context(), gone, nil); err != nil {
			t.Fatal(err)
		}
		delete(want, gone)
		c.lose(fmt.Sprint("object", 20+i), i)
	}
	c.repaired()
	unlimited := int64(0)
	if _, err := c.gateway.StartBalance(t.Context(), api.BalanceRequest{BytesPerSecond: &unlimited}); err != nil {
		t.Fatal(err)
	}
	c.await("the drain is done", func() bool {
		c.relocated()
		drain := c.member("n1").Drain
		return drain != nil && drain.SlotsLeft == 0
	})
	c.balanced()
	if _, err := c.gateway.StartBalance(t.Context(), api.BalanceRequest{BytesPerSecond: &unlimited}); err != nil { // of what came last
		t.Fatal(err)
	}
	c.balanced()
	held, all := c.bytesOn()
	for _, agent := range c.agents[1:] {
		if off := math.Abs(float64(held[agent.id]) - float64(all)/9); off > max(float64(all)/9/20, slotBytes) {
			t.Errorf("node %s holds %d bytes of a share of %d", agent.id, held[agent.id], all/9)
		}
	}
	for key := range want {
		if !c.whole(key) {
			t.Errorf("%s lacks blocks", key)
		}
	}
	c.checkAll(want)
	if held["n1"] != 0 {
		t.Errorf("%d bytes lie on the node that was drained", held["n1"])
	}
	c.audit()
}

// A group stays as evenly in its failure domains as it lies.
func TestBalanceKeepsFailureDomains(t *testing.T) {
	t.Parallel()
	c := newNarrowCluster(t, 6, domains("aabbcc"))
	want := c.brimful(20)
	n7 := c.addAgent()
	request := api.AddRequest{Address: n7.address, Domain: "a"}
	if _, err := member.AddNode(t.Context(), c.gateway.Membership, n7.id, request); err != nil {
		t.Fatal(err)
	}
	unlimited := int64(0)
	if _, err := c.gateway.StartBalance(t.Context(), api.BalanceRequest{BytesPerSecond: &unlimited}); err != nil {
		t.Fatal(err)
	}
	done := c.balanced()
	if done.BytesMoved == 0 || !strings.Contains(done.Note, "less evenly") {
		t.Errorf("%+v", done)
	}
	views, err := c.catalog.ListGroups(t.Context(), block.GroupID{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range views {
		rack := map[string]int{}
		for slot := range views[i].Slots {
			id, _ := views[i].Place(slot)
			rack[c.record(id).Domain]++
		}
		if rack["a"] != 2 || rack["b"] != 2 || rack["c"] != 2 {
			t.Errorf("a group lies as %v", rack)
		}
	}
	if again := c.relocated(); again.SlotsMoved+again.PlacesChanged != 0 {
		t.Errorf("what was moved is moved again: %+v", again)
	}
	c.checkAll(want)
	c.audit()
}

// The requests over HTTP.
func TestBalanceOverHTTP(t *testing.T) {
	t.Parallel()
	c := newNarrowCluster(t, 6)
	want := c.brimful(20)
	server := httptest.NewServer(c.gateway.Handler())
	t.Cleanup(server.Close)
	remote, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remote.Close)
	ctx, n7, n8 := t.Context(), c.addAgent(), c.addAgent()
	unlimited, negative := int64(0), int64(-1)
	for name, wrong := range map[string]api.AddRequest{
		"used for what":        {Address: n7.address, Use: "everything"},
		"a rate of nothing":    {Address: n7.address, BytesPerSecond: &unlimited},
		"a spare that is used": {Address: n7.address, Use: api.UseBalance, Spare: true},
		"a negative rate":      {Address: n7.address, Use: api.UseBalance, BytesPerSecond: &negative},
		"nowhere":              {Address: "nowhere"},
	} {
		if _, err := remote.AddNode(ctx, "n7", wrong); !errors.Is(err, api.ErrBadRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dry, err := remote.AddNode(ctx, "n7", api.AddRequest{Address: n7.address, Domain: "r7", Use: api.UseBalance, DryRun: true})
	if err != nil || dry.Node != nil || dry.Balance != nil || dry.Plan == nil || len(dry.Plan.Nodes) != 7 || dry.Plan.Bytes == 0 ||
		dry.Plan.Seconds != 3*float64(dry.Plan.Bytes)/float64(dry.Plan.BytesPerSecond) {
		t.Fatalf("a dry run: %+v, %v", dry, err)
	}
	added, err := remote.AddNode(ctx, "n7", api.AddRequest{Address: n7.address, Domain: "r7"})
	if err != nil || added.Balance != nil || added.Node == nil || added.Node.Domain != "r7" || added.Node.State != "up" ||
		added.Node.FairBytes <= 0 {
		t.Fatalf("%+v, %v", added, err)
	}
	if plan, err := remote.PlanBalance(ctx, &unlimited); err != nil || plan.Bytes != dry.Plan.Bytes || plan.Seconds != -1 {
		t.Errorf("%+v, %v; the dry run said %+v", plan, err, dry.Plan)
	}
	if _, err := remote.PlanBalance(ctx, &negative); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("a plan at a negative rate: %v", err)
	}
	if _, err := remote.PauseBalance(ctx); !errors.Is(err, api.ErrConflict) {
		t.Errorf("pausing none: %v", err)
	}
	added, err = remote.AddNode(ctx, "n8", api.AddRequest{Address: n8.address, Use: api.UseBalance, BytesPerSecond: &slowly})
	if err != nil || added.Balance == nil || added.Balance.BytesPerSecond != slowly || added.Balance.State != api.BalanceRunning {
		t.Fatalf("%+v, %v", added, err)
	}
	list, err := remote.Nodes(ctx)
	if err != nil || list.Balance == nil || list.Balance.Number != 1 {
		t.Errorf("%+v, %v", list.Balance, err)
	}
	if status, err := remote.Status(ctx); err != nil || status.Balance == nil {
		t.Errorf("the status does not tell of it: %v", err)
	}
	if is, err := remote.PauseBalance(ctx); err != nil || is.State != api.BalancePaused {
		t.Errorf("%+v, %v", is, err)
	}
	if is, err := remote.ResumeBalance(ctx); err != nil || is.State != api.BalanceRunning {
		t.Errorf("%+v, %v", is, err)
	}
	is, err := remote.StartBalance(ctx, api.BalanceRequest{BytesPerSecond: &unlimited})
	if err != nil || is.Number != 1 || is.BytesPerSecond != 0 {
		t.Errorf("%+v, %v", is, err)
	}
	c.balanced()
	if _, err := remote.CancelBalance(ctx); !errors.Is(err, api.ErrConflict) {
		t.Errorf("cancelling what has ended: %v", err)
	}
	if is, err := remote.Balance(ctx); err != nil || is.State != api.BalanceDone {
		t.Errorf("%+v, %v", is, err)
	}
	c.shared(8, slotBytes)
	c.checkAll(want)
	c.audit()
}

// A balance waits while a node that takes part is silent, and moves nothing to spares, to nodes that are leaving, and to stores that are
// almost full.
func TestBalanceLeavesNodesAlone(t *testing.T) {
	t.Parallel()
	c := newNarrowCluster(t, 6)
	want := c.brimful(24)
	spare, draining, fresh := c.addAgent(), c.addAgent(), c.addAgent()
	full := c.addAgent(func(a *testAgent) { a.store = mem.New(1 << 20) })
	if err := full.store.Create(t.Context(), "of-somebody-else", make([]byte, 1000<<10)); err != nil {
		t.Fatal(err)
	}
	c.added(draining, fresh, full)
	if _, err := member.AddNode(t.Context(), c.gateway.Membership, spare.id, api.AddRequest{Address: spare.address, Spare: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.gateway.DrainNode(t.Context(), draining.id, api.DrainRequest{}); err != nil {
		t.Fatal(err)
	}
	fresh.stop()
	c.noticed(fresh.id, "suspect")
	unlimited := int64(0)
	if _, err := c.gateway.StartBalance(t.Context(), api.BalanceRequest{BytesPerSecond: &unlimited}); err != nil {
		t.Fatal(err)
	}
	c.await("it waits", func() bool { return strings.Contains(c.balance().Waits, string(fresh.id)) })
	c.startAgent(fresh)
	done := c.balanced()
	held, all := c.bytesOn()
	if held[spare.id]+held[draining.id]+held[full.id] != 0 || held[fresh.id] < all/7-2*slotBytes || held[fresh.id] > all/7+2*slotBytes {
		t.Errorf("%v of %d: %+v", held, all, done)
	}
	c.checkAll(want)
	c.audit()
}
