package console

import (
	"flag"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/restripe/restripe/playbooks/monitoring"
)

var updateMetrics = flag.Bool("update-metrics", false, "write the table of docs/metrics.md anew")

// What a console shows is in the table, and keeps to the rules of Prometheus.
func TestMetricsAreInTheTable(t *testing.T) {
	m := newMetrics()
	m.begin("/restripe.console.v1.Console/GetCluster")(nil)
	const page = "../../docs/metrics.md"
	have, err := monitoring.Metrics(m.registry)
	if err != nil {
		t.Fatal(err)
	}
	if *updateMetrics {
		if err := monitoring.Write(page, "Console", have); err != nil {
			t.Fatal(err)
		}
	}
	said, err := monitoring.Read(page, "Console")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range monitoring.Differences(said, have) {
		t.Error(text)
	}
	problems, err := testutil.GatherAndLint(m.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}
