// Package monitoring has what is needed to watch a cluster with Prometheus: the table of its metrics, alerts with their tests, and
// dashboards.
package monitoring

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Metric is a metric of a process.
type Metric struct {
	Name, Type, Help string
	Labels           []string
}

// description is how a prometheus.Desc prints itself, which is all that it tells.
var description = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)", unit: "[^"]*", ` +
	`constLabels: \{[^}]*\}, variableLabels: \{([^}]*)\}\}$`)

// Metrics are the metrics of this project in a registry, by name, whether or not they have samples. A metric without samples is a
// counter if its name ends so, else a gauge.
func Metrics(registry *prometheus.Registry) ([]Metric, error) {
	families, err := registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("gathering metrics: %w", err)
	}
	types := map[string]dto.MetricType{}
	for _, family := range families {
		types[family.GetName()] = family.GetType()
	}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		registry.Describe(descriptions)
	}()
	var list []Metric
	for one := range descriptions {
		parts := description.FindStringSubmatch(one.String())
		if parts == nil {
			err = fmt.Errorf("%s is not understood", one)
			continue
		}
		if !strings.HasPrefix(parts[1], "restripe_") {
			continue
		}
		metric := Metric{Name: parts[1], Help: parts[2], Type: "gauge"}
		if kind, known := types[metric.Name]; known {
			metric.Type = strings.ToLower(kind.String())
		} else if strings.HasSuffix(metric.Name, "_total") {
			metric.Type = "counter"
		}
		if parts[3] != "" {
			metric.Labels = strings.Split(parts[3], ",")
		}
		list = append(list, metric)
	}
	slices.SortFunc(list, func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
	return list, err
}

// section begins the part of the table for a process.
func section(process string) string { return "## " + process + "\n" }

// Write puts the metrics of a process into the table in a Markdown file, in place of those that it had.
func Write(path, process string, metrics []Metric) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(text, []byte(section(process)))
	if !found {
		return fmt.Errorf("%s has no section %q", path, process)
	}
	var b bytes.Buffer
	b.Write(before)
	b.WriteString(section(process) + "\n| metric | type | labels | is |\n|---|---|---|---|\n")
	for _, m := range metrics {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, strings.Join(m.Labels, ", "), m.Help)
	}
	if _, after, more := bytes.Cut(rest, []byte("\n## ")); more {
		b.WriteString("\n## ")
		b.Write(after)
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// row is a line of the table.
var row = regexp.MustCompile("(?m)^\\| `(restripe_[a-z_]+)` \\| ([a-z]+) \\| ([a-z, ]*) \\| (.*) \\|$")

// Read returns the metrics of a process in the table, or of all processes where none is named.
func Read(path, process string) (list []Metric, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	of := string(text)
	if process != "" {
		_, of, _ = strings.Cut(of, section(process))
		of, _, _ = strings.Cut(of, "\n## ")
	}
	for _, cells := range row.FindAllStringSubmatch(of, -1) {
		metric := Metric{Name: cells[1], Type: cells[2], Help: cells[4]}
		if cells[3] != "" {
			metric.Labels = strings.Split(cells[3], ", ")
		}
		list = append(list, metric)
	}
	return list, nil
}

// Differences says what the table has of a process, and what the process has, where these are not the same.
func Differences(table, process []Metric) (texts []string) {
	equal := func(a, b Metric) bool {
		return a.Name == b.Name && a.Type == b.Type && a.Help == b.Help && slices.Equal(a.Labels, b.Labels)
	}
	for _, one := range process {
		if !slices.ContainsFunc(table, func(other Metric) bool { return equal(one, other) }) {
			texts = append(texts, fmt.Sprintf("the table has no such line: %+v", one))
		}
	}
	for _, one := range table {
		if !slices.ContainsFunc(process, func(other Metric) bool { return equal(one, other) }) {
			texts = append(texts, fmt.Sprintf("nothing serves %+v", one))
		}
	}
	return texts
}
