package transition

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/temperature"
	"github.com/restripe/restripe/agent/stripe"
)

// way is how groups of one shape take a scheme: along the ladder that they have, in place by parities alone, by the columns of others of
// their shape, or by copies of their objects.
type way struct {
	before, after *stripe.Layout // after: of the groups that are kept; nil where their objects are copied
	from, to      stripe.Scheme
	step          stripe.Scheme // where columns come: the scheme with as many parities as before, under which the columns come
	kept, taken   int           // of so many groups the one lot get the columns of the other; 0 where none come
}

// region is how many groups become wider together; 0 where they do not.
func (w *way) region() int { return w.kept + w.taken }

// isOffLadder reports whether the groups were written for a ladder without the scheme.
func (w *way) isOffLadder() bool { return w.after != w.before }

// wayOf returns how groups of a shape take a scheme.
func (j *Coordinator) wayOf(s *temperature.Shape, to stripe.Scheme) (*way, error) {
	w := &way{to: to}
	var err error
	if w.before, err = stripe.ParseLayout(s.Version, s.Ladder, s.Mode, s.Columns); err != nil {
		return nil, fmt.Errorf("groups of class %s with the ladder %s: %w", s.Class, s.Ladder, err)
	}
	if w.from, err = stripe.ParseScheme(s.Scheme); err != nil {
		return nil, fmt.Errorf("groups of class %s: %w", s.Class, err)
	}
	if w.before.Ladder.Contains(to) {
		w.after = w.before
		return w, nil
	}
	class, err := j.classes.For("", s.Class)
	if err != nil {
		return nil, err
	}
	if w.after, err = w.before.WithLadder(class.Ladder, class.Mode, to); err == nil {
		return w, nil
	}
	w.after = nil
	more := to.K - s.Columns
	if more < 1 || !j.catalog.IsUpgraded() {
		return w, nil
	}
	step := stripe.Scheme{K: to.K, M: w.from.M}
	kept, taken := stripe.Region(s.Columns, more)
	if after, err := w.before.Widened(to.K, class.Ladder, class.Mode, w.from, step); err == nil && kept+taken <= maxRegion {
		w.after, w.step, w.kept, w.taken = after, step, kept, taken
	}
	return w, nil
}

// maxRegion is how many groups become wider together at most: one commit has all of them, and a change of any has them staged again.
const maxRegion = 16

// kind is what is alike of groups that become wider together.
type kind struct {
	temperature.Shape
	cellBytes int
	packed    bool
}

// summaryOf is the part of a group's record by which groups are selected.
func summaryOf(of *catalog.Group) *catalog.GroupSummary {
	return &catalog.GroupSummary{
		ID: of.ID, Epoch: of.Epoch, Class: of.Class, Ladder: of.Ladder, Mode: of.Mode, LayoutVersion: of.LayoutVersion, Columns: of.Columns,
		Scheme: of.Scheme, CellBytes: of.CellBytes, Packed: of.Packed, Settled: of.Settled,
	}
}

func kindOf(of *catalog.GroupSummary) kind {
	return kind{
		temperature.Shape{Class: of.Class, Scheme: of.Scheme, Ladder: of.Ladder, Mode: of.Mode, Columns: of.Columns, Version: of.LayoutVersion},
		of.CellBytes, of.Packed,
	}
}

// gathering puts groups together that become wider together, as they come.
type gathering struct {
	way          *way
	plain, wider []item // those that have columns of others already do not give away theirs
}

// add adds a group, and returns the region that is complete by it.
func (g *gathering) add(one item, isWider bool) (whole item, complete bool) {
	if isWider {
		g.wider = append(g.wider, one)
	} else {
		g.plain = append(g.plain, one)
	}
	if len(g.plain) < g.way.taken || len(g.plain)+len(g.wider) < g.way.region() {
		return item{}, false
	}
	already := min(len(g.wider), g.way.kept)
	members := slices.Concat(g.wider[:already], g.plain[:g.way.region()-already])
	g.wider, g.plain = g.wider[already:], g.plain[g.way.region()-already:]
	whole = item{way: g.way}
	for _, member := range members {
		whole.region = append(whole.region, member.group)
		whole.bytes += member.bytes
	}
	whole.group = slices.MinFunc(whole.region, byID)
	return whole, true
}

// left are the groups that were too few for a region.
func (g *gathering) left() (tails []item) {
	for _, one := range slices.Concat(g.wider, g.plain) {
		one.isTail = true
		tails = append(tails, one)
	}
	return tails
}

// errBroken says that a group of a region has changed since they were put together.
var errBroken = errors.New("the groups are not alike any more")

// widenRegion has the groups of a region become wider together, and then take the scheme if that has other parities. errBroken says that
// other regions have to be made.
func (r *runner) widenRegion(ctx context.Context, work *item) (*group.Cost, error) {
	g := r.coordinator
	region := &group.Region{}
	var alike kind
	for i, id := range work.region {
		view, err := g.catalog.Group(ctx, id)
		if errors.Is(err, catalog.ErrNoGroup) {
			return nil, errBroken
		}
		if err != nil {
			return nil, err
		}
		is := kindOf(summaryOf(&view.Group))
		if i == 0 {
			alike = is
		}
		if is != alike || view.IsDissolved() || !r.selects(&view.Group) {
			return nil, errBroken
		}
		if i < work.way.kept {
			region.Kept = append(region.Kept, view)
		} else {
			region.Taken = append(region.Taken, view)
		}
	}
	class, err := g.ladderFor(&region.Kept[0].Group, r.to)
	if err != nil {
		return nil, err
	}
	cost, err := g.groups.Widen(ctx, region, class.Ladder, class.Mode, work.way.step, r.admit)
	if errors.Is(err, group.ErrNoRegion) {
		return r.apart(ctx, work.region)
	}
	if err != nil {
		return nil, err
	}
	if cost.Skipped { // one of them is not selected any more
		return nil, errBroken
	}
	cost.Widened = int64(len(work.region))
	if work.way.step != r.to {
		after, err := r.apart(ctx, work.region[:work.way.kept])
		if err != nil {
			return nil, err
		}
		cost.Add(after)
	}
	return cost, nil
}

// apart takes groups to the scheme each on its own.
func (r *runner) apart(ctx context.Context, ids []block.GroupID) (*group.Cost, error) {
	all := &group.Cost{Skipped: true}
	for _, id := range ids {
		cost, err := r.coordinator.transitionGroup(ctx, id, r.to, r.options)
		if errors.Is(err, errNoFit) {
			cost, err = r.copyGroup(ctx, id)
		}
		if err != nil {
			return nil, err
		}
		all.Skipped = all.Skipped && cost.Skipped
		all.Add(cost)
	}
	return all, nil
}

// planWidening is the plan by which a group gets its columns, as it is if all of them but one come from nodes of their own: at least one
// stays where it is.
func planWidening(w *way) (*stripe.Plan, error) {
	widening := stripe.Widening{}
	for column := w.before.Columns; column < w.after.Columns; column++ {
		at := stripe.Position(column)
		if column > w.before.Columns {
			at = w.after.Outside(w.step, column-w.before.Columns-1)
		}
		widening.Columns, widening.Sources = append(widening.Columns, column), append(widening.Sources, at)
	}
	return stripe.NewWidenPlan(w.after, w.step, widening)
}

// addRegions adds groups that become wider together to an estimate; cell is the sum of their cell sizes.
func addRegions(e *api.Estimate, w *way, widen, then *stripe.Plan, groups, cell int64) {
	before, after := int64(w.before.Cells()), int64(w.after.Cells())
	regions := groups / int64(w.region())
	kept := cell * int64(w.kept) / int64(w.region()) // of the cells of those that are kept
	e.Groups += regions * int64(w.region())
	e.GroupsWidened += regions * int64(w.region())
	e.Bytes += before * cell
	e.StoredBefore += (before + before/int64(w.from.K)*int64(w.from.M)) * cell
	e.StoredAfter += (after + after/int64(w.to.K)*int64(w.to.M)) * kept
	for _, plan := range []*stripe.Plan{widen, then} {
		if plan == nil {
			continue
		}
		e.BytesRead += int64(plan.Cost.BlocksRead) * kept
		e.BytesSent += int64(plan.Cost.BlocksSent) * kept
		e.BytesWritten += int64(plan.Cost.BlocksWritten) * kept
		e.PeakBytes += int64(plan.Cost.BlocksWritten) * kept
	}
	_, sent, _ := copied(before*cell, w.to)
	e.ReencodeBytesSent += sent
}
