package operator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/gateways/gatewaysfake"
)

// mediaGroups are as many as move within some minutes at full speed, and four times as many at 16 MiB/s.
const mediaGroups = 400

// media declares a backend and the media policy, starts an operator and puts cold groups in.
func (w *world) media(more string) *gatewaysfake.Cluster {
	w.t.Helper()
	g := w.gateway("disks")
	w.apply(backend("disks"), mediaPolicy(more))
	w.operator()
	w.fill(g, "media", "rep(3)", 0, mediaGroups)
	return g
}

// fill puts groups into a class once the gateways know it.
func (w *world) fill(g *gatewaysfake.Cluster, class, scheme string, heat float64, groups int64) {
	w.t.Helper()
	var err error
	w.eventually("class "+class+" reaches the gateways", func() bool {
		err = g.Add(class, scheme, groups, 1<<20, gatewaysfake.Constant(heat))
		return err == nil
	})
}

// one waits for the only transition there is to be in a state.
func (w *world) one(state string) *v1alpha1.Transition {
	w.t.Helper()
	var found v1alpha1.Transition
	w.eventually("a transition is "+state, func() bool {
		for _, t := range w.transitions() {
			if t.Status.Summary.State == state {
				found = t
				return true
			}
		}
		return false
	})
	return &found
}

// unbroken fails the test for what must never have been asked of the gateways.
func unbroken(t *testing.T, g *gatewaysfake.Cluster) {
	t.Helper()
	for _, broken := range g.Broken() {
		t.Error(broken)
	}
}

// job returns the state of a transition's job.
func job(g *gatewaysfake.Cluster, t *v1alpha1.Transition) api.Transition {
	return g.Transitions()[t.Status.Job]
}

func TestAPolicyMovesWhatIsColdAndWhatIsHot(t *testing.T) {
	w := newWorld(t)
	g := w.gateway("disks")
	w.apply(backend("disks"), mediaPolicy(""))
	w.operator()
	w.fill(g, "media", "rep(3)", 0, 200)
	w.fill(g, "media", "rep(3)", 100, 200)
	w.fill(g, "media", "rs(12,2)", 500, 200)
	w.fill(g, "media", "rs(4,2)", 4, 200)
	w.eventually("all groups are where they belong", func() bool {
		counts := g.Groups("media")
		return counts["rep(3)"] == 400 && counts["rs(12,2)"] == 200 && counts["rs(4,2)"] == 200
	})
	w.converged("media")
	unbroken(t, g)
	for _, transition := range w.transitions() {
		if !is(&transition, transition.Status.Conditions, v1alpha1.ConditionConverged) || transition.Status.CompletionTime == nil {
			t.Errorf("transition %s has not converged", transition.Name)
		}
	}
	policy := w.policy("media")
	if policy.Status.Summary.Ladder != "rep(3) > rs(4,2) > rs(12,2)" || policy.Status.Savings == nil || policy.Status.Savings.SavedBytes <= 0 {
		t.Errorf("status is %+v", policy.Status)
	}
}

func TestEveryConditionIsThereOnTheFirstVisit(t *testing.T) {
	w := newWorld(t)
	w.gateway("disks").Break(gatewaysfake.Unreachable)
	w.apply(backend("disks"), mediaPolicy(""),
		"apiVersion: restripe.io/v1alpha1\nkind: RedundancyScheme\nmetadata: {name: wide}\nspec: {dataChunks: 12, codingChunks: 2}\n",
		"apiVersion: restripe.io/v1alpha1\nkind: Transition\nmetadata: {name: byhand}\nspec: {backendRef: disks, class: media, from: rep(3), to: wide}\n")
	w.operator()
	moving := []string{"Accepted", "Feasible", "Planned", "AwaitingApproval", "Progressing", "Paused", "Degraded", "Converged", "Ready", "Reconciling", "Stalled"}
	w.eventually("every kind has all its conditions", func() bool {
		b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
		s, _ := get(w, &v1alpha1.RedundancyScheme{}, "wide")
		x, _ := get(w, &v1alpha1.Transition{}, "byhand")
		p := w.policy("media")
		has := func(object client.Object, observed int64, types []string, lookup func(string) bool) bool {
			for _, name := range types {
				if !lookup(name) {
					return false
				}
			}
			return observed == object.GetGeneration()
		}
		return has(b, b.Status.ObservedGeneration, []string{"Accepted", "Degraded", "Ready", "Reconciling", "Stalled"}, func(n string) bool { return meta.FindStatusCondition(b.Status.Conditions, n) != nil }) &&
			has(s, s.Status.ObservedGeneration, []string{"Accepted", "Ready", "Reconciling", "Stalled"}, func(n string) bool { return meta.FindStatusCondition(s.Status.Conditions, n) != nil }) &&
			has(p, p.Status.ObservedGeneration, moving, func(n string) bool { return meta.FindStatusCondition(p.Status.Conditions, n) != nil }) &&
			has(x, x.Status.ObservedGeneration, moving, func(n string) bool { return meta.FindStatusCondition(x.Status.Conditions, n) != nil })
	})
	b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
	if reason(b.Status.Conditions, "Ready") != "GatewayUnreachable" {
		t.Errorf("the backend is %s", w.picture())
	}
}

func TestABackendThatAnswersNoMore(t *testing.T) {
	w := newWorld(t)
	g := w.media("  budget: {bytesPerSecond: 16Mi}\n")
	running := w.one("Running")
	g.Break(gatewaysfake.Unreachable)
	w.eventually("the conditions say so", func() bool {
		b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
		x, _ := get(w, &v1alpha1.Transition{}, running.Name)
		return reason(b.Status.Conditions, "Ready") == "GatewayUnreachable" && reason(x.Status.Conditions, "Degraded") == "GatewayUnreachable" &&
			reason(w.policy("media").Status.Conditions, "Degraded") == "GatewayUnreachable"
	})
	g.Break(nil)
	w.converged("media")
	unbroken(t, g)
}

func TestABackendShowsItsNodes(t *testing.T) {
	w := newWorld(t)
	g := w.media("")
	w.converged("media")
	says := func(state, status, message string) {
		t.Helper()
		g.SetNode(3, state)
		w.eventually("n4 is seen to be "+state, func() bool {
			b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
			degraded := meta.FindStatusCondition(b.Status.Conditions, "Degraded")
			return len(b.Status.Nodes) > 3 && slices.ContainsFunc(b.Status.Nodes, func(n v1alpha1.NodeStatus) bool { return n.Name == "n4" && n.State == state }) &&
				degraded != nil && string(degraded.Status) == status && strings.Contains(degraded.Message, message)
		})
	}
	says("draining", "False", "n4 draining")
	says("suspect", "False", "n4 suspect")
	says("down", "True", "n4 down")
	says("out", "True", "n4 out")
	says("up", "False", "nodes up; ")
}

func TestABackendTellsWhereItsNodesStand(t *testing.T) {
	w := newWorld(t)
	g := w.media("")
	w.converged("media")
	b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
	w.patch(b, `{"spec":{"nodes":[{"name":"n1","failureDomain":"rack1"},{"name":"n2","failureDomain":"rack2","spare":true},{"name":"n3"}]}}`)
	w.eventually("the gateways and the status say so", func() bool {
		b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
		said := 0
		for _, node := range b.Status.Nodes {
			if node.Name == "n1" && node.FailureDomain == "rack1" && !node.Spare || node.Name == "n2" && node.FailureDomain == "rack2" && node.Spare {
				said++
			}
		}
		return said == 2 && g.Calls()["PlaceNode"] > 0
	})
	w.rest(time.Minute)
	if calls := g.Calls()["PlaceNode"]; calls > 4 {
		t.Errorf("two nodes were placed by %d calls", calls)
	}
}

func TestABackendSaysWhichPlaceIsRefused(t *testing.T) {
	w := newWorld(t)
	g := w.media("")
	w.converged("media")
	b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
	w.patch(b, `{"spec":{"nodes":[{"name":"n1","failureDomain":"`+strings.Repeat("ø", 40)+`"},{"name":"n2","failureDomain":"rack2"}]}}`)
	w.eventually("n2 is placed, and n1's refusal is said", func() bool {
		b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
		status, err := g.StatusBrief(t.Context())
		ready := meta.FindStatusCondition(b.Status.Conditions, "Ready")
		return err == nil && status.Nodes[1].Domain == "rack2" && ready != nil && ready.Status == "False" && ready.Reason == "NodesNotPlaced" &&
			strings.Contains(ready.Message, "node n1: a failure domain has at most 63 bytes")
	})
}

func TestABackendHasRepairWaitForItsWindows(t *testing.T) {
	w := newWorld(t)
	g := w.media("")
	w.converged("media")
	repair := func(spec string) {
		b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
		w.patch(b, `{"spec":{"repair":`+spec+`}}`)
	}
	declared := func() api.RepairStatus {
		status, err := g.RepairStatus(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	repair(`{"nodeBytesPerSecond":"40Mi","windows":[{"kind":"Deny","schedule":"@daily","duration":"24h"}]}`)
	w.eventually("the gateways have the limit and let repair wait", func() bool {
		status := declared()
		return status.NodeBytesPerSecond == 40<<20 && status.DeferredUntil != nil && status.DeferredBy == "the repair windows of backend disks"
	})
	w.rest(time.Minute)
	if calls := g.Calls(); calls["ThrottleRepair"] > 1 || calls["DeferRepair"] > 1 {
		t.Errorf("it was said %d and %d times", calls["ThrottleRepair"], calls["DeferRepair"])
	}
	repair(`{"windows":[{"schedule":"@daily","duration":"1h","timeZone":"Europe/Berln"}]}`)
	w.eventually("a zone that does not exist is said", func() bool {
		b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
		return reason(b.Status.Conditions, "Accepted") == "InvalidWindow" && is(b, b.Status.Conditions, "Stalled")
	})
	repair("null")
	w.eventually("repair waits no more, and the limit stays", func() bool {
		status := declared()
		return status.DeferredUntil == nil && status.NodeBytesPerSecond == 40<<20
	})
}

func TestAPolicyForAMissingBackend(t *testing.T) {
	w := newWorld(t)
	w.apply(mediaPolicy(""))
	w.operator()
	w.eventually("the policy says so", func() bool {
		p := w.policy("media")
		return reason(p.Status.Conditions, "Feasible") == "BackendMissing" && is(p, p.Status.Conditions, "Stalled")
	})
	g := w.gateway("disks")
	w.apply(backend("disks"))
	w.fill(g, "media", "rep(3)", 0, 10)
	w.converged("media")
}

func TestALadderTooWideForTheNodes(t *testing.T) {
	w := newWorld(t)
	g := w.gateway("disks")
	w.apply(backend("disks"), strings.ReplaceAll(mediaPolicy(""), "rs(12,2)", "rs(20,2)"))
	w.operator()
	w.eventually("the policy says so", func() bool {
		return reason(w.policy("media").Status.Conditions, "Feasible") == "TooFewNodes"
	})
	if names := g.ClassNames(); len(names) > 0 {
		t.Errorf("classes %v were declared", names)
	}
	w.apply(mediaPolicy(""))
	w.fill(g, "media", "rep(3)", 0, 10)
	w.converged("media")
}

func TestPoliciesInConflict(t *testing.T) {
	w := newWorld(t)
	g := w.gateway("disks")
	w.apply(backend("disks"), mediaPolicy(""))
	w.operator()
	w.converged("media")
	w.apply(strings.Replace(mediaPolicy(""), "name: media", "name: other", 1))
	w.eventually("the younger one is refused", func() bool {
		p := w.policy("other")
		return reason(p.Status.Conditions, "Accepted") == "Conflict" && strings.Contains(meta.FindStatusCondition(p.Status.Conditions, "Accepted").Message, "media")
	})
	w.converged("media")
	w.delete(w.policy("media"))
	w.converged("other")
	w.eventually("the class of the older one is gone", func() bool { return fmt.Sprint(g.ClassNames()) == "[other]" })
}

func TestApproval(t *testing.T) {
	w := newWorld(t)
	g := w.media("  approval: {mode: Manual}\n")
	waiting := w.one("Unapproved")
	w.eventually("the policy asks", func() bool {
		p := w.policy("media")
		return is(p, p.Status.Conditions, v1alpha1.ConditionAwaitingApproval)
	})
	if waiting.Status.Cost == nil || waiting.Status.Cost.Groups != mediaGroups || waiting.Status.PlanHash == "" {
		t.Errorf("what it costs is not said: %+v", waiting.Status)
	}
	if started := g.Calls()["StartTransition"]; started > 0 {
		t.Errorf("%d transitions started without approval", started)
	}
	w.patch(waiting, `{"spec":{"approved":true}}`)
	w.converged("media")
	if counts := g.Groups("media"); counts["rs(12,2)"] != mediaGroups {
		t.Errorf("groups are %v", counts)
	}
	unbroken(t, g)
}

func TestApprovalAboveASize(t *testing.T) {
	w := newWorld(t)
	g := w.media("  approval: {mode: ManualAbove, aboveBytes: 1Mi}\n")
	waiting := w.one("Unapproved") // merging copies sends nothing, and reads and gives up many
	w.fill(g, "media", "rep(3)", 0, 100)
	w.eventually("it shows what has come since", func() bool { return w.one("Unapproved").Status.Cost.Groups == mediaGroups+100 })
	w.patch(waiting, `{"spec":{"approved":true}}`)
	w.converged("media")
	done := w.one("Done")
	if record := done.Status.Approval; record == nil || record.Groups != mediaGroups+100 || record.By != "person" || record.Withdrawn {
		t.Errorf("what was approved is recorded as %+v", record)
	}
	unbroken(t, g)
}

func TestPauseResumeThrottleCancel(t *testing.T) {
	w := newWorld(t)
	g := w.media("  budget: {bytesPerSecond: 16Mi}\n")
	running := w.one("Running")
	w.patch(running, `{"spec":{"bytesPerSecond":"4Mi"}}`)
	w.eventually("it is slowed down", func() bool { return job(g, running).BytesPerSecond == 4<<20 })
	w.patch(running, `{"spec":{"paused":true}}`)
	paused := w.one("Paused")
	if state := job(g, paused).State; state != api.TransitionPaused {
		t.Errorf("the job is %s", state)
	}
	w.eventually("the policy says that it is held back", func() bool {
		p := w.policy("media")
		return reason(p.Status.Conditions, "Paused") == "PausedByUser"
	})
	w.patch(running, `{"spec":{"paused":false,"bytesPerSecond":null}}`)
	w.one("Running")
	w.eventually("it has the budget again", func() bool { return job(g, running).BytesPerSecond == 16<<20 })
	w.patch(w.policy("media"), `{"spec":{"stopPolicy":"Hold"}}`)
	w.patch(running, `{"spec":{"cancelled":true}}`)
	cancelled := w.one("Cancelled")
	if state := job(g, cancelled).State; state != api.TransitionCancelled {
		t.Errorf("the job is %s", state)
	}
	unbroken(t, g)
}

func TestRollbackSetsHold(t *testing.T) {
	w := newWorld(t)
	g := w.media("  budget: {bytesPerSecond: 16Mi}\n")
	running := w.one("Running")
	w.eventually("some groups have moved", func() bool { return g.Groups("media")["rs(12,2)"] > 20 })
	w.apply(`apiVersion: restripe.io/v1alpha1
kind: Transition
metadata: {name: back}
spec: {policyRef: media, backendRef: disks, class: media, from: 'rs(12,2)', to: rep(3), rollbackOf: ` + running.Name + `}
`)
	w.eventually("the original is cancelled", func() bool {
		x, _ := get(w, &v1alpha1.Transition{}, running.Name)
		return x.Spec.Cancelled && x.Status.Summary.State == "Cancelled"
	})
	w.eventually("the policy is held", func() bool { return w.policy("media").Spec.StopPolicy == v1alpha1.StopHold })
	w.eventually("all is back", func() bool {
		x, _ := get(w, &v1alpha1.Transition{}, "back")
		return x.Status.Summary.State == "Done" && g.Groups("media")["rep(3)"] == mediaGroups
	})
	if n := len(w.transitions()); n != 2 {
		t.Errorf("%d transitions: a policy on Hold started one\n%s", n, w.picture())
	}
	unbroken(t, g)
}

func TestWindows(t *testing.T) {
	w := newWorld(t) // the clock begins at eight o'clock
	g := w.media("  windows: [{schedule: '15 8 * * *', duration: 2h}]\n")
	w.eventually("the policy waits for its window", func() bool {
		p := w.policy("media")
		return reason(p.Status.Conditions, "Paused") == "WindowClosed" && p.Status.NextWindow != nil
	})
	if started := g.Calls()["StartTransition"]; started > 0 {
		t.Errorf("%d transitions started outside the window", started)
	}
	w.converged("media")
	for _, done := range g.Transitions() {
		if at := done.Started; at.Hour() == 8 && at.Minute() < 15 {
			t.Errorf("a transition started at %s", done.Started)
		}
	}
}

func TestBudgetIsShared(t *testing.T) {
	w := newWorld(t)
	g := w.gateway("disks")
	g.SetLimit(16 << 20)
	w.apply(backend("disks"), mediaPolicy("  budget: {bytesPerSecond: 16Mi, concurrency: 2}\n"))
	w.operator()
	w.fill(g, "media", "rs(4,2)", 0, 200)
	w.fill(g, "media", "rep(3)", 0, 300)
	w.eventually("two run at half the budget", func() bool {
		n := 0
		for _, j := range g.Transitions() {
			if j.State == api.TransitionRunning && j.BytesPerSecond == 8<<20 {
				n++
			}
		}
		return n == 2
	})
	w.eventually("the last one has all of it", func() bool {
		n := 0
		for _, j := range g.Transitions() {
			if j.State == api.TransitionRunning && j.BytesPerSecond == 16<<20 {
				n++
			}
		}
		return n == 1
	})
	w.converged("media")
	unbroken(t, g)
}

func TestTransitionsGiveWayToClients(t *testing.T) {
	w := newWorld(t)
	g := w.gateway("disks")
	g.SetLimit(16 << 20)
	w.apply(backend("disks"), mediaPolicy("  budget: {bytesPerSecond: 16Mi, foregroundLatency: 50ms}\n"))
	w.operator()
	w.fill(g, "media", "rep(3)", 0, 600)
	running := w.one("Running")
	g.SetLatency(200e6)
	w.eventually("it slows down to the floor", func() bool { return job(g, running).BytesPerSecond == 16<<20/32 })
	g.SetLatency(10e6)
	w.converged("media")
	unbroken(t, g)
}

func TestFailuresAreTriedAgain(t *testing.T) {
	w := newWorld(t)
	g := w.media("  budget: {bytesPerSecond: 16Mi}\n")
	w.one("Running")
	g.Fail(fmt.Errorf("node n3 does not answer"))
	w.eventually("the conditions say what failed", func() bool {
		for _, x := range w.transitions() {
			degraded := meta.FindStatusCondition(x.Status.Conditions, "Degraded")
			if degraded != nil && degraded.Reason == "Retrying" && strings.Contains(degraded.Message, "n3 does not answer") {
				return true
			}
		}
		return false
	})
	w.converged("media")
	if x := w.transitions(); len(x) != 1 || x[0].Status.Retries != 1 {
		t.Errorf("transitions are\n%s", w.picture())
	}
	unbroken(t, g)
}

func TestHistoryIsLimited(t *testing.T) {
	w := newWorld(t)
	g := w.gateway("disks")
	w.apply(backend("disks"), mediaPolicy("  historyLimit: 1\n"))
	w.operator()
	w.fill(g, "media", "rep(3)", 0, 10)
	w.fill(g, "media", "rs(12,2)", 500, 10)
	w.fill(g, "media", "rs(4,2)", 500, 10)
	w.eventually("all has moved", func() bool {
		counts := g.Groups("media")
		return counts["rep(3)"] == 20 && counts["rs(12,2)"] == 10
	})
	w.converged("media")
	w.eventually("one transition is kept", func() bool { return len(w.transitions()) == 1 })
}

func TestAReliabilityTargetChoosesALadder(t *testing.T) {
	w := newWorld(t)
	g := w.gateway("disks")
	w.apply(backend("disks"), `apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: safe}
spec:
  backendRef: disks
  selector: {prefixes: ['']}
  reliability: {nines: 9}
`)
	w.operator()
	w.converged("safe")
	ladder := fmt.Sprint(w.policy("safe").Status.Ladder)
	if len(w.policy("safe").Status.Ladder) < 2 {
		t.Errorf("the ladder is %s", ladder)
	}
	g.SetNode(3, "down")
	w.eventually("the backend says so", func() bool {
		b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
		return b.Status.Summary.Nodes == "15 of 16"
	})
	w.converged("safe")
	if now := fmt.Sprint(w.policy("safe").Status.Ladder); now != ladder {
		t.Errorf("the ladder went from %s to %s with a node", ladder, now)
	}
}

// A policy that is paused and resumed keeps the ladder that was chosen for it, though the nodes are others by now, until it is
// asked to choose anew.
func TestPausingChoosesNoOtherLadder(t *testing.T) {
	w := newWorld(t)
	w.gateway("disks")
	racks := func(n int) {
		var nodes []string
		for i := range 16 {
			nodes = append(nodes, fmt.Sprintf(`{"name":"n%d","failureDomain":"rack%d"}`, i+1, i%n))
		}
		b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
		w.patch(b, `{"spec":{"nodes":[`+strings.Join(nodes, ",")+`]}}`)
	}
	w.apply(backend("disks"))
	racks(10)
	w.apply(`apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: safe}
spec:
  backendRef: disks
  selector: {prefixes: ['']}
  reliability: {nines: 5}
`)
	w.operator()
	w.converged("safe")
	before := w.policy("safe").Status.Ladder
	racks(12)
	w.eventually("the racks are seen", func() bool {
		b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
		return slices.ContainsFunc(b.Status.Nodes, func(n v1alpha1.NodeStatus) bool { return n.FailureDomain == "rack11" })
	})
	seen := func() bool {
		p := w.policy("safe")
		return p.Status.ObservedGeneration == p.Generation && is(p, p.Status.Conditions, "Converged")
	}
	for _, stop := range []string{"Hold", "None"} {
		w.patch(w.policy("safe"), `{"spec":{"stopPolicy":"`+stop+`"}}`)
		w.eventually("stopPolicy "+stop+" is seen", seen)
	}
	if now := w.policy("safe").Status.Ladder; !slices.Equal(now, before) {
		t.Errorf("paused and resumed, the ladder went from %v to %v", before, now)
	}
	w.patch(w.policy("safe"), `{"metadata":{"annotations":{"restripe.io/choose-ladder":"12 racks"}}}`)
	w.eventually("another ladder is chosen", func() bool { return !slices.Equal(w.policy("safe").Status.Ladder, before) })
}
