package gateway_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/values"
)

// Objects are put under a ladder, the class gets others that nobody thought of then, and every scheme of those is taken: where the data
// is, by parities alone, where that fits the groups, and by copies where it does not.
func TestLaddersThatNobodyForesaw(t *testing.T) {
	for name, c := range map[string]struct {
		ladder string // of the class when its objects are put
		steps  []ladderStep
	}{
		"fewer in a stripe": {"rs(6,2)", []ladderStep{
			{ladder: "rs(6,2),rs(3,2),rs(2,1)", to: "rs(3,2)"},
			{to: "rs(2,1)"},
			{ladder: "rep(3),rs(6,2)", to: "rep(3)"},
			{to: "rs(6,2)"},
		}},
		"more parities": {"rs(4,1)", []ladderStep{
			{ladder: "rs(4,1),rs(4,3),rep(2)", to: "rs(4,3)"},
			{ladder: "rs(4,1),rs(2,4),rep(2)", to: "rs(2,4)"},
			{to: "rep(2)"},
			{to: "rs(2,4)"},
		}},
		"wider than the groups": {"rs(4,2)", []ladderStep{
			{ladder: "rs(7,2),rep(2),rs(4,2)", to: "rs(7,2)", copies: true},
			{to: "rep(2)"},
			{ladder: "rep(2),rs(10,4)", to: "rs(10,4)", copies: true},
			{to: "rep(2)"},
			{ladder: "rs(4,2)", to: "rs(4,2)", copies: true}, // 4 does not divide the 10 cells of a group
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t, 15)
			spec := api.ClassSpec{Name: "grows", Ladder: c.ladder, Prefixes: []string{"grows/"}, PackBelow: "4KiB", GroupBytes: "64KiB"}
			cluster.putClass(cluster.gateway, spec)
			want, revisions := map[string][]byte{}, map[string]block.Stamp{}
			for i, size := range []int{1, 700, 3000, 4096, 70_000, 300_000} {
				key := fmt.Sprintf("grows/%d", size)
				want[key] = noise(size, uint64(i))
				revisions[key] = cluster.put(key, want[key], api.PutOptions{}).Revision
			}
			for _, step := range c.steps {
				if step.ladder != "" {
					spec.Ladder = step.ladder
					cluster.putClass(cluster.gateway, spec)
				}
				done := cluster.transition(api.TransitionRequest{Selector: api.Selector{Class: "grows"}, To: step.to})
				if done.State != api.TransitionDone || done.GroupsDone == 0 || step.copies != (done.ObjectsRewritten > 0) {
					t.Fatalf("to %s: %+v", step.to, done)
				}
				if !step.copies {
					expectAsPlanned(t, "to "+step.to, done.Measured, done.Predicted)
				}
				for key, data := range want {
					cluster.check(key, data)
					stat := cluster.stat(key)
					if stat.Revision != revisions[key] {
						t.Errorf("%s has become revision %s", key, stat.Revision)
					}
					for _, group := range stat.Groups {
						if group.Scheme != step.to || slices.ContainsFunc(group.Slots, func(slot api.SlotStat) bool { return slot.State != "ok" }) {
							t.Errorf("%s to %s: %+v", key, step.to, group)
						}
					}
				}
				cluster.audit()
			}
			// What was moved is written as any object is.
			key := "grows/300000"
			if _, err := cluster.gateway.Update(t.Context(), key, 65_000, noise(9_000, 77), nil); err != nil {
				t.Fatal(err)
			}
			copy(want[key][65_000:], noise(9_000, 77))
			cluster.audit()
			survives(t, cluster, want)
		})
	}
}

type ladderStep struct {
	ladder string // that the class gets before; empty: as it is
	to     string
	copies bool
}

// One object is moved to a scheme that its group was not written for, and only that one.
func TestOneObjectComesUnderAnotherLadder(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 12)
	spec := api.ClassSpec{Name: "grows", Ladder: "rs(4,2)", Prefixes: []string{"grows/"}, PackBelow: "4KiB", GroupBytes: "64KiB"}
	c.putClass(c.gateway, spec)
	want := map[string][]byte{"grows/small": noise(900, 1), "grows/neighbour": noise(1000, 2), "grows/large": noise(200_000, 3)}
	for key, data := range want {
		c.put(key, data, api.PutOptions{})
	}
	request := func(key string) api.TransitionRequest {
		return api.TransitionRequest{Selector: api.Selector{Key64: api.EncodeKey(key)}, To: "rs(9,2)"}
	}
	if _, err := c.gateway.StartTransition(t.Context(), request("grows/large")); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("a scheme that the class does not have: %v", err)
	}
	spec.Ladder = "rs(4,2),rs(9,2)"
	c.putClass(c.gateway, spec)
	for _, key := range []string{"grows/small", "grows/large"} {
		if done := c.transition(request(key)); done.State != api.TransitionDone || done.ObjectsRewritten != 1 {
			t.Errorf("%s: %+v", key, done)
		}
	}
	for key, data := range want {
		c.check(key, data)
		to := "rs(9,2)"
		if key == "grows/neighbour" {
			to = "rs(4,2)"
		}
		for _, group := range c.stat(key).Groups {
			if group.Scheme != to {
				t.Errorf("%s is under %s", key, group.Scheme)
			}
		}
	}
	c.audit()
}

// Objects that were put before a class was made come into it: by their records alone, and by copies where they share groups with others
// that stay.
func TestObjectsComeIntoAClass(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	want, revisions := map[string][]byte{}, map[string]block.Stamp{}
	put := func(key string, size int, seed uint64) {
		want[key] = noise(size, seed)
		revisions[key] = c.put(key, want[key], api.PutOptions{}).Revision
	}
	put("media/large", 300_000, 1) // five groups
	put("media/empty", 0, 2)
	put("odd/media", 1000, 3) // of another class, and stays there
	for key, data := range c.putMany("media/small/", 20, 40) {
		want[key], revisions[key] = data, c.stat(key).Revision
	}
	put("other/large", 70_000, 4)
	var together []values.Entry // which share a group
	for i, key := range []string{"media/shared", "other/shared", "media/beside"} {
		want[key] = noise(500, uint64(50+i))
		together = append(together, values.Entry{Key: key, Put: values.Put{Data: want[key]}})
	}
	if err := c.gateway.Values().Anybody().PutMany(t.Context(), together); err != nil {
		t.Fatal(err)
	}
	for _, entry := range together {
		revisions[entry.Key] = c.stat(entry.Key).Revision
	}
	put("media/versions", 900, 6)
	spec := api.ClassSpec{
		Name: "media", Ladder: "rep(3),rs(6,2)", Default: "rep(3)", Prefixes: []string{"media/", "media/e"},
		PackBelow: "4KiB", GroupBytes: "64KiB",
	}
	c.putClass(c.gateway, spec)
	for request, text := range map[api.TransitionRequest]string{
		{Into: "nowhere"}:                                       "there is no class",
		{Into: "media", To: "rep(3)"}:                           "whatever their scheme",
		{Into: "media", Selector: api.Selector{Class: "no"}}:    "there is no class",
		{Into: "media", Selector: api.Selector{Class: "media"}}: "select another class",
		{Into: "media", Selector: api.Selector{Key64: "aw"}}:    "cannot be given beside",
	} {
		if _, err := c.gateway.StartTransition(t.Context(), request); !errors.Is(err, api.ErrBadRequest) || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v, want %q", request, err, text)
		}
	}
	var coming, size int64
	for key, data := range want {
		if strings.HasPrefix(key, "media/") {
			coming, size = coming+1, size+int64(len(data))
		}
	}
	expected, err := c.gateway.Estimate(t.Context(), api.TransitionRequest{Into: "media"})
	if err != nil || expected.Objects != coming || expected.Bytes != size || expected.ObjectsCopied != 2 || expected.GroupsCopied != 1 ||
		expected.Groups < 6 || expected.BytesRead != 1000 || expected.BytesWritten != 3000 || expected.PlanHash == "" {
		t.Errorf("%d objects of %d bytes come: %+v, %v", coming, size, expected, err)
	}
	for _, request := range []api.TransitionRequest{{Into: "nowhere"}, {Into: "media", To: "rep(3)"}} {
		if _, err := c.gateway.Estimate(t.Context(), request); !errors.Is(err, api.ErrBadRequest) {
			t.Errorf("%+v: %v", request, err)
		}
	}
	done := c.transition(api.TransitionRequest{Into: "media"})
	if done.State != api.TransitionDone || done.GroupsDone < 6 || done.ObjectsRewritten != 2 || done.BytesRewritten != 1000 {
		t.Fatalf("%+v", done)
	}
	for key, data := range want {
		c.check(key, data)
		stat := c.stat(key)
		class := "media"
		if !strings.HasPrefix(key, "media/") {
			class = map[bool]string{true: "odd", false: "default"}[strings.HasPrefix(key, "odd/")]
		}
		if stat.Class != class || stat.Revision != revisions[key] {
			t.Errorf("%s is of class %s at revision %s", key, stat.Class, stat.Revision)
		}
		for _, group := range stat.Groups {
			view, err := c.catalog.Group(t.Context(), group.ID)
			if err != nil || view.Class != class {
				t.Errorf("%s lies in a group of class %s, %v", key, view.Class, err)
			}
		}
	}
	c.audit()
	// From there they go along the ladder of the class, which their groups were not written for.
	if done := c.transition(api.TransitionRequest{Selector: api.Selector{Class: "media"}, To: "rs(6,2)"}); done.State != api.TransitionDone {
		t.Errorf("%+v", done)
	}
	for key, data := range want {
		c.check(key, data)
	}
	if left, err := c.gateway.Estimate(t.Context(), api.TransitionRequest{Into: "media"}); err != nil || left.Objects+left.Groups != 0 {
		t.Errorf("what is left: %+v, %v", left, err)
	}
	if again := c.transition(api.TransitionRequest{Into: "media"}); again.State != api.TransitionDone || again.GroupsTotal != 0 {
		t.Errorf("once more: %+v", again)
	}
	c.audit()
}

// Groups written before a ladder had a scheme are counted, and what they cost is told apart: their objects are copied where they do not
// fit.
func TestGroupsOfAnOlderLadderAreEstimated(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	clock := c.withClock()
	spec := api.ClassSpec{Name: "grows", Ladder: "rep(3),rs(3,2)", Prefixes: []string{"grows/"}, PackBelow: "0", GroupBytes: "64KiB"}
	c.putClass(c.gateway, spec)
	c.fill("grows/old", 2)
	spec.Ladder = "rep(3),rs(3,2),rs(6,2)"
	c.putClass(c.gateway, spec)
	c.fill("grows/new", 3)
	c.use(c.gateway, "grows/old1", 200)
	rung := classOf(t, c.walked(c.gateway, clock), "grows").Rungs[0]
	if hot, _ := groupsAt(rung, 64, math.Inf(1)); rung.Groups != 5 || rung.OffLadder != 2 || hot != 1 {
		t.Errorf("%d of them hot: %+v", hot, rung)
	}
	request := api.TransitionRequest{Selector: api.Selector{Class: "grows"}, From: "rep(3)", To: "rs(6,2)"}
	estimate, err := c.gateway.Estimate(t.Context(), request)
	if err != nil || estimate.Groups != 5 || estimate.GroupsOffLadder != 2 || estimate.GroupsCopied != 2 {
		t.Errorf("%+v, %v", estimate, err)
	}
	done := c.transition(request)
	if done.State != api.TransitionDone || done.GroupsDone != 5 || done.GroupsOffLadder != 2 || done.ObjectsRewritten != 2 {
		t.Errorf("%+v", done)
	}
	c.audit() // which frees the groups that were emptied
	after := classOf(t, c.walked(c.gateway, clock), "grows")
	last := after.Rungs[len(after.Rungs)-1]
	// Cells are rounded up to lines of the cache.
	if off := last.StoredBytes - estimate.StoredAfter; last.Groups != 5 || last.OffLadder != 0 || max(off, -off) > estimate.StoredAfter/100 {
		t.Errorf("%d groups, %d off the ladder, %d bytes, estimated to store %d",
			last.Groups, last.OffLadder, last.StoredBytes, estimate.StoredAfter)
	}
	if hot, _ := groupsAt(last, 64, math.Inf(1)); hot != 1 {
		t.Errorf("%d of them are hot, where one that was read much was copied", hot)
	}
	// Parities that others lacked are added where the data is.
	spec.Ladder = "rs(6,3),rs(6,2)"
	c.putClass(c.gateway, spec)
	c.walked(c.gateway, clock)
	request = api.TransitionRequest{Selector: api.Selector{Class: "grows"}, To: "rs(6,3)"}
	estimate, err = c.gateway.Estimate(t.Context(), request)
	if err != nil || estimate.Groups != 5 || estimate.GroupsOffLadder != 5 || estimate.GroupsCopied != 0 {
		t.Errorf("%+v, %v", estimate, err)
	}
	done = c.transition(request)
	have := done.Measured
	if done.State != api.TransitionDone || have.BytesRead != estimate.BytesRead || have.BytesWritten != estimate.BytesWritten {
		t.Errorf("measured %+v, estimated %+v", done, estimate)
	}
}

// A copy of a large object goes on at the rate of its transition, and leaves all as it was when it is stopped.
func TestCopiesArePausedAndGoOn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	spec := api.ClassSpec{Name: "grows", Ladder: "rs(4,2)", Prefixes: []string{"grows/"}, PackBelow: "4KiB", GroupBytes: "64KiB"}
	c.putClass(c.gateway, spec)
	data := noise(300_000, 1)
	revision := c.put("grows/large", data, api.PutOptions{}).Revision
	spec.Ladder = "rs(7,2)"
	c.putClass(c.gateway, spec)
	slow := api.TransitionRequest{ID: "slow", Selector: api.Selector{Class: "grows"}, To: "rs(7,2)", BytesPerSecond: 1}
	if _, err := c.gateway.StartTransition(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	c.await("it has begun", func() bool {
		now, err := c.gateway.Transition(t.Context(), "slow")
		return err == nil && now.Attempts > 0
	})
	paused, err := c.gateway.PauseTransition(t.Context(), "slow")
	if err != nil || paused.State != api.TransitionPaused || paused.GroupsDone > 0 {
		t.Errorf("%+v, %v", paused, err)
	}
	c.check("grows/large", data)
	c.audit()
	unlimited := int64(0)
	if _, err := c.gateway.ResumeTransition(t.Context(), "slow", &unlimited); err != nil {
		t.Fatal(err)
	}
	if done := c.ended("slow"); done.State != api.TransitionDone || done.ObjectsRewritten != 1 || done.BytesRewritten != int64(len(data)) {
		t.Errorf("%+v", done)
	}
	c.check("grows/large", data)
	if stat := c.stat("grows/large"); stat.Revision != revision || stat.Groups[0].Scheme != "rs(7,2)" {
		t.Errorf("%+v", stat)
	}
	c.audit()
}

// Earlier versions come into a class with the object that they are of, large and small.
func TestEarlierVersionsComeIntoAClass(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	spec := api.ClassSpec{
		Name: "kept", Ladder: "rep(2),rs(3,2)", Prefixes: []string{"kept/"}, PackBelow: "4KiB", GroupBytes: "64KiB", KeepVersions: 2,
	}
	c.putClass(c.gateway, spec)
	revisions := map[string][]block.Stamp{}
	for key, size := range map[string]int{"kept/media/small": 700, "kept/media/large": 150_000} {
		revisions[key] = c.history(key, size, 3)
	}
	spec.Name, spec.Prefixes = "media", []string{"kept/media/"}
	c.putClass(c.gateway, spec)
	if done := c.transition(api.TransitionRequest{Into: "media", Selector: api.Selector{Class: "kept"}}); done.State != api.TransitionDone {
		t.Fatalf("%+v", done)
	}
	for key, size := range map[string]int{"kept/media/small": 700, "kept/media/large": 150_000} {
		c.keeps(key, size, 3, revisions[key], 2)
		for _, revision := range revisions[key][1:] {
			version, err := c.catalog.Snapshot(t.Context(), block.EarlierKey(key, revision))
			if err != nil {
				t.Fatal(err)
			}
			if version.Object.Class != "media" {
				t.Errorf("a version of %s is of class %s", key, version.Object.Class)
			}
		}
	}
	c.audit()
}
