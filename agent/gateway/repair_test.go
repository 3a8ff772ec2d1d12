package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store/decorate"
	"github.com/restripe/restripe/agent/store/mem"
	"github.com/restripe/restripe/agent/stripe"
)

// awake has a gateway's loops run, with turns so far apart that only what wakes them counts.
func awake(o *gateway.Options) { o.SweepEvery = time.Hour }

// degradedReads reads the gateway's counter of fragments that were decoded.
func degradedReads(t *testing.T, g *gateway.Gateway) int {
	t.Helper()
	answer := httptest.NewRecorder()
	g.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	match := regexp.MustCompile(`(?m)^restripe_gateway_degraded_reads_total (\d+)$`).FindStringSubmatch(answer.Body.String())
	if match == nil {
		t.Fatal("the counter of degraded reads is gone")
	}
	count, err := strconv.Atoi(match[1])
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func (c *cluster) repairStatus(g *gateway.Gateway) api.RepairStatus {
	c.t.Helper()
	status, err := g.RepairStatus(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return status
}

// allWhole reports whether every slot of every group of the object is there.
func (c *cluster) allWhole(key string) bool {
	for _, group := range c.stat(key).Groups {
		for _, slot := range group.Slots {
			if slot.State != "ok" {
				return false
			}
		}
	}
	return true
}

// A degraded read has what it met rebuilt at once: the next one does not decode.
func TestDegradedReadIsTheLastOne(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	c.reads = api.RepairWake
	g := c.newGateway("other", awake)
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	c.damage("k", 2)
	if got, err := c.readFrom(g, "k"); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("the read that meets the damage: %v", err)
	}
	met := degradedReads(t, g)
	if met == 0 {
		t.Fatal("the first read met no damage")
	}
	c.await("the slot is rebuilt", func() bool { return c.repairStatus(g).SlotsRebuilt == 1 })
	if got, err := c.readFrom(g, "k"); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("the read after it: %v", err)
	}
	if again := degradedReads(t, g); again != met {
		t.Errorf("%d fragments were decoded by the first read, %d by both", met, again)
	}
	status := c.repairStatus(g)
	if status.Pass == nil || status.Pass.GroupsRepaired != 1 || status.Pass.BytesDone == 0 || status.Pass.Finished == nil && status.State != api.RepairRunning {
		t.Errorf("%+v, pass %+v", status, status.Pass)
	}
}

// A read that asks for it decodes nothing itself: the nodes rebuild what it misses, then it reads that.
func TestReadThatRepairsFirst(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	c.damage("k", 3)
	for _, moment := range []string{"first", "second"} {
		reader, err := c.gateway.Open(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		reader.RepairFirst()
		var got bytes.Buffer
		if err := reader.WriteTo(t.Context(), &got, 0, reader.Size()); err != nil || !bytes.Equal(got.Bytes(), data) {
			t.Fatalf("the %s read: %v", moment, err)
		}
		if decoded := degradedReads(t, c.gateway); decoded != 0 {
			t.Errorf("the %s read decoded %d fragments", moment, decoded)
		}
	}
	if status := c.repairStatus(c.gateway); status.SlotsRebuilt != 1 || status.Measured.BlocksSent == 0 || !c.allWhole("k") {
		t.Errorf("%+v", status)
	}
	c.audit()
}

// What the records show to be lost is rebuilt without a look at the nodes first: the survivors are looked at once, before the
// commit. What is missing besides is found on the way, be it read for the rebuild or not.
func TestRepairTrustsTheRecordsFirst(t *testing.T) {
	t.Parallel()
	var looks atomic.Int64
	c := newCluster(t, 9, func(agent *testAgent) {
		agent.wrap = (&decorate.Fault{Rule: func(call decorate.Call) decorate.Effect {
			if call.Operation == decorate.ReadAt && call.Size == 2 { // across the end of a block
				looks.Add(1)
			}
			return decorate.Effect{}
		}}).Wrap
	})
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	first := c.stat("k").Groups[0].Slots[0].Node
	for _, unseen := range [][]int{nil, {1}, {6}, {7}} {
		for _, slot := range unseen {
			c.lose("k", slot)
		}
		c.agent(first).store.Erase()
		if _, err := c.gateway.Doctor(t.Context()); err != nil { // registers the new contents
			t.Fatal(err)
		}
		looks.Store(0)
		result, err := c.gateway.Repair(t.Context(), false, false)
		if err != nil || len(result.Failed) > 0 || result.SlotsRebuilt != 1+len(unseen) {
			t.Fatalf("with slot 0 and %v lost: %+v, %v", unseen, result, err)
		}
		if looked := looks.Load(); unseen == nil && looked != 7 {
			t.Errorf("%d looks at 7 survivors", looked)
		}
		if !c.allWhole("k") {
			t.Errorf("with slot 0 and %v lost it is not whole", unseen)
		}
		c.check("k", data)
	}
	c.audit()
}

// Every shape rebuilds the same bytes and costs what its plan says: k blocks sent for each that was lost, k + 1 with an
// initiator.
func TestShapesOfRepair(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	for i, shape := range append(stripe.RepairShapes(), "") {
		for _, whole := range []bool{false, true} {
			c.damage("k", i)
			result, err := c.gateway.RepairAs(t.Context(), api.RepairRequest{Deep: true, Shape: string(shape), Whole: whole})
			if err != nil || len(result.Failed) > 0 || result.SlotsRebuilt != 1 {
				t.Fatalf("shape %q: %+v, %v", shape, result, err)
			}
			expectAsPlanned(t, string(shape), result.Measured, result.Predicted)
			want := int64(6)
			if shape == stripe.RepairInitiator {
				want = 7
			}
			if sent := result.Measured.BlocksSent; sent != want*result.Measured.BlocksWritten {
				t.Errorf("shape %q sent %d blocks for %d lost ones", shape, sent, result.Measured.BlocksWritten)
			}
			c.check("k", data)
		}
	}
	c.audit()
	if _, err := c.gateway.RepairAs(t.Context(), api.RepairRequest{Shape: "ring"}); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("shape ring: %v", err)
	}
}

// Paused, nothing is rebuilt but what somebody asks for; that outlives the gateway.
func TestRepairIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	if status, err := c.gateway.PauseRepair(t.Context()); err != nil || status.State != api.RepairPaused {
		t.Fatalf("%+v, %v", status, err)
	}
	g := c.newGateway("other", awake)
	c.damage("k", 2)
	for i := range 2 {
		before := degradedReads(t, g)
		if got, err := c.readFrom(g, "k"); err != nil || !bytes.Equal(got, data) || degradedReads(t, g) == before {
			t.Fatalf("read %d: %v", i, err)
		}
	}
	if status := c.repairStatus(g); status.State != api.RepairPaused || status.Reported != 1 || status.SlotsRebuilt != 0 {
		t.Errorf("paused: %+v", status)
	}
	if _, err := g.ResumeRepair(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.await("the slot is rebuilt", func() bool { return c.repairStatus(g).SlotsRebuilt == 1 })
	if _, err := g.PauseRepair(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.damage("k", 1)
	if result, err := g.Repair(t.Context(), true, true); err != nil || result.SlotsRebuilt != 1 {
		t.Errorf("asked for while paused: %+v, %v", result, err)
	}
	c.check("k", data)
}

// Deferred, what was lost with a store waits for as long as its groups survive a further loss; what reads meet does not wait.
func TestRepairIsDeferred(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	slots := c.stat("k").Groups[0].Slots
	now := time.Now()
	for _, request := range []api.DeferRequest{{Until: now.Add(2 * 366 * 24 * time.Hour)}, {Until: now.Add(time.Hour), By: strings.Repeat("x", 301)}} {
		if _, err := c.gateway.DeferRepair(t.Context(), request); !errors.Is(err, api.ErrBadRequest) {
			t.Errorf("%v: %v", request, err)
		}
	}
	until := now.Add(time.Hour).Truncate(time.Millisecond)
	status, err := c.gateway.DeferRepair(t.Context(), api.DeferRequest{Until: until, By: "the night"})
	if err != nil || status.State != api.RepairDeferred || status.DeferredUntil == nil || !status.DeferredUntil.Equal(until) || status.DeferredBy != "the night" {
		t.Fatalf("%+v, %v", status, err)
	}
	g := c.newGateway("other", func(o *gateway.Options) { o.SweepEvery = 10 * time.Millisecond })
	empty := func(slot int) {
		t.Helper()
		agent := c.agent(slots[slot].Node)
		agent.stop()
		agent.store = mem.New(0)
		c.startAgent(agent)
	}
	empty(0)
	c.await("the group waits", func() bool {
		status := c.repairStatus(g)
		return status.Waiting == 1 && status.State == api.RepairDeferred
	})
	if status := c.repairStatus(g); status.SlotsRebuilt != 0 {
		t.Errorf("while one is lost: %+v", status)
	}
	empty(1)
	c.await("a group that survives no further loss is rebuilt", func() bool { return c.repairStatus(g).SlotsRebuilt == 2 })
	empty(2)
	c.await("the group waits again", func() bool { return c.repairStatus(g).Waiting == 1 })
	if _, err := c.gateway.DeferRepair(t.Context(), api.DeferRequest{Until: time.Now().Add(300 * time.Millisecond)}); err != nil {
		t.Fatal(err)
	}
	c.await("the group is rebuilt once the time has come", func() bool { return c.repairStatus(g).SlotsRebuilt == 3 })
	c.await("nothing is deferred and the pass ends", func() bool {
		status := c.repairStatus(g)
		return status.State == api.RepairIdle && status.DeferredUntil == nil && status.Waiting == 0
	})
	if _, err := g.DeferRepair(t.Context(), api.DeferRequest{Until: until}); err != nil {
		t.Fatal(err)
	}
	if status, err := g.ResumeRepair(t.Context()); err != nil || status.State == api.RepairDeferred || status.DeferredUntil != nil {
		t.Errorf("resumed: %+v, %v", status, err)
	}
	c.damage("k", 3)
	if _, err := g.DeferRepair(t.Context(), api.DeferRequest{Until: until}); err != nil {
		t.Fatal(err)
	}
	c.await("what a read meets is rebuilt", func() bool {
		if got, err := c.readFrom(g, "k"); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("reading: %v", err)
		}
		return c.repairStatus(g).SlotsRebuilt == 4
	})
	c.check("k", data)
}

// A pass waits for its budget, and goes on as soon as that allows it; a pass that a gateway leaves undone is begun anew
// by the next.
func TestRepairKeepsToItsBudgetAndBeginsAnew(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	want := map[string][]byte{}
	for i := range 6 {
		key := fmt.Sprint("k", i)
		want[key] = noise(70_000, uint64(i))
		c.put(key, want[key], api.PutOptions{Scheme: "rs(6,2)"})
	}
	rate, none, wrong := int64(1), int64(0), int64(-1)
	if _, err := c.gateway.ThrottleRepair(t.Context(), api.ThrottleRequest{NodeBytesPerSecond: &wrong}); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("a rate below zero: %v", err)
	}
	if status := c.repairStatus(c.gateway); status.NodeBytesPerSecond == 0 || status.BytesPerSecond != 0 {
		t.Errorf("by default: %+v", status)
	}
	if status, err := c.gateway.ThrottleRepair(t.Context(), api.ThrottleRequest{NodeBytesPerSecond: &rate}); err != nil || status.NodeBytesPerSecond != 1 {
		t.Fatalf("%+v, %v", status, err)
	}
	c.agents[0].store.Erase()
	lost := 0
	_, first := c.makeGateway("first", awake)
	c.await("a pass waits for its budget", func() bool {
		status := c.repairStatus(first)
		if status.Pass == nil || status.Pass.GroupsTotal == 0 {
			return false
		}
		lost = status.Pass.GroupsTotal
		if status.State != api.RepairRunning || status.Pass.GroupsChecked != 0 || status.Pass.BytesTotal == 0 || status.Pass.BySpare[1] != int64(lost) {
			t.Fatalf("%+v, pass %+v", status, status.Pass)
		}
		return true
	})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := c.newGateway("first", awake)
	c.await("the next gateway waits too", func() bool {
		status := c.repairStatus(second)
		return status.Pass != nil && status.Pass.GroupsTotal == lost
	})
	if _, err := second.ThrottleRepair(t.Context(), api.ThrottleRequest{NodeBytesPerSecond: &none}); err != nil {
		t.Fatal(err)
	}
	c.await("everything is rebuilt", func() bool {
		status := c.repairStatus(second)
		return status.GroupsRepaired == int64(lost) && status.State == api.RepairIdle && status.Pass.BytesDone == status.Pass.BytesTotal
	})
	for key, data := range want {
		if !c.allWhole(key) {
			t.Errorf("%s is not whole", key)
		}
		c.check(key, data)
	}
	c.audit()
}

// A repair and a transition of one group may both be under way: one of them commits first, and the other begins anew on
// what is then there.
func TestRepairAndTransitionOfOneGroupAreSerialised(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	other := c.newGateway("other")
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(3,2)"})
	for round := range 12 {
		to := []string{"rs(6,2)", "rs(3,2)"}[round%2]
		c.damage("k", round%8)
		var repairing sync.WaitGroup
		for _, g := range []*gateway.Gateway{c.gateway, other} {
			repairing.Go(func() {
				if _, err := g.Repair(t.Context(), true, true); err != nil {
					t.Error(err)
				}
			})
		}
		done := c.transition(api.TransitionRequest{Selector: api.Selector{Key64: api.EncodeKey("k")}, To: to})
		repairing.Wait()
		if done.State != api.TransitionDone {
			t.Fatalf("round %d: %+v", round, done)
		}
		if result, err := c.gateway.Repair(t.Context(), true, true); err != nil || len(result.Failed) > 0 { // damage that was met by none
			t.Fatalf("round %d: %+v, %v", round, result, err)
		}
		if stat := c.stat("k"); stat.Scheme != to || !c.allWhole("k") {
			t.Fatalf("round %d: %+v", round, stat)
		}
		c.check("k", data)
		c.audit()
	}
	survives(t, c, map[string][]byte{"k": data})
}

// A node that is lost while a pass waits changes what is nearest to loss: the pass begins anew with that.
func TestAnotherLossChangesTheOrder(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	want := map[string][]byte{}
	for i := range 6 {
		key := fmt.Sprint("k", i)
		want[key] = noise(70_000, uint64(i))
		c.put(key, want[key], api.PutOptions{Scheme: "rs(6,2)"})
	}
	rate, none := int64(1), int64(0)
	if _, err := c.gateway.ThrottleRepair(t.Context(), api.ThrottleRequest{NodeBytesPerSecond: &rate}); err != nil {
		t.Fatal(err)
	}
	c.agents[0].store.Erase()
	g := c.newGateway("other", func(o *gateway.Options) { o.SweepEvery = 20 * time.Millisecond })
	c.await("a pass waits for its budget", func() bool {
		status := c.repairStatus(g)
		return status.Pass != nil && status.Pass.BySpare[1] > 0 && status.Pass.BySpare[0] == 0
	})
	c.agents[1].store.Erase()
	c.await("a pass knows of both losses", func() bool {
		status := c.repairStatus(g)
		return status.Pass != nil && status.Pass.BySpare[0] > 0
	})
	if _, err := g.ThrottleRepair(t.Context(), api.ThrottleRequest{NodeBytesPerSecond: &none}); err != nil {
		t.Fatal(err)
	}
	for key, data := range want {
		c.await(key+" is whole", func() bool { return c.allWhole(key) })
		c.check(key, data)
	}
}
