// Package gatewaystest holds what reaches the gateways of a backend to the contract of gateways.Gateway.
package gatewaystest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator/gateways"
)

// Nodes is how many nodes a backend under test has, each in a failure domain of its own.
const Nodes = 8

// Backend is the gateways of a backend that has no objects yet.
type Backend struct {
	Gateway gateways.Gateway
	// Agent has the agent of a node that is no member answer, and returns its address.
	Agent func(id string) string
	// Fill puts groups into a class that was put: each holds one object, whose key has the prefix, in the scheme that the
	// class gives new objects.
	Fill func(class, prefix string, groups int)
}

// patience is how long something that takes its time may take, on any machine.
const patience = 2 * time.Minute

// media is a class for tests.
var media = api.ClassSpec{
	Name: "media", Ladder: "rep(3),rs(4,2)", Prefixes: []string{"media/"}, PackBelow: "1KiB", HalfLife: "12h0m0s", Dwell: "1h0m0s",
}

// Run runs the tests, each on a backend of its own.
func Run(t *testing.T, start func(t *testing.T) Backend) {
	for name, test := range map[string]func(*testing.T, Backend){
		"Status": testStatus, "Classes": testClasses, "ClassesRefused": testClassesRefused, "ClassClaims": testClassClaims, "ClassInUse": testClassInUse, "Heat": testHeat,
		"Load": testLoad, "PlaceNode": testPlaceNode, "AddNode": testAddNode, "Repair": testRepair, "Estimate": testEstimate, "TransitionDone": testTransitionDone,
		"TransitionSteered": testTransitionSteered, "TransitionCancelled": testTransitionCancelled, "TransitionRefused": testTransitionRefused,
		"TransitionUnknown": testTransitionUnknown,
	} {
		t.Run(name, func(t *testing.T) { test(t, start(t)) })
	}
}

func testStatus(t *testing.T, b Backend) {
	put(t, b, media)
	b.Fill("media", "media/", 3)
	whole, err := b.Gateway.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if whole.Cluster == "" || whole.Groups != 3 || whole.Objects != 3 || whole.NotWhole != 0 || whole.CanLose != 2 {
		t.Errorf("with three objects in three copies the status is %+v", whole)
	}
	brief, err := b.Gateway.StatusBrief(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if brief.Cluster != whole.Cluster || brief.CanLose >= 0 {
		t.Errorf(
			"in brief the cluster is %s and can lose %d nodes; in full it is %s, and a walk alone tells what it can lose",
			brief.Cluster,
			brief.CanLose,
			whole.Cluster,
		)
	}
	for _, status := range []api.Status{whole, brief} {
		if len(status.Nodes) != Nodes {
			t.Fatalf("%d nodes", len(status.Nodes))
		}
		for _, node := range status.Nodes {
			if node.State != "up" || node.ID == "" {
				t.Errorf("node %+v", node)
			}
		}
	}
}

func testClasses(t *testing.T, b Backend) {
	first := put(t, b, media)
	if again := put(t, b, media); !equal(again, first) {
		t.Errorf("put again it is\n%+v, it was\n%+v", again, first)
	}
	if first.Ladder != media.Ladder || first.Default != "rep(3)" || first.PackBelow != 1<<10 || first.HalfLife != media.HalfLife ||
		first.DeadAtMost != api.DefaultDeadAtMost || first.PackMode != api.PackAuto || first.RepairOnRead != api.RepairWait ||
		first.Dwell != media.Dwell {
		t.Errorf("it was put as\n%+v and is\n%+v", media, first)
	}
	if listed := class(t, b, "media"); listed == nil || !equal(*listed, first) {
		t.Errorf("listed is %+v, put was %+v", listed, first)
	}
	changed := media
	changed.Ladder, changed.Default, changed.Dwell, changed.DeadAtMost = "rep(3),rs(4,2),rs(5,2)", "rs(4,2)", "2h0m0s", new(40)
	changed.PackMode, changed.RepairOnRead = api.PackBatch, api.RepairNever
	changed.HotKeys = &api.HotKeysSpec{Scheme: "rep(3)", Reads: 100}
	if info := put(t, b, changed); info.Ladder != changed.Ladder || info.Default != changed.Default || info.Dwell != changed.Dwell ||
		info.DeadAtMost != 40 || info.PackMode != api.PackBatch || info.RepairOnRead != api.RepairNever ||
		info.HotKeys == nil || *info.HotKeys != *changed.HotKeys {
		t.Errorf("changed to %+v it is %+v", changed, info)
	}
	for range 2 { // what is gone is gone
		if err := b.Gateway.DeleteClass(t.Context(), "media"); err != nil {
			t.Fatal(err)
		}
		if there := class(t, b, "media"); there != nil {
			t.Errorf("deleted, it is %+v", there)
		}
	}
}

func testClassesRefused(t *testing.T, b Backend) {
	put(t, b, media)
	for name, change := range map[string]func(*api.ClassSpec){
		"a ladder that is none":           func(c *api.ClassSpec) { c.Ladder = "rs(4" },
		"a first scheme beside it":        func(c *api.ClassSpec) { c.Default = "rs(9,3)" },
		"a size that is none":             func(c *api.ClassSpec) { c.PackBelow = "much" },
		"a half life that is none":        func(c *api.ClassSpec) { c.HalfLife = "soon" },
		"a dwell that is none":            func(c *api.ClassSpec) { c.Dwell = "long" },
		"a name that may not be in a key": func(c *api.ClassSpec) { c.Name = "a b" },
	} {
		spec := api.ClassSpec{Name: "other", Ladder: media.Ladder, Prefixes: []string{"other/"}}
		change(&spec)
		if _, err := b.Gateway.PutClass(t.Context(), spec); !errors.Is(err, api.ErrBadRequest) {
			t.Errorf("%s: %v", name, err)
		}
		if there := class(t, b, spec.Name); there != nil {
			t.Errorf("%s: it is there: %+v", name, there)
		}
	}
}

func testClassClaims(t *testing.T, b Backend) {
	put(t, b, media)
	spec := api.ClassSpec{Name: "other", Ladder: media.Ladder, Prefixes: media.Prefixes}
	if _, err := b.Gateway.PutClass(t.Context(), spec); !errors.Is(err, api.ErrConflict) {
		t.Errorf("a class that wants a prefix of another one: %v", err)
	}
	if there := class(t, b, "other"); there != nil {
		t.Errorf("it is there: %+v", there)
	}
}

func testClassInUse(t *testing.T, b Backend) {
	put(t, b, media)
	b.Fill("media", "media/", 1)
	if err := b.Gateway.DeleteClass(t.Context(), "media"); !errors.Is(err, api.ErrConflict) {
		t.Errorf("deleting a class with an object: %v", err)
	}
	if class(t, b, "media") == nil {
		t.Error("it is gone")
	}
}

func testHeat(t *testing.T, b Backend) {
	put(t, b, media)
	b.Fill("media", "media/", 4)
	class := heat(t, b, "media", func(class *api.ClassHeat) bool { return class.Objects == 4 && groups(class, "rep(3)") == 4 })
	if class.HalfLife != media.HalfLife || class.Dwell != media.Dwell {
		t.Errorf("half life %s, dwell %s", class.HalfLife, class.Dwell)
	}
	var order []string
	for _, rung := range class.Rungs {
		order = append(order, rung.Scheme)
		var inBuckets, stored int64
		for _, bucket := range rung.Buckets {
			inBuckets += bucket.Groups
		}
		if stored = rung.StoredBytes; rung.Groups > 0 && stored != 3*rung.Bytes || inBuckets != rung.Groups {
			t.Errorf("%d groups, %d in buckets, %d bytes stored as %d", rung.Groups, inBuckets, rung.Bytes, stored)
		}
	}
	if !slices.Equal(order, []string{"rep(3)", "rs(4,2)"}) {
		t.Errorf("the rungs are %v", order)
	}
}

func testLoad(t *testing.T, b Backend) {
	load, err := b.Gateway.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if load.WindowSeconds <= 0 || load.P50Seconds > load.P99Seconds || load.Requests < 0 {
		t.Errorf("%+v", load)
	}
}

func testPlaceNode(t *testing.T, b Backend) {
	rack, spare := "rack-7", true
	status, err := b.Gateway.StatusBrief(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := string(status.Nodes[0].ID)
	for range 2 {
		if info, err := b.Gateway.PlaceNode(t.Context(), id, api.PlaceRequest{Domain: &rack, Spare: &spare}); err != nil ||
			info.Domain != rack ||
			!info.Spare {
			t.Errorf("placed, the node is %+v, %v", info, err)
		}
	}
	if info, err := b.Gateway.PlaceNode(t.Context(), id, api.PlaceRequest{}); err != nil || info.Domain != rack || !info.Spare {
		t.Errorf("what is left out has changed: %+v, %v", info, err)
	}
	if status, err = b.Gateway.StatusBrief(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, node := range status.Nodes {
		if moved := string(node.ID) == id; moved != (node.Domain == rack) || moved != node.Spare {
			t.Errorf("the status has %+v", node)
		}
	}
	if _, err := b.Gateway.PlaceNode(t.Context(), "nobody", api.PlaceRequest{Spare: &spare}); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("placing a node that is not there: %v", err)
	}
	domain := string(make([]byte, 300))
	if _, err := b.Gateway.PlaceNode(t.Context(), id, api.PlaceRequest{Domain: &domain}); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("a failure domain of 300 zero bytes: %v", err)
	}
}

func testAddNode(t *testing.T, b Backend) {
	address := b.Agent("n15")
	for name, refused := range map[string]struct {
		id    string
		use   api.AddRequest
		class error
	}{
		"where nobody answers":     {"n15", api.AddRequest{Address: "127.0.0.1:1"}, api.ErrUnavailable},
		"an agent of another node": {"n16", api.AddRequest{Address: address}, api.ErrConflict},
		"a member":                 {"n1", api.AddRequest{Address: address}, api.ErrConflict},
		"a spare to be filled":     {"n15", api.AddRequest{Address: address, Spare: true, Use: api.UseBalance}, api.ErrBadRequest},
	} {
		if _, err := b.Gateway.AddNode(t.Context(), refused.id, refused.use); !errors.Is(err, refused.class) {
			t.Errorf("%s: %v, want %v", name, err, refused.class)
		}
	}
	request := api.AddRequest{Address: address, Domain: "rack-7", Use: api.UseBalance, DryRun: true}
	if added, err := b.Gateway.AddNode(t.Context(), "n15", request); err != nil || added.Node != nil || added.Balance != nil {
		t.Fatalf("a dry run added %+v, %v", added, err)
	}
	request.DryRun = false
	added, err := b.Gateway.AddNode(t.Context(), "n15", request)
	if err != nil || added.Node == nil || added.Node.Domain != "rack-7" || added.Balance == nil || added.Balance.Number != 1 {
		t.Fatalf("added is %+v, %v", added, err)
	}
	if _, err := b.Gateway.AddNode(t.Context(), "n15", request); !errors.Is(err, api.ErrConflict) {
		t.Errorf("added twice: %v", err)
	}
	status, err := b.Gateway.StatusBrief(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if at := slices.IndexFunc(status.Nodes, func(n api.NodeStatus) bool { return n.ID == "n15" }); len(status.Nodes) != Nodes+1 || at < 0 ||
		status.Nodes[at].Address != address || status.Nodes[at].State != "up" {
		t.Errorf("the nodes are %+v", status.Nodes)
	}
	rate := int64(1 << 20)
	if balance, err := b.Gateway.StartBalance(t.Context(), api.BalanceRequest{BytesPerSecond: &rate}); err != nil || balance.Number < 1 ||
		!balance.IsUnderWay() || balance.BytesPerSecond != rate {
		t.Errorf("the balance is %+v, %v", balance, err)
	}
}

func testRepair(t *testing.T, b Backend) {
	total, node, negative := int64(64<<20), int64(8<<20), int64(-1)
	limited, err := b.Gateway.ThrottleRepair(t.Context(), api.ThrottleRequest{BytesPerSecond: &total, NodeBytesPerSecond: &node})
	if err != nil || limited.BytesPerSecond != total || limited.NodeBytesPerSecond != node || limited.DomainBytesPerSecond != 0 {
		t.Fatalf("limited it is %+v, %v", limited, err)
	}
	more := int64(128 << 20)
	if limited, err = b.Gateway.ThrottleRepair(t.Context(), api.ThrottleRequest{BytesPerSecond: &more}); err != nil ||
		limited.BytesPerSecond != more ||
		limited.NodeBytesPerSecond != node {
		t.Errorf("what is left out has changed: %+v, %v", limited, err)
	}
	if _, err := b.Gateway.ThrottleRepair(t.Context(), api.ThrottleRequest{BytesPerSecond: &negative}); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("a negative limit: %v", err)
	}
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	waits := func(status api.RepairStatus) bool {
		return status.DeferredUntil != nil && status.DeferredUntil.Equal(until) && status.DeferredBy == "test"
	}
	if status, err := b.Gateway.DeferRepair(t.Context(), api.DeferRequest{Until: until, By: "test"}); err != nil || !waits(status) {
		t.Fatalf("deferred it is %+v, %v", status, err)
	}
	if status, err := b.Gateway.RepairStatus(t.Context()); err != nil || !waits(status) || status.BytesPerSecond != more ||
		status.NodeBytesPerSecond != node {
		t.Errorf("asked, it is %+v, %v", status, err)
	}
	if status, err := b.Gateway.DeferRepair(t.Context(), api.DeferRequest{Until: time.Now().Add(-time.Hour), By: "test"}); err != nil ||
		status.DeferredUntil != nil {
		t.Errorf("deferred until a time that has passed it is %+v, %v", status, err)
	}
}

func testEstimate(t *testing.T, b Backend) {
	put(t, b, media)
	b.Fill("media", "media/", 5)
	heat(t, b, "media", func(class *api.ClassHeat) bool { return groups(class, "rep(3)") == 5 })
	request := api.TransitionRequest{Selector: api.Selector{Class: "media"}, From: "rep(3)", To: "rs(4,2)"}
	estimate, err := b.Gateway.Estimate(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if estimate.Groups != 5 || estimate.Bytes <= 0 || estimate.StoredBefore != 3*estimate.Bytes ||
		2*estimate.StoredAfter != 3*estimate.Bytes ||
		estimate.PlanHash == "" {
		t.Errorf("of five groups: %+v", estimate)
	}
	again, err := b.Gateway.Estimate(t.Context(), request)
	if again.At = estimate.At; err != nil || again != estimate {
		t.Errorf("asked again it is %+v, %v; it was %+v", again, err, estimate)
	}
	back := api.TransitionRequest{Selector: api.Selector{Class: "media"}, From: "rs(4,2)", To: "rep(3)"}
	if none, err := b.Gateway.Estimate(t.Context(), back); err != nil || none.Groups != 0 || none.PlanHash == estimate.PlanHash {
		t.Errorf("of no groups: %+v, %v", none, err)
	}
	refused(t, b, func(ctx context.Context, request api.TransitionRequest) error {
		_, err := b.Gateway.Estimate(ctx, request)
		return err
	})
}

// refused tries what no gateway takes.
func refused(t *testing.T, b Backend, call func(context.Context, api.TransitionRequest) error) {
	t.Helper()
	for name, request := range map[string]api.TransitionRequest{
		"a class that is not there":     {Selector: api.Selector{Class: "nobody"}, To: "rs(4,2)"},
		"a scheme beside the ladder":    {Selector: api.Selector{Class: "media"}, To: "rs(9,3)"},
		"a scheme that is none":         {Selector: api.Selector{Class: "media"}, To: "rs(4"},
		"an origin that is no scheme":   {Selector: api.Selector{Class: "media"}, From: "rs(4", To: "rs(4,2)"},
		"a target that is not named":    {Selector: api.Selector{Class: "media"}},
		"from a scheme to the same one": {Selector: api.Selector{Class: "media"}, From: "rs(4,2)", To: "rs(4,2)"},
	} {
		if err := call(t.Context(), request); !errors.Is(err, api.ErrBadRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func testTransitionDone(t *testing.T, b Backend) {
	put(t, b, media)
	b.Fill("media", "media/", 3)
	request := api.TransitionRequest{ID: "first", Selector: api.Selector{Class: "media"}, From: "rep(3)", To: "rs(4,2)"}
	started, err := b.Gateway.StartTransition(t.Context(), request)
	if err != nil || started.ID != "first" || started.Selector.Class != "media" || started.From != "rep(3)" || started.To != "rs(4,2)" {
		t.Fatalf("started is %+v, %v", started, err)
	}
	done := state(t, b, "first", api.TransitionDone)
	if done.GroupsDone != 3 || done.GroupsTotal != 3 || done.BytesDone != done.BytesTotal || done.Measured.BytesWritten <= 0 ||
		done.Finished == nil ||
		done.ETASeconds >= 0 {
		t.Errorf("done it is %+v", done)
	}
	if again, err := b.Gateway.StartTransition(t.Context(), request); err != nil || again.State != api.TransitionDone ||
		again.GroupsDone != 3 {
		t.Errorf("started again it is %+v, %v", again, err)
	}
	heat(t, b, "media", func(class *api.ClassHeat) bool { return groups(class, "rs(4,2)") == 3 && groups(class, "rep(3)") == 0 })
	for name, steer := range map[string]func() (api.Transition, error){
		"Pause":  func() (api.Transition, error) { return b.Gateway.Pause(t.Context(), "first") },
		"Cancel": func() (api.Transition, error) { return b.Gateway.Cancel(t.Context(), "first") },
		"Resume": func() (api.Transition, error) { return b.Gateway.Resume(t.Context(), "first", nil) },
		"Throttle": func() (api.Transition, error) {
			return b.Gateway.Throttle(t.Context(), "first", api.ThrottleRequest{BytesPerSecond: new(int64)})
		},
	} {
		if _, err := steer(); !errors.Is(err, api.ErrBadRequest) {
			t.Errorf("%s of one that is done: %v", name, err)
		}
	}
}

// crawl starts a transition that moves nothing in the time of a test.
func crawl(t *testing.T, b Backend, id string) {
	t.Helper()
	put(t, b, media)
	b.Fill("media", "media/", 3)
	started, err := b.Gateway.StartTransition(t.Context(), api.TransitionRequest{
		ID: id, Selector: api.Selector{Class: "media"}, From: "rep(3)", To: "rs(4,2)", BytesPerSecond: 1, Concurrency: 1,
	})
	if err != nil || started.BytesPerSecond != 1 {
		t.Fatalf("started is %+v, %v", started, err)
	}
	state(t, b, id, api.TransitionRunning)
}

func testTransitionSteered(t *testing.T, b Backend) {
	crawl(t, b, "slow")
	for range 2 {
		if paused, err := b.Gateway.Pause(t.Context(), "slow"); err != nil || paused.State != api.TransitionPaused {
			t.Errorf("paused it is %+v, %v", paused, err)
		}
	}
	state(t, b, "slow", api.TransitionPaused)
	for range 2 {
		if resumed, err := b.Gateway.Resume(t.Context(), "slow", nil); err != nil || resumed.State != api.TransitionRunning ||
			resumed.BytesPerSecond != 1 {
			t.Errorf("resumed it is %+v, %v", resumed, err)
		}
	}
	rate, none, negative := int64(2), int64(0), int64(-1)
	if throttled, err := b.Gateway.Throttle(t.Context(), "slow", api.ThrottleRequest{BytesPerSecond: &rate, NodeBytesPerSecond: &rate}); err != nil ||
		throttled.BytesPerSecond != 2 ||
		throttled.NodeBytesPerSecond != 2 {
		t.Errorf("throttled it is %+v, %v", throttled, err)
	}
	_, err := b.Gateway.Throttle(t.Context(), "slow", api.ThrottleRequest{BytesPerSecond: &negative})
	if !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("a negative limit: %v", err)
	}
	if _, err := b.Gateway.Resume(t.Context(), "slow", &negative); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("resumed with a negative limit: %v", err)
	}
	if throttled, err := b.Gateway.Throttle(t.Context(), "slow", api.ThrottleRequest{BytesPerSecond: &none, NodeBytesPerSecond: &none}); err != nil ||
		throttled.BytesPerSecond != 0 {
		t.Errorf("without limits it is %+v, %v", throttled, err)
	}
	if done := state(t, b, "slow", api.TransitionDone); done.GroupsDone != 3 {
		t.Errorf("done it is %+v", done)
	}
}

func testTransitionCancelled(t *testing.T, b Backend) {
	crawl(t, b, "slow")
	for range 2 {
		if cancelled, err := b.Gateway.Cancel(t.Context(), "slow"); err != nil || cancelled.State != api.TransitionCancelled {
			t.Errorf("cancelled it is %+v, %v", cancelled, err)
		}
	}
	if cancelled := state(t, b, "slow", api.TransitionCancelled); cancelled.Finished == nil {
		t.Errorf("cancelled it is %+v", cancelled)
	}
	if _, err := b.Gateway.Resume(t.Context(), "slow", nil); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("resumed: %v", err)
	}
}

func testTransitionRefused(t *testing.T, b Backend) {
	put(t, b, media)
	refused(t, b, func(ctx context.Context, request api.TransitionRequest) error {
		request.ID = "bad"
		_, err := b.Gateway.StartTransition(ctx, request)
		return err
	})
	if t1, err := b.Gateway.Transition(t.Context(), "bad"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("what was refused is %+v, %v", t1, err)
	}
}

func testTransitionUnknown(t *testing.T, b Backend) {
	for name, call := range map[string]func() (api.Transition, error){
		"Transition": func() (api.Transition, error) { return b.Gateway.Transition(t.Context(), "nobody") },
		"Pause":      func() (api.Transition, error) { return b.Gateway.Pause(t.Context(), "nobody") },
		"Resume":     func() (api.Transition, error) { return b.Gateway.Resume(t.Context(), "nobody", nil) },
		"Cancel":     func() (api.Transition, error) { return b.Gateway.Cancel(t.Context(), "nobody") },
		"Throttle": func() (api.Transition, error) {
			return b.Gateway.Throttle(t.Context(), "nobody", api.ThrottleRequest{BytesPerSecond: new(int64)})
		},
	} {
		if _, err := call(); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// put declares a class.
func put(t *testing.T, b Backend, spec api.ClassSpec) api.ClassInfo {
	t.Helper()
	info, err := b.Gateway.PutClass(t.Context(), spec)
	if err != nil {
		t.Fatalf("putting class %s: %v", spec.Name, err)
	}
	return info
}

// class returns a class of the list, nil if there is none.
func class(t *testing.T, b Backend, name string) *api.ClassInfo {
	t.Helper()
	list, err := b.Gateway.Classes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// equal compares what a class was declared as.
func equal(a, b api.ClassInfo) bool {
	return a.Name == b.Name && a.Ladder == b.Ladder && a.Default == b.Default && slices.Equal(a.Prefixes, b.Prefixes) && a.PackBelow == b.PackBelow &&
		a.GroupBytes == b.GroupBytes &&
		a.DeadAtMost == b.DeadAtMost && a.PackMode == b.PackMode && a.RepairOnRead == b.RepairOnRead && reflect.DeepEqual(a.HotKeys, b.HotKeys) &&
		a.HalfLife == b.HalfLife &&
		a.Dwell == b.Dwell &&
		a.Mode == b.Mode
}

// heat waits until the report has a class as it should be.
func heat(t *testing.T, b Backend, name string, so func(*api.ClassHeat) bool) (found api.ClassHeat) {
	t.Helper()
	eventually(t, "the heat of class "+name+" is as it should be", func() bool {
		report, err := b.Gateway.Heat(t.Context())
		if errors.Is(err, api.ErrUnavailable) {
			return false // it is there some time after a start
		}
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(report.Classes, func(class api.ClassHeat) bool { return class.Class == name })
		if at < 0 || !report.Complete {
			return false
		}
		found = report.Classes[at]
		return so(&found)
	})
	return found
}

// groups counts the groups of a class in a scheme.
func groups(class *api.ClassHeat, scheme string) (sum int64) {
	for _, rung := range class.Rungs {
		if rung.Scheme == scheme {
			sum += rung.Groups
		}
	}
	return sum
}

// state waits until a transition is in a state.
func state(t *testing.T, b Backend, id string, wanted api.TransitionState) (found api.Transition) {
	t.Helper()
	eventually(t, "transition "+id+" is "+string(wanted), func() bool {
		var err error
		if found, err = b.Gateway.Transition(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		return found.State == wanted
	})
	return found
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for limit := time.Now().Add(patience); !holds(); <-again.C {
		if time.Now().After(limit) {
			t.Fatalf("after %v it is not so that %s", patience, what)
		}
	}
}
