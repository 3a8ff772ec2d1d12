package audit

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// WriteJSONLines writes every action that matches as a line of JSON, oldest first.
func (l *Log) WriteJSONLines(out io.Writer, filter Filter) error {
	encoder := json.NewEncoder(out)
	return l.Each(filter, func(a Action) error { return encoder.Encode(a) })
}

var csvColumns = []string{
	"sequence", "begun", "ended", "user", "from", "verb", "action", "object", "before", "after", "planHash", "result", "error",
	"method", "request",
}

// WriteCSV writes every action that matches as a row of CSV under a heading, oldest first. A cell that a spreadsheet
// would take for a formula begins with an apostrophe.
func (l *Log) WriteCSV(out io.Writer, filter Filter) error {
	rows := csv.NewWriter(out)
	if err := rows.Write(csvColumns); err != nil {
		return fmt.Errorf("exporting the audit log: %w", err)
	}
	err := l.Each(filter, func(a Action) error {
		cells := []string{
			strconv.FormatInt(a.Sequence, 10), timeText(a.Begun), timeText(a.Ended), a.User, a.From, a.Verb, a.Action, a.Object,
			string(a.Before), string(a.After), a.PlanHash, string(a.Result), a.Error,
			a.Method, string(a.Request),
		}
		for i, cell := range cells {
			if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
				cells[i] = "'" + cell
			}
		}
		return rows.Write(cells)
	})
	if err != nil {
		return fmt.Errorf("exporting the audit log: %w", err)
	}
	rows.Flush()
	return rows.Error()
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}
