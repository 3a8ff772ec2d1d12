package transition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/temperature"
	"github.com/restripe/restripe/agent/stripe"
)

// way is how groups of one shape take a scheme: along the ladder that they have, in place by parities alone, by the columns of others of
// their shape, by giving such back, or by copies of their objects.
type way struct {
	before, after *stripe.Layout // after: of the groups that are kept; nil where their objects are copied
	from, to      stripe.Scheme
	step          stripe.Scheme // where columns come or go: the scheme with as many parities as before, under which they do
	kept, taken   int           // of so many groups the one lot get the columns of the other; 0 where none come
	times         int           // as many times so many go together best, as each can get columns of one node then
	narrows       bool          // the last columns, which are of others, go back to these
}

// region is how many groups become wider together; 0 where they do not.
func (w *way) region() int { return w.kept + w.taken }

// isReshaping reports whether the groups take it together with others.
func (w *way) isReshaping() bool { return w.narrows || w.region() > 0 }

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
	if more == 0 || -more > s.Brought || !j.catalog.IsUpgraded() {
		return w, nil
	}
	step := stripe.Scheme{K: to.K, M: w.from.M}
	after, err := w.before.WithColumns(to.K, class.Ladder, class.Mode, w.from, step)
	if err != nil {
		return w, nil // its objects are copied
	}
	if more < 0 {
		w.after, w.step, w.narrows = after, step, true
	} else if kept, taken := stripe.Region(s.Columns, more); kept+taken <= maxRegion {
		w.after, w.step, w.kept, w.taken, w.times = after, step, kept, taken, 1
		if s.Columns+more <= maxRegion {
			w.times = more / taken
		}
	}
	return w, nil
}

// maxRegion is how many groups become wider or narrower together at most: one commit has all of them, and a change of any has them staged
// again.
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
		Scheme: of.Scheme, CellBytes: of.CellBytes, Packed: of.Packed, Home: catalog.LikenessOf(of.Home), Settled: of.Settled,
		Brought: of.Brought,
	}
}

func shapeOf(of *catalog.GroupSummary) temperature.Shape {
	return temperature.Shape{
		Class: of.Class, Scheme: of.Scheme, Ladder: of.Ladder, Mode: of.Mode, Columns: of.Columns, Version: of.LayoutVersion,
		Brought: len(of.Brought),
	}
}

// kindOf is what is alike of a group, however many of its columns were brought.
func kindOf(of *catalog.GroupSummary) kind {
	shape := shapeOf(of)
	shape.Brought = 0
	return kind{shape, of.CellBytes, of.Packed}
}

// listing is the groups that a transition takes as a whole, each by its way.
type listing struct {
	runner     *runner
	items      []item
	offLadder  int64 // written for a ladder without the scheme
	ways       map[temperature.Shape]*way
	gatherings map[kind]*gathering
	back       returning
}

func (r *runner) listing() *listing {
	return &listing{
		runner: r, ways: map[temperature.Shape]*way{}, gatherings: map[kind]*gathering{},
		back: returning{joined: map[block.GroupID]block.GroupID{}},
	}
}

// add adds a group.
func (l *listing) add(one item, group *catalog.GroupSummary) {
	shape, to := shapeOf(group), l.runner.to
	way, known := l.ways[shape]
	if !known {
		var err error
		if way, err = l.runner.coordinator.wayOf(&shape, to); err != nil {
			way = nil // it fails when it is worked on
		}
		l.ways[shape] = way
	}
	if one.way = way; way != nil && way.isOffLadder() {
		l.offLadder++
	}
	switch {
	case way == nil || !way.isReshaping():
		l.items = append(l.items, one)
	case way.narrows:
		l.back.add(one, group.Brought[len(group.Brought)+to.K-group.Columns:])
	default:
		kind := kindOf(group)
		if l.gatherings[kind] == nil {
			l.gatherings[kind] = &gathering{way: way, plain: map[catalog.Likeness][]item{}}
		}
		l.gatherings[kind].add(one, group)
	}
}

// end returns all of it in the order of groups, those that are reshaped together as one item.
func (l *listing) end(few bool) []item {
	items := append(l.items, l.back.regions()...)
	for _, gathering := range l.gatherings {
		items = append(items, gathering.regions(few)...)
	}
	slices.SortFunc(items, byGroup)
	return items
}

// gathering puts groups together that become wider together.
type gathering struct {
	way   *way
	plain map[catalog.Likeness][]item // by their homes
	wider []item                      // those that have columns of others already do not give away theirs
}

// add adds a group.
func (g *gathering) add(one item, of *catalog.GroupSummary) {
	if len(of.Brought) > 0 {
		g.wider = append(g.wider, one)
	} else {
		g.plain[of.Home] = append(g.plain[of.Home], one)
	}
}

// regions are the groups that become wider together, and those that were too few for that. Those that are dissolved together have the
// same homes as far as possible, so that as many of their columns are on one node as each of the others gets; and these have others, so
// that their parities, or nothing of them, are there. There are few in each where clients are known to change them meanwhile.
func (g *gathering) regions(few bool) (regions []item) {
	count := len(g.wider)
	for _, alike := range g.plain {
		count += len(alike)
	}
	for _, times := range []int{g.way.times, 1} {
		if few {
			times = 1
		}
		kept, taken := times*g.way.kept, times*g.way.taken
		for ; count >= kept+taken && count-len(g.wider) >= taken; count -= kept + taken {
			dissolved, of := g.draw(taken, nil)
			already := min(len(g.wider), kept)
			members := slices.Clone(g.wider[:already])
			g.wider = g.wider[already:]
			others, _ := g.draw(kept-already, of)
			regions = append(regions, regionOf(slices.Concat(members, others, dissolved)))
		}
	}
	rest, _ := g.draw(count-len(g.wider), nil)
	for _, one := range slices.Concat(g.wider, rest) {
		one.isTail = true
		regions = append(regions, one)
	}
	return regions
}

// draw takes so many groups that have no columns of others: of those homes first that most of them have, and last of some that are to be
// avoided; and returns their homes too.
func (g *gathering) draw(count int, avoid map[catalog.Likeness]bool) (drawn []item, of map[catalog.Likeness]bool) {
	of = map[catalog.Likeness]bool{}
	left := func(home catalog.Likeness) int {
		if avoid[home] {
			return 0
		}
		return len(g.plain[home])
	}
	homes := slices.SortedFunc(maps.Keys(g.plain), func(a, b catalog.Likeness) int {
		return cmp.Or(left(b)-left(a), byGroup(g.plain[a][0], g.plain[b][0]))
	})
	for _, home := range homes {
		if len(drawn) == count {
			break
		}
		some := min(count-len(drawn), len(g.plain[home]))
		drawn, of[home] = append(drawn, g.plain[home][:some]...), true
		if g.plain[home] = g.plain[home][some:]; len(g.plain[home]) == 0 {
			delete(g.plain, home)
		}
	}
	return drawn, of
}

// returning puts groups together that columns of the same others lie in, which go back to these.
type returning struct {
	items  []item
	origin []block.GroupID // of each: one of those whose columns lie in it
	joined map[block.GroupID]block.GroupID
}

// rootOf returns which of the groups stands for those whose columns lie together.
func (r *returning) rootOf(id block.GroupID) block.GroupID {
	for {
		next, joined := r.joined[id]
		if !joined {
			return id
		}
		id = next
	}
}

// add adds a group, whose last columns are these of others.
func (r *returning) add(one item, last []catalog.Column) {
	var first block.GroupID
	for _, column := range last {
		switch root := r.rootOf(column.Group); {
		case column == (catalog.Column{}):
		case first == (block.GroupID{}):
			first = root
		case root != first:
			r.joined[root] = first
		}
	}
	r.items, r.origin = append(r.items, one), append(r.origin, first)
}

// regions are those that become narrower together; those that are too many, each by itself.
func (r *returning) regions() (regions []item) {
	together := map[block.GroupID][]item{}
	for i, one := range r.items {
		root := r.rootOf(r.origin[i])
		together[root] = append(together[root], one)
	}
	for _, members := range together {
		if len(members) > maxRegion {
			regions = append(regions, members...)
		} else {
			regions = append(regions, regionOf(members))
		}
	}
	return regions
}

// regionOf makes one item of groups.
func regionOf(members []item) item {
	whole := item{way: members[0].way}
	for _, member := range members {
		whole.region = append(whole.region, member.group)
		whole.bytes += member.bytes
		if member.live != nil {
			if whole.live == nil {
				whole.live = map[block.GroupID]int64{}
			}
			maps.Copy(whole.live, member.live)
		}
	}
	whole.group = slices.MinFunc(whole.region, byID)
	return whole
}

// errBroken says that a group of a region has changed since they were put together.
var errBroken = errors.New("the groups are not alike any more")

// reshape has the groups of a region become wider or narrower together, and then take the scheme if that has other parities. errBroken says
// that other regions have to be made.
func (r *runner) reshape(ctx context.Context, work *item) (*group.Cost, error) {
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
		if is != alike || view.IsDissolved() || !r.selects(&view.Group) || work.live != nil && view.Live != work.live[id] {
			return nil, errBroken
		}
		if work.way.narrows || i < len(work.region)/work.way.region()*work.way.kept {
			region.Kept = append(region.Kept, view)
		} else {
			region.Taken = append(region.Taken, view)
		}
	}
	var err error
	if work.way.narrows {
		if region.Taken, err = r.returned(ctx, region.Kept); err != nil {
			return nil, err
		}
	}
	class, err := g.ladderFor(&region.Kept[0].Group, r.to)
	if err != nil {
		return nil, err
	}
	shape := group.Shape{Ladder: class.Ladder, Mode: class.Mode, Scheme: work.way.step}
	cost, err := g.groups.Reshape(ctx, region, shape, r.admit)
	if errors.Is(err, group.ErrNoRegion) {
		return r.apart(ctx, work.region, r.options)
	}
	if err != nil {
		return nil, err
	}
	if cost.Skipped { // one of them is not selected any more
		return nil, errBroken
	}
	cost.Reshaped = int64(len(work.region))
	if work.way.step != r.to {
		left := region.Kept
		if work.way.narrows {
			left = slices.Concat(region.Kept, region.Taken)
		}
		var ids []block.GroupID
		for _, view := range left {
			ids = append(ids, view.ID)
		}
		options := r.options
		options.admit = r.afford // they were selected under the scheme that they had
		after, err := r.apart(ctx, ids, options)
		if err != nil {
			return nil, err
		}
		cost.Add(after)
	}
	return cost, nil
}

// returned are the groups whose columns are the last ones of others, as far as they are still there.
func (r *runner) returned(ctx context.Context, kept []*catalog.GroupView) (returned []*catalog.GroupView, err error) {
	seen := map[block.GroupID]bool{}
	for _, view := range kept {
		for _, column := range view.Brought[max(0, r.to.K-view.Span()):] {
			if seen[column.Group] || column == (catalog.Column{}) {
				continue
			}
			seen[column.Group] = true
			origin, err := r.coordinator.catalog.Group(ctx, column.Group)
			if errors.Is(err, catalog.ErrNoGroup) {
				continue
			}
			if err != nil {
				return nil, err
			}
			returned = append(returned, origin)
		}
	}
	return returned, nil
}

// apart takes groups to the scheme each on its own.
func (r *runner) apart(ctx context.Context, ids []block.GroupID, how options) (*group.Cost, error) {
	all := &group.Cost{Skipped: true}
	for _, id := range ids {
		cost, err := r.coordinator.transitionGroup(ctx, id, r.to, how)
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

// planWidening is the plan by which a group gets its columns, as it is if as many of them come from each node as there are groups which
// are dissolved, and the nodes are none of its own.
func planWidening(w *way, times int) (*stripe.Plan, error) {
	widening := stripe.Widening{}
	for column := w.before.Columns; column < w.after.Columns; column++ {
		at := w.after.Outside(w.step, (column-w.before.Columns)/(times*w.taken))
		widening.Columns, widening.Sources = append(widening.Columns, column), append(widening.Sources, at)
	}
	return stripe.NewWidenPlan(w.after, w.step, widening)
}

// planReturn is the plan by which a group that was dissolved gets its columns back, as it is if all of them stay on their nodes.
func planReturn(w *way) (*stripe.Plan, error) {
	widening := stripe.Widening{}
	for column := range w.after.Columns {
		widening.Columns, widening.Sources = append(widening.Columns, column), append(widening.Sources, stripe.Position(column))
	}
	return stripe.NewWidenPlan(w.after, w.step, widening)
}

// planLoss is the plan by which a group loses its last columns.
func planLoss(w *way) (*stripe.Plan, error) {
	var lost []int
	for column := w.after.Columns; column < w.before.Columns; column++ {
		lost = append(lost, column)
	}
	return stripe.NewNarrowPlan(w.before, w.after, w.from, w.step, lost)
}

// share is a plan that some of the groups take, and the sum of the cell sizes of these.
type share struct {
	plan *stripe.Plan
	cell int64
}

// addReshaped adds groups that become wider or narrower together to an estimate; cell is the sum of their cell sizes, and left that of the
// groups that there are afterwards.
func addReshaped(e *api.Estimate, w *way, shares []share, groups, cell, left int64) {
	before, after := int64(w.before.Cells()), int64(w.after.Cells())
	e.Groups += groups
	e.GroupsReshaped += groups
	e.Bytes += before * cell
	e.StoredBefore += (before + before/int64(w.from.K)*int64(w.from.M)) * cell
	e.StoredAfter += (after + after/int64(w.to.K)*int64(w.to.M)) * left
	for _, s := range shares {
		e.BytesRead += int64(s.plan.Cost.BlocksRead) * s.cell
		e.BytesSent += int64(s.plan.Cost.BlocksSent) * s.cell
		e.BytesWritten += int64(s.plan.Cost.BlocksWritten) * s.cell
		e.PeakBytes += int64(s.plan.Cost.BlocksWritten) * s.cell
	}
	_, sent, _ := copied(before*cell, w.to)
	e.ReencodeBytesSent += sent
}

// sharesOf returns which plans groups take that become wider or narrower together, so many times as many at once as it takes; cell is the
// sum of their cell sizes, and left that of the groups that there are afterwards.
func sharesOf(w *way, t *api.Transition, times int, cell int64) (shares []share, left int64, err error) {
	add := func(plan *stripe.Plan, planErr error, cell int64) {
		shares, err = append(shares, share{plan, cell}), errors.Join(err, planErr)
	}
	if w.narrows {
		back := cell * int64(w.before.Columns-w.after.Columns) / int64(w.after.Columns)
		left = cell + back
		plan, planErr := planReturn(w)
		add(plan, planErr, back)
		plan, planErr = planLoss(w)
		add(plan, planErr, cell)
	} else {
		left = cell * int64(w.kept) / int64(w.region())
		plan, planErr := planWidening(w, times)
		add(plan, planErr, left)
	}
	if w.step != w.to && err == nil {
		after, layoutErr := w.after.WithLadder(append(stripe.Ladder{w.to}, w.after.Ladder...), w.after.Mode, w.to)
		if layoutErr != nil {
			return nil, 0, layoutErr
		}
		plan, planErr := planOf(w.after, after, w.step, w.to, t)
		add(plan, planErr, left)
	}
	return shares, left, err
}
