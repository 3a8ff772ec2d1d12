package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/decorate"
	"github.com/restripe/restripe/agent/store/open"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

// readRepairs reads how often a gateway's reads met a loss with this outcome.
func readRepairs(t *testing.T, g *gateway.Gateway, mode, outcome string) int {
	t.Helper()
	return counted(t, g, regexp.QuoteMeta(fmt.Sprintf("restripe_read_repairs_total{mode=%q,outcome=%q}", mode, outcome)))
}

// patient has reads wait for repairs for as long as a test may take.
func patient(o *gateway.Options) { o.ReadPatience = time.Hour }

// checkAt reads an object at a gateway.
func (c *cluster) checkAt(g *gateway.Gateway, key string, want []byte) {
	c.t.Helper()
	if got, err := c.readFrom(g, key); err != nil || !bytes.Equal(got, want) {
		c.t.Fatalf("%q reads back as %d bytes, with %v", key, len(got), err)
	}
}

// decodes reads an object until a read has met its loss and decoded, and returns how many fragments that were. Where all else is slow a
// hedge may come first, and the loss is not met.
func (c *cluster) decodes(g *gateway.Gateway, key string, want []byte) (count int) {
	c.t.Helper()
	before := degradedReads(c.t, g)
	c.await("a read meets the loss of "+key, func() bool {
		c.checkAt(g, key, want)
		count = degradedReads(c.t, g) - before
		return count > 0
	})
	return count
}

// A block is deleted behind the back of its node, at a server of memcached each. The first read decodes it. With wait the next one
// need not, whenever it comes; with wake it need not once the repair has come to it; with never it decodes again and again.
func TestASecondReadOfALostBlockDoesNotDecode(t *testing.T) {
	t.Parallel()
	stores := map[block.NodeID]store.Store{}
	c := newCluster(t, 9, func(agent *testAgent) {
		s, err := open.Open(t.Context(), "memcached://"+server.Memcached(t, "-m", "64").Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("closing the store: %v", err)
			}
		})
		stores[agent.id] = s
		agent.wrap = func(store.Store) store.Store { return s }
	})
	for _, mode := range []api.RepairOnRead{"", api.RepairWait, api.RepairWake, api.RepairNever} {
		g := c.newGateway("for "+string(mode), awake, patient)
		c.await("every node answers", func() bool {
			status, err := g.Status(t.Context())
			return err == nil && !slices.ContainsFunc(status.Nodes, func(node api.NodeStatus) bool { return node.State != "up" })
		})
		name := "reads" + string(mode)
		c.putClass(g, api.ClassSpec{
			Name: name, Ladder: "rs(6,2)", Prefixes: []string{name + "/"}, PackBelow: "0", GroupBytes: "64KiB", RepairOnRead: mode,
		})
		key, data := name+"/k", noise(60_000, 1)
		if _, err := g.Put(t.Context(), key, bytes.NewReader(data), api.PutOptions{Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		for _, address := range c.blocks(key, 2) {
			if err := stores[address.Node].Delete(t.Context(), address.Key()); err != nil {
				t.Fatal(err)
			}
		}
		if n := c.decodes(g, key, data); n != 1 {
			t.Fatalf("%q: the first read decoded %d fragments, want the one that is lost", mode, n)
		}
		switch mode {
		case api.RepairNever:
			c.decodes(g, key, data)
			if status := c.repairStatus(g); status.SlotsRebuilt > 0 || status.Reported > 0 {
				t.Errorf("%q: %+v", mode, status)
			}
			continue
		case api.RepairWake:
			c.await("the repair is through", func() bool { return c.repairStatus(g).SlotsRebuilt == 1 })
		}
		c.checkAt(g, key, data)
		if n := degradedReads(t, g); n != 1 {
			t.Errorf("%q: both reads together decoded %d fragments", mode, n)
		}
		c.await("one slot was rebuilt", func() bool { return c.repairStatus(g).SlotsRebuilt == 1 && c.allWhole(key) })
	}
}

// Many readers that meet the same lost block have it rebuilt once, and one of them decodes.
func TestReadersOfALostBlockShareItsRepair(t *testing.T) {
	t.Parallel()
	w := &crowd{apart: "n1"}
	c := newCluster(t, 8, w.wrap)
	key, offset := c.putOn("n1", "rs(6,2)")
	engine := &hooked{Engine: c.engine}
	g := c.newGateway("other", c.over(engine), patient)
	c.damage(key, int(offset)/c.stat(key).Groups[0].CellBytes)
	const readers = 50
	if _, err := g.Open(t.Context(), key); err != nil { // from now on it is known where it lies
		t.Fatal(err)
	}
	gate, met := make(chan struct{}), 0
	engine.hook(func(keys []string) error {
		if keys[0] == "o/"+key {
			if met++; met == 2*readers { // each has opened the object, and looked again after it met the damage
				close(gate)
			}
		}
		return nil
	}, nil)
	w.gate.Store(&gate)
	var reading errgroup.Group
	for range readers {
		reading.Go(func() error {
			reader, err := g.Open(t.Context(), key)
			if err != nil {
				return err
			}
			return reader.WriteTo(t.Context(), &bytes.Buffer{}, offset, 10)
		})
	}
	if err := reading.Wait(); err != nil {
		t.Fatal(err)
	}
	c.await("the slot is rebuilt", func() bool { return readRepairs(t, g, "wait", "repaired") > 0 })
	if n := c.repairStatus(g).SlotsRebuilt; n != 1 {
		t.Errorf("%d slots were rebuilt", n)
	}
	if n := degradedReads(t, g); n != 1 {
		t.Errorf("%d readers decoded", n)
	}
	if n := counted(t, g, "restripe_read_repair_wait_seconds_count"); n < 1 || n > readers-1 { // one that comes when it is rebuilt does not
		t.Errorf("%v readers waited", n)
	}
	c.audit()
}

// A node is given up. Where another one is free a read has its block rebuilt there; where none is the repair is tried once, and no
// read is held up by it.
func TestReadsRepairWhatAGoneNodeHad(t *testing.T) {
	t.Parallel()
	for nodes, spare := range map[int]bool{9: true, 8: false} {
		t.Run(fmt.Sprintf("spare=%v", spare), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, nodes)
			c.with(patient)
			c.answering()
			data := noise(60_000, 1)
			c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
			lost := c.agent(c.stat("k").Groups[0].Slots[2].Node)
			lost.stop()
			c.noticed(lost.id, "suspect")
			c.check("k", data) // it may come back: nothing is rebuilt
			if _, err := c.gateway.DownNode(t.Context(), lost.id); err != nil {
				t.Fatal(err)
			}
			before := degradedReads(t, c.gateway)
			c.check("k", data)
			if n := degradedReads(t, c.gateway); n != before+1 {
				t.Errorf("%d fragments were decoded, want 1", n-before)
			}
			outcome := map[bool]string{true: "repaired", false: "failed"}[spare]
			c.await("it was tried", func() bool { return readRepairs(t, c.gateway, "wait", outcome) == 1 })
			const readers = 20
			var reading errgroup.Group
			for range readers {
				reading.Go(func() error {
					got, err := c.read("k")
					if err == nil && !bytes.Equal(got, data) {
						err = fmt.Errorf("other bytes")
					}
					return err
				})
			}
			if err := reading.Wait(); err != nil {
				t.Fatal(err)
			}
			want := map[bool]int{true: before + 1, false: before + 1 + readers}[spare]
			if n := degradedReads(t, c.gateway); n != want {
				t.Errorf("%d fragments were decoded in all, want %d", n, want)
			}
			if n := readRepairs(t, c.gateway, "wait", outcome); n != 1 {
				t.Errorf("it was tried %d times", n)
			}
			if n := counted(t, c.gateway, "restripe_read_repair_wait_seconds_count"); n != 0 {
				t.Errorf("%d reads waited", n)
			}
			if spare && !c.allWhole("k") {
				t.Error("the group is not whole")
			}
		})
	}
}

// held has nodes store no block while a gate is there.
type held struct{ gate atomic.Pointer[chan struct{}] }

func (h *held) wrap(agent *testAgent) {
	agent.wrap = func(inner store.Store) store.Store {
		return (&decorate.Fault{Rule: func(call decorate.Call) decorate.Effect {
			gate := h.gate.Load()
			if gate == nil || call.Operation != decorate.Create {
				return decorate.Effect{}
			}
			return decorate.Effect{Gate: *gate}
		}}).Wrap(inner)
	}
}

// Reads wait for no repair that takes long, and no more groups are rebuilt for them at a time than is set: what is met beyond that is
// left to the repair.
func TestRepairsForReadsAreBounded(t *testing.T) {
	t.Parallel()
	h := &held{}
	c := newCluster(t, 9, h.wrap)
	c.with(func(o *gateway.Options) { o.ReadPatience = time.Millisecond })
	c.answering()
	const most = 16
	data := noise(60_000, 1)
	key := func(i int) string { return fmt.Sprint("k", i) }
	for i := range most + 1 {
		c.put(key(i), data, api.PutOptions{Scheme: "rs(6,2)"})
		c.lose(key(i), 2)
	}
	gate := make(chan struct{})
	h.gate.Store(&gate)
	for i := range most {
		c.decodes(c.gateway, key(i), data)
	}
	for range 2 { // one waits, or comes too late to
		c.decodes(c.gateway, key(0), data)
	}
	if n := counted(t, c.gateway, "restripe_read_repair_late_total"); n < 2 {
		t.Errorf("%d reads waited in vain, want 2", n)
	}
	c.decodes(c.gateway, key(most), data)
	if n := readRepairs(t, c.gateway, "wait", "busy"); n != 1 {
		t.Errorf("of %d groups %d were too many, want 1", most+1, n)
	}
	if status := c.repairStatus(c.gateway); status.Reported != 1 {
		t.Errorf("%d groups are left to the repair, want 1", status.Reported)
	}
	close(gate)
	c.await("the others are rebuilt", func() bool { return readRepairs(t, c.gateway, "wait", "repaired") == most })
	before := degradedReads(t, c.gateway)
	for i := range most {
		c.check(key(i), data)
	}
	if n := degradedReads(t, c.gateway); n != before {
		t.Errorf("%d fragments were decoded after the repair", n-before)
	}
}

// While repair is paused reads rebuild nothing by themselves, and what they met is rebuilt once it goes on.
func TestReadsKeepToAPauseOfRepair(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	g := c.newGateway("other", awake, patient)
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	c.lose("k", 2)
	if _, err := g.PauseRepair(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.decodes(g, "k", data)
	c.await("it was left to the repair", func() bool { return readRepairs(t, g, "wait", "limited") == 1 && c.repairStatus(g).Reported == 1 })
	c.decodes(g, "k", data)
	if status := c.repairStatus(g); status.SlotsRebuilt != 0 {
		t.Errorf("%+v", status)
	}
	if _, err := g.ResumeRepair(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.await("the slot is rebuilt", func() bool { return c.repairStatus(g).SlotsRebuilt == 1 })
}

// A request says by itself what is done about lost blocks.
func TestARequestSaysWhatItDoesAboutLostBlocks(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	c.with(patient)
	c.answering()
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	front := httptest.NewServer(c.gateway.Handler())
	defer front.Close()
	get := func(query string) int {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL+"/v1/objects/k"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var got bytes.Buffer
		if _, err := got.ReadFrom(answer.Body); err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode == http.StatusOK && !bytes.Equal(got.Bytes(), data) {
			t.Errorf("%q: other bytes", query)
		}
		return answer.StatusCode
	}
	for i, query := range []string{"", "?repair=false", "?repair=wait", "?repair=wake", "?repair=never", "?repair=true"} {
		c.lose("k", 2)
		before := degradedReads(t, c.gateway)
		for range 2 {
			if status := get(query); status != http.StatusOK {
				t.Fatalf("%q: status %d", query, status)
			}
		}
		// Where the machine is slow a hedge may have come first.
		most := []int{1, 1, 1, 2, 2, 0}[i]
		if n := degradedReads(t, c.gateway) - before; n > most {
			t.Errorf("%q: %d fragments were decoded by two reads, want %d", query, n, most)
		}
		c.repaired()
	}
	if status := get("?repair=soon"); status != http.StatusBadRequest {
		t.Errorf("a way that there is not: status %d", status)
	}
}
