package gateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
)

// What the control plane asks of gateways: classes, heat, estimates, limits, load.

// handClock stands still until it is moved.
type handClock struct {
	mutex sync.Mutex
	now   time.Time
}

func newHandClock() *handClock { return &handClock{now: time.Now()} }

func (c *handClock) Now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.now
}

func (c *handClock) move(by time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.now = c.now.Add(by)
}

// withClock restarts the cluster's gateway with a clock that stands still.
func (c *cluster) withClock() *handClock {
	c.t.Helper()
	clock := newHandClock()
	c.restart(clock)
	return clock
}

func (c *cluster) restart(clock *handClock, changes ...func(*gateway.Options)) {
	c.t.Helper()
	c.stopGateway()
	c.catalog, c.gateway = c.makeGateway("gw", append(changes, func(o *gateway.Options) { o.Now = clock.Now })...)
}

// walked returns a heat report whose walk began after now.
func (c *cluster) walked(g *gateway.Gateway, clock *handClock) api.HeatReport {
	c.t.Helper()
	clock.move(time.Millisecond)
	from := clock.Now()
	var report api.HeatReport
	c.await("the groups are walked over", func() bool {
		for _, class := range g.Classes() {
			c.putClass(g, specOf(class)) // declaring a class as it is has the walk begin
			break
		}
		report = g.Heat()
		return report.Complete && !report.Began.Before(from.UTC()) && !report.ObjectsAt.Before(from.UTC())
	})
	return report
}

func specOf(class api.ClassInfo) api.ClassSpec {
	return api.ClassSpec{
		Name: class.Name, Ladder: class.Ladder, Default: class.Default, Mode: class.Mode, Prefixes: class.Prefixes,
		PackBelow: fmt.Sprint(class.PackBelow), PackDelay: class.PackDelay, GroupBytes: fmt.Sprint(class.GroupBytes),
		HalfLife: class.HalfLife, Dwell: class.Dwell, Prices: class.Prices, Expected: class.Expected, ExpectMean: class.ExpectMean,
	}
}

func (c *cluster) putClass(g *gateway.Gateway, spec api.ClassSpec) api.ClassInfo {
	c.t.Helper()
	class, err := g.PutClass(c.t.Context(), spec)
	if err != nil {
		c.t.Fatalf("declaring class %s: %v", spec.Name, err)
	}
	return class
}

func classOf(t *testing.T, report api.HeatReport, name string) api.ClassHeat {
	t.Helper()
	for _, class := range report.Classes {
		if class.Class == name {
			return class
		}
	}
	t.Fatalf("the report has no class %s", name)
	return api.ClassHeat{}
}

// groupsAt returns how many groups of a rung are used at least and less than so often.
func groupsAt(rung api.RungHeat, atLeast, below float64) (groups, settled int64) {
	for i, bucket := range rung.Buckets {
		if api.HeatEdge(i) >= atLeast && api.HeatEdge(i+1) <= below {
			groups, settled = groups+bucket.Groups, settled+bucket.SettledGroups
		}
	}
	return groups, settled
}

const objectBytes = 60_000 // one group of class default each

func (c *cluster) fill(prefix string, count int) map[string][]byte {
	c.t.Helper()
	objects := map[string][]byte{}
	for i := range count {
		key := fmt.Sprintf("%s%d", prefix, i)
		objects[key] = noise(objectBytes, uint64(i))
		c.put(key, objects[key], api.PutOptions{})
	}
	return objects
}

func (c *cluster) use(g *gateway.Gateway, key string, times int) {
	c.t.Helper()
	for range times {
		if _, err := c.readFrom(g, key); err != nil {
			c.t.Fatalf("reading %q: %v", key, err)
		}
	}
}

func TestHeatReportTellsHowOftenGroupsAreUsed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	clock := c.withClock()
	c.fill("k", 5)
	c.put("small", noise(100, 1), api.PutOptions{})
	c.put("empty", nil, api.PutOptions{})
	c.use(c.gateway, "k0", 20) // 21 accesses: 21 ln 2 = 14.6 a day
	if _, err := c.gateway.Update(t.Context(), "k1", 10, []byte("new"), nil); err != nil {
		t.Fatal(err) // 2 accesses: 1.39 a day
	}
	report := c.walked(c.gateway, clock)
	class := classOf(t, report, "default")
	if class.Objects != 7 || class.Bytes != 5*objectBytes+100 || class.HalfLife != "24h0m0s" || class.Dwell != "6h0m0s" {
		t.Errorf("%+v", class)
	}
	if len(class.Rungs) != 3 || class.Rungs[0].Scheme != "rep(3)" || class.Rungs[0].Groups != 6 || class.Rungs[1].Groups != 0 || class.Rungs[1].Buckets != nil {
		t.Fatalf("%+v", class.Rungs)
	}
	rung := class.Rungs[0]
	if rung.StoredBytes != 3*rung.Bytes || rung.Bytes < 5*objectBytes || rung.CellBytesTotal*6 != rung.Bytes {
		t.Errorf("%d bytes, %d stored, cells of %d", rung.Bytes, rung.StoredBytes, rung.CellBytesTotal)
	}
	if len(rung.Buckets) != api.HeatBuckets || rung.Buckets[0].Below != 1.0/64 || rung.Buckets[api.HeatBuckets-2].Below != 1<<20 || rung.Buckets[api.HeatBuckets-1].Below != 0 {
		t.Errorf("buckets %+v", rung.Buckets)
	}
	for _, want := range []struct {
		atLeast, below float64
		groups         int64
	}{{8, 16, 1}, {1, 2, 1}, {0.5, 1, 4}} {
		if have, settled := groupsAt(rung, want.atLeast, want.below); have != want.groups || settled != 0 {
			t.Errorf("%d groups, %d of them settled, are used %v to %v times a day; want %d and none", have, settled, want.atLeast, want.below, want.groups)
		}
	}
	clock.move(24 * time.Hour)
	rung = classOf(t, c.walked(c.gateway, clock), "default").Rungs[0]
	for _, want := range []struct {
		atLeast, below float64
		groups         int64
	}{{4, 8, 1}, {0.5, 1, 1}, {0.25, 0.5, 4}} {
		if have, settled := groupsAt(rung, want.atLeast, want.below); have != want.groups || settled != want.groups {
			t.Errorf("a day later %d groups, %d of them settled, are used %v to %v times a day; want %d", have, settled, want.atLeast, want.below, want.groups)
		}
	}
	clock.move(100 * 24 * time.Hour)
	if have, _ := groupsAt(classOf(t, c.walked(c.gateway, clock), "default").Rungs[0], 0, 1.0/64); have != 6 {
		t.Errorf("after a hundred days %d of 6 groups count as never used", have)
	}
}

// What gateways read for themselves is no use by clients: transitions, repairs and moves heat nothing.
func TestOwnWorkHeatsNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	clock := c.withClock()
	c.fill("k", 3)
	c.put("s1", noise(300, 1), api.PutOptions{})
	c.put("s2", noise(300, 2), api.PutOptions{})
	before := c.walked(c.gateway, clock)
	prefix := api.EncodeKey("k")
	c.transition(api.TransitionRequest{Selector: api.Selector{Prefix64: &prefix}, To: "rs(3,2)"})
	c.transition(api.TransitionRequest{Selector: api.Selector{Key64: api.EncodeKey("s1")}, To: "rs(3,2)"})
	if _, err := c.gateway.Repair(t.Context(), true, true); err != nil {
		t.Fatal(err)
	}
	after := c.walked(c.gateway, clock)
	var had, have int64
	for i := range classOf(t, before, "default").Rungs {
		_, hot := classOf(t, before, "default").Rungs[i], 1.0
		n, _ := groupsAt(classOf(t, before, "default").Rungs[i], hot, math.Inf(1))
		had += n
		n, _ = groupsAt(classOf(t, after, "default").Rungs[i], hot, math.Inf(1))
		have += n
	}
	if had != 0 || have != 0 {
		t.Errorf("%d groups were hot before and %d are after", had, have)
	}
}

func TestHeatSurvivesRestartsAndForgetsDeadGroups(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	clock := c.withClock()
	c.fill("k", 4)
	c.use(c.gateway, "k0", 50)
	hot := func() int64 {
		n, _ := groupsAt(classOf(t, c.walked(c.gateway, clock), "default").Rungs[0], 16, math.Inf(1))
		return n
	}
	if hot() != 1 {
		t.Fatal("a group that was read 50 times is not hot")
	}
	c.restart(clock)
	if hot() != 1 {
		t.Error("after a restart the hot group is not hot")
	}
	clock.move(-time.Hour) // set back while the gateway was away
	c.restart(clock)
	if hot() != 1 {
		t.Error("after a restart under a clock that was set back the hot group is not hot")
	}
	if err := c.gateway.Delete(t.Context(), "k0", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.gateway.SweepRecords(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.walked(c.gateway, clock)
	if report := c.walked(c.gateway, clock); report.Tracked != 3 {
		t.Errorf("%d groups are tracked, there are 3", report.Tracked)
	}
}

// Each gateway counts its own clients; all of them report and act on the sum.
func TestHeatIsTheSumOverGateways(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	clock := newHandClock()
	c.restart(clock)
	c.putClass(c.gateway, api.ClassSpec{Name: "default", Ladder: "rep(3),rs(3,2),rs(6,2)", Prefixes: []string{""}, PackBelow: "4KiB", GroupBytes: "64KiB", HalfLife: "4s"})
	other := c.newGateway("other", func(o *gateway.Options) { o.Now = clock.Now })
	c.fill("k", 2)
	c.use(c.gateway, "k0", 7)
	c.use(other, "k0", 8) // 16 accesses in all, at a half-life of 4 s: 16 ln 2 * 21600 a day = 239,550
	for _, g := range []*gateway.Gateway{c.gateway, other} {
		c.await("a gateway knows what both counted", func() bool {
			n, _ := groupsAt(classOf(t, c.walked(g, clock), "default").Rungs[0], 1<<17, 1<<18)
			return n == 1
		})
	}
}

func TestTransitionsSelectByHeatAndDwell(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	clock := c.withClock()
	want := c.fill("k", 6)
	c.use(c.gateway, "k0", 10)
	c.use(c.gateway, "k1", 10)
	two, six := 2.0, 6.0
	request := api.TransitionRequest{
		Selector: api.Selector{Class: "default"}, From: "rep(3)", To: "rs(3,2)", HeatBelow: &two, SettledSeconds: 3600,
	}
	if done := c.transition(request); done.State != api.TransitionDone || done.GroupsTotal != 0 {
		t.Errorf("groups that came under their scheme just now: %+v", done)
	}
	clock.move(2 * time.Hour)
	if done := c.transition(request); done.State != api.TransitionDone || done.GroupsDone != 4 || done.GroupsSkipped != 0 {
		t.Errorf("four of six groups are cold: %+v", done)
	}
	for key, scheme := range map[string]string{"k0": "rep(3)", "k1": "rep(3)", "k2": "rs(3,2)", "k5": "rs(3,2)"} {
		if have := c.stat(key).Scheme; have != scheme {
			t.Errorf("%s is under %s, want %s", key, have, scheme)
		}
	}
	// By the clock of the catalog, which was not moved, they came under their scheme two hours ago.
	back := api.TransitionRequest{Selector: api.Selector{Class: "default"}, From: "rs(3,2)", To: "rep(3)", SettledSeconds: 3 * 3600}
	if done := c.transition(back); done.GroupsTotal != 0 {
		t.Errorf("groups went back before their dwell was over: %+v", done)
	}
	c.use(c.gateway, "k2", 11) // 7.6 a day; k0 and k1 had that, and cooled a little
	clock.move(24 * time.Hour)
	back.HeatAtLeast, back.HeatBelow = &two, &six
	if done := c.transition(back); done.GroupsDone != 1 || c.stat("k2").Scheme != "rep(3)" {
		t.Errorf("one of the groups under rs(3,2) is hot: %+v", done)
	}
	for key, data := range want {
		c.check(key, data)
	}
	c.audit()
}

// slow lets no group pass while a test looks.
const slow = 1

// A group that is used while it waits for its turn is no longer cold when its turn comes, also after a restart of the
// gateway in between.
func TestSelectionIsJudgedAgainBeforeTheWork(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	clock := c.withClock()
	c.fill("k", 6)
	two := 2.0
	started, err := c.gateway.StartTransition(t.Context(), api.TransitionRequest{
		ID: "cool-1", Selector: api.Selector{Class: "default"}, From: "rep(3)", To: "rs(3,2)", HeatBelow: &two, BytesPerSecond: slow, Concurrency: 2,
	})
	if err != nil || started.ID != "cool-1" {
		t.Fatalf("%+v, %v", started, err)
	}
	c.await("the groups are found", func() bool {
		now, err := c.gateway.Transition(t.Context(), "cool-1")
		return err == nil && now.GroupsTotal == 6
	})
	for i := range 6 {
		if i != 3 {
			c.use(c.gateway, fmt.Sprintf("k%d", i), 10)
		}
	}
	c.restart(clock)
	fast := int64(0)
	if now, err := c.gateway.ThrottleTransition(t.Context(), "cool-1", api.ThrottleRequest{BytesPerSecond: &fast}); err != nil || now.BytesPerSecond != 0 || now.HeatBelow == nil {
		t.Fatalf("%+v, %v", now, err)
	}
	if done := c.ended("cool-1"); done.State != api.TransitionDone || done.GroupsDone != 1 || c.stat("k3").Scheme != "rs(3,2)" || c.stat("k0").Scheme != "rep(3)" {
		t.Errorf("%+v", done)
	}
}

func TestTheSameIDIsTheSameTransition(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	c.fill("k", 3)
	request := api.TransitionRequest{ID: "one", Selector: api.Selector{Class: "default"}, From: "rep(3)", To: "rs(3,2)", BytesPerSecond: slow}
	other := c.newGateway("other")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			g := []*gateway.Gateway{c.gateway, other}[i%2]
			if got, err := g.StartTransition(t.Context(), request); err != nil || got.ID != "one" || got.To != "rs(3,2)" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	all.Wait()
	if list, err := c.gateway.Transitions(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%d transitions, %v", len(list), err)
	}
	differs := request
	differs.To = "rs(6,2)"
	if _, err := c.gateway.StartTransition(t.Context(), differs); !errors.Is(err, api.ErrConflict) {
		t.Errorf("another transition of the same id: %v", err)
	}
	if _, err := other.CancelTransition(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if got, err := c.gateway.StartTransition(t.Context(), request); err != nil || got.State != api.TransitionCancelled {
		t.Errorf("a transition that has ended, asked for again: %+v, %v", got, err)
	}
	if done := c.stat("k0").Scheme; done != "rep(3)" {
		t.Errorf("a cancelled transition moved an object to %s", done)
	}
}

// A catalog does not grow with every transition there ever was: those that ended first are forgotten.
func TestOldTransitionsAreForgotten(t *testing.T) {
	t.Parallel()
	const kept = 1000
	c := newCluster(t, 9)
	c.fill("k", 1)
	save := func(id string, transition api.Transition) {
		transition.ID = id
		body, err := json.Marshal(map[string]any{"transition": transition})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.catalog.SaveJob(t.Context(), &catalog.Job{ID: id, Owner: "gone", Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now().Add(-time.Hour)
	for i := range kept + 3 {
		ended := began.Add(time.Duration(i) * time.Second)
		save(fmt.Sprintf("ended-%04d", i), api.Transition{State: api.TransitionDone, Started: began, Finished: &ended})
	}
	save("paused", api.Transition{State: api.TransitionPaused, Started: began})
	if _, err := c.gateway.StartTransition(t.Context(), api.TransitionRequest{ID: "new", Selector: api.Selector{Class: "default"}, To: "rs(3,2)", BytesPerSecond: slow}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]error{"ended-0000": api.ErrNotFound, "ended-0002": api.ErrNotFound, "ended-0003": nil, "ended-1002": nil, "paused": nil, "new": nil} {
		if _, err := c.gateway.Transition(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
	}
}

// A record that was saved although its gateway was told that it was not is carried out all the same.
func TestATransitionWithoutARunnerIsTakenUp(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	c.fill("k", 2)
	c.newGateway("other", func(o *gateway.Options) { o.SweepEvery = 10 * time.Millisecond })
	body, err := json.Marshal(map[string]any{"transition": api.Transition{
		ID: "late", Selector: api.Selector{Class: "default"}, To: "rs(3,2)", Planner: "restripe", Objective: "network",
		Concurrency: 1, State: api.TransitionRunning, Started: time.Now(), Baselines: map[string]int64{},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.catalog.TellJob(t.Context(), &catalog.Job{ID: "late", Owner: "other", Body: body}); err != nil {
		t.Fatal(err)
	}
	if done := c.ended("late"); done.State != api.TransitionDone || c.stat("k0").Scheme != "rs(3,2)" {
		t.Errorf("%+v", done)
	}
}

func TestRequestsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	class, all := api.Selector{Class: "default"}, ""
	one, two, odd := 1.0, 2.0, math.NaN()
	for name, request := range map[string]api.TransitionRequest{
		"id":                             {ID: "a/b", Selector: class, To: "rs(3,2)"},
		"from":                           {Selector: class, From: "rs(2", To: "rs(3,2)"},
		"from and to are both":           {Selector: class, From: "rs(3,2)", To: "rs(3,2)"},
		"heatAtLeast":                    {Selector: class, To: "rs(3,2)", HeatAtLeast: &odd},
		"no heat is":                     {Selector: class, To: "rs(3,2)", HeatAtLeast: &two, HeatBelow: &one},
		"settledSeconds is -1":           {Selector: class, To: "rs(3,2)", SettledSeconds: -1},
		"nodeBytesPerSecond":             {Selector: class, To: "rs(3,2)", NodeBytesPerSecond: -1},
		"concurrency":                    {Selector: class, To: "rs(3,2)", Concurrency: 1000},
		"choose among the groups of a c": {Selector: api.Selector{Prefix64: &all}, To: "rs(3,2)", From: "rep(3)"},
	} {
		if _, err := c.gateway.StartTransition(t.Context(), request); !errors.Is(err, api.ErrBadRequest) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.gateway.ThrottleTransition(t.Context(), "nobody", api.ThrottleRequest{}); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("throttling what is not there: %v", err)
	}
}

// Limits hold a transition back at once, wherever it runs, and let it go at once.
func TestLimitsChangeWhileATransitionRuns(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	c.fill("k", 8)
	other := c.newGateway("other")
	request := api.TransitionRequest{ID: "paced", Selector: api.Selector{Class: "default"}, To: "rs(3,2)", NodeBytesPerSecond: slow}
	if _, err := c.gateway.StartTransition(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	none, tight := int64(0), int64(slow)
	if _, err := other.ThrottleTransition(t.Context(), "paced", api.ThrottleRequest{NodeBytesPerSecond: &none, DomainBytesPerSecond: &tight}); err != nil {
		t.Fatal(err)
	}
	c.await("the gateway that carries it out knows", func() bool {
		now, err := c.gateway.Transition(t.Context(), "paced")
		return err == nil && now.NodeBytesPerSecond == 0 && now.DomainBytesPerSecond == slow
	})
	if now, err := c.gateway.Transition(t.Context(), "paced"); err != nil || now.GroupsDone != 0 {
		t.Errorf("%+v, %v", now, err)
	}
	if _, err := c.gateway.PauseTransition(t.Context(), "paced"); err != nil { // though a group waits for its budget
		t.Fatal(err)
	}
	if now, err := c.gateway.ThrottleTransition(t.Context(), "paced", api.ThrottleRequest{DomainBytesPerSecond: &none}); err != nil || now.State != api.TransitionPaused {
		t.Fatalf("%+v, %v", now, err)
	}
	if _, err := c.gateway.ResumeTransition(t.Context(), "paced", nil); err != nil {
		t.Fatal(err)
	}
	if done := c.ended("paced"); done.GroupsDone != 8 {
		t.Errorf("%+v", done)
	}
	if load := c.gateway.Load(); load.TransitionBytesPerSecond <= 0 || load.WindowSeconds != 10 {
		t.Errorf("%+v", load)
	}
	if _, err := c.gateway.ThrottleTransition(t.Context(), "paced", api.ThrottleRequest{}); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("throttling what has ended: %v", err)
	}
}

// A transition that somebody saw end takes no more orders, though it may still be saved.
func TestATransitionThatHasEndedIsRefusedOrders(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	c.fill("k", 1)
	for i := range 100 {
		id, to := fmt.Sprint("turn-", i), []string{"rs(3,2)", "rs(6,2)"}[i%2]
		if _, err := c.gateway.StartTransition(t.Context(), api.TransitionRequest{ID: id, Selector: api.Selector{Class: "default"}, To: to}); err != nil {
			t.Fatal(err)
		}
		for now := (api.Transition{}); !now.State.Final(); runtime.Gosched() {
			var err error
			if now, err = c.gateway.Transition(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if i%4 < 2 {
			_, err = c.gateway.ThrottleTransition(t.Context(), id, api.ThrottleRequest{})
		} else {
			_, err = c.gateway.ResumeTransition(t.Context(), id, nil)
		}
		if !errors.Is(err, api.ErrBadRequest) {
			t.Fatalf("turn %d: %v", i, err)
		}
	}
}

// An estimate says what the transition then costs, to the byte.
func TestEstimatesComeTrue(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	clock := c.withClock()
	for i := range 4 {
		c.put(fmt.Sprintf("odd/k%d", i), noise(90_000+10_000*i, 1), api.PutOptions{})
	}
	c.use(c.gateway, "odd/k3", 30)
	request := api.TransitionRequest{Selector: api.Selector{Class: "odd"}, From: "rs(4,2)", To: "rs(5,2)"}
	c.walked(c.gateway, clock)
	estimate, err := c.gateway.Estimate(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if estimate.BytesSent == 0 || estimate.ReencodeBytesSent <= estimate.BytesSent || estimate.StoredAfter >= estimate.StoredBefore || estimate.PeakBytes < estimate.BytesWritten || estimate.PlanHash == "" {
		t.Errorf("%+v", estimate)
	}
	four := 4.0
	request.HeatBelow = &four
	cold, err := c.gateway.Estimate(t.Context(), request)
	if err != nil || cold.Groups == 0 || cold.Groups >= estimate.Groups || cold.PlanHash != estimate.PlanHash {
		t.Errorf("of the cold alone: %+v of %+v, %v", cold, estimate, err)
	}
	request.SettledSeconds = 60
	if none, err := c.gateway.Estimate(t.Context(), request); err != nil || none.Groups != 0 || none.PlanHash != estimate.PlanHash {
		t.Errorf("of the settled alone: %+v, %v", none, err)
	}
	request.HeatBelow, request.SettledSeconds = nil, 0
	done := c.transition(request)
	want := api.Traffic{BytesRead: estimate.BytesRead, BytesSent: estimate.BytesSent, BytesWritten: estimate.BytesWritten}
	have := done.Measured
	have.BlocksRead, have.BlocksSent, have.BlocksWritten = 0, 0, 0
	expectAsPlanned(t, "the transition", have, want)
	if done.GroupsDone != estimate.Groups || done.BytesTotal != estimate.Bytes || done.Baselines["reencode"] != estimate.ReencodeBytesSent {
		t.Errorf("measured %+v of %d groups, estimated %+v", have, done.GroupsDone, estimate)
	}
	after := classOf(t, c.walked(c.gateway, clock), "odd")
	if after.Rungs[0].Groups != 0 || after.Rungs[1].StoredBytes != estimate.StoredAfter {
		t.Errorf("%+v, estimated to store %d", after.Rungs, estimate.StoredAfter)
	}
	if _, err := c.gateway.Estimate(t.Context(), api.TransitionRequest{Selector: api.Selector{Key64: api.EncodeKey("odd/k1")}, To: "rs(5,2)"}); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("an estimate of a key: %v", err)
	}
}

func TestControlPlaneAPI(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	clock := c.withClock()
	server := httptest.NewServer(c.gateway.Handler())
	defer server.Close()
	remote, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	ctx := t.Context()
	if load, err := remote.Load(ctx); err != nil || load.Requests != 0 || load.P99Seconds != 0 {
		t.Errorf("%+v, %v", load, err)
	}
	c.fill("k", 2)
	for range 5 {
		if _, err := remote.Stat(ctx, "k0"); err != nil { // not a request for an object
			t.Fatal(err)
		}
		if err := remote.Delete(ctx, "absent"); !errors.Is(err, api.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if load, err := remote.Load(ctx); err != nil || load.Requests != 5 || load.P50Seconds <= 0 || load.P99Seconds < load.P50Seconds {
		t.Errorf("%+v, %v", load, err)
	}
	c.walked(c.gateway, clock)
	report, err := remote.Heat(ctx)
	if err != nil || !report.Complete || classOf(t, report, "default").Objects != 2 || report.Tracked != 2 || report.TrackedBytes == 0 || report.BusySeconds <= 0 {
		t.Errorf("%+v, %v", report, err)
	}
	request := api.TransitionRequest{ID: "x", Selector: api.Selector{Class: "default"}, From: "rep(3)", To: "rs(3,2)", BytesPerSecond: slow}
	if estimate, err := remote.Estimate(ctx, request); err != nil || estimate.Groups != 2 {
		t.Errorf("%+v, %v", estimate, err)
	}
	if _, err := remote.StartTransition(ctx, request); err != nil {
		t.Fatal(err)
	}
	status, err := remote.StatusBrief(ctx)
	if err != nil || len(status.Nodes) != 9 || status.Objects != 2 || status.Groups != 2 || len(status.Transitions) != 1 || len(status.Classes) != 4 {
		t.Errorf("%+v, %v", status, err)
	}
	none := int64(0)
	if _, err := remote.Throttle(ctx, "x", api.ThrottleRequest{BytesPerSecond: &none}); err != nil {
		t.Fatal(err)
	}
	if done := c.ended("x"); done.GroupsDone != 2 {
		t.Errorf("%+v", done)
	}
	if classes, err := remote.Classes(ctx); err != nil || len(classes) != 4 || classes[0].HalfLife != "24h0m0s" {
		t.Errorf("%+v, %v", classes, err)
	}
}

// Records of groups written by an earlier release do not say when they came under their scheme: since the beginning.
func TestGroupsWithoutADateAreSettledByWatching(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	clock := c.withClock()
	c.fill("k", 2)
	views, err := c.catalog.ListGroups(t.Context(), block.GroupID{}, 10)
	if err != nil || len(views) != 2 {
		t.Fatal(err)
	}
	for _, view := range views {
		if age := time.Since(time.UnixMilli(view.Settled)); age < 0 || age > time.Minute {
			t.Errorf("group %s settled %s ago", view.ID, age)
		}
	}
	request := api.TransitionRequest{Selector: api.Selector{Class: "default"}, From: "rep(3)", To: "rs(3,2)", SettledSeconds: 3600}
	if done := c.transition(request); done.GroupsTotal != 0 {
		t.Errorf("%+v", done)
	}
	clock.move(-1000 * time.Hour) // a date that lies further ahead than the dwell is a mistake, and holds nothing up
	if done := c.transition(request); done.GroupsDone != 2 {
		t.Errorf("%+v", done)
	}
}
