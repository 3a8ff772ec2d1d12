package gateways_test

import (
	"testing"

	"github.com/restripe/restripe/operator/gateways"
	"github.com/restripe/restripe/operator/gateways/gatewaystest"
	"github.com/restripe/restripe/operator/operatortest"
)

// A pool reaches a real gateway through an address where nobody listens and one where it does.
func TestContract(t *testing.T) {
	gatewaystest.Run(t, func(t *testing.T) gatewaystest.Backend {
		cluster := operatortest.Start(t, gatewaystest.Nodes)
		pool, err := gateways.NewPool([]string{"http://127.0.0.1:1", cluster.Front.URL}, gateways.Patience, gateways.Credentials{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return gatewaystest.Backend{Gateway: pool, Agent: cluster.StartAgent, Fill: func(_, prefix string, groups int) {
			operatortest.Put(t, cluster.Gateway, prefix, groups, 100<<10)
		}}
	})
}
