package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// Small objects that come one by one go into one group, column by column.

// striped puts a small object under rs(3,2), alone, and returns its group.
func (c *cluster) striped(key string, data []byte) block.GroupID {
	c.t.Helper()
	c.put(key, data, api.PutOptions{Scheme: "rs(3,2)"})
	return c.stat(key).Groups[0].ID
}

// appended is how many writes went into groups that were there.
func (c *cluster) appended() float64 {
	c.t.Helper()
	return c.figure(c.gateway, "restripe_packing_writes_total", map[string]string{"into": "open"})
}

// Each put of six writes its own block and two parities; at rest there are the six blocks, and two parities for every three.
func TestLoneObjectsFillOneGroup(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	want := map[string][]byte{}
	var first block.GroupID
	for i := range 6 {
		key := fmt.Sprint("lone/", i)
		want[key] = noise(1000-i, uint64(i))
		in := c.striped(key, want[key])
		if i == 0 {
			first = in
		}
		if in != first {
			t.Fatalf("put %d went into group %s, the first into %s", i, in, first)
		}
		c.checkAll(want)
		if written := c.figure(c.gateway, "restripe_packing_blocks_total", nil); written != float64(3*(i+1)) {
			t.Fatalf("%d puts wrote %.0f blocks, want a column and two parities each", i+1, written)
		}
		// The parities of the second stripe are blocks of the first put until there is something in it.
		c.tidy(fmt.Sprintf("after %d puts", i+1), []int{3, 6, 7, 8, 9, 10}[i])
	}
	view, err := c.catalog.Group(t.Context(), first)
	if err != nil || view.Open {
		t.Fatalf("a full group is open: %t, %v", view.Open, err)
	}
	if next := c.striped("lone/next", noise(10, 9)); next == first {
		t.Fatal("a seventh object went into six columns")
	}
	for _, lost := range [][]int{{0, 1}, {4, 5}, {3, 6}, {6, 7}} {
		for _, slot := range lost {
			c.lose("lone/0", slot)
		}
		c.checkAll(want)
		c.repaired()
		c.audit()
		c.checkAll(want)
	}
	for _, to := range []string{"rs(6,2)", "rep(3)", "rs(3,2)"} {
		if done := c.transition(api.TransitionRequest{Selector: api.Selector{Key64: api.EncodeKey("lone/0")}, To: to}); done.State != api.TransitionDone {
			t.Fatalf("to %s: %+v", to, done)
		}
		c.checkAll(want)
	}
	for key := range want {
		if err := c.gateway.Delete(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
	}
	c.tidy("after all were deleted", 3)
}

// What does not belong into a window goes into a group of its own.
func TestWhatGoesIntoNoWindow(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	first := c.striped("a", noise(1000, 1))
	same := func(key string, size int, want bool, why string) {
		t.Helper()
		if is := c.striped(key, noise(size, 2)) == first; is != want {
			t.Errorf("%s: it went into the first group: %t", why, is)
		}
	}
	same("b", 1000, true, "as large")
	same("b", 900, false, "the same key, which would have two revisions in one group")
	same("c", 4000, false, "larger than a column")
	same("d", 100, false, "its parities would be ten times as long as it is")
	same("e", 980, true, "a column is empty yet")
	c.put("f", noise(500, 3), api.PutOptions{Scheme: "rep(3)"})
	if c.stat("f").Groups[0].ID == first {
		t.Error("another scheme")
	}
	other := c.newGateway("other")
	c.putBy(other, "g", noise(900, 3))
	if c.stat("g").Groups[0].ID == first {
		t.Error("another gateway")
	}
	c.audit()
}

// Whoever changes a group ends what its gateway puts into it: the next objects are put elsewhere, and nothing is left behind.
func TestAWindowThatSomebodyChanged(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	for name, change := range map[string]func(key string){
		"a transition": func(key string) {
			if done := c.transition(api.TransitionRequest{Selector: api.Selector{Key64: api.EncodeKey(key)}, To: "rs(6,2)"}); done.State != api.TransitionDone {
				t.Fatalf("%+v", done)
			}
		},
		"an update": func(key string) {
			if _, err := c.gateway.Update(t.Context(), key, 0, noise(1000, 7), nil); err != nil {
				t.Fatal(err)
			}
		},
		"a repair": func(key string) {
			c.lose(key, 0)
			c.repaired()
		},
		"a repair of a parity": func(key string) {
			c.lose(key, 7)
			c.repaired()
		},
		"its end": func(key string) {
			if err := c.gateway.Delete(t.Context(), key, nil); err != nil {
				t.Fatal(err)
			}
			c.audit() // which frees it
		},
	} {
		key := "of " + name
		was := c.striped(key, noise(1000, 7))
		change(key)
		before := c.appended()
		want := noise(990, 8)
		if now := c.striped("after "+name, want); now == was || c.appended() != before {
			t.Errorf("after %s something was put into the group", name)
		}
		c.check("after "+name, want)
		if name != "its end" {
			c.check(key, noise(1000, 7))
			if view, err := c.catalog.Group(t.Context(), was); err != nil || view.Open {
				t.Errorf("after %s the group is open: %v", name, err)
			}
		}
		c.audit()
		for range 5 { // the next case begins with a new group
			c.striped(fmt.Sprintf("filling after %s/%f", name, c.appended()), want)
		}
	}
}

// A put survives the loss of any two blocks from the moment it is acknowledged: a window of which something is lost takes nothing.
func TestAWindowThatIsNotWhole(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	was := c.striped("a", noise(1000, 1))
	c.lose("a", 0)
	if now := c.striped("b", noise(1000, 2)); now == was {
		t.Error("a group that has lost a column takes objects")
	}
	c.await("what is lost is rebuilt", func() bool { c.repaired(); return c.allWhole("a") })

	was = c.striped("c", noise(1000, 3))
	c.agent(c.stat("c").Groups[0].Slots[1].Node).stop() // of the next column
	if now := c.striped("d", noise(1000, 4)); now == was {
		t.Error("a group of which a node is away takes objects")
	}
	for i, key := range []string{"a", "b", "c", "d"} {
		c.check(key, noise(1000, uint64(i+1)))
	}
}

// A put whose condition does not hold is refused, whether it would go into a window or not, and the others go on.
func TestConditionalPutsIntoWindows(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	c.striped("a", noise(1000, 1))
	for i := range 10 {
		key := fmt.Sprint("c/", i)
		put := func(revision block.Stamp) error {
			_, err := c.gateway.Put(t.Context(), key, bytes.NewReader(noise(900, 5)), api.PutOptions{Scheme: "rs(3,2)", Size: 900, IfRevision: &revision})
			return err
		}
		if err := put(block.Stamp{Sequence: 7}); !errors.Is(err, api.ErrConflict) {
			t.Fatalf("over a revision that is not there: %v", err)
		}
		if err := put(block.Stamp{}); err != nil {
			t.Fatal(err)
		}
		c.check(key, noise(900, 5))
	}
	if c.appended() == 0 {
		t.Error("nothing went into a window")
	}
	c.audit()
}

// Objects are put one by one by two gateways, overwritten and deleted, while groups are compacted and moved along the ladder, blocks
// are lost and repaired: all that was acknowledged is there, and the stores have what the records name.
func TestWindowsUnderEverything(t *testing.T) {
	c := newCluster(t, 9)
	c.with(compacting, func(o *gateway.Options) { o.CompactSettled = -1 })
	c.answering()
	gateways := []*gateway.Gateway{c.gateway, c.newGateway("other", compacting)}
	prefix, rounds := api.EncodeKey("1/"), 60
	if testing.Short() {
		rounds = 15
	}
	var mutex sync.Mutex
	want := map[string][]byte{}
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			draw := rand.New(rand.NewPCG(1, uint64(i)))
			for round := range rounds {
				key, data := fmt.Sprintf("%d/%d", i, draw.IntN(12)), noise(1+draw.IntN(3000), draw.Uint64())
				_, err := gateways[i%2].Put(t.Context(), key, bytes.NewReader(data), api.PutOptions{Scheme: "rs(3,2)", Size: int64(len(data))})
				if err != nil {
					t.Errorf("%s: %v", key, err)
					return
				}
				if draw.IntN(5) == 0 {
					if err := gateways[i%2].Delete(t.Context(), key, nil); err != nil {
						t.Errorf("%s: %v", key, err)
						return
					}
					data = nil
				}
				mutex.Lock()
				want[key] = data
				mutex.Unlock()
				if i == 0 && round%10 == 5 {
					to := []string{"rs(6,2)", "rs(3,2)"}[round/10%2]
					if done := c.transition(api.TransitionRequest{Selector: api.Selector{Prefix64: &prefix}, To: to}); done.State != api.TransitionDone {
						t.Errorf("%+v", done)
					}
				}
			}
		})
	}
	clients.Wait()
	for key, data := range want {
		if data != nil {
			c.check(key, data)
		}
	}
	if c.appended() == 0 {
		t.Error("nothing went into a window")
	}
	c.until("nothing is left to be compacted", func() bool {
		now := c.compaction()
		return now.GroupsTotal == 0 && now.State == api.CompactionIdle
	})
	for key, data := range want {
		if data != nil {
			c.check(key, data)
		}
	}
	if err := gateways[1].Close(); err != nil {
		t.Fatal(err)
	}
	c.audit()
}
