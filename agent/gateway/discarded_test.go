package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
)

// discarding is a store that says that it has found and deleted pieces of values.
type discarding struct{ store.Store }

func (s discarding) Info(ctx context.Context) (store.Info, error) {
	info, err := s.Store.Info(ctx)
	info.Discarded = 13
	return info, err
}

// What a store found to be half made and deleted is told by the doctor and by a metric, by node.
func TestPiecesThatAStoreDiscardedAreTold(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9, func(agent *testAgent) {
		if agent.id == "n3" {
			agent.wrap = func(inner store.Store) store.Store { return discarding{inner} }
		}
	})
	findings, err := c.gateway.Doctor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(findings, func(f api.Finding) bool {
		return f.Subject == "node n3" && strings.HasPrefix(f.Text, "13 pieces")
	}) {
		t.Errorf("the doctor says %+v", findings)
	}
	answer := httptest.NewRecorder()
	c.gateway.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, labelled := range []string{`{node="n3"} 13`, `{node="n4"} 0`} {
		if line := "restripe_store_discarded_pieces_total" + labelled; !strings.Contains(answer.Body.String(), line+"\n") {
			t.Errorf("no metric %s", line)
		}
	}
}
