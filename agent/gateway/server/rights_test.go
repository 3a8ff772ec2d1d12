package server

import (
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
)

// Every request needs a right, or it is laid down that it needs none.
func TestEveryRouteHasARight(t *testing.T) {
	for _, route := range api.Routes {
		if _, known := rights[route]; !known {
			t.Errorf("%s has none", route.Pattern())
		}
	}
	if len(rights) != len(api.Routes) {
		t.Errorf("there are %d rights for %d routes", len(rights), len(api.Routes))
	}
}
