package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/tui/cli/program"
)

// formats are the values of -o where a list is shown.
var formats = []string{"table", "wide", "json", "yaml", "name"}

// outputFlag adds -o to a command and returns where its value will be.
func outputFlag(command *cobra.Command, allowed ...string) *formatValue {
	if len(allowed) == 0 {
		allowed = formats
	}
	value := &formatValue{chosen: allowed[0], allowed: allowed}
	command.Flags().VarP(value, "output", "o", strings.Join(allowed, "|"))
	if err := command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("completing -o: " + err.Error()) // invariant: the flag was added one line above
	}
	return value
}

// formatValue is a flag that takes one of a few words.
type formatValue struct {
	chosen  string
	allowed []string
}

// String returns the word chosen.
func (v *formatValue) String() string { return v.chosen }

// Type names the kind of value in help texts.
func (v *formatValue) Type() string { return "format" }

// Set refuses words that are not allowed.
func (v *formatValue) Set(text string) error {
	if !slices.Contains(v.allowed, text) {
		return fmt.Errorf("want one of %s", strings.Join(v.allowed, ", "))
	}
	v.chosen = text
	return nil
}

// column is one column of a table; a wide one is shown with -o wide only.
type column struct {
	title string
	wide  bool
	right bool // numbers
}

// listing is a list in every form it can be shown in.
type listing struct {
	value   any      // what json and yaml show
	names   []string // what name shows
	columns []column
	rows    [][]string // a cell for every column, wide ones included
	empty   string     // what to do first, where there are no rows
}

// show writes a listing in the format asked for.
func (s *session) show(format *formatValue, l listing) error {
	switch format.chosen {
	case "json":
		return writeJSON(s.Out, l.value)
	case "yaml":
		return writeYAML(s.Out, l.value)
	case "name":
		return program.WriteLines(s.Out, l.names)
	}
	if len(l.rows) == 0 {
		empty := l.empty
		if s.plugin {
			empty = program.Spelled(empty, programName, pluginCall)
		}
		return program.WriteLines(s.Messages, []string{empty})
	}
	return program.WriteLines(s.Out, tableLines(l.columns, l.rows, format.chosen == "wide"))
}

// tableLines lays out a table: columns two spaces apart, as wide as their widest cell.
func tableLines(columns []column, rows [][]string, wide bool) []string {
	var shown []int
	for i, c := range columns {
		if wide || !c.wide {
			shown = append(shown, i)
		}
	}
	width := make([]int, len(columns))
	head := make([]string, len(columns))
	for i, c := range columns {
		head[i] = c.title
		width[i] = utf8.RuneCountInString(c.title)
		for _, row := range rows {
			width[i] = max(width[i], utf8.RuneCountInString(row[i]))
		}
	}
	var lines []string
	for _, row := range append([][]string{head}, rows...) {
		var line strings.Builder
		for n, i := range shown {
			if n > 0 {
				line.WriteString("  ")
			}
			blank := strings.Repeat(" ", width[i]-utf8.RuneCountInString(row[i]))
			if columns[i].right {
				line.WriteString(blank + row[i])
			} else {
				line.WriteString(row[i] + blank)
			}
		}
		lines = append(lines, strings.TrimRight(line.String(), " "))
	}
	return lines
}

func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

func writeYAML(out io.Writer, value any) error {
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	if _, err := out.Write(text); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}
