package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/tui/cli/program"
)

func TestTablesAreAligned(t *testing.T) {
	columns := []column{{title: "NAME"}, {title: "SIZE", right: true}, {title: "WHY", wide: true}, {title: "END"}}
	rows := [][]string{{"größer", "7", "because", ""}, {"a", "1,234", "", "x"}}
	for wide, want := range map[bool][]string{
		false: {"NAME     SIZE  END", "größer      7", "a       1,234  x"},
		true:  {"NAME     SIZE  WHY      END", "größer      7  because", "a       1,234           x"},
	} {
		if have := tableLines(columns, rows, wide); strings.Join(have, "\n") != strings.Join(want, "\n") {
			t.Errorf("wide %t:\n%s\nwant:\n%s", wide, strings.Join(have, "\n"), strings.Join(want, "\n"))
		}
	}
	if have := tableLines(columns, nil, false); len(have) != 1 || have[0] != "NAME  SIZE  END" {
		t.Errorf("a table without rows is %q", have)
	}
}

// TestCellsStandUnderTheirTitles: whatever the cells, each begins (or, for numbers, ends) where its title does, and no line
// ends in a blank.
func TestCellsStandUnderTheirTitles(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		cell := rapid.StringMatching(`[a-zäü0-9]{1,9}`)
		columns := make([]column, rapid.IntRange(1, 5).Draw(r, "columns"))
		for i := range columns {
			columns[i] = column{title: cell.Draw(r, "title"), right: rapid.Bool().Draw(r, "right"), wide: rapid.Bool().Draw(r, "wide")}
		}
		wide := rapid.Bool().Draw(r, "shown wide")
		rows := rapid.SliceOfN(rapid.SliceOfN(cell, len(columns), len(columns)), 0, 4).Draw(r, "rows")
		lines := tableLines(columns, rows, wide)
		if len(lines) != len(rows)+1 {
			r.Fatalf("%d lines for %d rows", len(lines), len(rows))
		}
		at := 0
		for i, c := range columns {
			if c.wide && !wide {
				continue
			}
			width := utf8.RuneCountInString(c.title)
			for _, row := range rows {
				width = max(width, utf8.RuneCountInString(row[i]))
			}
			for n, line := range lines {
				text := c.title
				if n > 0 {
					text = rows[n-1][i]
				}
				letters := []rune(line)
				first := at
				if c.right {
					first = at + width - utf8.RuneCountInString(text)
				}
				if end := first + utf8.RuneCountInString(text); end > len(letters) || string(letters[first:end]) != text {
					r.Fatalf("%q does not stand at %d of %q", text, first, line)
				}
				if strings.HasSuffix(line, " ") {
					r.Fatalf("%q ends in a blank", line)
				}
			}
			at += width + 2
		}
	})
}

// TestListsInEveryForm: rows for people go to standard output, what to do where there are none does not.
func TestListsInEveryForm(t *testing.T) {
	full := listing{
		value: []string{"a<b", "c"}, names: []string{"a<b", "c"}, columns: []column{{title: "NAME"}, {title: "MORE", wide: true}},
		rows: [][]string{{"a<b", "1"}, {"c", "2"}}, empty: "There is nothing.",
	}
	none := listing{value: []string{}, columns: full.columns, empty: full.empty}
	for _, c := range []struct {
		format        string
		list          listing
		out, messages string
	}{
		{"table", full, "NAME\na<b\nc\n", ""}, {"wide", full, "NAME  MORE\na<b   1\nc     2\n", ""}, {"name", full, "a<b\nc\n", ""},
		{"json", full, "[\n  \"a<b\",\n  \"c\"\n]\n", ""}, {"yaml", full, "- a<b\n- c\n", ""},
		{"table", none, "", "There is nothing.\n"}, {"wide", none, "", "There is nothing.\n"}, {"name", none, "", ""},
		{"json", none, "[]\n", ""}, {"yaml", none, "[]\n", ""},
	} {
		var out, messages bytes.Buffer
		s := &session{Streams: program.Streams{Out: &out, Messages: &messages}}
		err := s.show(&formatValue{chosen: c.format}, c.list)
		if err != nil || out.String() != c.out || messages.String() != c.messages {
			t.Errorf("-o %s of %d rows: %q and %q, %v; want %q and %q",
				c.format, len(c.list.rows), out.String(), messages.String(), err, c.out, c.messages)
		}
	}
}

// full is an output on a disk that is full.
type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestOutputThatFailsIsAnError: a command that could not say what it was asked does not end well.
func TestOutputThatFailsIsAnError(t *testing.T) {
	s := &session{Streams: program.Streams{Out: full{}, Messages: full{}}}
	list := listing{value: 1, names: []string{"a"}, columns: []column{{title: "A"}}, rows: [][]string{{"a"}}}
	for _, format := range formats {
		if err := s.show(&formatValue{chosen: format}, list); !errors.Is(err, errFull) {
			t.Errorf("-o %s: %v", format, err)
		}
	}
	for _, line := range []string{
		"version", "schema", "ladders --nodes 8 --overhead 2", "explain --from rep(2) --to rep(1)", "plan --from rep(2) --to rep(1) -o json",
	} {
		var messages bytes.Buffer
		if code := execute(t.Context(), strings.Fields(line), strings.NewReader(""), full{}, &messages); code != program.ExitFailed {
			t.Errorf("restripe %s ends with code %d: %s", line, code, messages.String())
		}
	}
	if err := writeJSON(&bytes.Buffer{}, func() {}); err == nil {
		t.Error("a function was written as JSON")
	}
	if err := writeYAML(&bytes.Buffer{}, func() {}); err == nil {
		t.Error("a function was written as YAML")
	}
}

func TestRunsOfNumbers(t *testing.T) {
	for want, numbers := range map[string][]int{"-": nil, "3": {3}, "0-3,7": {0, 1, 2, 3, 7}, "1,3,5": {1, 3, 5}, "1-2,4-5": {1, 2, 4, 5}} {
		if have := numbersText(numbers); have != want {
			t.Errorf("%v is %q, want %q", numbers, have, want)
		}
	}
}
