package gateway_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// Groups in which some columns are empty.

// atRest counts the blocks in all stores.
func (c *cluster) atRest() (count int) {
	c.t.Helper()
	for _, agent := range c.agents {
		count += c.blocksIn(agent)
	}
	return count
}

// filled returns the slots of an object's group of which something is stored.
func (c *cluster) filled(key string) (slots []int) {
	c.t.Helper()
	for _, slot := range c.stat(key).Groups[0].Slots {
		if slot.Blocks > 0 {
			slots = append(slots, slot.Slot)
		}
	}
	return slots
}

// ofTheReleaseBefore makes the records those of a catalog that the release before has made.
func (c *cluster) ofTheReleaseBefore() {
	c.t.Helper()
	was := strconv.Itoa(schema.OldestVersion)
	if _, err := c.engine.Update(c.t.Context(), nil, []kv.Write{
		{Key: catalog.KeySchema, Value: []byte(was)}, {Key: schema.KeyVersion, Kind: kv.Remove},
	}); err != nil {
		c.t.Fatal(err)
	}
}

// tidy repairs and sweeps, and demands that records and stores agree, and that so many blocks are there.
func (c *cluster) tidy(what string, blocks int) {
	c.t.Helper()
	c.repaired()
	c.audit()
	if got := c.atRest(); got != blocks {
		c.t.Fatalf("%s the stores have %d blocks, want %d", what, got, blocks)
	}
}

// A small object alone takes one block and those of its parities, however wide the ladder is, and is as safe as any.
func TestALoneObjectIsOneBlockAndItsParities(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	want := noise(1024, 1)
	c.put("alone", want, api.PutOptions{Scheme: "rs(3,2)"})
	if got := c.atRest(); got != 1+2 {
		t.Fatalf("the stores have %d blocks, want 1 and 2 parities", got)
	}
	if got := c.filled("alone"); !slices.Equal(got, []int{0, 6, 7}) {
		t.Fatalf("stored are slots %v", got)
	}
	c.check("alone", want)
	c.tidy("after the put", 3)

	// Any two that are lost are made again from what is left.
	for _, lost := range [][]int{{0}, {6}, {0, 6}, {0, 7}, {6, 7}} {
		for _, slot := range lost {
			c.lose("alone", slot)
		}
		c.check("alone", want)
		c.tidy(fmt.Sprintf("after slots %v were lost", lost), 3)
		c.check("alone", want)
	}

	// Every step of the ladder, and back.
	for _, to := range []string{"rep(3)", "rs(6,2)", "rs(3,2)", "rs(6,2)", "rep(3)", "rs(3,2)"} {
		if done := c.transition(api.TransitionRequest{Selector: api.Selector{Key64: api.EncodeKey("alone")}, To: to}); done.State != api.TransitionDone {
			t.Fatalf("to %s: %+v", to, done)
		}
		c.check("alone", want)
		c.tidy("under "+to, 3)
		c.lose("alone", 0)
		c.check("alone", want)
		c.tidy("repaired under "+to, 3)
	}

	// Bytes change where they are; more of them are put anew.
	part := noise(100, 2)
	if _, err := c.gateway.Update(t.Context(), "alone", 500, part, nil); err != nil {
		t.Fatal(err)
	}
	copy(want[500:], part)
	c.check("alone", want)
	c.tidy("after an update", 3+2) // the parities of the stripe that did not change stay where they are
	want = noise(3000, 3)
	c.put("alone", want, api.PutOptions{Scheme: "rs(3,2)"})
	c.check("alone", want)
	c.tidy("after a larger put", 3)

	// Its node is emptied, and so is that of an empty column.
	for _, slot := range []int{0, 3} {
		node := c.stat("alone").Groups[0].Slots[slot].Node
		if _, err := c.gateway.DrainNode(t.Context(), node, api.DrainRequest{}); err != nil {
			t.Fatal(err)
		}
		c.relocated()
		if now := c.stat("alone").Groups[0].Slots[slot].Node; now == node {
			t.Fatalf("slot %d is still at %s", slot, node)
		}
		c.check("alone", want)
		c.tidy(fmt.Sprintf("after the node of slot %d was emptied", slot), 3)
		if _, err := c.gateway.UndrainNode(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}

	// A scrub finds what is wrong and nothing else.
	c.damage("alone", 0)
	if scrubbed := c.scrubbed(api.ScrubRequest{}); scrubbed.Findings != 1 || scrubbed.Repaired != 1 {
		t.Fatalf("one block is damaged, the scrub says %+v", scrubbed)
	}
	c.check("alone", want)
	c.tidy("after a scrub", 3)
}

// A node that an empty column would lie on may be away: neither reads nor repairs nor transitions ask it.
func TestNobodyAsksTheNodeOfAnEmptyColumn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	c.reads = api.RepairNever // the repair is to do it
	want := noise(1024, 1)
	c.put("alone", want, api.PutOptions{Scheme: "rs(3,2)"})
	slots := c.stat("alone").Groups[0].Slots
	for _, slot := range []int{1, 2, 4} {
		c.agent(slots[slot].Node).stop()
		c.noticed(slots[slot].Node, "suspect")
	}
	c.lose("alone", 0)
	c.check("alone", want)
	if done := c.repaired(); done.SlotsRebuilt != 1 {
		t.Fatalf("%+v", done)
	}
	for _, to := range []string{"rep(3)", "rs(6,2)"} {
		if done := c.transition(api.TransitionRequest{Selector: api.Selector{Key64: api.EncodeKey("alone")}, To: to}); done.State != api.TransitionDone {
			t.Fatalf("to %s: %+v", to, done)
		}
		c.check("alone", want)
	}
	if _, err := c.gateway.Update(t.Context(), "alone", 0, noise(10, 9), nil); err != nil {
		t.Fatal(err)
	}
	copy(want, noise(10, 9))
	c.check("alone", want)
}

// Gateways write columns in full for as long as the catalog is one that the release before may work with.
func TestACatalogOfTheReleaseBeforeHasNoEmptyColumns(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	c.stopGateway()
	c.ofTheReleaseBefore()
	c.startGateway()
	c.answering()
	want := noise(1024, 1)
	c.put("before", want, api.PutOptions{Scheme: "rs(3,2)"})
	if got := c.atRest(); got != 6+2 {
		t.Fatalf("the stores have %d blocks, want all columns and 2 parities", got)
	}
	if err := c.gateway.UpgradeCatalog(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.put("after", want, api.PutOptions{Scheme: "rs(3,2)"})
	c.tidy("after the upgrade", 6+2+1+2)
	c.check("before", want)
	c.check("after", want)
	var empty [][]int
	for view, err := range c.catalog.AllGroups(t.Context(), block.GroupID{}) {
		if err != nil {
			t.Fatal(err)
		}
		empty = append(empty, view.Empty())
	}
	if !slices.EqualFunc(empty, [][]int{nil, {1, 2, 3, 4, 5}}, slices.Equal) {
		t.Errorf("empty are columns %v", empty)
	}
}

// The catalog is upgraded once everybody at work knows the records of this release; other gateways learn of it by themselves.
func TestACatalogIsUpgradedOnceAllKnowIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9, func(agent *testAgent) { agent.release = "v0.2.0" })
	c.stopGateway()
	c.ofTheReleaseBefore()
	refused := func(why string) {
		t.Helper()
		if err := c.gateway.UpgradeCatalog(t.Context()); err == nil || !strings.Contains(err.Error(), why) {
			t.Fatalf("not refused because of %s: %v", why, err)
		}
		if c.catalog.IsUpgraded() {
			t.Fatal("it was upgraded all the same")
		}
	}
	of := func(release string) func(*gateway.Options) {
		return func(o *gateway.Options) { o.Release = release }
	}
	c.with(of("v0.1.0"))
	c.answering()
	refused("the agent of node n1 (v0.2.0)")

	c.with(of("v0.2.0"))
	c.answering()
	before, err := catalog.Open(t.Context(), c.engine, catalog.Owner("before", "first"))
	if err != nil {
		t.Fatal(err)
	}
	if err := before.PutView(t.Context(), catalog.View{}, catalog.View{Gateway: "before", Count: 1, At: time.Now().UnixMilli()}); err != nil {
		t.Fatal(err)
	}
	refused("gateway before")
	if c.doctorSays("catalog", "its records are those of the release before") {
		t.Error("the doctor says that it can be upgraded, which it cannot")
	}
	others, other := c.makeGateway("other", of("v0.2.0"))
	defer func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}()
	c.await("the gateway of the release before counts as stopped", func() bool {
		return c.doctorSays("catalog", "its records are those of the release before")
	})
	if err := c.gateway.UpgradeCatalog(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.await("the other gateway learns of it", others.IsUpgraded)
	if err := before.PutView(t.Context(), catalog.View{}, catalog.View{Gateway: "before", Count: 2}); err == nil {
		t.Error("the start of the release before goes on")
	}
	if err := other.Ready(t.Context()); err != nil {
		t.Errorf("the other gateway does not go on: %v", err)
	}
}

// Whatever columns of a group are empty, every object in it is read, whole and in parts, without any blocks that it can lose.
func TestGroupsWithAnyColumnsEmpty(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	draw := rand.New(rand.NewPCG(5, 6))
	schemes := []string{"rep(3)", "rs(3,2)", "rs(6,2)"}
	for round := range 12 {
		want := map[string][]byte{}
		var puts sync.WaitGroup
		for i := range 1 + round%6 {
			key, data := fmt.Sprintf("%d/%d", round, i), noise(1+draw.IntN(3000), draw.Uint64())
			want[key] = data
			puts.Go(func() {
				if err := putWithin(t, c.gateway, key, bytes.NewReader(data), int64(len(data))); err != nil {
					t.Errorf("%s: %v", key, err)
				}
			})
		}
		puts.Wait()
		for key := range want {
			to := schemes[draw.IntN(len(schemes))]
			if done := c.transition(api.TransitionRequest{Selector: api.Selector{Key64: api.EncodeKey(key)}, To: to}); done.State != api.TransitionDone {
				t.Fatalf("%s to %s: %+v", key, to, done)
			}
		}
		for key := range want {
			filled := c.filled(key)
			draw.Shuffle(len(filled), func(i, j int) { filled[i], filled[j] = filled[j], filled[i] })
			for _, slot := range filled[:2] {
				c.lose(key, slot)
			}
			for key, data := range want {
				c.check(key, data)
				reader, err := c.gateway.Open(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				from := draw.IntN(len(data))
				part := data[from : from+draw.IntN(len(data)-from)]
				var got bytes.Buffer
				if err := reader.WriteTo(t.Context(), &got, int64(from), int64(len(part))); err != nil || !bytes.Equal(got.Bytes(), part) {
					t.Fatalf("%d bytes from %d of %q: %v", len(part), from, key, err)
				}
			}
			c.repaired()
		}
	}
	c.audit()
}
