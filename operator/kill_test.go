package operator_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/gateways/gatewaysfake"
)

// killWorld declares enough that there is always something to do: two backends, three policies with a budget, approval
// and a scheme by name, groups that cool while the run goes on, and a transition that a person made.
func killWorld(t *testing.T) *world {
	w := newWorld(t)
	disks := w.gateway("disks")
	disks.SetLimit(96 << 20)
	w.gateway("more")
	// What has no temperature is moved once, when it is declared: these groups are there before.
	if _, err := disks.PutClass(t.Context(), api.ClassSpec{Name: "logs", Ladder: "rs(4,2),rep(3)", Prefixes: []string{"logs/"}, HalfLife: "24h", Dwell: "6h"}); err != nil {
		t.Fatal(err)
	}
	if err := disks.Add("logs", "rep(3)", 30, 256<<10, gatewaysfake.Constant(3)); err != nil {
		t.Fatal(err)
	}
	w.apply(backend("disks"), backend("more"),
		"apiVersion: restripe.io/v1alpha1\nkind: RedundancyScheme\nmetadata: {name: wide}\nspec: {k: 12, m: 2}\n",
		strings.ReplaceAll(mediaPolicy("  budget: {bytesPerSecond: 64Mi, concurrency: 2}\n  historyLimit: 100\n"), "'rs(12,2)'", "wide"),
		`apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: logs}
spec:
  backendRef: disks
  selector: {prefixes: [logs/]}
  ladder: ['rs(4,2)', rep(3)]
  default: rs(4,2)
  historyLimit: 100
  approval: {mode: Manual}
  budget: {bytesPerSecond: 32Mi}
`, `apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: films}
spec:
  backendRef: more
  selector: {prefixes: ['']}
  ladder: [rep(3), 'rs(8,2)']
  historyLimit: 100
  temperature: {halfLife: 1h, dwell: 1m, rules: [{scheme: 'rs(8,2)', below: 1}]}
`)
	return w
}

// rounds is how often groups that have to move are added, once the earlier ones have moved.
const rounds = 5

// finish adds the groups of a round and goes on until everything has converged, approving what asks for it.
func (w *world) finish(round int, step func()) {
	w.t.Helper()
	disks, more := w.gateway("disks"), w.gateway("more")
	waiting := map[string]func() error{}
	add := func(g *gatewaysfake.Cluster, class, scheme string, heat float64, groups int64) {
		waiting[class+" "+scheme] = func() error { return g.Add(class, scheme, groups, 256<<10, gatewaysfake.Constant(heat)) }
	}
	add(disks, "media", "rep(3)", 0, 60)
	add(disks, "media", "rs(4,2)", 0.1, 50)
	add(disks, "media", "rs(12,2)", 900, 40)
	add(more, "films", "rep(3)", 0, 70)
	n := int64(round + 1)
	w.eventually(fmt.Sprintf("everything converges, round %d", round), func() bool {
		step()
		for name, try := range waiting {
			if try() == nil {
				delete(waiting, name)
			}
		}
		for _, t := range w.transitions() {
			if t.Spec.NeedsApproval && !t.Spec.Approved {
				w.patch(&t, `{"spec":{"approved":true}}`)
			}
		}
		media, logs, films := disks.Groups("media"), disks.Groups("logs"), more.Groups("films")
		return len(waiting) == 0 && media["rs(12,2)"] == 110*n && media["rep(3)"] == 40*n && logs["rs(4,2)"] == 30 && films["rs(8,2)"] == 70*n && w.atRest()
	})
}

// atRest reports whether all policies have converged and all transitions have ended.
func (w *world) atRest() bool {
	for _, name := range []string{"media", "logs", "films"} {
		if p := w.policy(name); p == nil || !is(p, p.Status.Conditions, v1alpha1.ConditionConverged) {
			return false
		}
	}
	for _, t := range w.transitions() {
		if t.Status.CompletionTime == nil || len(t.Finalizers) > 0 {
			return false
		}
	}
	return true
}

// outcome is the state at the end, without what differs from one undisturbed run to the next: times, rates, identities,
// and the order in which moves of equal urgency got their numbers.
func (w *world) outcome() string {
	var lines []string
	var backends v1alpha1.StorageBackendList
	var schemes v1alpha1.RedundancySchemeList
	var policies v1alpha1.RedundancyPolicyList
	for _, list := range []client.ObjectList{&backends, &schemes, &policies} {
		if err := w.client.List(w.t.Context(), list); err != nil {
			w.t.Fatal(err)
		}
	}
	write := func(name string, object any, drop ...string) {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			w.t.Fatal(err)
		}
		status := fields["status"].(map[string]any)
		for _, name := range append(drop, "lastSeen", "startTime", "completionTime", "job", "retries") {
			delete(status, name)
		}
		if books, are := status["temperature"].(map[string]any); are {
			delete(books, "since")
			delete(books, "countedSince")
		}
		conditions, _ := status["conditions"].([]any)
		for _, c := range conditions {
			delete(c.(map[string]any), "lastTransitionTime")
			delete(c.(map[string]any), "message")
		}
		metadata := fields["metadata"].(map[string]any)
		lines = append(lines, fmt.Sprintf("%s finalizers=%v labels=%v spec=%v status=%v", name, metadata["finalizers"], metadata["labels"], fields["spec"], status))
	}
	for i := range backends.Items {
		write("backend "+backends.Items[i].Name, &backends.Items[i], "groups", "objects", "usedBytes", "summary", "nodes")
	}
	for i := range schemes.Items {
		write("scheme "+schemes.Items[i].Name, &schemes.Items[i])
	}
	for i := range policies.Items {
		write("policy "+policies.Items[i].Name, &policies.Items[i], "savings")
	}
	moved := map[string]int64{}
	for _, t := range w.transitions() {
		if t.Status.Progress != nil {
			moved[fmt.Sprintf("transitions of %s from %s to %s, %s", t.Spec.PolicyRef, t.Status.From, t.Status.To, t.Status.Summary.State)] += t.Status.Progress.GroupsDone
		}
	}
	for name, groups := range moved {
		lines = append(lines, fmt.Sprintf("%s: %d groups", name, groups))
	}
	for address, g := range w.gateways {
		for _, class := range g.ClassNames() {
			lines = append(lines, fmt.Sprintf("gateway %s class %s: %v", address, class, g.Groups(class)))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// kills is how often the operator is killed in one run; a short test kills it less often.
const (
	kills      = 100
	shortKills = 20
)

func TestKilledAtRandomPointsEndsTheSame(t *testing.T) {
	kills := kills
	if testing.Short() {
		kills = shortKills
	}
	began := time.Now()
	undisturbed := killWorld(t)
	undisturbed.operator()
	for round := range rounds {
		undisturbed.finish(round, func() {})
	}
	want, took := undisturbed.outcome(), time.Since(began)

	seed := rand.Uint64()
	t.Logf("the undisturbed run took %v and made %d calls to the API server; the seed of the kills is %d", took, undisturbed.calls.Load(), seed)
	random := rand.New(rand.NewPCG(seed, 0))
	w := killWorld(t)
	next := func() *operatorRun {
		w.cut.Store(4 + random.Int64N(16)) // the first calls ask what the API server serves
		return w.start()
	}
	run, killed := next(), 0
	step := func() {
		select {
		case err := <-run.ended:
			if err != nil && !errors.Is(err, errCut) {
				t.Fatalf("the operator that was killed: %v", err)
			}
			if killed++; killed < kills {
				run = next()
				return
			}
			w.cut.Store(-1)
			run = w.start()
		default:
		}
	}
	for round := range rounds {
		w.finish(round, step)
		t.Logf("%v: round %d, killed %d times", time.Since(began), round, killed)
	}
	if killed < kills {
		t.Errorf("killed %d times only", killed)
	}
	if got := w.outcome(); got != want {
		t.Errorf("killed %d times, it ends as\n%s\nundisturbed as\n%s", killed, got, want)
	}
	for _, g := range w.gateways {
		unbroken(t, g)
	}
	run.stop()
	if err := run.wait(); err != nil {
		t.Error(err)
	}
}
