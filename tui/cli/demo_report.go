package cli

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator/words"
)

// patient takes an error that time cures for none.
func patient(err error) error {
	if errors.Is(err, api.ErrUnavailable) {
		return nil
	}
	return err
}

// classOf returns the part of a report that is about a class.
func classOf(report *api.HeatReport, name string) api.ClassHeat {
	i := slices.IndexFunc(report.Classes, func(class api.ClassHeat) bool { return class.Class == name })
	if i < 0 {
		return api.ClassHeat{}
	}
	return report.Classes[i]
}

// rungsText says how many groups are on each step: "rep(3) 312, rs(4,2) 453, rs(12,2) 0 groups".
func rungsText(class *api.ClassHeat) string {
	if len(class.Rungs) == 0 {
		return "no groups yet"
	}
	var parts []string
	for _, rung := range class.Rungs {
		parts = append(parts, rung.Scheme+" "+words.Number(rung.Groups))
	}
	return strings.Join(parts, ", ") + " groups"
}

// stored says what the objects take.
func (d *demo) stored(ctx context.Context) (string, error) {
	status, err := d.gateway.Status(ctx)
	if err != nil {
		return "", err
	}
	for _, class := range status.Classes {
		if class.Name == d.policy {
			return words.Bytes(class.Stored), nil
		}
	}
	return "nothing", nil
}

var demoColumns = []column{
	{title: "STEP"}, {title: "TRANSITIONS", right: true}, {title: "GROUPS", right: true}, {title: "IN CELLS", right: true},
	{title: "BLOCKS SENT: PREDICTED", right: true}, {title: "MEASURED", right: true},
	{title: "BYTES SENT: PREDICTED", right: true}, {title: "MEASURED", right: true},
	{title: "RE-ENCODING / NEW POOL", right: true}, {title: "TIME", right: true},
}

// demoStep is all that went from one scheme to another.
type demoStep struct {
	from, to            string
	transitions         int
	groups, bytes       int64
	predicted, measured api.Traffic
	reencode, pool      int64
	seconds             float64
}

// report is what moved, a line for each way along the ladder, and what the API server says of it.
func (d *demo) report(ctx context.Context) ([]string, error) {
	jobs, err := d.gateway.Transitions(ctx)
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for _, step := range demoSteps(jobs, d.policy) {
		rows = append(rows, []string{
			step.from + " -> " + step.to, strconv.Itoa(step.transitions), words.Number(step.groups), words.Bytes(step.bytes),
			words.Number(step.predicted.BlocksSent), words.Number(step.measured.BlocksSent), words.Bytes(step.predicted.BytesSent), words.Bytes(step.measured.BytesSent),
			words.Bytes(step.reencode) + " / " + words.Bytes(step.pool), words.Span(words.Seconds(step.seconds)),
		})
	}
	kind := kindNamed("policy")
	table, err := d.server.table(ctx, kind, "")
	if err != nil {
		return nil, d.server.explain(err)
	}
	declared, err := tableListing(kind, table)
	if err != nil {
		return nil, err
	}
	lines := append([]string{""}, tableLines(declared.columns, declared.rows, false)...)
	lines = append(lines, "")
	lines = append(lines, tableLines(demoColumns, rows, true)...)
	return append(lines, "", "IN CELLS is what the groups' data cells hold, padding and room between small objects included; what is sent is counted in cells.",
		"MEASURED is what the agents counted in the attempts that committed; what attempts had sent that the kill ended is not in it."), nil
}

// demoSteps sums the transitions of a class up by their way along the ladder, in the order in which the first of each
// began.
func demoSteps(jobs []api.Transition, class string) []demoStep {
	slices.SortFunc(jobs, func(a, b api.Transition) int { return a.Started.Compare(b.Started) })
	var steps []demoStep
	for i := range jobs {
		t := &jobs[i]
		if t.Selector.Class != class {
			continue
		}
		at := slices.IndexFunc(steps, func(s demoStep) bool { return s.from == t.From && s.to == t.To })
		if at < 0 {
			at = len(steps)
			steps = append(steps, demoStep{from: t.From, to: t.To})
		}
		step := &steps[at]
		step.transitions++
		step.groups += t.GroupsDone
		step.bytes += t.BytesDone
		step.predicted.BlocksSent += t.Predicted.BlocksSent
		step.predicted.BytesSent += t.Predicted.BytesSent
		step.measured.BlocksSent += t.Measured.BlocksSent
		step.measured.BytesSent += t.Measured.BytesSent
		step.reencode += t.Baselines["reencode"]
		step.pool += t.Baselines["copy-pool"]
		step.seconds += t.ElapsedSeconds
	}
	return steps
}
