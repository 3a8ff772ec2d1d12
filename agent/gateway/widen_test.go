package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	catalogmem "github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/rebuild"
)

// kindsOf lists the groups that there are, by what has to be alike of those that become wider together.
func kindsOf(c *cluster) map[string][]*catalog.GroupView {
	c.t.Helper()
	views, err := c.catalog.ListGroups(c.t.Context(), block.GroupID{}, 1000)
	if err != nil {
		c.t.Fatal(err)
	}
	kinds := map[string][]*catalog.GroupView{}
	for i := range views {
		view := &views[i]
		kind := fmt.Sprint(view.Class, view.Scheme, view.Columns, view.CellBytes, view.Packed)
		kinds[kind] = append(kinds[kind], view)
	}
	return kinds
}

// Groups become wider by the columns of others, with small and large objects in them: each reads as before, under the new scheme and
// whatever m nodes are lost, and is updated, looked through, taken to another scheme and deleted, while its record names what it named.
func TestGroupsBecomeWider(t *testing.T) {
	for _, is := range []struct {
		from, to    string
		kept, taken int
	}{
		{"rs(2,2)", "rs(4,2)", 1, 1},
		{"rs(4,2)", "rs(6,2)", 2, 1},
		{"rs(3,2)", "rs(5,2)", 3, 2},
	} {
		t.Run(is.from+" to "+is.to, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 12)
			spec := api.ClassSpec{Name: "grows", Ladder: is.from, Prefixes: []string{"grows/"}, PackBelow: "4KiB", GroupBytes: "64KiB"}
			c.putClass(c.gateway, spec)
			want := map[string][]byte{}
			for i := range is.kept + is.taken {
				key := fmt.Sprintf("grows/large%d", i)
				want[key] = noise(60_000, uint64(i))
				c.put(key, want[key], api.PutOptions{})
			}
			var puts errgroup.Group
			for i := range 240 {
				key, data := fmt.Sprintf("grows/small%d", i), noise(3000, uint64(100+i))
				want[key] = data
				puts.Go(func() error {
					_, err := c.gateway.Put(t.Context(), key, bytes.NewReader(data), api.PutOptions{Size: int64(len(data))})
					return err
				})
			}
			if err := puts.Wait(); err != nil {
				t.Fatal(err)
			}
			objects, err := c.gateway.List(t.Context(), "grows/", "", 1000)
			if err != nil {
				t.Fatal(err)
			}
			spec.Ladder = is.to + "," + is.from
			c.putClass(c.gateway, spec)
			widened := map[bool]int{}
			for _, views := range kindsOf(c) {
				for region := range slices.Chunk(views, is.kept+is.taken) {
					if len(region) < is.kept+is.taken {
						continue
					}
					filled := 0
					for _, view := range region[is.kept:] {
						filled += view.Columns - len(view.Empty())
					}
					if filled < is.kept {
						continue // it would be refused
					}
					cost, err := c.gateway.Reshape(t.Context(), region[:is.kept], region[is.kept:], spec.Ladder, is.to)
					if err != nil {
						t.Fatal(err)
					}
					expectAsPlanned(t, "widened", cost.Measured, cost.Predicted)
					// Two columns more and two parities: the columns, one of them to the node of the other, and two sums.
					if most := int64(5 * is.kept); cost.Predicted.BlocksSent > most {
						t.Errorf("%d blocks crossed the network, and %d would do", cost.Predicted.BlocksSent, most)
					}
					widened[region[0].Packed] += len(region)
				}
			}
			if widened[true] == 0 || widened[false] == 0 {
				t.Fatalf("only %v became wider of %v", widened, kindsOf(c))
			}
			c.audit()
			check := func() {
				t.Helper()
				for key, data := range want {
					c.check(key, data)
					for _, group := range c.stat(key).Groups {
						if slices.ContainsFunc(group.Slots, func(slot api.SlotStat) bool { return slot.State != "ok" }) {
							t.Errorf("%s: %+v", key, group)
						}
					}
				}
			}
			check()
			after, err := c.gateway.List(t.Context(), "grows/", "", 1000)
			if err != nil {
				t.Fatal(err)
			}
			wide := 0
			for i, object := range after.Objects {
				if object.Revision != objects.Objects[i].Revision || object.Scheme != is.to && object.Scheme != is.from {
					t.Errorf("%+v was %+v", object, objects.Objects[i])
				}
				if object.Scheme == is.to {
					wide++
				}
			}
			if wide == 0 {
				t.Error("no object is said to be under the scheme")
			}
			for _, key := range []string{"grows/large0", fmt.Sprintf("grows/large%d", is.kept), "grows/small0", "grows/small59"} {
				patch := noise(700, 7)
				if _, err := c.gateway.Update(t.Context(), key, 1500, patch, nil); err != nil {
					t.Fatal(err)
				}
				want[key] = slices.Concat(want[key][:1500], patch, want[key][2200:])
			}
			check()
			c.audit()
			if result, err := c.gateway.Repair(t.Context(), true, true); err != nil || len(result.Failed) > 0 || result.SlotsRebuilt > 0 {
				t.Fatalf("looking at every block: %+v, %v", result, err)
			}
			survives(t, c, want)
			for range 2 { // before what was replaced is deleted, and after
				c.lost()
				c.putClass(c.gateway, spec)
				check()
				c.audit()
			}
			// What lies in others is copied out of them where it alone is to be under another scheme.
			for _, key := range []string{fmt.Sprintf("grows/large%d", is.kept), "grows/small59"} {
				done := c.transition(api.TransitionRequest{Selector: api.Selector{Key64: api.EncodeKey(key)}, To: is.from})
				if stat := c.stat(key); done.State != api.TransitionDone || stat.Scheme != is.from {
					t.Errorf("%s is under %s: %+v", key, stat.Scheme, done)
				}
			}
			check()
			c.audit()
			for key := range want {
				if err := c.gateway.Delete(t.Context(), key, nil); err != nil {
					t.Fatal(err)
				}
			}
			c.await("nothing is left", func() bool {
				c.audit()
				return len(kindsOf(c)) == 0
			})
		})
	}
}

// What cannot become wider says so, and stays as it is.
func TestGroupsThatCannotBecomeWider(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5)
	spec := api.ClassSpec{Name: "grows", Ladder: "rs(2,1)", Prefixes: []string{"grows/"}, PackBelow: "4KiB", GroupBytes: "64KiB"}
	c.putClass(c.gateway, spec)
	want := [][]byte{noise(60_000, 1), noise(60_000, 2), noise(60_000, 3)}
	for i, data := range want {
		c.put(fmt.Sprintf("grows/%d", i), data, api.PutOptions{})
	}
	var views []*catalog.GroupView
	for _, kind := range kindsOf(c) {
		views = kind
	}
	for name, try := range map[string]struct {
		kept, taken []*catalog.GroupView
		ladder, to  string
		want        error
	}{
		"no kept":         {nil, views[:1], "rs(4,1)", "rs(4,1)", group.ErrNoRegion},
		"nothing taken":   {views[:1], nil, "rs(4,1)", "rs(4,1)", group.ErrNoRegion},
		"odd columns":     {views[:2], views[2:], "rs(4,1)", "rs(4,1)", group.ErrNoRegion},
		"other parities":  {views[:1], views[1:2], "rs(4,2)", "rs(4,2)", group.ErrNoRegion},
		"too few nodes":   {views[:1], views[1:3], "rs(6,1)", "rs(6,1)", api.ErrTooFewNodes},
		"stripes askance": {views[:1], views[1:2], "rs(3,1)", "rs(3,1)", group.ErrNoRegion},
	} {
		if _, err := c.gateway.Reshape(t.Context(), try.kept, try.taken, try.ladder, try.to); !errors.Is(err, try.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A column that is lost where it comes from, or that changed meanwhile.
	late := slices.Clone(views)
	if _, err := c.gateway.Update(t.Context(), "grows/1", 5, []byte("new"), nil); err != nil {
		t.Fatal(err)
	}
	copy(want[1][5:], "new")
	if _, err := c.gateway.Reshape(t.Context(), late[:1], late[1:2], "rs(4,1)", "rs(4,1)"); !errors.Is(err, catalog.ErrStale) {
		t.Errorf("computed from records that are not true any more: %v", err)
	}
	for i, data := range want {
		if got := c.get(fmt.Sprintf("grows/%d", i)); !bytes.Equal(got, data) {
			t.Errorf("object %d has changed", i)
		}
	}
	c.audit()
}

// lost has the catalog be lost, and rebuilt from what the agents have.
func (c *cluster) lost() {
	c.t.Helper()
	c.stopGateway()
	options := rebuild.Options{Modified: time.Now()}
	for _, agent := range c.agents {
		agent.stop()
		c.startAgent(agent)
		options.Nodes = append(options.Nodes, catalog.Node{ID: agent.id, Address: agent.address})
	}
	contents, report, err := rebuild.Run(c.t.Context(), options)
	if err != nil {
		c.t.Fatal(err)
	}
	if len(report.Problems) > 0 {
		c.t.Errorf("rebuilt: %+v", report)
	}
	c.engine = catalogmem.New()
	if err := catalog.Restore(c.t.Context(), c.engine, contents, nil); err != nil {
		c.t.Fatal(err)
	}
	c.startGateway()
	c.answering()
	if err := c.catalog.Accept(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
}

// What cannot become narrower again says so, and stays as it is.
func TestGroupsThatCannotBecomeNarrower(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	spec := api.ClassSpec{Name: "grows", Ladder: "rs(4,2)", Prefixes: []string{"grows/"}, PackBelow: "4KiB", GroupBytes: "64KiB"}
	c.putClass(c.gateway, spec)
	want := [][]byte{noise(60_000, 1), noise(60_000, 2), noise(60_000, 3), noise(60_000, 4)}
	for i, data := range want {
		c.put(fmt.Sprintf("grows/%d", i), data, api.PutOptions{})
	}
	id := func(i int) block.GroupID {
		snapshot, err := c.catalog.Snapshot(t.Context(), fmt.Sprintf("grows/%d", i))
		if err != nil {
			t.Fatal(err)
		}
		return snapshot.Object.Extents[0].Group
	}
	views := func(ids ...int) (views []*catalog.GroupView) {
		for _, i := range ids {
			view, err := c.catalog.Group(t.Context(), id(i))
			if err != nil {
				t.Fatal(err)
			}
			views = append(views, view)
		}
		return views
	}
	if _, err := c.gateway.Reshape(t.Context(), views(0, 1), views(2), "rs(6,2)", "rs(6,2)"); err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]struct {
		kept, taken []*catalog.GroupView
		to          string
		want        error
	}{
		"a part of those it lies in": {views(0), views(2), "rs(4,2)", group.ErrNoRegion},
		"one that was not dissolved": {views(0, 1), views(3), "rs(4,2)", group.ErrNoRegion},
		"another width":              {views(0, 1), views(2), "rs(5,2)", group.ErrNoRegion},
		"narrower than it was":       {views(0, 1), views(2), "rs(3,2)", group.ErrNoRegion},
		"other parities":             {views(0, 1), views(2), "rs(4,1)", group.ErrNoRegion},
		"one that never was wider":   {views(3), nil, "rs(3,2)", group.ErrNoRegion},
		"nobody gets them":           {views(0, 1), nil, "rs(4,2)", catalog.ErrBadChange},
	} {
		if _, err := c.gateway.Reshape(t.Context(), try.kept, try.taken, try.to, try.to); !errors.Is(err, try.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	kept, taken := views(0, 1), views(2)
	if _, err := c.gateway.Update(t.Context(), "grows/2", 5, []byte("new"), nil); err != nil {
		t.Fatal(err)
	}
	copy(want[2][5:], "new")
	if _, err := c.gateway.Reshape(t.Context(), kept, taken, "rs(4,2)", "rs(4,2)"); !errors.Is(err, catalog.ErrStale) {
		t.Errorf("computed from records that are not true any more: %v", err)
	}
	check := func() {
		t.Helper()
		for i, data := range want {
			c.check(fmt.Sprintf("grows/%d", i), data)
		}
		c.audit()
	}
	check()
	// One of the objects is deleted: its columns are nobody's, and dropped.
	if err := c.gateway.Delete(t.Context(), "grows/2", nil); err != nil {
		t.Fatal(err)
	}
	want = slices.Delete(want, 2, 3)
	c.put("grows/2", want[2], api.PutOptions{})
	gone := taken[0].ID
	c.await("its group is freed", func() bool {
		c.audit()
		_, err := c.catalog.Group(t.Context(), gone)
		return errors.Is(err, catalog.ErrNoGroup)
	})
	if _, err := c.gateway.Reshape(t.Context(), views(0, 1), nil, "rs(4,2)", "rs(4,2)"); err != nil {
		t.Fatal(err)
	}
	for _, view := range views(0, 1) {
		if view.Scheme != "rs(4,2)" || view.Columns != 4 || len(view.Brought) > 0 || len(view.Slots) != 6 {
			t.Errorf("%+v", view.Group)
		}
	}
	check()
	survives(t, c, map[string][]byte{"grows/0": want[0], "grows/1": want[1]})
}
