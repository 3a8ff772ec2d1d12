package transition

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/temperature"
	"github.com/restripe/restripe/agent/stripe"
)

// Estimate returns what a transition of a class would cost, without looking at any group: the last heat report says how
// many groups of which size there are, and the proved plan what each costs. ErrUnavailable until there is a report. What taking
// objects into a class costs is found out by a look at them.
func (j *Coordinator) Estimate(ctx context.Context, request api.TransitionRequest) (api.Estimate, error) {
	t, to, err := transitionOf(&request)
	if err != nil {
		return api.Estimate{}, err
	}
	if t.Into != "" {
		return j.estimateInto(ctx, &request)
	}
	if t.Selector.Class == "" {
		return api.Estimate{}, api.Refuse(api.ErrBadRequest, "estimates are of classes; select by class")
	}
	if err := j.checkTransition(ctx, &t, to); err != nil {
		return api.Estimate{}, err
	}
	chosen := selectionOf(&t, to)
	shapes, at, err := j.shapes(ctx, chosen)
	if err != nil {
		return api.Estimate{}, err
	}
	plans := map[string]*stripe.Plan{}
	estimate := api.Estimate{At: at.UTC()}
	for s, counts := range shapes {
		if s.Class != chosen.class || !chosen.covers(s.Scheme) {
			continue
		}
		groups, cell := groupsChosen(counts, chosen)
		if groups == 0 {
			continue
		}
		way, err := j.wayOf(&s, to)
		if err != nil {
			return api.Estimate{}, err
		}
		if err := addGroups(&estimate, plans, &s, way, &t, groups, cell); err != nil {
			return api.Estimate{}, err
		}
	}
	if len(plans) == 0 {
		if err := j.planWithoutGroups(chosen, &t, to, plans); err != nil {
			return api.Estimate{}, err
		}
	}
	estimate.PlanHash = hashAll(plans)
	return estimate, nil
}

// shapes are the groups of the last walk, or, as that judged what is settled by the dwell of the class, of one made for another.
func (j *Coordinator) shapes(ctx context.Context, chosen *selection) (map[temperature.Shape]*temperature.ShapeTally, time.Time, error) {
	class, err := j.classes.For("", chosen.class)
	if err == nil && chosen.settled > 0 && chosen.settled != class.Dwell && !j.asWalked(chosen) {
		return j.heat.ShapesUnder(ctx, chosen.class, chosen.settled)
	}
	shapes, at, known := j.heat.Shapes()
	if !known {
		return nil, time.Time{}, api.Refuse(api.ErrUnavailable, "the first walk over the groups has not ended; try again in a while")
	}
	return shapes, at, nil
}

// asWalked reports whether the walks judge what is settled as a selection does: by the prices of the class.
func (j *Coordinator) asWalked(s *selection) bool {
	from, err := stripe.ParseScheme(s.from)
	if err != nil {
		return false
	}
	to, err := stripe.ParseScheme(s.to)
	return err == nil && j.heat.StayOf(s.class, from, to) == s.settled
}

// groupsChosen returns how many groups of a shape a selection takes by heat and dwell, and the sum of their cell sizes.
func groupsChosen(c *temperature.ShapeTally, s *selection) (groups, cell int64) {
	for i := range api.HeatBuckets {
		if api.HeatEdge(i+1) <= s.atLeast || api.HeatEdge(i) >= s.below {
			continue
		}
		if s.settled > 0 {
			groups, cell = groups+c.SettledGroups[i], cell+c.SettledCells[i]
		} else {
			groups, cell = groups+c.Groups[i], cell+c.Cells[i]
		}
	}
	return groups, cell
}

// addGroups adds groups of a shape to an estimate, and their plans by what names these; cell is the sum of their cell sizes.
func addGroups(
	e *api.Estimate, plans map[string]*stripe.Plan, s *temperature.Shape, w *way, t *api.Transition, groups, cell int64,
) error {
	if w.isOffLadder() {
		e.GroupsOffLadder += groups
	}
	if w.after != nil && !w.isReshaping() {
		plan, err := planOf(w.before, w.after, w.from, w.to, t)
		if err != nil {
			return err
		}
		plans[hashOf(plan)] = plan
		addPlan(e, plan, groups, cell)
		return nil
	}
	var at []int // so many times as many at once as it takes
	switch {
	case w.narrows:
		at = []int{1}
	case w.region() > 0 && s.Brought == 0: // else they give no columns, and there may be none of others for them
		at = []int{w.times, 1}
	}
	for _, times := range at {
		together := groups - groups%int64(max(1, times*w.region()))
		if together == 0 {
			continue
		}
		of := cell * together / groups
		shares, left, err := sharesOf(w, t, times, of)
		if err != nil {
			return err
		}
		for _, share := range shares {
			plans[hashOf(share.plan)] = share.plan
		}
		addReshaped(e, w, shares, together, of, left)
		groups, cell = groups-together, cell-of
	}
	if groups > 0 {
		plans[fmt.Sprintf("copies of %s of %s to %s", w.from, s.Ladder, w.to)] = nil
		addCopies(e, w.before, w.from, w.to, groups, cell)
	}
	return nil
}

func planOf(before, layout *stripe.Layout, from, to stripe.Scheme, t *api.Transition) (*stripe.Plan, error) {
	if t.Planner == stripe.PlannerCopyPool {
		return nil, api.Refuse(api.ErrBadRequest, "planner %s copies to a new pool and serves comparison only; choose another planner", t.Planner)
	}
	plan, err := stripe.NewPlanBetween(before, layout, from, to, t.Planner, stripe.Objective(t.Objective))
	if err != nil {
		return nil, fmt.Errorf("planning %s -> %s: %w", from, to, err)
	}
	if !plan.Proved {
		return nil, fmt.Errorf("plan %s of %s -> %s was not proved; no plan runs unproved", t.Planner, from, to)
	}
	return plan, nil
}

// planWithoutGroups adds the plan for new groups of the class where a transition names what it comes from.
func (j *Coordinator) planWithoutGroups(chosen *selection, t *api.Transition, to stripe.Scheme, plans map[string]*stripe.Plan) error {
	class, err := j.classes.For("", chosen.class)
	if err != nil || chosen.from == "" {
		return err
	}
	from, err := stripe.ParseScheme(chosen.from)
	if err != nil || !class.Ladder.Contains(from) {
		return err
	}
	layout, err := stripe.NewLayout(class.Ladder, 0, class.Mode)
	if err != nil {
		return err
	}
	plan, err := planOf(layout, layout, from, to, t)
	if err != nil {
		return err
	}
	plans[hashOf(plan)] = plan
	return nil
}

// addPlan adds groups that a plan takes along; cell is the sum of their cell sizes.
func addPlan(e *api.Estimate, plan *stripe.Plan, groups, cell int64) {
	cells := int64(plan.Layout.Cells())
	stored := func(s stripe.Scheme) int64 { return (cells + cells/int64(s.K)*int64(s.M)) * cell }
	e.Groups += groups
	e.Bytes += cells * cell
	e.BytesRead += int64(plan.Cost.BlocksRead) * cell
	e.BytesSent += int64(plan.Cost.BlocksSent) * cell
	e.BytesWritten += int64(plan.Cost.BlocksWritten) * cell
	e.PeakBytes += int64(plan.Cost.BlocksWritten) * cell
	e.StoredBefore += stored(plan.From)
	e.StoredAfter += stored(plan.To)
	if baseline := stripe.Baselines(plan.Layout, plan.From, plan.To)[stripe.PlannerReencode]; baseline != nil {
		e.ReencodeBytesSent += int64(baseline.BlocksSent) * cell
	}
}

// addCopies adds groups whose objects are copied; cell is the sum of their cell sizes.
func addCopies(e *api.Estimate, layout *stripe.Layout, from, to stripe.Scheme, groups, cell int64) {
	bytes := int64(layout.Cells()) * cell
	read, sent, written := copied(bytes, to)
	e.Groups += groups
	e.GroupsCopied += groups
	e.Bytes += bytes
	e.BytesRead += read
	e.BytesSent += sent
	e.BytesWritten += written
	e.PeakBytes += written
	e.StoredBefore += bytes + bytes/int64(from.K)*int64(from.M)
	e.StoredAfter += written
	e.ReencodeBytesSent += sent
}

// hashOf names a plan by everything that it does.
func hashOf(plan *stripe.Plan) string {
	sum := sha256.New()
	is := []any{
		plan.Planner, plan.Objective, plan.Layout.Ladder.String(), plan.Layout.Mode, plan.Layout.Columns, plan.Layout.Version,
		plan.From.String(), plan.To.String(), plan.Programs, plan.Messages,
	}
	if plan.Before != plan.Layout {
		is = append(is, plan.Before.Ladder.String(), plan.Before.Mode)
	}
	err := json.NewEncoder(sum).Encode(is)
	if err != nil {
		panic("encoding a plan: " + err.Error()) // invariant: plain structs, and hashes take everything
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// hashAll names several plans, in whatever order they were found; "" where there is none.
func hashAll(plans map[string]*stripe.Plan) string {
	hashes := slices.Sorted(maps.Keys(plans))
	if len(hashes) < 2 {
		return cmp.Or(append(hashes, "")...)
	}
	sum := sha256.New()
	for _, hash := range hashes {
		sum.Write([]byte(hash))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
