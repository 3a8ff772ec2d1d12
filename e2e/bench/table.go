//go:build linux

package main

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// table is rows under headings, for people: aligned where letters have one width, and a Markdown table everywhere.
type table struct {
	headings []string
	rows     [][]string
}

// add appends a row, with a cell for every heading.
func (t *table) add(cells ...string) {
	if len(cells) != len(t.headings) {
		panic(fmt.Sprintf("a row of %d cells under %d headings", len(cells), len(t.headings))) // invariant: rows are written in code
	}
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
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

// megabytes shows bytes in units of a million, to two places, of which zero has no sign.
func megabytes(bytes int64) string { return fmt.Sprintf("%.2f", math.Round(float64(bytes)/1e4)/100+0) }

// mebibytes shows bytes in units of 2^20.
func mebibytes(bytes int64) string { return fmt.Sprintf("%.0f", float64(bytes)/(1<<20)) }

// percent shows a share.
func percent(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(part)/float64(whole))
}
