package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// stuck is an engine whose reads are not answered while it hangs.
type stuck struct {
	kv.Engine
	hangs atomic.Bool
}

func (h *stuck) Read(ctx context.Context, keys ...string) ([][]byte, error) {
	if h.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Engine.Read(ctx, keys...)
}

// A gateway that cannot answer for objects says so, and why.
func TestReadyTellsTheTruth(t *testing.T) {
	c := newCluster(t, 3)
	c.stopGateway()
	engine := &stuck{Engine: c.engine}
	var records *catalog.Catalog
	_, c.gateway = c.makeGateway("gw", func(o *gateway.Options) {
		var err error
		if records, err = catalog.Open(t.Context(), engine, catalog.Owner(o.ID, "s"), catalog.WithGrace(0)); err != nil {
			t.Fatal(err)
		}
		o.Catalog, o.Start = records, "s"
	})
	c.catalog = records
	c.answering()
	handler := c.gateway.Handler()
	says := func(route api.Route) (int, string) {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), route.Method, route.Path, nil))
		return answer.Code, answer.Body.String()
	}
	if status, text := says(api.RouteReady); status != http.StatusOK || text != "ok\n" {
		t.Errorf("%d %s", status, text)
	}
	engine.hangs.Store(true)
	if status, text := says(api.RouteReady); status != http.StatusServiceUnavailable || !strings.Contains(text, "catalog does not answer") {
		t.Errorf("while the catalog hangs: %d %s", status, text)
	}
	engine.hangs.Store(false)
	for _, agent := range c.agents {
		agent.stop()
	}
	for _, agent := range c.agents {
		c.noticed(agent.id, "suspect")
	}
	if status, text := says(api.RouteReady); status != http.StatusServiceUnavailable || !strings.Contains(text, "none of 3 nodes answers") {
		t.Errorf("without nodes: %d %s", status, text)
	}
	if status, text := says(api.RouteHealthy); status != http.StatusOK {
		t.Errorf("the process runs, and says %d %s", status, text)
	}
}
