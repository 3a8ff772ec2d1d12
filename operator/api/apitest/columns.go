package apitest

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// width is that of a terminal.
const width = 80

// beside is what kubectl writes before the names of kinds that are asked for together.
var beside = map[string]string{"RedundancyPolicy": "redundancypolicy.restripe.io/", "Transition": "transition.restripe.io/"}

// columns runs testdata/columns.txtar: for each kind, "objects.yaml" with their status, "get" as `kubectl get` shows them,
// which has to fit a terminal, and "wide" as `kubectl get -o wide` does.
func (s *suite) columns(t *testing.T) {
	for _, cases := range openArchives(t, filepath.Join(s.Testdata, "columns.txtar")) {
		for _, kind := range cases.cases() {
			t.Run(kind, func(t *testing.T) {
				text, _ := cases.file(kind + "/objects.yaml")
				for document := range strings.SplitSeq(text, "---\n") {
					object := map[string]any{}
					if err := yaml.Unmarshal([]byte(document), &object); err != nil {
						t.Fatal(err)
					}
					if _, err := s.create(t, named(kind, "", object)); err != nil {
						t.Fatal(err)
					}
				}
				table := s.table(t, kind)
				shown := render(table, 0, "")
				for line := range strings.Lines(render(table, 0, beside[kind])) {
					if length := utf8.RuneCountInString(strings.TrimRight(line, "\n")); length > width {
						t.Errorf("%d characters wide, a terminal has %d:\n%s", length, width, line)
					}
				}
				cases.expect(t, kind+"/get", shown, s.Rewrite)
				cases.expect(t, kind+"/wide", render(table, 1, ""), s.Rewrite)
			})
		}
	}
}

// table asks for the objects of a kind as kubectl does.
func (s *suite) table(t *testing.T, kind string) *metav1.Table {
	t.Helper()
	config := rest.CopyConfig(s.Config)
	config.GroupVersion, config.APIPath = &v1alpha1.GroupVersion, "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	text, err := client.Get().Resource(kinds[kind].resource).
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(text, table); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) == 0 {
		t.Fatal("the table is empty")
	}
	return table
}

// render lays out the columns up to a priority as kubectl does, three spaces between them, without spaces at the end. How
// old things are is not for a test to know, so all are of the same age.
func render(table *metav1.Table, priority int32, beforeName string) string {
	var grid [][]string
	for range len(table.Rows) + 1 {
		grid = append(grid, nil)
	}
	for i, column := range table.ColumnDefinitions {
		if column.Priority > priority {
			continue
		}
		grid[0] = append(grid[0], strings.ToUpper(column.Name))
		for j, row := range table.Rows {
			cell := fmt.Sprint(row.Cells[i])
			switch {
			case row.Cells[i] == nil:
				cell = ""
			case column.Name == "Name":
				cell = beforeName + cell
			case column.Name == "Age":
				cell = "12d"
			}
			grid[j+1] = append(grid[j+1], cell)
		}
	}
	widths := make([]int, len(grid[0]))
	for _, row := range grid {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for _, row := range grid {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+3))
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return text.String()
}
