package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/heat"
)

// thermometer counts how often groups are used, keeps this gateway's part of the counters in the catalog, takes over the
// parts of other gateways, and walks the records for the heat report.
type thermometer struct {
	gateway *Gateway
	tracker *heat.Tracker
	since   time.Time // accesses are counted since then

	walkKicked, countKicked, exchangeKicked chan struct{} // a token each: begin again soon

	mutex   sync.Mutex // of what follows
	last    *tally     // of the last whole walk; nil until there is one
	present *tally     // of the walk under way
	objects *census    // of the last whole count
}

func (h *thermometer) init(g *Gateway) {
	h.gateway = g
	h.walkKicked, h.countKicked, h.exchangeKicked = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	h.tracker = heat.New(heat.Options{Groups: g.options.HeatGroups, Start: g.options.Now()})
	h.present, h.objects = newTally(g.options.Now()), &census{}
}

// used counts an access by a client to a group.
func (h *thermometer) used(group *catalog.Group) {
	h.tracker.Touch(group.ID, h.tracker.Class(group.Class), h.gateway.options.Now(), 1)
}

// isSettled reports whether a group that came under its scheme at settled, in Unix milliseconds, has been there, and been
// watched, for dwell. A time further in the future than dwell is a clock's mistake and does not hold a group up.
func (h *thermometer) isSettled(settled int64, dwell time.Duration, now time.Time) bool {
	if since := h.since.UnixMilli(); settled < since {
		settled = since
	}
	age := now.Sub(time.UnixMilli(settled))
	return age >= dwell || age < -dwell
}

// restore takes up the counters this gateway had saved, and those of the others.
func (h *thermometer) restore(ctx context.Context) (err error) {
	if h.since, err = h.gateway.catalog.HeatSince(ctx); err != nil {
		return err
	}
	now := h.gateway.options.Now()
	for index := range heat.Parts {
		parts, err := h.gateway.catalog.Heat(ctx, index)
		if err != nil {
			return err
		}
		for _, part := range parts {
			if part.Gateway != h.gateway.options.ID {
				continue
			}
			if err := h.tracker.Restore(index, part.Raw, now); err != nil {
				h.gateway.log.Warn("heat counters of an earlier start are lost", "part", index, "cause", err)
			}
		}
		h.merge(ctx, index, parts)
	}
	return nil
}

// merge takes over what other gateways counted of one part. Parts that have nothing left to say are removed: their
// gateways may be gone for good.
func (h *thermometer) merge(ctx context.Context, index int, parts []catalog.HeatPart) {
	var others []catalog.HeatPart
	var raws [][]byte
	for _, part := range parts {
		if part.Gateway != h.gateway.options.ID {
			others, raws = append(others, part), append(raws, part.Raw)
		}
	}
	spent, err := h.tracker.Merge(index, raws, h.gateway.options.Now())
	if err != nil {
		h.gateway.log.Warn("heat counters of another gateway are left out", "part", index, "cause", err)
	}
	for _, i := range spent {
		if err := h.gateway.catalog.DropHeat(ctx, others[i]); err != nil && ctx.Err() == nil {
			h.gateway.log.Warn("removing heat counters that are spent", "cause", err)
		}
	}
}

// Bounds on how long temperatures go without being exchanged and walked over.
const (
	shortestPeriod = time.Second
	longestPeriod  = time.Minute
)

// period is a quarter of the shortest time any class reckons with, within bounds.
func (h *thermometer) period() time.Duration {
	period := longestPeriod
	for _, class := range h.gateway.classes.all() {
		period = min(period, class.HalfLife/4)
		if class.Dwell > 0 {
			period = min(period, class.Dwell/4)
		}
	}
	return max(period, shortestPeriod)
}

// exchangeRests is how many times as long as an exchange took the next one waits at least.
const exchangeRests = 50

// exchangeLoop saves this gateway's counters and takes over those of the others for as long as the gateway lives.
func (h *thermometer) exchangeLoop(ctx context.Context) {
	var took time.Duration
	again(ctx, h.exchangeKicked, func() time.Duration { return max(h.period(), exchangeRests*took) }, func(ctx context.Context) {
		began := time.Now()
		if err := h.exchange(ctx); err != nil && ctx.Err() == nil {
			h.gateway.log.Warn("exchanging heat counters", "cause", err)
		}
		took = time.Since(began)
	})
}

func (h *thermometer) exchange(ctx context.Context) error {
	if err := h.save(ctx); err != nil {
		return err
	}
	for index := range heat.Parts {
		parts, err := h.gateway.catalog.Heat(ctx, index)
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
func (h *thermometer) save(ctx context.Context) error {
	var batch []heat.Part
	var records []catalog.HeatPart
	bytes := 0
	flush := func() error {
		if err := h.gateway.catalog.SaveHeat(ctx, records); err != nil {
			return err
		}
		for _, part := range batch {
			h.tracker.Saved(part)
		}
		batch, records, bytes = nil, nil, 0
		return nil
	}
	for index := range heat.Parts {
		part, changed := h.tracker.Part(index, h.gateway.options.Now())
		if !changed {
			continue
		}
		batch = append(batch, part)
		records = append(records, catalog.HeatPart{Part: index, Gateway: h.gateway.options.ID, Raw: part.Raw})
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

// saveLast saves what was counted until the gateway closed.
func (h *thermometer) saveLast() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.gateway.ctx), lastPatience)
	defer cancel()
	if err := h.save(ctx); err != nil {
		h.gateway.log.Warn("the accesses of the last minute are not saved", "cause", err)
	}
}

// kick has counters exchanged and the walks for the heat report begin anew soon, and their periods looked at again.
func (h *thermometer) kick() {
	for _, kicked := range []chan struct{}{h.walkKicked, h.countKicked, h.exchangeKicked} {
		select {
		case kicked <- struct{}{}:
		default:
		}
	}
}

// Walks work for a part of the time and rest for the others, so that they take no more than these shares of one processor.
// Pages that take long, as their engine is far or busy, are followed by long rests.
const (
	walkShare   = 0.02
	countShare  = 0.01
	longestRest = 2 * time.Second
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
	if !sleep(ctx, min(longestRest, time.Duration(float64(worked)*(1/r.share-1)))) {
		return ctx.Err()
	}
	r.began = time.Now()
	return nil
}

// walkLoop walks over the groups for the heat report for as long as the gateway lives.
func (h *thermometer) walkLoop(ctx context.Context) {
	again(ctx, h.walkKicked, h.period, func(ctx context.Context) {
		if err := h.walk(ctx); err != nil && ctx.Err() == nil {
			h.gateway.log.Warn("walking over the groups for the heat report", "cause", err)
		}
	})
}

// walk goes once over all groups. What it finds becomes the heat report; counters of groups that it did not find are
// dropped.
func (h *thermometer) walk(ctx context.Context) error {
	g := h.gateway
	walk := h.tracker.Begin()
	fresh := newTally(g.options.Now())
	h.mutex.Lock()
	h.present = fresh
	h.mutex.Unlock()
	pace := rhythm{share: walkShare, began: time.Now()}
	for groups, err := range g.catalog.GroupSummaries(ctx, block.GroupID{}) {
		if err != nil {
			return fmt.Errorf("after %d groups: %w", fresh.groups, err)
		}
		now := g.options.Now()
		heats := make([]float64, len(groups))
		for i := range groups {
			heats[i] = walk.See(groups[i].ID, now)
		}
		h.mutex.Lock()
		for i := range groups {
			fresh.add(&groups[i], heats[i], h.isSettled(groups[i].Settled, g.dwellOf(groups[i].Class), now))
		}
		worked := pace.worked()
		fresh.busy, fresh.at = fresh.busy+worked, now
		h.mutex.Unlock()
		if err := pace.rest(ctx, worked); err != nil {
			return fmt.Errorf("after %d groups: %w", fresh.groups, err)
		}
	}
	walk.End()
	h.mutex.Lock()
	h.last = fresh
	h.mutex.Unlock()
	return nil
}

// countLoop counts the objects of each class, which takes longer than the groups and matters less, for as long as the
// gateway lives.
func (h *thermometer) countLoop(ctx context.Context) {
	var took time.Duration
	again(ctx, h.countKicked, func() time.Duration { return max(h.period(), 4*took) }, func(ctx context.Context) {
		began := time.Now()
		if err := h.count(ctx); err != nil && ctx.Err() == nil {
			h.gateway.log.Warn("counting the objects for the heat report", "cause", err)
		}
		took = time.Since(began)
	})
}

func (h *thermometer) count(ctx context.Context) error {
	fresh := &census{at: h.gateway.options.Now(), classes: map[string]objectTally{}}
	pace := rhythm{share: countShare, began: time.Now()}
	for objects, err := range h.gateway.catalog.ObjectSummaries(ctx) {
		if err != nil {
			return err
		}
		for i := range objects {
			counts := fresh.classes[objects[i].Class]
			counts.objects++
			counts.bytes += objects[i].Size
			fresh.classes[objects[i].Class] = counts
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
func (g *Gateway) dwellOf(class string) time.Duration {
	if entry := g.classes.current.Load().named(class); entry != nil {
		return entry.Dwell
	}
	return api.DefaultDwell
}
