package gateway_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// The doctor says which nodes run another release than the gateway, and the status of each which one.
func TestReleasesApartAreTold(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9, func(agent *testAgent) {
		if agent.release = "v0.1.0"; agent.id == "n3" || agent.id == "n7" {
			agent.release = "v0.2.0"
		}
	})
	g := c.newGateway("other", func(o *gateway.Options) { o.Release = "v0.1.0" })
	findings, err := g.Doctor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	told := slices.DeleteFunc(findings, func(f api.Finding) bool { return f.Subject != "releases" })
	if len(told) != 1 || !strings.HasPrefix(told[0].Text, "nodes n3, n7 run v0.2.0, this gateway v0.1.0") {
		t.Errorf("the doctor says %+v", told)
	}
	status, err := g.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status.Release != "v0.1.0" || status.Nodes[2].Release != "v0.2.0" || status.Nodes[3].Release != "v0.1.0" {
		t.Errorf("the status says %s and %+v", status.Release, status.Nodes)
	}
}
