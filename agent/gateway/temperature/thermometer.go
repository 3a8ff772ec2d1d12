package temperature

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/class"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/heat"
	"github.com/restripe/restripe/agent/heat/shadow"
	"github.com/restripe/restripe/agent/heat/sketch"
)

// Thermometer counts how often groups are used, keeps this gateway's part of the counters in the catalog, takes over the
// parts of other gateways, and walks the records for the heat report.
type Thermometer struct {
	Popularity *Popularity

	catalog *catalog.Catalog
	classes *class.Registry
	log     *slog.Logger
	options Options
	tracker *heat.Tracker
	since   time.Time // accesses are counted since then

	toWalk, toCount, toExchange job.Wake

	mutex   sync.Mutex // of what follows
	last    *tally     // of the last whole walk; nil until there is one
	present *tally     // of the walk under way
	objects *census    // of the last whole count
	shadows map[string]*api.Shadows

	estimates atomic.Pointer[map[string]shadow.Estimate] // of classes whose heat is expected, by the last whole walk
	followers map[string]*follower                       // of the walk under way
}

// Options configure a Thermometer.
type Options struct {
	ID     string           // of the gateway
	Groups int              // most groups whose accesses are counted; 0: heat.DefaultGroups
	Now    func() time.Time // the clock of temperature
}

// New returns a thermometer that has counted nothing; Restore takes up what was saved.
func New(records *catalog.Catalog, classes *class.Registry, log *slog.Logger, options Options) *Thermometer {
	now := options.Now()
	h := &Thermometer{
		Popularity: &Popularity{classes: classes, now: options.Now, started: now, sketches: sketch.NewSet(now)},

		catalog: records, classes: classes, log: log, options: options,
		tracker: heat.New(heat.Options{Groups: options.Groups, Start: now}),
		toWalk:  job.NewWake(), toCount: job.NewWake(), toExchange: job.NewWake(),
		present: newTally(now), objects: &census{},
	}
	h.estimates.Store(&map[string]shadow.Estimate{})
	return h
}

// ClassesChanged takes over the half-lives of classes.
func (h *Thermometer) ClassesChanged(entries []*class.Entry) {
	now := h.options.Now()
	for _, entry := range entries {
		h.tracker.SetHalfLife(entry.Name, entry.HalfLife, now)
	}
	h.Notify()
}

// Forget drops the counters of a group that is no more.
func (h *Thermometer) Forget(id block.GroupID) { h.tracker.Forget(id) }

// Shapes returns the groups of the last whole walk by how they are laid out, which nobody changes any more, and when that
// walk ended; known is false until there was one.
func (h *Thermometer) Shapes() (shapes map[Shape]*ShapeTally, at time.Time, known bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.last == nil {
		return nil, time.Time{}, false
	}
	return h.last.shapes, h.last.at, true
}

// ShapesUnder returns the groups of one class as they are now, settled or not by a dwell that the class need not have, and when
// that was. It walks over all groups at once, which the walks for the heat report do not.
func (h *Thermometer) ShapesUnder(ctx context.Context, class string, dwell time.Duration) (map[Shape]*ShapeTally, time.Time, error) {
	t, err := h.tallyUnder(ctx, class, dwell)
	if err != nil {
		return nil, time.Time{}, err
	}
	return t.shapes, t.at, nil
}

func (h *Thermometer) tallyUnder(ctx context.Context, class string, dwell time.Duration) (*tally, error) {
	t := newTally(h.options.Now())
	for groups, err := range h.catalog.GroupSummaries(ctx, block.GroupID{}) {
		if err != nil {
			return nil, fmt.Errorf("walking over the groups: %w", err)
		}
		now := h.options.Now()
		for i := range groups {
			if groups[i].Class == class {
				heat := h.HeatOf(class, groups[i].ID, now)
				settled := h.IsSettled(groups[i].Settled, h.stay(&groups[i], heat, dwell), now) && !h.HoldsHotKeys(&groups[i])
				t.add(&groups[i], heat, settled)
			}
		}
	}
	t.at = h.options.Now()
	return t, nil
}

// Used counts an access by a client to a group.
func (h *Thermometer) Used(group *catalog.Group) {
	h.tracker.Touch(group.ID, h.tracker.Class(group.Class), h.options.Now(), 1)
}

// IsSettled reports whether a group that came under its scheme at settled, in Unix milliseconds, has been there, and been
// watched, for dwell. A time further in the future than dwell is a clock's mistake and does not hold a group up.
func (h *Thermometer) IsSettled(settled int64, dwell time.Duration, now time.Time) bool {
	if since := h.since.UnixMilli(); settled < since {
		settled = since
	}
	age := now.Sub(time.UnixMilli(settled))
	return age >= dwell || age < -dwell
}

// Restore takes up the counters this gateway had saved, and those of the others.
func (h *Thermometer) Restore(ctx context.Context) (err error) {
	if h.since, err = h.catalog.HeatSince(ctx); err != nil {
		return err
	}
	now := h.options.Now()
	for index := range heat.Parts {
		parts, err := h.catalog.Heat(ctx, index)
		if err != nil {
			return err
		}
		for _, part := range parts {
			if part.Gateway != h.options.ID {
				continue
			}
			if err := h.tracker.Restore(index, part.Raw, now); err != nil {
				h.log.Warn("heat counters of an earlier start are lost", "part", index, "cause", err)
			}
		}
		h.merge(ctx, index, parts)
	}
	return nil
}

// merge takes over what other gateways counted of one part. Parts that have nothing left to say are removed: their
// gateways may be gone for good.
func (h *Thermometer) merge(ctx context.Context, index int, parts []catalog.HeatPart) {
	var others []catalog.HeatPart
	var raws [][]byte
	for _, part := range parts {
		if part.Gateway != h.options.ID {
			others, raws = append(others, part), append(raws, part.Raw)
		}
	}
	spent, err := h.tracker.Merge(index, raws, h.options.Now())
	if err != nil {
		h.log.Warn("heat counters of another gateway are left out", "part", index, "cause", err)
	}
	for _, i := range spent {
		if err := h.catalog.DropHeat(ctx, others[i]); err != nil && ctx.Err() == nil {
			h.log.Warn("removing heat counters that are spent", "cause", err)
		}
	}
}

// Bounds on how long temperatures go without being exchanged and walked over.
const (
	shortestPeriod = time.Second
	longestPeriod  = time.Minute
)

// period is a quarter of the shortest time any class reckons with, within bounds.
func (h *Thermometer) period() time.Duration {
	period := longestPeriod
	for _, class := range h.classes.All() {
		period = min(period, class.HalfLife/4)
		if class.Dwell > 0 {
			period = min(period, class.Dwell/4)
		}
	}
	return max(period, shortestPeriod)
}

const (
	// exchangeRests is how many times as long as an exchange took the next one waits at least.
	exchangeRests = 50
	// takeOverAnyway is after which the counters of others are read although none of them told of any: what they counted cools down
	// until it is spent, and those of a release before this one do not tell.
	takeOverAnyway = 10 * time.Minute
)

// ExchangeLoop saves this gateway's counters and takes over those of the others for as long as the gateway lives.
func (h *Thermometer) ExchangeLoop(ctx context.Context) {
	var took time.Duration
	var taken time.Time // over, from others, to the end; zero: it is to be done
	tokens := h.catalog.Watch(ctx, catalog.SubjectHeat)
	job.Again(ctx, h.toExchange, func() time.Duration { return max(h.period(), exchangeRests*took) }, func(ctx context.Context) {
		began := time.Now()
		err := h.save(ctx)
		select {
		case _, open := <-tokens:
			taken = time.Time{}
			if !open {
				tokens = nil
			}
		default:
		}
		if err == nil && time.Since(taken) >= takeOverAnyway {
			if err = h.takeOver(ctx); err == nil {
				taken = began
			}
		}
		if err != nil && ctx.Err() == nil {
			h.log.Warn("exchanging heat counters", "cause", err)
		}
		took = time.Since(began)
	})
}

// takeOver takes over what the other gateways counted.
func (h *Thermometer) takeOver(ctx context.Context) error {
	for index := range heat.Parts {
		parts, err := h.catalog.Heat(ctx, index)
		if err != nil {
			return err
		}
		h.merge(ctx, index, parts)
	}
	return nil
}

// saveBytes bounds one transaction that saves counters.
const saveBytes = 256 << 10

// save stores the parts that changed.
func (h *Thermometer) save(ctx context.Context) error {
	var batch []heat.Part
	var records []catalog.HeatPart
	bytes := 0
	flush := func() error {
		if err := h.catalog.SaveHeat(ctx, records); err != nil {
			return err
		}
		for _, part := range batch {
			h.tracker.Saved(part)
		}
		batch, records, bytes = nil, nil, 0
		return nil
	}
	for index := range heat.Parts {
		part, changed := h.tracker.Part(index, h.options.Now())
		if !changed {
			continue
		}
		batch = append(batch, part)
		records = append(records, catalog.HeatPart{Part: index, Gateway: h.options.ID, Raw: part.Raw})
		if bytes += len(part.Raw); bytes >= saveBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// lastPatience bounds the last save of a gateway that closes.
const lastPatience = 5 * time.Second

// SaveLast saves what was counted until the gateway closed.
func (h *Thermometer) SaveLast() {
	ctx, cancel := context.WithTimeout(context.Background(), lastPatience)
	defer cancel()
	if err := h.save(ctx); err != nil {
		h.log.Warn("the accesses of the last minute are not saved", "cause", err)
	}
}

// Notify has counters exchanged and the walks for the heat report begin anew soon, and their periods looked at again.
func (h *Thermometer) Notify() {
	h.toWalk.Notify()
	h.toCount.Notify()
	h.toExchange.Notify()
}

// Walks work for a part of the time and rest for the others, so that they take no more than these shares of one processor.
const (
	walkShare  = 0.02
	countShare = 0.01
)

// rhythm alternates work and rest.
type rhythm struct {
	share float64
	began time.Time // of the work under way
}

// worked returns how long the work took.
func (r *rhythm) worked() time.Duration { return time.Since(r.began) }

// rest rests after work that took a while.
func (r *rhythm) rest(ctx context.Context, worked time.Duration) error {
	if !job.Rest(ctx, worked, r.share) {
		return ctx.Err()
	}
	r.began = time.Now()
	return nil
}

// WalkLoop walks over the groups for the heat report for as long as the gateway lives.
func (h *Thermometer) WalkLoop(ctx context.Context) {
	job.Again(ctx, h.toWalk, h.period, func(ctx context.Context) {
		again, err := h.walk(ctx)
		if again && err == nil {
			_, err = h.walk(ctx)
		}
		if err != nil && ctx.Err() == nil {
			h.log.Warn("walking over the groups for the heat report", "cause", err)
		}
	})
}

// walk goes once over all groups. What it finds becomes the heat report, unless it has to be made again, as the use of a class
// was not known yet by which heat is judged. Counters of groups that it did not find are dropped.
func (h *Thermometer) walk(ctx context.Context) (again bool, err error) {
	walk := h.tracker.Begin()
	fresh := newTally(h.options.Now())
	look := h.beginLook(fresh.began)
	h.mutex.Lock()
	h.present = fresh
	h.mutex.Unlock()
	pace := rhythm{share: walkShare, began: time.Now()}
	for groups, err := range h.catalog.GroupSummaries(ctx, block.GroupID{}) {
		if err != nil {
			return false, fmt.Errorf("after %d groups: %w", fresh.groups, err)
		}
		now := h.options.Now()
		heats := make([]float64, len(groups))
		for i := range groups {
			used := walk.See(groups[i].ID, now)
			look.see(&groups[i], used, now)
			heats[i] = h.expected(groups[i].Class, used, now)
		}
		h.mutex.Lock()
		for i := range groups {
			stay := h.stay(&groups[i], heats[i], h.dwellOf(groups[i].Class))
			fresh.add(&groups[i], heats[i], h.IsSettled(groups[i].Settled, stay, now) && !h.HoldsHotKeys(&groups[i]))
		}
		worked := pace.worked()
		fresh.busy, fresh.at = fresh.busy+worked, now
		h.mutex.Unlock()
		if err := pace.rest(ctx, worked); err != nil {
			return false, fmt.Errorf("after %d groups: %w", fresh.groups, err)
		}
	}
	walk.End()
	if look.end() {
		return true, nil
	}
	h.mutex.Lock()
	h.last = fresh
	h.mutex.Unlock()
	return false, nil
}

// CountLoop counts the objects of each class, which takes longer than the groups and matters less, for as long as the
// gateway lives.
func (h *Thermometer) CountLoop(ctx context.Context) {
	var took time.Duration
	job.Again(ctx, h.toCount, func() time.Duration { return max(h.period(), 4*took) }, func(ctx context.Context) {
		began := time.Now()
		if err := h.count(ctx); err != nil && ctx.Err() == nil {
			h.log.Warn("counting the objects for the heat report", "cause", err)
		}
		took = time.Since(began)
	})
}

func (h *Thermometer) count(ctx context.Context) error {
	fresh := &census{
		at: h.options.Now(), routes: h.classes.Routes(), classes: map[string]objectTally{}, elsewhere: map[stray]objectTally{},
	}
	pace := rhythm{share: countShare, began: time.Now()}
	for objects, err := range h.catalog.ObjectSummaries(ctx) {
		if err != nil {
			return err
		}
		for i := range objects {
			fresh.add(&objects[i])
		}
		worked := pace.worked()
		fresh.busy += worked
		if err := pace.rest(ctx, worked); err != nil {
			return err
		}
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.objects = fresh
	return nil
}

// dwellOf is the dwell of a class, the default of one that is not declared.
func (h *Thermometer) dwellOf(class string) time.Duration {
	if entry := h.classes.Named(class); entry != nil {
		return entry.Dwell
	}
	return api.DefaultDwell
}
