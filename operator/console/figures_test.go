package console

import (
	"flag"
	"testing"

	"github.com/restripe/restripe/playbooks/monitoring"
)

var updateMetrics = flag.Bool("update-metrics", false, "write the table of docs/metrics.md anew")

// What a console shows is in the table, and keeps to the rules of Prometheus.
func TestMetricsAreInTheTable(t *testing.T) {
	m := newMetrics()
	m.begin("/restripe.console.v1.Console/GetCluster")(nil)
	problems, err := monitoring.Problems(m.registry, "../../docs/metrics.md", "Console", *updateMetrics)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}
