package gatewaysfake_test

import (
	"testing"

	"k8s.io/utils/clock"

	"github.com/restripe/restripe/operator/gateways/gatewaysfake"
	"github.com/restripe/restripe/operator/gateways/gatewaystest"
)

func TestContract(t *testing.T) {
	gatewaystest.Run(t, func(t *testing.T) gatewaystest.Backend {
		fake := gatewaysfake.New(clock.RealClock{}, gatewaystest.Nodes, 64<<20)
		t.Cleanup(func() {
			for _, broken := range fake.Broken() {
				t.Error(broken)
			}
		})
		agent := func(id string) string {
			address := id + ".example:7400"
			fake.StartAgent(id, address)
			return address
		}
		return gatewaystest.Backend{Gateway: fake, Agent: agent, Fill: func(class, _ string, groups int) {
			if err := fake.Add(class, "rep(3)", int64(groups), 25<<10, gatewaysfake.Constant(0)); err != nil {
				t.Fatal(err)
			}
		}}
	})
}
