package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
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

// stored is how many bytes the objects take, and what is left of those that were written over.
func (d *demo) stored(ctx context.Context) (int64, error) {
	status, err := d.Gateway.Status(ctx)
	if err != nil {
		return 0, err
	}
	for _, class := range status.Classes {
		if class.Name == Policy {
			return class.Stored, nil
		}
	}
	return 0, nil
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

// costs are what a class stored over a time, and what it would have under one code for everything.
type costs struct {
	last   time.Time
	span   time.Duration
	stored float64 // bytes, times seconds
	held   float64 // the same of the data of the groups, without what keeps it safe
	codes  []stripe.Scheme
}

// add counts what the class has stored since it was looked at last as what it stores now.
func (c *costs) add(class *api.ClassHeat, now time.Time) {
	passed := now.Sub(c.last)
	if c.last.IsZero() {
		passed = 0
	}
	c.last, c.span, c.codes = now, c.span+passed, nil
	for _, rung := range class.Rungs {
		c.stored += float64(rung.StoredBytes) * passed.Seconds()
		c.held += float64(rung.Bytes) * passed.Seconds()
		if code, err := stripe.ParseScheme(rung.Scheme); err == nil {
			c.codes = append(c.codes, code)
		}
	}
}

// line is "Over the 40 s in which it cooled and heated, storage cost 0.52 of everything on rep(3), 1.04 of everything on rs(4,2); ...".
func (c *costs) line() string {
	if c.held == 0 {
		return "What it would have cost under one code is not known: nothing was stored."
	}
	var parts []string
	for _, code := range c.codes {
		parts = append(parts, fmt.Sprintf("%.2f of everything on %s", c.stored/(c.held*code.Overhead()), code))
	}
	return fmt.Sprintf("Over the %s in which it cooled and heated, storage cost %s; what is hot is read from one node each, as on %s.",
		words.Span(c.span.Round(time.Second)), strings.Join(parts, ", "), c.codes[0])
}
