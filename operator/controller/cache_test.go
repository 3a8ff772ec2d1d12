package controller

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/gateways"
)

// reading returns a base that reads these objects.
func reading(t *testing.T, objects ...client.Object) *base {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &base{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}
}

func ladderPolicy(generation int64, ladder ...v1alpha1.SchemeName) *v1alpha1.RedundancyPolicy {
	policy := &v1alpha1.RedundancyPolicy{ObjectMeta: metav1.ObjectMeta{Name: "media", UID: "uid", Generation: generation}}
	policy.Spec.BackendRef, policy.Spec.Ladder, policy.Spec.Default = "disks", ladder, ladder[0]
	return policy
}

func wide(data, coding int32) *v1alpha1.RedundancyScheme {
	return &v1alpha1.RedundancyScheme{
		ObjectMeta: metav1.ObjectMeta{Name: "wide"}, Spec: v1alpha1.RedundancySchemeSpec{DataChunks: &data, CodingChunks: &coding},
	}
}

func TestAPolicyIsReadAgainWhenItReadsOtherwise(t *testing.T) {
	var cache declarationCache
	read := func(b *base, policy *v1alpha1.RedundancyPolicy) *decide.Declaration {
		t.Helper()
		declaration, wrong, err := cache.read(t.Context(), b, policy, nil)
		if err != nil || wrong != nil {
			t.Fatalf("%v, %v", wrong, err)
		}
		return declaration
	}
	before := reading(t, wide(4, 2))
	first := read(before, ladderPolicy(1, "rep(3)", "wide"))
	if first.Class.Ladder.String() != "rep(3),rs(4,2)" {
		t.Fatalf("the ladder is %s", first.Class.Ladder)
	}
	if read(before, ladderPolicy(1, "rep(3)", "wide")) != first {
		t.Error("the same policy was read twice")
	}
	if read(before, ladderPolicy(2, "rep(3)", "wide")) == first {
		t.Error("another generation was not read")
	}
	if changed := read(reading(t, wide(6, 2)), ladderPolicy(2, "rep(3)", "wide")); changed.Class.Ladder.String() != "rep(3),rs(6,2)" {
		t.Errorf("after its scheme has changed the ladder is %s", changed.Class.Ladder)
	}
	current := read(before, ladderPolicy(2, "rep(3)", "wide"))
	cache.forget("uid")
	if read(before, ladderPolicy(2, "rep(3)", "wide")) == current {
		t.Error("what was forgotten is known")
	}
}

func TestAPolicyThatMakesNoSenseIsToldSoEveryTime(t *testing.T) {
	var cache declarationCache
	for range 2 {
		if declaration, wrong, err := cache.read(t.Context(), reading(t), ladderPolicy(1, "rep(3)", "nowhere"), nil); err != nil ||
			wrong == nil {
			t.Errorf("%+v, %v", declaration, err)
		}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	policy := ladderPolicy(1, "rep(3)")
	policy.Spec.Ladder, policy.Spec.Reliability = nil, &v1alpha1.Reliability{}
	if _, wrong, err := cache.read(gone, reading(t), policy, nil); err != nil || wrong == nil ||
		wrong.Reason != decide.ReasonTargetOutOfReach {
		t.Errorf("a target before the nodes are known: %v, %v", wrong, err)
	}
}

// What was chosen for a reliability target stays, whatever becomes of the nodes and of the rest of the policy.
func TestAChosenLadderStays(t *testing.T) {
	nodes := func(n int) *v1alpha1.StorageBackend {
		backend := &v1alpha1.StorageBackend{Status: v1alpha1.StorageBackendStatus{LastSeen: &metav1.Time{Time: start}}}
		for i := range n {
			backend.Status.Nodes = append(backend.Status.Nodes, v1alpha1.NodeStatus{Name: fmt.Sprint("n", i), State: "up"})
		}
		return backend
	}
	policy := ladderPolicy(3, "rep(3)")
	policy.Spec.Ladder, policy.Spec.Reliability = nil, &v1alpha1.Reliability{Nines: 5}
	ten, first, wrong := targetLadder(policy, nodes(10))
	if wrong != nil || first.Replaces {
		t.Fatalf("%s, %+v, %v", ten, first, wrong)
	}
	keep := func(ladder stripe.Ladder, choice *v1alpha1.LadderChoice) {
		policy.Status.Ladder, policy.Status.LadderChoice = nil, choice
		for _, scheme := range ladder {
			policy.Status.Ladder = append(policy.Status.Ladder, scheme.String())
		}
	}
	keep(ten, first)
	policy.Generation, policy.Spec.StopPolicy = 9, v1alpha1.StopHold
	for _, backend := range []*v1alpha1.StorageBackend{nodes(12), nodes(10), nodes(4), nil} {
		if ladder, choice, wrong := targetLadder(policy, backend); wrong != nil || ladder.String() != ten.String() || *choice != *first {
			t.Errorf("put on Hold, over other nodes: %s, %+v, %v", ladder, choice, wrong)
		}
	}
	policy.Annotations = map[string]string{v1alpha1.ChooseLadder: "for 12 nodes"}
	if ladder, _, wrong := targetLadder(policy, nil); wrong != nil || ladder.String() != ten.String() {
		t.Errorf("asked to choose before the nodes are known: %s, %v", ladder, wrong)
	}
	wide, asked, wrong := targetLadder(policy, nodes(12))
	if wrong != nil || wide.String() == ten.String() || !asked.Replaces || asked.Request != "for 12 nodes" {
		t.Fatalf("asked to choose: %s after %s, %+v, %v", wide, ten, asked, wrong)
	}
	keep(wide, asked)
	if ladder, choice, wrong := targetLadder(policy, nodes(10)); wrong != nil || ladder.String() != wide.String() || *choice != *asked {
		t.Errorf("asked once it was chosen again: %s, %+v, %v", ladder, choice, wrong)
	}
	policy.Spec.Reliability = &v1alpha1.Reliability{Nines: 8}
	if ladder, choice, wrong := targetLadder(policy, nodes(10)); wrong != nil || ladder.String() == wide.String() || !choice.Replaces {
		t.Errorf("for another target: %s, %+v, %v", ladder, choice, wrong)
	}
}

func TestEstimatesServeOneHeatReport(t *testing.T) {
	var caches estimateCaches
	cache := caches.of("uid", start)
	cache.estimates["move"] = decide.Estimate{Groups: 7}
	cache.written = start
	if again := caches.of("uid", start); again.estimates["move"].Groups != 7 {
		t.Error("with the same report they are gone")
	}
	if again := caches.of("uid", time.Time{}); again.estimates["move"].Groups != 7 {
		t.Error("without a report they are gone")
	}
	if again := caches.of("uid", start.Add(time.Second)); len(again.estimates) != 0 || !again.written.Equal(start) {
		t.Errorf("with the next report they are %+v", again)
	}
	caches.forget("uid")
	if again := caches.of("uid", time.Time{}); !again.written.IsZero() {
		t.Error("what was forgotten is known")
	}
}

func TestHeatAsDecisionsSeeIt(t *testing.T) {
	class := api.ClassHeat{Class: "media", Rungs: []api.RungHeat{{
		Scheme: "rs(4,2)", Groups: 3, Bytes: 30, StoredBytes: 45, Buckets: make([]api.HeatBucket, api.HeatBuckets),
	}}}
	class.Rungs[0].Buckets[0] = api.HeatBucket{Groups: 3, Bytes: 30, SettledGroups: 2, SettledBytes: 20}
	seen := gateways.NewSnapshot(start, api.Status{}, api.HeatReport{Complete: true, Classes: []api.ClassHeat{class}}, nil)
	heat, err := heatOf(seen, "media")
	if err != nil || !heat.Complete || len(heat.Rungs) != 1 || heat.Rungs[0].Scheme.String() != "rs(4,2)" ||
		len(heat.Rungs[0].Buckets) != api.HeatBuckets {
		t.Fatalf("%+v, %v", heat, err)
	}
	buckets := heat.Rungs[0].Buckets
	if buckets[0].SettledBytes != 20 || buckets[0].AtLeast != 0 || !math.IsInf(buckets[len(buckets)-1].Below, 1) {
		t.Errorf("the coldest bucket is %+v, the hottest %+v", buckets[0], buckets[len(buckets)-1])
	}
	if !slices.IsSortedFunc(buckets, func(a, b decide.HeatBucket) int { return int(math.Copysign(1, a.AtLeast-b.AtLeast)) }) {
		t.Error("the buckets are not in order")
	}
	if heat, err := heatOf(seen, "nobody"); heat != nil || err != nil {
		t.Errorf("a class that was not reported: %+v, %v", heat, err)
	}
	class.Rungs[0].Scheme = "none"
	if _, err := heatOf(gateways.NewSnapshot(start, api.Status{}, api.HeatReport{Classes: []api.ClassHeat{class}}, nil), "media"); err == nil {
		t.Error("a scheme that is none was taken")
	}
}

// At the gateways 0 is no limit; in decisions it is a standstill.
func TestLimitsOfTheGateways(t *testing.T) {
	for rate, limit := range map[int64]int64{0: decide.Unlimited, 1: 1, 64 << 20: 64 << 20} {
		if limitOf(rate) != limit || rateOf(limit) != rate {
			t.Errorf("%d is the limit %d and back the rate %d", rate, limitOf(rate), rateOf(limit))
		}
	}
}
