package gateway_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
)

// A class gets a ladder of wider schemes, and a transition takes what is there to it: groups become wider together by the columns of
// others, as many as that takes; those that are left over are copied; it costs what was estimated.
func TestTransitionsMakeGroupsWider(t *testing.T) {
	for _, is := range []struct {
		from, to, ladder, back string
		region, large          int
		narrows                bool // it can become narrower again
	}{
		{"rs(2,2)", "rs(4,2)", "rs(4,2),rs(2,2)", "rs(3,2)", 2, 9, false}, // stripes of two fit four columns
		{"rs(4,2)", "rs(6,2)", "rs(6,2)", "rs(3,2)", 3, 10, true},
		{"rs(3,2)", "rs(5,2)", "rep(3),rs(5,2)", "rs(2,2)", 5, 12, true},
		{"rs(2,1)", "rs(4,2)", "rs(4,2)", "rs(3,1)", 2, 9, false}, // parities of which there are more
		{"rs(4,3)", "rs(6,2)", "rs(6,2)", "rs(3,1)", 3, 10, true},
		{"rs(2,3)", "rs(4,1)", "rs(4,1),rs(4,2)", "rs(3,2)", 2, 9, false},
	} {
		t.Run(is.from+" to "+is.to, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 12)
			clock := c.withClock()
			spec := api.ClassSpec{Name: "grows", Ladder: is.from, Prefixes: []string{"grows/"}, PackBelow: "4KiB", GroupBytes: "64KiB"}
			c.putClass(c.gateway, spec)
			want := map[string][]byte{}
			for i := range is.large {
				key := fmt.Sprintf("grows/large%d", i)
				want[key] = noise(60_000, uint64(i))
				c.put(key, want[key], api.PutOptions{})
			}
			want["grows/larger"] = noise(400_000, 99) // in several groups
			c.put("grows/larger", want["grows/larger"], api.PutOptions{})
			before, err := c.gateway.List(t.Context(), "grows/", "", 1000)
			if err != nil {
				t.Fatal(err)
			}
			spec.Ladder = is.ladder
			c.putClass(c.gateway, spec)
			request, estimate := estimated(t, c, clock, is.to)
			groups := 0
			wholes := 0 // in regions, of groups that are alike
			for _, views := range kindsOf(c) {
				groups += len(views)
				wholes += len(views) / is.region * is.region
			}
			if estimate.Groups != int64(groups) || estimate.GroupsOffLadder != int64(groups) || estimate.GroupsReshaped < int64(wholes) ||
				estimate.GroupsReshaped+estimate.GroupsCopied != int64(groups) {
				t.Errorf("%d groups, %d in regions: %+v", groups, wholes, estimate)
			}
			done := c.transition(request)
			if done.State != api.TransitionDone || done.GroupsDone != int64(groups) || done.GroupsReshaped != int64(wholes) ||
				done.GroupsOffLadder != int64(groups) || done.GroupsTotal != int64(groups) || done.BytesDone != done.BytesTotal {
				t.Errorf("%d groups, %d in regions: %+v", groups, wholes, done)
			}
			if (done.ObjectsRewritten > 0) != (groups > wholes) {
				t.Errorf("%d of %d groups were left over, and %d objects copied", groups-wholes, groups, done.ObjectsRewritten)
			}
			expectAsPlanned(t, "widened", done.Measured, done.Predicted)
			c.audit()
			for key, data := range want {
				c.check(key, data)
				for _, group := range c.stat(key).Groups {
					if group.Scheme != is.to || slices.ContainsFunc(group.Slots, func(slot api.SlotStat) bool { return slot.State != "ok" }) {
						t.Errorf("%s: %+v", key, group)
					}
				}
			}
			after, err := c.gateway.List(t.Context(), "grows/", "", 1000)
			if err != nil {
				t.Fatal(err)
			}
			for i, object := range after.Objects {
				if object.Revision != before.Objects[i].Revision || object.Scheme != is.to {
					t.Errorf("%+v was %+v", object, before.Objects[i])
				}
			}
			// All of it is where the transition was to take it: there is nothing to do, and nothing is called off the ladder.
			again := c.transition(request)
			if again.State != api.TransitionDone || again.GroupsTotal != 0 {
				t.Errorf("taken there once more: %+v", again)
			}
			report := classOf(t, c.walked(c.gateway, clock), "grows")
			for _, rung := range report.Rungs {
				if rung.Groups > 0 && rung.Scheme != is.to || rung.OffLadder > 0 {
					t.Errorf("%+v", rung)
				}
			}
			if is.narrows {
				narrowed(t, c, clock, spec, is.from, want)
			}
			takenBack(t, c, spec, is.back, want)
		})
	}
}

// Groups change while they become wider, and narrower again: they are overwritten, deleted and put anew by clients; the transition is paused,
// goes on at another gateway, and ends with everything as it is to be that it found.
func TestGroupsBecomeWiderAndNarrowerUnderClients(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 12)
	spec := api.ClassSpec{Name: "grows", Ladder: "rs(4,2)", Prefixes: []string{"grows/"}, PackBelow: "4KiB", GroupBytes: "64KiB"}
	c.putClass(c.gateway, spec)
	var mutex sync.Mutex
	want := map[string][]byte{}
	put := func(key string, data []byte) {
		c.put(key, data, api.PutOptions{})
		mutex.Lock()
		defer mutex.Unlock()
		want[key] = data
	}
	for i := range 40 {
		put(fmt.Sprintf("grows/large%d", i), noise(60_000, uint64(i)))
	}
	var puts errgroup.Group
	for i := range 240 {
		puts.Go(func() error {
			put(fmt.Sprintf("grows/small%d", i), noise(3000, uint64(500+i)))
			return nil
		})
	}
	if err := puts.Wait(); err != nil {
		t.Fatal(err)
	}
	for turn, to := range []string{"rs(6,2)", "rs(4,2)"} {
		spec.Ladder = to
		c.putClass(c.gateway, spec)
		id := fmt.Sprintf("transition%d", turn)
		request := api.TransitionRequest{ID: id, Selector: api.Selector{Class: "grows"}, To: to, Concurrency: 2}
		if _, err := c.gateway.StartTransition(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		progress := func() api.Transition {
			now, err := c.gateway.Transition(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return now
		}
		for turn := 0; turn <= 400 && !progress().State.Final(); turn++ { // then it goes on without clients
			key := fmt.Sprintf("grows/large%d", turn*7%40)
			switch turn % 4 {
			case 0:
				put(key, noise(60_000, uint64(1000+turn)))
			case 1:
				patch := noise(700, uint64(turn))
				if _, err := c.gateway.Update(t.Context(), key, 1500, patch, nil); err == nil {
					want[key] = slices.Concat(want[key][:1500], patch, want[key][2200:])
				}
			case 2:
				c.check(key, want[key])
			case 3:
				if turn%8 == 3 {
					if _, err := c.gateway.PauseTransition(t.Context(), id); err == nil {
						c.await("it is paused", func() bool { now := progress(); return now.State == api.TransitionPaused || now.State.Final() })
						if progress().State == api.TransitionPaused {
							if _, err := c.gateway.ResumeTransition(t.Context(), id, nil); err != nil {
								t.Error(err)
							}
						}
					}
				}
			}
		}
		done := c.ended(id)
		if done.State != api.TransitionDone || done.GroupsReshaped == 0 {
			t.Errorf("%+v", done)
		}
		for key, data := range want {
			if got := c.get(key); !bytes.Equal(got, data) {
				t.Errorf("%s is not what was put", key)
			}
			for _, group := range c.stat(key).Groups {
				if group.Scheme != to {
					t.Errorf("%s is under %s", key, group.Scheme)
				}
			}
		}
		c.audit()
		survives(t, c, want)
	}
	takenBack(t, c, spec, "rs(3,2)", want)
}

// What becomes wider lies in as many failure domains as it has slots, also where a column could have stayed on its node beside another.
func TestGroupsBecomeWiderOverDomains(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 12).with(domains("aabbccddeeff"))
	c.answering()
	spec := api.ClassSpec{Name: "grows", Ladder: "rs(2,2)", Prefixes: []string{"grows/"}, PackBelow: "0", GroupBytes: "64KiB"}
	c.putClass(c.gateway, spec)
	want := map[string][]byte{}
	for i := range 24 {
		key := fmt.Sprintf("grows/%d", i)
		want[key] = noise(60_000, uint64(i))
		c.put(key, want[key], api.PutOptions{})
	}
	spec.Ladder = "rs(4,2)"
	c.putClass(c.gateway, spec)
	done := c.transition(api.TransitionRequest{Selector: api.Selector{Class: "grows"}, To: "rs(4,2)"})
	if done.State != api.TransitionDone || done.GroupsReshaped != 24 {
		t.Fatalf("%+v", done)
	}
	expectAsPlanned(t, "widened", done.Measured, done.Predicted)
	for _, views := range kindsOf(c) {
		for _, view := range views {
			racks := map[string]bool{}
			for slot := range view.Slots {
				id, _ := view.Place(slot)
				racks[c.record(id).Domain] = true
			}
			if len(racks) != len(view.Slots) {
				t.Errorf("%d slots of group %s lie in %d domains", len(view.Slots), view.ID, len(racks))
			}
		}
	}
	for key, data := range want {
		c.check(key, data)
	}
	c.audit()
}

// estimated asks what it costs to take the class to a scheme, once its groups were looked at.
func estimated(t *testing.T, c *cluster, clock *handClock, to string) (request api.TransitionRequest, estimate api.Estimate) {
	t.Helper()
	c.walked(c.gateway, clock)
	request = api.TransitionRequest{Selector: api.Selector{Class: "grows"}, To: to}
	estimate, err := c.gateway.Estimate(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return request, estimate
}

// narrowed has what became wider become narrower again, by columns alone, and copies of what was written as wide.
func narrowed(t *testing.T, c *cluster, clock *handClock, spec api.ClassSpec, to string, want map[string][]byte) {
	t.Helper()
	spec.Ladder = to
	c.putClass(c.gateway, spec)
	var wide, native, dissolved int64
	for _, views := range kindsOf(c) {
		for _, view := range views {
			switch {
			case len(view.Brought) > 0:
				wide++
			case view.IsDissolved():
				dissolved++
			default:
				native++
			}
		}
	}
	key := "grows/large3"
	patch := noise(900, 5)
	if _, err := c.gateway.Update(t.Context(), key, 30_000, patch, nil); err != nil {
		t.Fatal(err)
	}
	want[key] = slices.Concat(want[key][:30_000], patch, want[key][30_900:])
	request, estimate := estimated(t, c, clock, to)
	if wide == 0 || estimate.GroupsReshaped != wide || estimate.GroupsCopied != native {
		t.Errorf("%d wide groups and %d that were written so: %+v", wide, native, estimate)
	}
	done := c.transition(request)
	if done.State != api.TransitionDone || done.GroupsReshaped != wide || done.GroupsDone != wide+native ||
		(done.ObjectsRewritten > 0) != (native > 0) {
		t.Errorf("%d wide groups and %d that were written so: %+v", wide, native, done)
	}
	expectAsPlanned(t, "narrowed", done.Measured, done.Predicted)
	if native == 0 && (estimate.BytesRead != done.Measured.BytesRead || estimate.BytesWritten != done.Measured.BytesWritten) {
		t.Errorf("it was to be %+v, and is %+v", estimate, done.Measured)
	}
	check := func() {
		t.Helper()
		back := int64(0)
		c.await("no group is wide", func() bool { // those that were copied are freed first
			c.audit()
			back = 0
			for _, views := range kindsOf(c) {
				if slices.ContainsFunc(views, func(view *catalog.GroupView) bool { return len(view.Brought)+len(view.Lies) > 0 || view.Scheme != to }) {
					return false
				}
				back += int64(len(views))
			}
			return true
		})
		if back < wide+dissolved {
			t.Errorf("%d groups, and %d were wide, %d dissolved", back, wide, dissolved)
		}
		for key, data := range want {
			c.check(key, data)
			for _, group := range c.stat(key).Groups {
				if group.Scheme != to || slices.ContainsFunc(group.Slots, func(slot api.SlotStat) bool { return slot.State != "ok" }) {
					t.Errorf("%s: %+v", key, group)
				}
			}
		}
	}
	check()
	survives(t, c, want)
	for range 2 { // before what was replaced is deleted, and after
		c.lost()
		c.putClass(c.gateway, spec)
		check()
	}
}

// takenBack has what became wider be taken to a scheme that it does not fit, which takes everything out of all groups, also of those that
// were dissolved.
func takenBack(t *testing.T, c *cluster, spec api.ClassSpec, to string, want map[string][]byte) {
	t.Helper()
	spec.Ladder = to
	c.putClass(c.gateway, spec)
	done := c.transition(api.TransitionRequest{Selector: api.Selector{Class: "grows"}, To: to})
	if done.State != api.TransitionDone || done.ObjectsRewritten == 0 {
		t.Errorf("taken back: %+v", done)
	}
	for key, data := range want {
		c.check(key, data)
		if stat := c.stat(key); stat.Scheme != to {
			t.Errorf("%s is under %s", key, stat.Scheme)
		}
	}
	c.await("no group has columns of others", func() bool { // those that were dissolved are freed first
		c.audit()
		for _, views := range kindsOf(c) {
			if slices.ContainsFunc(views, func(view *catalog.GroupView) bool { return len(view.Brought)+len(view.Lies) > 0 }) {
				return false
			}
		}
		return true
	})
}

// Nodes are added to a cluster over all of which each group lies, so no column can stay where it is. Each group gets its columns from one
// node, which sends one sum to each of its parities, and less still where that has one of them; so it takes what the paper takes at most.
func TestColumnsComeFromOneNode(t *testing.T) {
	for _, is := range []struct {
		from, to        string
		nodes, more     int
		kept, dissolved int // as many at a time
		paper           int // blocks for each row of a group that is kept
	}{
		{"rs(6,3)", "rs(9,3)", 9, 3, 6, 3, 6},
		{"rs(4,2)", "rs(6,2)", 6, 2, 4, 2, 4},
		{"rs(6,3)", "rs(10,3)", 9, 4, 6, 4, 7},
	} {
		t.Run(is.from+" to "+is.to, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, is.nodes)
			clock := c.withClock()
			spec := api.ClassSpec{Name: "grows", Ladder: is.from, Prefixes: []string{"grows/"}, PackBelow: "0", GroupBytes: "64KiB"}
			c.putClass(c.gateway, spec)
			want := map[string][]byte{}
			const regions = 5
			for i := range regions * (is.kept + is.dissolved) {
				key := fmt.Sprintf("grows/%d", i)
				want[key] = noise(64<<10, uint64(i))
				c.put(key, want[key], api.PutOptions{})
			}
			for range is.more {
				c.added(c.addAgent())
			}
			spec.Ladder = is.to
			c.putClass(c.gateway, spec)
			request, estimate := estimated(t, c, clock, is.to)
			done := c.transition(request)
			if done.State != api.TransitionDone || done.GroupsReshaped != int64(len(want)) || done.ObjectsRewritten != 0 {
				t.Fatalf("%+v", done)
			}
			expectAsPlanned(t, "widened", done.Measured, done.Predicted)
			sent, most := done.Predicted.BlocksSent, int64(is.paper*is.kept*regions) // each of one row
			if sent >= most || sent < most-int64(is.kept*regions) {
				t.Errorf("%d blocks crossed the network, and %d would by the paper", sent, most)
			}
			if cell := done.Predicted.BytesSent / sent; estimate.BytesSent != most*cell {
				t.Errorf("%d blocks of %d bytes at most are estimated as %+v", most, cell, estimate)
			}
			for key, data := range want {
				c.check(key, data)
			}
			survives(t, c, want)
			c.audit()
		})
	}
}

// What is selected by a prefix becomes wider by columns too, where groups have nothing else in them; small objects that share theirs with
// others are copied out of it, and the others stay what they are.
func TestObjectsUnderAPrefixBecomeWider(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 12)
	spec := api.ClassSpec{Name: "grows", Ladder: "rs(4,2)", Prefixes: []string{"grows/"}, PackBelow: "4KiB", GroupBytes: "64KiB"}
	c.putClass(c.gateway, spec)
	want := map[string][]byte{}
	put := func(key string, size int) {
		want[key] = noise(size, uint64(len(want)))
		c.put(key, want[key], api.PutOptions{})
	}
	for i := range 7 {
		put(fmt.Sprintf("grows/a/large%d", i), 60_000)
		put(fmt.Sprintf("grows/b/large%d", i), 60_000)
		put(fmt.Sprintf("grows/a/small%d", i), 3000)
		put(fmt.Sprintf("grows/b/small%d", i), 3000)
	}
	spec.Ladder = "rs(6,2),rs(4,2)"
	c.putClass(c.gateway, spec)
	prefix := api.EncodeKey("grows/a/")
	done := c.transition(api.TransitionRequest{Selector: api.Selector{Prefix64: &prefix}, To: "rs(6,2)"})
	if done.State != api.TransitionDone || done.GroupsReshaped != 6 || done.ObjectsRewritten != 7+1 { // the seventh is one too many
		t.Errorf("%+v", done)
	}
	expectAsPlanned(t, "widened", done.Measured, done.Predicted)
	for key, data := range want {
		c.check(key, data)
		scheme := "rs(4,2)"
		if strings.HasPrefix(key, "grows/a/") {
			scheme = "rs(6,2)"
		}
		if is := c.stat(key).Scheme; is != scheme {
			t.Errorf("%s is under %s", key, is)
		}
	}
	c.audit()
	survives(t, c, want)
	again := c.transition(api.TransitionRequest{Selector: api.Selector{Prefix64: &prefix}, To: "rs(6,2)"})
	if again.State != api.TransitionDone || again.GroupsDone != 0 {
		t.Errorf("taken there once more: %+v", again)
	}
}
