package gateway_test

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/playbooks/monitoring"
)

var updateMetrics = flag.Bool("update-metrics", false, "write the table of docs/metrics.md anew")

// sample returns the value of a metric that has these labels, if there is one.
func sample(t *testing.T, families []*dto.MetricFamily, name string, labels map[string]string) (value float64, found bool) {
	t.Helper()
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, one := range family.GetMetric() {
			matches := 0
			for _, label := range one.GetLabel() {
				if want, asked := labels[label.GetName()]; asked && want == label.GetValue() {
					matches++
				}
			}
			if matches == len(labels) {
				return one.GetGauge().GetValue() + one.GetCounter().GetValue(), true
			}
		}
	}
	return 0, false
}

// What a gateway shows is in the table, keeps to the rules of Prometheus, and is true.
func TestMetricsAreInTheTable(t *testing.T) {
	c := newCluster(t, 9)
	c.put("k", noise(200_000, 1), api.PutOptions{})
	server := httptest.NewServer(c.gateway.Handler())
	defer server.Close()
	reply, err := http.Get(server.URL + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	if err := reply.Body.Close(); err != nil {
		t.Error(err)
	}
	problems, err := monitoring.Problems(c.gateway.Figures(), "../../docs/metrics.md", "Gateway", *updateMetrics)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}

	lost := c.agents[0]
	lost.stop()
	c.await("a node that does not answer shows", func() bool {
		families, err := c.gateway.Figures().Gather()
		if err != nil {
			t.Fatal(err)
		}
		up, known := sample(t, families, "restripe_node_up", map[string]string{"node": string(lost.id)})
		broken, _ := sample(t, families, "restripe_groups_not_whole", map[string]string{"class": "default"})
		_, said := sample(t, families, "restripe_node_problem", map[string]string{"node": string(lost.id), "problem": "unreachable"})
		return known && up == 0 && broken > 0 && said
	})
	families, err := c.gateway.Figures().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"restripe_objects": 1, "restripe_object_bytes": 200_000, "restripe_verification_failures_total": 0, "restripe_losable_nodes": 1,
	} {
		if value, found := sample(t, families, name, nil); !found || value != want {
			t.Errorf("%s is %v (%v), want %v", name, value, found, want)
		}
	}
	if at, found := sample(t, families, "restripe_catalog_written_timestamp_seconds", nil); !found || at == 0 {
		t.Errorf("the catalog was written at %v (%v)", at, found)
	}
}
