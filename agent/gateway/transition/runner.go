package transition

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/trace"
	"github.com/restripe/restripe/agent/wire"
)

// throttle changes the limits of a running transition. It changes nothing and reports false if that is ending, when it
// would come too late for the last save.
func (r *runner) throttle(request api.ThrottleRequest) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.body.Transition.State != api.TransitionRunning || r.wanted != api.TransitionRunning {
		return false
	}
	limits := ratesOf(&r.body.Transition).Changed(request)
	setLimits(&r.body.Transition, limits)
	r.pacer.Set(limits, time.Now())
	return true
}

// setLimits gives a transition the limits.
func setLimits(t *api.Transition, limits group.Rates) {
	t.BytesPerSecond, t.NodeBytesPerSecond, t.DomainBytesPerSecond = limits.Total, limits.Node, limits.Domain
}

// stop has the runner end in the given state once the groups under way are finished.
func (r *runner) stop(wanted api.TransitionState) {
	r.mutex.Lock()
	r.wanted = wanted
	r.mutex.Unlock()
	r.Halt()
}

// progress is the transition as of now.
func (r *runner) progress() api.Transition {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	t := r.body.Transition
	t.Baselines = maps.Clone(t.Baselines)
	if !t.State.Final() {
		t.ElapsedSeconds = r.Elapsed()
	}
	t.ETASeconds = -1
	if t.State == api.TransitionRunning {
		t.ETASeconds = job.ETA(t.BytesDone, t.BytesTotal, t.ElapsedSeconds)
	}
	return t
}

// jobConcurrency is how many groups of one transition are under way at once.
const jobConcurrency = 4

// run works until the transition ends, is halted, or the gateway closes. In the last case the record keeps saying
// "running", which is what the next start resumes.
func (r *runner) run(ctx context.Context) {
	err := r.Saving(ctx, time.Second, func(ctx context.Context) { r.save(ctx) }, r.work)
	if ctx.Err() != nil {
		r.save(context.WithoutCancel(ctx))
		return
	}
	t := r.progress()
	now := time.Now().UTC()
	r.mutex.Lock()
	state := &r.body.Transition
	state.ElapsedSeconds = t.ElapsedSeconds
	switch {
	case r.wanted != api.TransitionRunning:
		state.State = r.wanted
	case err != nil:
		state.State, state.Error = api.TransitionFailed, err.Error()
	default:
		state.State, state.Error = api.TransitionDone, ""
	}
	if state.State.Final() {
		state.Finished = &now
	}
	r.mutex.Unlock()
	for try := 0; !r.save(ctx) && group.Pause(ctx, try) == nil; try++ {
	}
}

// save writes the record. Where another gateway changed it, that gateway's wish is taken over and obeyed.
func (r *runner) save(ctx context.Context) bool {
	t := r.progress()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.taken {
		return true // it is another gateway's to write
	}
	body := r.body
	body.Transition.ElapsedSeconds, body.Transition.ETASeconds = t.ElapsedSeconds, t.ETASeconds
	job := r.job
	err := saveJob(ctx, r.coordinator.catalog.SaveJob, &job, &body)
	if err == nil {
		r.job, r.saved = job, ratesOf(&body.Transition)
		return true
	}
	if errors.Is(err, catalog.ErrStale) {
		fresh, readErr := r.coordinator.catalog.Job(ctx, r.job.ID)
		var theirs jobBody
		if readErr == nil && json.Unmarshal(fresh.Body, &theirs) == nil {
			r.job = *fresh
			r.taken = fresh.Owner != r.coordinator.id
			if theirs.Transition.State != api.TransitionRunning && r.wanted == api.TransitionRunning {
				r.wanted = theirs.Transition.State
			}
			if limits := ratesOf(&theirs.Transition); limits != r.saved { // it was throttled there
				setLimits(&r.body.Transition, limits)
				r.pacer.Set(limits, time.Now())
				r.saved = limits
			}
			if r.taken || r.wanted != api.TransitionRunning {
				r.Halt()
			}
		}
		return false
	}
	if ctx.Err() == nil {
		r.coordinator.log.Warn("saving the progress of a transition", "transition", r.job.ID, "cause", err)
	}
	return false
}

// item is one piece of work: a group to take along in place, groups to make wider or narrower together, or objects to move out of a group
// they share.
type item struct {
	group   block.GroupID // the first of them
	bytes   int64
	rewrite []string        // keys
	region  []block.GroupID // groups that become wider together, first those that are kept, as many as its way says; or narrower
	way     *way
	live    map[block.GroupID]int64 // of groups of a region which are selected by what is in them: so many extents, all of them selected
	isTail  bool                    // too few of its kind are left to become wider
}

// groups are all groups of an item.
func (i *item) groups() []block.GroupID {
	if i.region != nil {
		return i.region
	}
	return []block.GroupID{i.group}
}

// work finds what is selected and takes it to the scheme, a few groups at a time. Groups that could not be taken along together as one of
// them has changed are put together anew, with those that were left over, and fewer at a time; what is left over at the end is taken along
// by other ways.
func (r *runner) work(ctx context.Context) error {
	for few := false; ; few = true {
		items, err := r.find(ctx, few)
		if err != nil {
			return err
		}
		r.mutex.Lock()
		t := &r.body.Transition
		t.GroupsTotal, t.BytesTotal = t.GroupsDone+t.GroupsSkipped, t.BytesDone
		for _, item := range items {
			t.GroupsTotal += int64(len(item.groups()))
			t.BytesTotal += item.bytes
		}
		r.mutex.Unlock()
		w := workload{runner: r, items: items, finished: make([]bool, len(items))}
		w.carryOut(ctx, false)
		if w.broken > 0 && len(w.failures) == 0 && !r.Halted() && ctx.Err() == nil {
			continue
		}
		w.carryOut(ctx, true)
		if len(w.failures) > 0 {
			return fmt.Errorf("%d of %d groups could not be taken to %s; the first: %w", len(w.failures), len(items), r.to, w.failures[0])
		}
		return nil
	}
}

// workload is what is left of a transition, in the order of its groups.
type workload struct {
	runner   *runner
	items    []item
	mutex    sync.Mutex // of what follows
	finished []bool
	upTo     int // items at the beginning that are finished
	failures []error
	broken   int // items that were not worked on, as their groups are not alike any more
}

// carryOut works on those that are left over, or on the others.
func (w *workload) carryOut(ctx context.Context, tails bool) {
	w.runner.mutex.Lock()
	concurrency := cmp.Or(w.runner.body.Transition.Concurrency, jobConcurrency) // none in records of an earlier release
	w.runner.mutex.Unlock()
	var workers sync.WaitGroup
	next := 0
	for range max(1, min(concurrency, maxConcurrency)) {
		workers.Go(func() {
			for {
				w.mutex.Lock()
				for next < len(w.items) && w.items[next].isTail != tails {
					next++
				}
				if next == len(w.items) || w.runner.Halted() || ctx.Err() != nil {
					w.mutex.Unlock()
					return
				}
				index := next
				next++
				w.mutex.Unlock()
				w.note(index, w.runner.retry(ctx, &w.items[index]))
			}
		})
	}
	workers.Wait()
}

// note takes note of what became of an item.
func (w *workload) note(index int, err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	switch {
	case errors.Is(err, group.ErrHalted): // still to do at the next run
	case errors.Is(err, errBroken):
		w.broken++
	case err != nil:
		w.failures = append(w.failures, err)
	default:
		w.finished[index] = true
	}
	for w.upTo < len(w.items) && w.finished[w.upTo] {
		w.upTo++
	}
	if w.upTo > 0 {
		w.runner.mutex.Lock()
		w.runner.body.Cursor = w.items[w.upTo-1].group
		w.runner.mutex.Unlock()
	}
}

// find lists the work that is left, with groups that go together in twos and threes, or as many as is best.
func (r *runner) find(ctx context.Context, few bool) ([]item, error) {
	g := r.coordinator
	r.mutex.Lock()
	selector, cursor := r.body.Transition.Selector, r.body.Cursor
	r.mutex.Unlock()
	switch {
	case r.becomes.into != "":
		return r.findInto(ctx)
	case selector.Class != "":
		return r.findInClass(ctx, cursor, few)
	}
	selected := map[block.GroupID][]string{}
	extents := map[block.GroupID]int64{}
	note := func(object *catalog.Object) {
		for _, extent := range object.Extents {
			extents[extent.Group]++
			keys := selected[extent.Group]
			if len(keys) == 0 || keys[len(keys)-1] != object.Key {
				selected[extent.Group] = append(keys, object.Key)
			}
		}
	}
	var err error
	if selector.Key64 != "" {
		var key string
		if key, err = api.DecodeKey(selector.Key64); err == nil {
			var snapshot *catalog.Snapshot
			if snapshot, err = g.catalog.Snapshot(ctx, key); err == nil {
				note(&snapshot.Object)
			} else if errors.Is(err, catalog.ErrNoObject) {
				err = nil // deleted since: nothing is left to do
			}
		}
	} else {
		var prefix string
		if prefix, err = api.DecodeKey(*selector.Prefix64); err == nil {
			for object, err := range g.catalog.AllObjects(ctx, prefix) {
				if err != nil {
					return nil, err
				}
				note(object)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	list := r.listing()
	for id, keys := range selected {
		view, err := g.catalog.Group(ctx, id)
		if errors.Is(err, catalog.ErrNoGroup) {
			continue
		}
		if err != nil {
			return nil, err
		}
		isThere, err := r.isThere(ctx, view)
		if err != nil {
			return nil, err
		}
		if isThere {
			continue
		}
		work := item{group: id, bytes: bytesOf(view.LayoutVersion, view.Ladder, view.Mode, view.Columns, view.CellBytes)}
		switch {
		case view.IsDissolved() || (view.Packed || len(view.Brought) > 0) && view.Live > extents[id]:
			work.rewrite = keys // what else lies there stays as it is
		case len(view.Brought) == 0 && !view.Open && view.Live == extents[id]:
			work.live = map[block.GroupID]int64{id: view.Live}
			list.add(work, summaryOf(&view.Group))
			continue
		}
		list.items = append(list.items, work)
	}
	return list.end(few), nil
}

// isThere reports whether a group is under the scheme, or all of those that the columns of a dissolved one lie in.
func (r *runner) isThere(ctx context.Context, view *catalog.GroupView) (bool, error) {
	if !view.IsDissolved() {
		return view.Scheme == r.to.String(), nil
	}
	for _, lies := range view.Lies {
		if lies == (catalog.Column{}) {
			continue
		}
		in, err := r.coordinator.catalog.Group(ctx, lies.Group)
		if errors.Is(err, catalog.ErrNoGroup) {
			return false, nil // it has come back meanwhile
		}
		if err != nil || in.Scheme != r.to.String() {
			return false, err
		}
	}
	return true, nil
}

func byGroup(a, b item) int { return byID(a.group, b.group) }

func byID(a, b block.GroupID) int { return cmp.Compare(a.String(), b.String()) }

// findInClass lists the groups of a class that are selected now, those that become wider together as one item, and counts those that were
// written for a ladder without the scheme.
func (r *runner) findInClass(ctx context.Context, cursor block.GroupID, few bool) ([]item, error) {
	list := r.listing()
	for page, err := range r.coordinator.catalog.GroupSummaries(ctx, cursor) {
		if err != nil {
			return nil, err
		}
		for i := range page {
			group := &page[i]
			if group.Class != r.chosen.class || !r.coordinator.selects(r.chosen, group) {
				continue
			}
			bytes := bytesOf(group.LayoutVersion, group.Ladder, group.Mode, group.Columns, group.CellBytes)
			list.add(item{group: group.ID, bytes: bytes}, group)
		}
	}
	items := list.end(few)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if cursor == (block.GroupID{}) {
		// When they are listed again, some of those that were found first are there already.
		r.body.Transition.GroupsOffLadder = max(list.offLadder, r.body.Transition.GroupsOffLadder)
	}
	return items, nil
}

// bytesOf is the size of the cells of a group, 0 where its ladder cannot be read, which its transition will say.
func bytesOf(version int, ladder, mode string, columns, cellBytes int) int64 {
	layout, err := stripe.ParseLayout(version, ladder, mode, columns)
	if err != nil {
		return 0
	}
	return int64(layout.Cells()) * int64(cellBytes)
}

// oddTries is how often a failure of no known kind is tried again.
const oddTries = 5

// retry takes one item to the scheme. What passes by itself (other writers, nodes that are away) is waited for; blocks
// that are lost are rebuilt first, and slots on nodes that take nothing are moved first. It gives up on what no waiting
// cures.
func (r *runner) retry(ctx context.Context, work *item) error {
	defer r.waits(work.group, nil)
	odd := 0
	var full *group.NoRoomError
	for try := 0; ; try++ {
		r.mutex.Lock()
		r.body.Transition.Attempts++
		r.mutex.Unlock()
		cost, err := r.once(ctx, work)
		if err == nil {
			r.count(work, cost)
			return nil
		}
		if ctx.Err() != nil || r.Halted() {
			return group.ErrHalted
		}
		if errors.Is(err, errBroken) {
			return err
		}
		switch {
		case errors.Is(err, group.ErrNotWhole), member.GoneBlock(err):
			for _, id := range work.groups() {
				if _, repairErr := r.coordinator.repairs.RepairGroup(ctx, id, true); repairErr != nil {
					if errors.Is(repairErr, api.ErrDataLoss) {
						return fmt.Errorf("group %s: %w", id, repairErr)
					}
					err = errors.Join(err, repairErr)
				}
			}
		case errors.As(err, &full):
			for _, id := range work.groups() {
				if moveErr := r.coordinator.relocator.MakeWay(ctx, id, full, r.options.admit); moveErr != nil {
					err = moveErr
				}
			}
		case errors.Is(err, api.ErrConflict), errors.Is(err, catalog.ErrStale), errors.Is(err, wire.ErrBusy):
		case member.Unanswered(err), errors.Is(err, api.ErrUnavailable), errors.Is(err, api.ErrTooFewNodes), errors.Is(err, api.ErrUnknownOutcome), group.IsFull(err):
		case errors.Is(err, api.ErrBadRequest), errors.Is(err, api.ErrDataLoss):
			return fmt.Errorf("group %s: %w", work.group, err)
		default:
			if odd++; odd == oddTries {
				return fmt.Errorf("group %s: %w", work.group, err)
			}
		}
		r.waits(work.group, err)
		if err := r.wait(ctx, try); err != nil {
			return group.ErrHalted
		}
	}
}

// waits takes note of why a group waits, nil once it does not any more. What is told of the transition is how many do, and why
// the last of them does.
func (r *runner) waits(id block.GroupID, cause error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	told := &r.body.Transition.Error
	if cause != nil {
		if r.stuck == nil {
			r.stuck = map[block.GroupID]bool{}
		}
		r.stuck[id] = true
		*told = fmt.Sprintf("waiting with %d groups: %v", len(r.stuck), cause)
		return
	}
	if delete(r.stuck, id); len(r.stuck) == 0 {
		*told = ""
	}
}

// wait is pause, cut short when the runner is halted.
func (r *runner) wait(ctx context.Context, try int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-r.Halting():
			cancel()
		case <-ctx.Done():
		}
	}()
	return group.Pause(ctx, try)
}

// objectsPerMove bounds the objects moved in one attempt: one that is written meanwhile makes all of them try again.
const objectsPerMove = 64

func (r *runner) once(ctx context.Context, work *item) (cost *group.Cost, err error) {
	ctx, span := trace.Begin(ctx, "transition group")
	if span != nil {
		span.Text("restripe.transition", r.id).Text("restripe.group", work.group.String()).Text("restripe.scheme", r.to.String())
	}
	defer func() { span.End(err) }()
	if r.becomes.into != "" {
		return r.reclassGroup(ctx, work.group)
	}
	if work.region != nil {
		return r.reshape(ctx, work)
	}
	if work.rewrite == nil {
		return r.apart(ctx, work.groups(), r.options)
	}
	byClass := map[string][]*catalog.Snapshot{}
	cost = &group.Cost{}
	for _, key := range work.rewrite {
		snapshot, err := r.coordinator.catalog.Snapshot(ctx, key)
		if errors.Is(err, catalog.ErrNoObject) {
			continue
		}
		if err != nil {
			return nil, err
		}
		switch {
		case snapshot.Groups[work.group] == nil || isUnder(snapshot, r.to):
		case len(snapshot.Object.Extents) == 1 && snapshot.Object.Extents[0].Column != catalog.WholeGroup:
			byClass[snapshot.Object.Class] = append(byClass[snapshot.Object.Class], snapshot)
		default:
			if err := r.copyLarge(ctx, work.group, key, cost); err != nil {
				return nil, err
			}
		}
	}
	for name, snapshots := range byClass {
		class, err := r.classOf(name)
		if err != nil {
			return nil, err
		}
		for part := range slices.Chunk(snapshots, objectsPerMove) {
			if err := r.coordinator.objects.MoveObjects(ctx, class, r.to, part); err != nil {
				return nil, err
			}
			cost.Count(part...)
		}
	}
	return cost, nil
}

// isUnder reports whether all columns of the groups of an object lie in groups that are under a scheme.
func isUnder(snapshot *catalog.Snapshot, to stripe.Scheme) bool {
	for _, group := range snapshot.Groups {
		if !group.IsDissolved() && group.Scheme != to.String() {
			return false
		}
	}
	return true
}

func (r *runner) count(work *item, cost *group.Cost) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	t := &r.body.Transition
	t.Error = ""
	t.BytesDone += work.bytes
	t.ObjectsRewritten += cost.Objects
	t.BytesRewritten += cost.Copied
	if cost.Skipped {
		t.GroupsSkipped += int64(len(work.groups()))
		return
	}
	t.GroupsDone += int64(len(work.groups()))
	t.GroupsReshaped += cost.Reshaped
	t.Predicted.Add(cost.Predicted)
	t.Measured.Add(cost.Measured)
	r.coordinator.moved(cost.Measured)
	if t.Baselines == nil {
		t.Baselines = map[string]int64{}
	}
	for name, bytes := range cost.Baselines {
		t.Baselines[name] += bytes
	}
}
