package demo

import (
	"context"
	"errors"
	"slices"
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
	status, err := d.Gateway.Status(ctx)
	if err != nil {
		return "", err
	}
	for _, class := range status.Classes {
		if class.Name == Policy {
			return words.Bytes(class.Stored), nil
		}
	}
	return "nothing", nil
}

// Step is all that went from one scheme to another.
type Step struct {
	From, To            string
	Transitions         int
	Groups, Bytes       int64 // the bytes of the groups' data cells
	Predicted, Measured api.Traffic
	Reencode, NewPool   int64 // bytes that re-encoding and a copy into a new pool would have sent
	Seconds             float64
}

// steps sums the transitions of a class up by their way along the ladder, in the order in which the first of each
// began.
func steps(jobs []api.Transition, class string) []Step {
	slices.SortFunc(jobs, func(a, b api.Transition) int { return a.Started.Compare(b.Started) })
	var list []Step
	for i := range jobs {
		t := &jobs[i]
		if t.Selector.Class != class {
			continue
		}
		at := slices.IndexFunc(list, func(s Step) bool { return s.From == t.From && s.To == t.To })
		if at < 0 {
			at = len(list)
			list = append(list, Step{From: t.From, To: t.To})
		}
		step := &list[at]
		step.Transitions++
		step.Groups += t.GroupsDone
		step.Bytes += t.BytesDone
		step.Predicted.BlocksSent += t.Predicted.BlocksSent
		step.Predicted.BytesSent += t.Predicted.BytesSent
		step.Measured.BlocksSent += t.Measured.BlocksSent
		step.Measured.BytesSent += t.Measured.BytesSent
		step.Reencode += t.Baselines["reencode"]
		step.NewPool += t.Baselines["copy-pool"]
		step.Seconds += t.ElapsedSeconds
	}
	return list
}
