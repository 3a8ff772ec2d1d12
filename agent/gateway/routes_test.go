package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
)

// Every route of the API is served: an answer to it is the gateway's own, and not that of a server without the route.
func TestEveryRouteIsServed(t *testing.T) {
	c := newCluster(t, 1)
	handler := c.gateway.Handler()
	mux, is := handler.(*http.ServeMux)
	if !is {
		t.Fatalf("the handler is a %T", handler)
	}
	for _, route := range api.Routes {
		values := make([]string, strings.Count(route.Path, "{"))
		for i := range values {
			values[i] = "x"
		}
		r := httptest.NewRequest(route.Method, route.With(values...).Path, nil)
		if _, pattern := mux.Handler(r); pattern != route.Pattern() {
			t.Errorf("%s is served as %q", route.Pattern(), pattern)
		}
	}
	if _, pattern := mux.Handler(httptest.NewRequest(http.MethodGet, "/v1/nothing", nil)); pattern != "" {
		t.Errorf("a route that is none is served as %q", pattern)
	}
}
