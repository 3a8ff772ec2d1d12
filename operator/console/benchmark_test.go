package console

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/gateways"
)

// large is a console that has seen 1,000 policies, 10,000 transitions and 500 nodes.
func large(b *testing.B) *Server {
	b.Helper()
	s, err := New(Options{
		RESTConfig: deadServer(), Authority: access.Local(), Compiler: yamlCompiler{}, AuditDirectory: b.TempDir(), Logger: quiet,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	now := time.Now()
	seen := &seenBackend{name: "large", observer: &gateways.Observer{}}
	status, nodes, heat := api.Status{CanLose: 2, Objects: 1e6}, api.NodeList{}, api.HeatReport{Complete: true, At: now}
	for i := range 500 {
		nodes.Nodes = append(nodes.Nodes, api.NodeInfo{NodeStatus: api.NodeStatus{ID: block.NodeID(fmt.Sprintf("n%d", i)), State: "up"}})
	}
	for i := range 1000 {
		name := fmt.Sprintf("policy-%d", i)
		s.world.policies.objects[name] = &v1alpha1.RedundancyPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RedundancyPolicySpec{BackendRef: "large"}}
		heat.Classes = append(heat.Classes, api.ClassHeat{Class: name, Rungs: []api.RungHeat{{
			Scheme: "rep(3)", Groups: 9, Bytes: 1e9, StoredBytes: 3e9, Buckets: make([]api.HeatBucket, api.HeatBuckets),
		}}})
	}
	for i := range 10_000 {
		name := fmt.Sprintf("transition-%d", i)
		s.world.transitions.objects[name] = &v1alpha1.Transition{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(time.Duration(i) * time.Second))},
			Spec:       v1alpha1.TransitionSpec{BackendRef: "large", Class: "policy-1", From: "rep(3)", To: "rs(4,2)"},
			Status:     v1alpha1.TransitionStatus{CompletionTime: &metav1.Time{Time: now}},
		}
	}
	seen.observer.Walked.Set(now, gateways.Walk{Status: status, Began: now, Ended: now}, nil)
	seen.observer.Status.Set(now, status, nil)
	seen.nodes.Set(now, nodes, nil)
	seen.observer.Heat.Set(now, heat, nil)
	s.backends.byName = map[string]*seenBackend{"large": seen}
	return s
}

// BenchmarkLarge is what each view costs at that size.
func BenchmarkLarge(b *testing.B) {
	s := large(b)
	for name, view := range map[string]func() int{
		"overview":    func() int { return len(s.overview().Classes) },
		"policies":    func() int { return len(s.policyPicture("").items) },
		"transitions": func() int { return len(s.transitionViews(nil)) },
		"active":      func() int { return 1 + len(s.transitionViews(&consolev1.TransitionFilter{Active: true})) },
		"nodes":       func() int { return len(s.nodePicture("").items) },
		"heat":        func() int { return len(s.heat("", "").Classes) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if view() == 0 {
					b.Fatal("nothing to see")
				}
			}
		})
	}
}
