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
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
)

// bounded are the labels that metrics may have. People declare their values, or the program knows them: there are no more of them for more
// objects, groups or clients.
var bounded = strings.Fields("announced cache call candidate class code command condition domain event identity into kind method mode name node " +
	"operation outcome part policy problem reason refusal release replica route scheme source state status to transition")

// Problems says where the metrics of a process, which are in a registry, are not as the table in a Markdown file has them, and where they
// do not keep to the rules of Prometheus. With update the table is written before.
func Problems(registry *prometheus.Registry, table, process string, update bool) (problems []string, err error) {
	have, err := metricsOf(registry)
	if err == nil && update {
		err = write(table, process, have)
	}
	if err != nil {
		return nil, err
	}
	said, err := read(table, process)
	if err != nil {
		return nil, err
	}
	broken, err := testutil.GatherAndLint(registry)
	problems = differences(said, have)
	for _, one := range have {
		for _, label := range one.Labels {
			if !slices.Contains(bounded, label) {
				problems = append(problems, fmt.Sprintf("%s: what bounds the values of the label %s? add it to those that are bounded", one.Name, label))
			}
		}
	}
	for _, one := range broken {
		problems = append(problems, one.Metric+": "+one.Text)
	}
	return problems, err
}

// metric is a metric of a process.
type metric struct {
	Name, Type, Help string
	Labels           []string
}

// description is how a prometheus.Desc prints itself, which is all that it tells.
var description = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)", unit: "[^"]*", ` +
	`constLabels: \{[^}]*\}, variableLabels: \{([^}]*)\}\}$`)

// metricsOf are the metrics of this project in a registry, by name, whether or not they have samples. A metric without samples is a
// counter if its name ends so, else a gauge.
func metricsOf(registry *prometheus.Registry) ([]metric, error) {
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
	var list []metric
	for described := range descriptions {
		parts := description.FindStringSubmatch(described.String())
		if parts == nil {
			err = fmt.Errorf("%s is not understood", described)
			continue
		}
		if !strings.HasPrefix(parts[1], "restripe_") {
			continue
		}
		one := metric{Name: parts[1], Help: parts[2], Type: "gauge"}
		if kind, known := types[one.Name]; known {
			one.Type = strings.ToLower(kind.String())
		} else if strings.HasSuffix(one.Name, "_total") {
			one.Type = "counter"
		}
		if parts[3] != "" {
			one.Labels = strings.Split(parts[3], ",")
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b metric) int { return cmp.Compare(a.Name, b.Name) })
	return list, err
}

// section begins the part of the table for a process.
func section(process string) string { return "## " + process + "\n" }

// write puts the metrics of a process into the table in a Markdown file, in place of those that it had.
func write(path, process string, metrics []metric) error {
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
var row = regexp.MustCompile("(?m)^\\| `(restripe_[a-z0-9_]+)` \\| ([a-z]+) \\| ([a-z, ]*) \\| (.*) \\|$")

// read returns the metrics of a process in the table, or of all processes where none is named.
func read(path, process string) (list []metric, err error) {
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
		one := metric{Name: cells[1], Type: cells[2], Help: cells[4]}
		if cells[3] != "" {
			one.Labels = strings.Split(cells[3], ", ")
		}
		list = append(list, one)
	}
	return list, nil
}

// differences says what the table has of a process, and what the process has, where these are not the same.
func differences(table, process []metric) (texts []string) {
	equal := func(a, b metric) bool {
		return a.Name == b.Name && a.Type == b.Type && a.Help == b.Help && slices.Equal(a.Labels, b.Labels)
	}
	for _, one := range process {
		if !slices.ContainsFunc(table, func(other metric) bool { return equal(one, other) }) {
			texts = append(texts, fmt.Sprintf("the table has no such line: %+v", one))
		}
	}
	for _, one := range table {
		if !slices.ContainsFunc(process, func(other metric) bool { return equal(one, other) }) {
			texts = append(texts, fmt.Sprintf("nothing serves %+v", one))
		}
	}
	return texts
}
