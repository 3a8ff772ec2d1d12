package console

import (
	"slices"
	"testing"

	"connectrpc.com/connect"
	"pgregory.net/rapid"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// TestDifferencesAddUp: whoever applies every difference has the picture.
func TestDifferencesAddUp(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		known, copied := map[string]*consolev1.Node{}, map[string]*consolev1.Node{}
		for range rapid.IntRange(1, 6).Draw(r, "pictures") {
			var items []item[*consolev1.Node]
			for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.ID[string]).Draw(r, "nodes") {
				items = append(items, item[*consolev1.Node]{name, &consolev1.Node{Name: name, Slots: rapid.Int64Range(0, 2).Draw(r, "slots")}})
			}
			d := difference(known, items)
			for _, node := range d.items {
				if before := copied[node.Name]; before != nil && before.Slots == node.Slots {
					r.Fatalf("%v did not change", node)
				}
				copied[node.Name] = node
			}
			for _, name := range d.removed {
				delete(copied, name)
			}
			if len(copied) != len(items) {
				r.Fatalf("%d nodes, %d in the picture", len(copied), len(items))
			}
			for _, one := range items {
				if copied[one.key].GetSlots() != one.view.Slots {
					r.Fatalf("%s is %v, in the picture %v", one.key, copied[one.key], one.view)
				}
			}
		}
	})
}

// TestWatches: what is declared, changed and deleted is told, and the end of the console too.
func TestWatches(t *testing.T) {
	s := newStage(t)
	s.seen()
	policies, err := s.grpcClient().WatchPolicies(t.Context(), &consolev1.WatchPoliciesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if !policies.Receive() || !policies.Msg().Whole || len(policies.Msg().Policies) != 0 {
		t.Fatal(policies.Msg(), policies.Err())
	}
	policy := &v1alpha1.RedundancyPolicy{Spec: v1alpha1.RedundancyPolicySpec{
		BackendRef: "real", Selector: v1alpha1.Selector{Prefixes: []string{"x/"}}, Ladder: []v1alpha1.SchemeName{"rep(2)"},
	}}
	s.create(policy, "new")
	await(t, policies, "the policy is told", func(l *consolev1.PolicyList) bool {
		return len(l.Policies) == 1 && l.Policies[0].Name == "new" && !l.Whole
	})
	if _, err := s.client.HoldPolicy(t.Context(), &consolev1.HoldPolicyRequest{Name: "new", Hold: consolev1.Hold_HOLD_HOLD}); err != nil {
		t.Fatal(err)
	}
	await(t, policies, "the hold is told", func(l *consolev1.PolicyList) bool { return len(l.Policies) == 1 && l.Policies[0].StopPolicy == "Hold" })
	if err := s.declared.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	await(t, policies, "the end is told", func(l *consolev1.PolicyList) bool { return slices.Equal(l.Removed, []string{"new"}) })

	nodes, err := s.client.WatchNodes(t.Context(), &consolev1.WatchNodesRequest{Backend: "real"})
	if err != nil {
		t.Fatal(err)
	}
	await(t, nodes, "all nodes are told", func(l *consolev1.NodeList) bool { return l.Whole && len(l.Nodes) == stageNodes })
	name := &consolev1.NodeName{Backend: "real", Name: "n3"}
	if change, err := s.client.DrainNode(t.Context(), &consolev1.DrainNodeRequest{Node: name}); err != nil || change.Node.Declared != "draining" {
		t.Fatal(change, err)
	}
	await(t, nodes, "the drain is told", func(l *consolev1.NodeList) bool {
		return len(l.Nodes) == 1 && l.Nodes[0].Name == "n3" && l.Nodes[0].Declared == "draining"
	})
	if _, err := s.client.UndrainNode(t.Context(), &consolev1.UndrainNodeRequest{Node: name}); err != nil {
		t.Fatal(err)
	}
	await(t, nodes, "its end is told", func(l *consolev1.NodeList) bool { return len(l.Nodes) == 1 && l.Nodes[0].Declared == "up" })

	overview, err := s.client.WatchOverview(t.Context(), &consolev1.WatchOverviewRequest{})
	if err != nil {
		t.Fatal(err)
	}
	await(t, overview, "there is nothing yet", func(o *consolev1.Overview) bool { return o.Safety == consolev1.Safety_SAFETY_EMPTY })
	s.put("a/", 1, 1000)
	await(t, overview, "there is something", func(o *consolev1.Overview) bool { return o.Safety == consolev1.Safety_SAFETY_SAFE })

	s.console.StopWatches()
	for overview.Receive() {
	}
	if connect.CodeOf(overview.Err()) != connect.CodeUnavailable {
		t.Errorf("the console stops: %v", overview.Err())
	}
	for policies.Receive() {
	}
	if connect.CodeOf(policies.Err()) != connect.CodeUnavailable {
		t.Errorf("the console stops: %v", policies.Err())
	}
}

// await reads a watch until something holds.
func await[M any](t *testing.T, stream *connect.ServerStreamForClient[M], what string, holds func(*M) bool) {
	t.Helper()
	for stream.Receive() {
		if holds(stream.Msg()) {
			return
		}
	}
	t.Fatalf("the watch ended before %s: %v", what, stream.Err())
}
