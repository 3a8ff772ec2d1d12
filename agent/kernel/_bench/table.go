package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// table is rows under headings, for people: aligned where letters have one width, and a Markdown table everywhere.
type table struct {
	headings []string
	rows     [][]string
}

func newTable(headings ...string) *table { return &table{headings: headings} }

// add appends a row, with a cell for every heading.
func (t *table) add(cells ...string) {
	if len(cells) != len(t.headings) {
		panic(fmt.Sprintf("a row of %d cells under %d headings", len(cells), len(t.headings))) // invariant: rows are written in code
	}
	t.rows = append(t.rows, cells)
}

// String returns the Markdown. The first column is set left, the others right.
func (t *table) String() string {
	widths := make([]int, len(t.headings))
	for _, row := range append([][]string{t.headings}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell), 3)
		}
	}
	var text strings.Builder
	line := func(cells []string) {
		for i, cell := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				text.WriteString("| " + cell + pad + " |")
			} else {
				text.WriteString(" " + pad + cell + " |")
			}
		}
		text.WriteByte('\n')
	}
	line(t.headings)
	for i, width := range widths {
		if i == 0 {
			text.WriteString("| " + strings.Repeat("-", width) + " |")
		} else {
			text.WriteString(" " + strings.Repeat("-", width-1) + ": |")
		}
	}
	text.WriteByte('\n')
	for _, row := range t.rows {
		line(row)
	}
	return text.String()
}

// rate shows bytes per nanosecond as gigabytes per second.
func rate(bytes int, nanoseconds sample) string {
	return fmt.Sprintf("%.1f", float64(bytes)/nanoseconds.median())
}

// duration shows nanoseconds.
func duration(nanoseconds sample) string { return fmt.Sprintf("%.0f", nanoseconds.median()) }

// size shows a number of bytes that is whole in its unit.
func size(bytes int) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d KiB", bytes>>10)
}

// percent shows a share, or nothing for one that does not exist.
func percent(share sample) string {
	if len(share) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*share.median())
}
