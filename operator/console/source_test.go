package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/restripe/restripe/agent/access"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// stale returns the source of a name, if it does not answer.
func stale(sources []*consolev1.Source, name string) *consolev1.Source {
	for _, source := range sources {
		if source.Name == name && source.StaleSince != nil {
			return source
		}
	}
	return nil
}

// TestSourcesThatGoAway: with the gateways and then the API server gone, views keep what they had and say since when.
func TestSourcesThatGoAway(t *testing.T) {
	s := newStage(t)
	s.create(&v1alpha1.RedundancyPolicy{Spec: v1alpha1.RedundancyPolicySpec{
		BackendRef: "real", Selector: v1alpha1.Selector{Prefixes: []string{"x/"}}, Ladder: []v1alpha1.SchemeName{"rep(2)"},
	}}, "stays")
	s.seen()
	s.eventually("the policy is seen", func() bool {
		list, err := s.client.ListPolicies(t.Context(), &consolev1.ListPoliciesRequest{})
		return err == nil && len(list.Policies) == 1 && stale(list.Sources, "API server") == nil
	})
	s.eventually("the gateway has answered", func() bool {
		list, err := s.client.ListNodes(t.Context(), &consolev1.ListNodesRequest{})
		return err == nil && len(list.Nodes) == stageNodes && slices.ContainsFunc(list.Sources, func(source *consolev1.Source) bool {
			return source.Name == "backend real" && source.Answered != nil
		})
	})
	watch, err := s.client.WatchNodes(t.Context(), &consolev1.WatchNodesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	s.front.CloseClientConnections()
	s.front.Close()
	for watch.Receive() {
		if gone := stale(watch.Msg().Sources, "backend real"); gone != nil {
			if !strings.Contains(gone.Error, s.front.URL) || gone.Answered == nil || len(watch.Msg().Nodes) != 0 || watch.Msg().Whole {
				t.Errorf("the gateway is gone: %v", watch.Msg())
			}
			break
		}
	}
	if err := watch.Err(); err != nil {
		t.Fatal(err)
	}
	if err := watch.Close(); err != nil {
		t.Error(err)
	}
	nodes, err := s.client.ListNodes(t.Context(), &consolev1.ListNodesRequest{})
	if err != nil || len(nodes.Nodes) != stageNodes || stale(nodes.Sources, "API server") != nil {
		t.Errorf("the nodes without a gateway: %v, %v", nodes, err)
	}
	if _, err := s.client.SearchObjects(t.Context(), &consolev1.SearchObjectsRequest{}); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("searching without a gateway: %v", err)
	}
	if err := s.api.Stop(); err != nil {
		t.Fatal(err)
	}
	var list *consolev1.PolicyList
	s.eventually("the API server is missed", func() bool {
		list, err = s.client.ListPolicies(t.Context(), &consolev1.ListPoliciesRequest{})
		return err == nil && stale(list.Sources, "API server") != nil
	})
	if len(list.Policies) != 1 || stale(list.Sources, "API server").Error == "" {
		t.Errorf("the policies without an API server: %v", list)
	}
	if _, err := s.client.HoldPolicy(t.Context(), &consolev1.HoldPolicyRequest{Name: "stays", Hold: consolev1.Hold_HOLD_HOLD}); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("holding a policy without an API server: %v", err)
	}
}

// TestSafeIsNotClaimedUnseen: once the gateways answer nobody, the verdict is unknown, and says since when and what it was.
func TestSafeIsNotClaimedUnseen(t *testing.T) {
	s := newStage(t)
	s.seen()
	s.put("some/", 3, 5000)
	overview := func() *consolev1.Overview {
		t.Helper()
		o, err := s.client.GetOverview(t.Context(), &consolev1.GetOverviewRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	s.eventually("the objects are safe", func() bool { o := overview(); return o.Safety == consolev1.Safety_SAFETY_SAFE && o.Objects == 3 })
	s.front.CloseClientConnections()
	s.front.Close()
	var o *consolev1.Overview
	s.eventually("the gateway is missed", func() bool { o = overview(); return stale(o.Sources, "backend real") != nil })
	s.eventually("the verdict follows", func() bool { o = overview(); return o.UnknownSince != nil })
	if o.Safety != consolev1.Safety_SAFETY_UNSPECIFIED || o.LastSafety != consolev1.Safety_SAFETY_SAFE || o.CanLose != nil ||
		!strings.HasPrefix(o.SafetyLine, "Unknown since ") || !strings.Contains(o.SafetyLine, "last: all 3 objects can lose 2 nodes") {
		t.Errorf("nothing answers, and the verdict is %v, last %v: %s", o.Safety, o.LastSafety, o.SafetyLine)
	}
	if health := o.Backends[0]; health.State != "unknown" || health.Load != nil {
		t.Errorf("nothing answers, and its health is %v", health)
	}
}

// TestOneDeadGateway: of two gateways one takes connections and never answers; nothing waits for it for long.
func TestOneDeadGateway(t *testing.T) {
	s := newStage(t, func(o *Options) { o.Intervals.Patience = 300 * time.Millisecond })
	hang := make(chan struct{})
	dead := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(dead.Close)
	t.Cleanup(func() { close(hang) })
	s.create(&v1alpha1.StorageBackend{Spec: v1alpha1.StorageBackendSpec{
		Type: "file", Gateways: []v1alpha1.GatewayAddress{v1alpha1.GatewayAddress(dead.URL), v1alpha1.GatewayAddress(s.front.URL)},
	}}, "half")
	s.create(&v1alpha1.StorageBackend{Spec: v1alpha1.StorageBackendSpec{Type: "file", Gateways: []v1alpha1.GatewayAddress{v1alpha1.GatewayAddress(dead.URL)}}}, "dead")
	s.eventually("the half that lives is seen, and the other is missed", func() bool {
		within, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		nodes, err := s.client.ListNodes(within, &consolev1.ListNodesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return len(nodes.Nodes) == 2*stageNodes && stale(nodes.Sources, "backend dead") != nil && stale(nodes.Sources, "backend half") == nil
	})
}

// TestWithoutAnything: a console that reaches nothing says so at once.
func TestWithoutAnything(t *testing.T) {
	server, _ := alone(t, access.Local())
	overview := server.overview()
	if overview.Safety != consolev1.Safety_SAFETY_UNSPECIFIED || !strings.Contains(overview.SafetyLine, "Not known") {
		t.Errorf("safe without a look: %v", overview)
	}
	if list, err := server.ListTransitions(t.Context(), &consolev1.ListTransitionsRequest{}); err != nil || list.Total != 0 || list.Sources[0].Answered != nil {
		t.Error(list, err)
	}
}
