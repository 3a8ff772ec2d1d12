package compact

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/arrange"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/heat/sketch"
	"github.com/restripe/restripe/agent/stripe"
)

// run is one pass being carried out here.
type run struct {
	*Compactor
	*job.Run
	pacer *group.Pacer

	failing []error // of groups that failed before, as far as the look has come
	now     int64   // Unix milliseconds as of which the look says how old groups are

	mutex sync.Mutex // of what follows
	saved catalog.Job
	state api.Compaction
	taken bool // the record is somebody else's now
	young bool // groups had more dead than their class allows, and had not settled

	cooled []cooling // where hot keys lie of which some have cooled, as far as the look has come
}

// Bounds on what is moved into one group.
const (
	MostObjects = 2048
	mostNames   = 1 << 20
)

// The share of the time that a pass works: while no client asks for anything, and otherwise.
const (
	shareIdle = 0.8
	shareBusy = 0.2
)

// run carries out the pass in the record until it ends or is stopped.
func (c *Compactor) run(ctx context.Context, record catalog.Job, compaction api.Compaction) error {
	rates := group.Rates{Total: compaction.BytesPerSecond}
	r := &run{
		Compactor: c, Run: job.NewRun(compaction.ElapsedSeconds), saved: record, state: compaction,
		pacer: group.NewPacer(rates, func(id block.NodeID) string { return string(id) }),
	}
	c.mutex.Lock()
	c.running = r
	c.mutex.Unlock()
	defer func() {
		c.mutex.Lock()
		c.running = nil
		c.mutex.Unlock()
		r.End()
	}()
	err := r.Saving(ctx, saved, func(ctx context.Context) {
		if err := r.save(ctx); err != nil && ctx.Err() == nil {
			c.Logger.Warn("saving the progress of a compaction", "cause", err)
		}
	}, r.work)
	r.update(func(compaction *api.Compaction) {
		compaction.ElapsedSeconds = r.Elapsed()
		if err != nil && ctx.Err() == nil {
			compaction.Error = err.Error()
		}
		if !r.Halted() && ctx.Err() == nil {
			now := time.Now().UTC()
			compaction.State, compaction.Finished, compaction.ETASeconds = api.CompactionIdle, &now, 0
		}
		if compaction.ObjectsMoved > 0 {
			c.Logger.Info("compacted", "objects", compaction.ObjectsMoved, "spliced", compaction.ObjectsSpliced, "groups", compaction.GroupsDone)
		}
	})
	return r.save(context.WithoutCancel(ctx))
}

func (r *run) update(change func(*api.Compaction)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	change(&r.state)
}

// progress is the compaction as of now.
func (r *run) progress() api.Compaction {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	compaction := r.state
	compaction.Classes = slices.Clone(compaction.Classes)
	if compaction.State == api.CompactionRunning {
		compaction.ElapsedSeconds = r.Elapsed()
		compaction.ETASeconds = job.ETA(compaction.BytesDone, compaction.BytesTotal, compaction.ElapsedSeconds)
	}
	return compaction
}

// save writes the record. Where somebody else has changed it, the run ends.
func (r *run) save(ctx context.Context) error {
	now := r.progress()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.taken {
		return nil
	}
	record := r.saved
	err := r.Compactor.save(ctx, &record, &now)
	switch {
	case err == nil:
		r.saved = record
	case errors.Is(err, catalog.ErrStale):
		r.taken = true
		r.Halt()
		return nil
	}
	return err
}

// kind is what groups have in common whose objects may be moved into one.
type kind struct{ class, scheme string }

// work looks at all packed groups and empties those that are chosen.
func (r *run) work(ctx context.Context) error {
	kinds, classes, err := r.look(ctx)
	if err != nil || r.Halted() {
		return err // what was seen is not all
	}
	if r.young && r.byDeath.Load() {
		r.Died() // of what died in them nobody tells again
	}
	now := time.Now().UTC()
	chosen := map[kind][]arrange.Candidate{}
	cooled := r.cooled
	r.update(func(compaction *api.Compaction) {
		compaction.Looked, compaction.Classes = &now, classes
		compaction.GroupsTotal, compaction.GroupsDone, compaction.BytesTotal, compaction.BytesDone = 0, 0, 0, 0
		compaction.Failed, compaction.Error = r.earlier()
		for i := range cooled {
			compaction.GroupsTotal++
			compaction.BytesTotal += cooled[i].Live
		}
		for of, groups := range kinds {
			class := r.Classes.Named(of.class)
			if class == nil {
				continue
			}
			if chosen[of] = arrange.Choose(groups, class.DeadAtMost, compaction.Everything); !arrange.IsWorth(chosen[of]) {
				delete(chosen, of)
			}
			for i := range chosen[of] {
				compaction.GroupsTotal++
				compaction.BytesTotal += chosen[of][i].Live
			}
		}
	})
	r.metrics.show(classes)
	if err := r.cool(ctx, cooled); err != nil {
		return err
	}
	order := slices.SortedFunc(maps.Keys(chosen), func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.scheme, b.scheme))
	})
	for _, of := range order {
		if err := r.empty(ctx, of, chosen[of]); err != nil {
			return err
		}
	}
	return nil
}

// look reads how full the packed groups are that have been there for a while.
func (r *run) look(ctx context.Context) (map[kind][]arrange.Candidate, []api.CompactionClass, error) {
	kinds, classes := map[kind][]arrange.Candidate{}, map[string]*api.CompactionClass{}
	r.failing, r.cooled = nil, nil
	r.now = r.options.Clock().UnixMilli()
	settled := r.now - max(0, r.options.Settled).Milliseconds()
	if r.everything() {
		settled = math.MaxInt64
	}
	began := time.Now()
	for page, err := range r.Catalog.PackedGroups(ctx) {
		if err != nil {
			return nil, nil, err
		}
		for i := range page {
			r.lookAt(&page[i], settled, kinds, classes)
		}
		if r.Halted() || !job.Rest(ctx, time.Since(began), r.share()) {
			return nil, nil, ctx.Err()
		}
		began = time.Now()
	}
	list := make([]api.CompactionClass, 0, len(classes))
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		list = append(list, *classes[name])
	}
	return kinds, list, nil
}

// everything reports whether somebody asked for all that can be given back.
func (r *run) everything() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.state.Everything
}

func (r *run) lookAt(fill *catalog.GroupFill, settled int64, kinds map[kind][]arrange.Candidate, classes map[string]*api.CompactionClass) {
	layout, err := stripe.ParseLayout(fill.LayoutVersion, fill.Ladder, fill.Mode, fill.Columns)
	if err != nil || fill.Live == 0 {
		return // what cannot be understood a scrub tells of; what nothing lives in is freed by itself
	}
	class := r.Classes.Named(fill.Class)
	of := classes[fill.Class]
	if of == nil {
		of = &api.CompactionClass{Name: fill.Class}
		if class != nil {
			of.DeadAtMostPercent = class.DeadAtMost
		}
		classes[fill.Class] = of
	}
	found := arrange.Candidate{
		ID: fill.ID, Capacity: int64(layout.Cells()) * int64(fill.CellBytes), Live: fill.Bytes, Extents: fill.Live,
		Columns: int64(fill.Columns), Age: time.Duration(r.now-fill.Settled) * time.Millisecond,
	}
	if fill.Bytes < 0 || fill.Bytes > found.Capacity {
		found.Live = 0 // it is looked into first, which counts it
	}
	of.Groups++
	of.Bytes += found.Capacity
	of.Dead += found.Dead()
	if class == nil || r.isStuck(&found) {
		return
	}
	if r.hasCooled(&class.Class, fill) && !r.rests(fill.ID) {
		r.cooled = append(r.cooled, cooling{found, &class.Class})
		return
	}
	if class.DeadAtMost >= api.NeverCompact {
		return
	}
	if fill.Settled > settled {
		r.young = r.young || found.Dead() > found.Live*int64(class.DeadAtMost)/100
		return
	}
	if scheme, err := stripe.ParseScheme(fill.Scheme); err != nil || !class.Ladder.Contains(scheme) {
		return // it would have to change its scheme, which is for transitions
	}
	key := kind{fill.Class, fill.Scheme}
	kinds[key] = append(kinds[key], found)
}

// isStuck reports whether a group could not be emptied and is as it was then.
func (r *run) isStuck(found *arrange.Candidate) bool {
	r.Compactor.mutex.Lock()
	defer r.Compactor.mutex.Unlock()
	known, is := r.stuck[found.ID]
	if !is || known.extents != found.Extents || known.cause != nil && time.Now().After(known.until) {
		return false
	}
	if known.cause != nil {
		r.failing = append(r.failing, known.cause)
	}
	return true
}

// earlier counts the groups that failed in passes before and are as they were then: they still cannot be emptied, for all that is
// known, and are tried again after a while.
func (r *run) earlier() (failed int64, text string) {
	if len(r.failing) > 0 {
		text = r.failing[0].Error()
	}
	return int64(len(r.failing)), text
}

// mostStuck is how many groups are remembered that could not be emptied.
const mostStuck = 1 << 16

func (c *Compactor) setStuck(found *arrange.Candidate, cause error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.stuck) >= mostStuck {
		clear(c.stuck)
	}
	c.stuck[found.ID] = stuck{found.Extents, cause, time.Now().Add(again)}
}

// forgetStuck has the next pass try again what could not be emptied.
func (c *Compactor) forgetStuck() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	clear(c.stuck)
}

// share is the share of the time to work.
func (c *Compactor) share() float64 {
	if c.Load.Sum(time.Now()).Requests > 0 {
		return shareBusy
	}
	return shareIdle
}

// batch is what is to be moved into one group.
type batch struct {
	splice       *object.Splice // nil: the objects do not stay on their nodes
	snapshots    []*catalog.Snapshot
	bytes, names int64
}

// isFull reports whether an object does not fit any more.
func (b *batch) isFull(object *catalog.Object, most int64) bool {
	return b.bytes+object.Size > most || len(b.snapshots) >= MostObjects || b.names+int64(len(object.Key)) > mostNames
}

func (b *batch) add(snapshot *catalog.Snapshot) {
	b.snapshots = append(b.snapshots, snapshot)
	b.bytes, b.names = b.bytes+snapshot.Object.Size, b.names+int64(len(snapshot.Object.Key))
}

// window is what is sorted at a time, of whole groups: what lives in them goes into as many new ones as it fills.
type window struct {
	batch
	from    []arrange.Candidate
	emptied int64 // bytes of the data columns of from
}

// Bounds on a window: what is known of an object takes about 1 KiB until it is moved.
const (
	windowObjects = 4 * MostObjects
	WindowGroups  = 8 // of new ones
)

// batches are what of some objects goes into one group each: what is written and used about as often lies together, and stays on its
// node where that makes full groups.
func (c *Compactor) batches(class *api.Class, snapshots []*catalog.Snapshot) (batches []batch) {
	counts := c.Heat.Popularity.CountsOf(class.HalfLife)
	arrange.Order(snapshots, func(snapshot *catalog.Snapshot) sketch.Counts { return counts(snapshot.Object.Key) })
	splices, rest := c.Objects.Splices(class, snapshots)
	for i := range splices {
		spliced := batch{splice: &splices[i]}
		for _, snapshot := range splices[i].Snapshots() {
			spliced.add(snapshot)
		}
		batches = append(batches, spliced)
	}
	var next batch
	for _, snapshot := range rest {
		if len(next.snapshots) > 0 && next.isFull(&snapshot.Object, class.GroupBytes) {
			batches, next = append(batches, next), batch{}
		}
		next.add(snapshot)
	}
	if len(next.snapshots) > 0 {
		batches = append(batches, next)
	}
	return batches
}

// empty moves what lives in groups of one kind into new ones.
func (r *run) empty(ctx context.Context, of kind, groups []arrange.Candidate) error {
	class := r.Classes.Named(of.class)
	if class == nil {
		return nil
	}
	scheme, err := stripe.ParseScheme(of.scheme)
	if err != nil {
		return err
	}
	var next window
	for i := range groups {
		if r.Halted() || ctx.Err() != nil {
			return ctx.Err()
		}
		inside, err := r.Groups.Inside(ctx, groups[i].ID)
		if errors.Is(err, catalog.ErrNoGroup) {
			r.update(func(compaction *api.Compaction) { compaction.GroupsDone++ })
			continue
		}
		if err != nil {
			r.failed(&groups[i], err)
			continue
		}
		if !inside.All {
			r.setStuck(&groups[i], nil) // its manifest does not name all of them
		}
		if len(next.snapshots)+len(inside.Snapshots) > windowObjects || next.bytes >= WindowGroups*class.GroupBytes {
			if err := r.refill(ctx, &class.Class, scheme, &next); err != nil {
				return err
			}
			next = window{}
		}
		for _, snapshot := range inside.Snapshots {
			next.add(snapshot)
		}
		next.from = append(next.from, groups[i])
		next.emptied += groups[i].Capacity
	}
	return r.refill(ctx, &class.Class, scheme, &next)
}

// failed notes a group that could not be emptied.
func (r *run) failed(of *arrange.Candidate, cause error) {
	r.setStuck(of, cause)
	r.Logger.Warn("a group cannot be compacted", "group", of.ID, "cause", cause)
	r.update(func(compaction *api.Compaction) {
		compaction.Failed++
		compaction.GroupsDone++
		compaction.Error = cause.Error()
	})
}

// refill moves a window, if that is worth it.
func (r *run) refill(ctx context.Context, class *api.Class, scheme stripe.Scheme, next *window) error {
	batches := r.batches(class, next.snapshots)
	takes, all := make([]int64, len(batches)), int64(0)
	for i := range batches {
		var err error
		if batches[i].splice != nil {
			takes[i], err = batches[i].splice.Bytes(class)
		} else {
			takes[i], err = r.Objects.PackedBytes(class, batches[i].snapshots)
		}
		if err != nil {
			return err
		}
		all += takes[i]
	}
	if len(batches) == 0 || float64(all) > arrange.FullEnough*float64(next.emptied) {
		for i := range next.from {
			r.setStuck(&next.from[i], nil)
		}
		r.update(func(compaction *api.Compaction) {
			compaction.GroupsDone += int64(len(next.from))
			compaction.BytesDone += next.bytes
		})
		return nil
	}
	kept := map[block.GroupID]error{} // groups that are not emptied, and why if that is a failure
	made, freed := int64(0), int64(0)
	for i := range batches {
		if r.Halted() {
			return nil
		}
		moved, err := r.move(ctx, class, scheme, &batches[i], kept)
		if err != nil {
			return ignoreHalt(err)
		}
		if moved {
			made, freed = made+1, freed-takes[i]
			r.metrics.filled(i, len(batches))
		}
	}
	for i := range next.from {
		switch cause, stays := kept[next.from[i].ID]; {
		case cause != nil:
			r.failed(&next.from[i], cause)
		case stays:
			r.update(func(compaction *api.Compaction) { compaction.GroupsDone++ })
		default:
			made, freed = made-1, freed+next.from[i].Capacity
			r.update(func(compaction *api.Compaction) { compaction.GroupsDone++ })
		}
	}
	r.metrics.freed.Add(float64(max(0, freed)))
	r.update(func(compaction *api.Compaction) {
		compaction.BytesFreed += freed
		for i := range compaction.Classes {
			if of := &compaction.Classes[i]; of.Name == class.Name {
				of.Bytes, of.Dead, of.Groups = of.Bytes-freed, of.Dead-freed, of.Groups+made
			}
		}
	})
	r.metrics.show(r.progress().Classes)
	return nil
}

// move moves a batch, which it reports, and then rests. Groups that are not emptied it notes in kept, with the cause of a failure.
func (r *run) move(
	ctx context.Context, class *api.Class, scheme stripe.Scheme, next *batch, kept map[block.GroupID]error,
) (moved bool, err error) {
	began := time.Now()
	if err := r.pacer.Wait(ctx, r.Halting(), group.Load{Total: next.bytes}); err != nil {
		return false, err
	}
	spliced, err := r.carry(ctx, class, scheme, next)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		cause := err
		if errors.Is(err, catalog.ErrStale) {
			cause = nil // all of them have changed: the next look sees how it is then
		}
		for _, snapshot := range next.snapshots {
			for _, extent := range snapshot.Object.Extents {
				kept[extent.Group] = cmp.Or(kept[extent.Group], cause)
			}
		}
	} else {
		r.metrics.moved.Add(float64(next.bytes))
	}
	r.update(func(compaction *api.Compaction) {
		compaction.BytesDone += next.bytes
		if err == nil {
			compaction.ObjectsMoved += int64(len(next.snapshots))
		}
		if spliced {
			compaction.ObjectsSpliced += int64(len(next.snapshots))
		}
	})
	job.Rest(ctx, time.Since(began), r.share())
	return err == nil, nil
}

// carry takes a batch to its new group: by splicing, which it reports, where it can be, and else, or where a node does not do that,
// through this gateway.
func (c *Compactor) carry(ctx context.Context, class *api.Class, scheme stripe.Scheme, next *batch) (spliced bool, err error) {
	if next.splice != nil {
		sent, err := c.Objects.Splice(ctx, class, scheme, next.splice)
		if err == nil {
			c.metrics.spliced.Add(float64(next.bytes))
			c.metrics.sent.Add(float64(sent))
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, catalog.ErrStale) {
			return err == nil, err
		}
		c.metrics.unspliced.Inc()
		c.Logger.Warn("a group cannot be spliced", "cause", err)
	}
	return false, c.Objects.MoveUnchanged(ctx, class, scheme, next.snapshots)
}

func ignoreHalt(err error) error {
	if errors.Is(err, group.ErrHalted) {
		return nil
	}
	return err
}
