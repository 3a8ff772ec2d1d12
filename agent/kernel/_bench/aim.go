package main

import (
	"fmt"
	"strings"
)

// aim is a ratio that every row of a table should reach.
type aim struct {
	text  string
	floor float64
	rows  []aimRow
}

type aimRow struct {
	name  string
	ratio sample
}

func newAim(floor float64, text string) *aim { return &aim{text: text, floor: floor} }

// add counts a row; an empty ratio, of something the machine does not have, is not counted.
func (a *aim) add(name string, ratio sample) {
	if len(ratio) > 0 {
		a.rows = append(a.rows, aimRow{name, ratio})
	}
}

// String says how many rows reach the aim and names the others.
func (a *aim) String() string {
	median, worst := 0, 0
	var missed []string
	for _, row := range a.rows {
		if row.ratio.median() >= a.floor {
			median++
		} else {
			missed = append(missed, fmt.Sprintf("%s with %.2f", row.name, row.ratio.median()))
		}
		if row.ratio.least() >= a.floor {
			worst++
		}
	}
	text := fmt.Sprintf("%s: %d of %d hold by the median round, %d by the worst", a.text, median, len(a.rows), worst)
	if len(missed) > 0 {
		text += "; missed by " + strings.Join(missed, ", ")
	}
	return text
}
