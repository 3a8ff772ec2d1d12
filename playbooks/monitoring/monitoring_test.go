package monitoring

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the dashboards anew")

const table = "../../docs/metrics.md"

// named are the metrics of the project in an expression.
var named = regexp.MustCompile(`\brestripe_[a-z0-9_]+`)

// checkNames reports metrics of an expression that nothing shows.
func checkNames(t *testing.T, known map[string]string, where, expression string) {
	t.Helper()
	names := named.FindAllString(expression, -1)
	if len(names) == 0 {
		t.Errorf("%s: %q names no metric", where, expression)
	}
	for _, name := range names {
		base := name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if cut, is := strings.CutSuffix(name, suffix); is && known[cut] == "histogram" {
				base = cut
			}
		}
		if known[base] == "" {
			t.Errorf("%s: nothing shows %s; docs/metrics.md has what there is", where, name)
		}
		if known[base] == "counter" && !strings.Contains(expression, "rate(") && !strings.Contains(expression, "increase(") {
			t.Errorf("%s: %s is a counter, of which nothing but its growth says something", where, name)
		}
	}
}

func knownMetrics(t *testing.T) map[string]string {
	t.Helper()
	list, err := read(table, "")
	if err != nil || len(list) < 40 {
		t.Fatalf("%d metrics in %s, %v", len(list), table, err)
	}
	known := map[string]string{}
	for _, metric := range list {
		known[metric.Name] = metric.Type
	}
	return known
}

// Dashboards are as the program writes them, and show what there is.
func TestDashboards(t *testing.T) {
	known := knownMetrics(t)
	for _, dashboard := range Dashboards() {
		text, err := dashboard.JSON()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("dashboards", dashboard.Name+".json")
		if *update {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(have, text) {
			t.Errorf("%s is not what is written: %v; run go test ./playbooks/monitoring -update", path, err)
		}
		var page struct {
			Panels []struct {
				GridPos struct{ X, Y, W, H int } `json:"gridPos"`
			} `json:"panels"`
		}
		if err := json.Unmarshal(text, &page); err != nil {
			t.Fatal(err)
		}
		for i, one := range page.Panels {
			for j, other := range page.Panels[:i] {
				a, b := one.GridPos, other.GridPos
				if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Errorf("%s: panels %d and %d lie over one another", dashboard.Name, i, j)
				}
			}
		}
		for _, panel := range dashboard.Panels {
			for _, line := range panel.Lines {
				checkNames(t, known, dashboard.Name+", "+panel.Title, line.Expression)
			}
		}
	}
}

// Every alert is about metrics that there are, says what is the matter, has a runbook, and is tested.
func TestAlerts(t *testing.T) {
	known := knownMetrics(t)
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr         string
				Labels, Annotations map[string]string
			}
		}
	}
	parse := func(path string, into any) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err == nil {
			err = yaml.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	parse("alerts.yaml", &rules)
	var tests struct {
		Tests []map[string]any
	}
	parse("alerts_test.yaml", &tests)
	fires, rests := map[string]bool{}, map[string]bool{}
	for _, one := range tests.Tests {
		name, _ := one["name"].(string)
		times, _ := one["alert_rule_test"].([]any)
		for _, at := range times {
			expected := at.(map[string]any)["exp_alerts"] != nil
			fires[name] = fires[name] || expected
			rests[name] = rests[name] || !expected
		}
	}
	index, err := os.ReadFile("../../docs/runbooks/README.md")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			count++
			checkNames(t, known, rule.Alert, rule.Expr)
			if rule.Labels["severity"] != "warning" && rule.Labels["severity"] != "critical" {
				t.Errorf("%s has the severity %q", rule.Alert, rule.Labels["severity"])
			}
			if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" ||
				!strings.HasSuffix(rule.Annotations["runbook_url"], "/docs/runbooks/"+rule.Alert+".md") {
				t.Errorf("%s says %q", rule.Alert, rule.Annotations)
			}
			_, err := os.Stat("../../docs/runbooks/" + rule.Alert + ".md")
			if err != nil || !strings.Contains(string(index), "("+rule.Alert+".md)") {
				t.Errorf("%s has no runbook in docs/runbooks: %v", rule.Alert, err)
			}
			if !fires[rule.Alert] || !rests[rule.Alert] {
				t.Errorf("alerts_test.yaml does not try when %s fires and when not", rule.Alert)
			}
		}
	}
	runbooks, err := filepath.Glob("../../docs/runbooks/Restripe*.md")
	if err != nil || len(runbooks) != count {
		t.Errorf("%d alerts and %d runbooks, %v", count, len(runbooks), err)
	}
}

// A metric of every object would be more than a Prometheus can hold.
func TestLabelsAreBounded(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "restripe_read_bytes", Help: "By object."}, []string{"key"}),
		prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "restripe_class_bytes", Help: "By class."}, []string{"class"}),
	)
	problems, err := Problems(registry, table, "Gateway", false)
	if err != nil {
		t.Fatal(err)
	}
	told := strings.Join(problems, "\n")
	if !strings.Contains(told, "restripe_read_bytes: what bounds the values of the label key?") || strings.Contains(told, "label class?") {
		t.Errorf("of a label for every object, and one for every class, is said:\n%s", told)
	}
}
