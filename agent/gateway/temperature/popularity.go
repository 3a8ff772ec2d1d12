package temperature

import (
	"math"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/class"
	"github.com/restripe/restripe/agent/heat"
	"github.com/restripe/restripe/agent/heat/sketch"
)

// Popularity counts how often small objects are put and read through this gateway, by key. It knows nothing at its start, and
// nothing of other gateways: what it says decides where objects lie, and never whether they are right.
type Popularity struct {
	classes  *class.Registry
	now      func() time.Time
	started  time.Time
	sketches *sketch.Set
}

// Wrote counts a put of a key. That an object dies is not counted: it was put before.
func (p *Popularity) Wrote(of *api.Class, key string) {
	p.sketches.For(of.HalfLife).Wrote(key, p.now())
}

// Read counts a read of an object of a class by a client. It returns the class if the key is one of its hot keys, and else nil.
func (p *Popularity) Read(of string, key string) *class.Entry {
	entry := p.classes.Named(of)
	if entry == nil {
		p.sketches.For(api.DefaultHalfLife).Read(key, p.now())
		return nil
	}
	counts := p.sketches.For(entry.HalfLife).Read(key, p.now())
	if entry.HotKeys == nil || !isHot(entry.HotKeys, counts.Reads) {
		return nil
	}
	return entry
}

// IsHot reports whether a key is one of the hot keys of its class, by what was counted here.
func (p *Popularity) IsHot(of *api.Class, key string) bool {
	return of.HotKeys != nil && isHot(of.HotKeys, p.sketches.For(of.HalfLife).Of(key, p.now()).Reads)
}

// isHot allows for a hair less, so that as many reads as that within a moment are so many.
func isHot(keys *api.HotKeys, reads float64) bool { return reads >= float64(keys.Reads)*(1-1.0/64) }

func (p *Popularity) halfLife(of string) time.Duration {
	if entry := p.classes.Named(of); entry != nil {
		return entry.HalfLife
	}
	return api.DefaultHalfLife
}

// CountsOf returns what is counted of keys of classes with a half-life, as of now.
func (p *Popularity) CountsOf(halfLife time.Duration) func(key string) sketch.Counts {
	counted, now := p.sketches.For(halfLife), p.now()
	return func(key string) sketch.Counts { return counted.Of(key, now) }
}

// Bytes is how much memory it takes.
func (p *Popularity) Bytes() int64 { return p.sketches.Bytes() }

// Carried has a new group of small objects be as hot as those objects were in the groups that they came from, and known for as long.
// What each of these counted is shared out by what its keys were read here, as far as anything was: nothing becomes hotter by being
// moved, and what lay beside something hot does not become hot.
func (h *Thermometer) Carried(moved []*catalog.Snapshot, to *catalog.Group) {
	now := h.options.Now()
	halfLife := h.Popularity.halfLife(to.Class)
	counts := h.Popularity.CountsOf(halfLife)
	from := map[block.GroupID]*carried{}
	for _, snapshot := range moved {
		for _, extent := range snapshot.Object.Extents {
			of := from[extent.Group]
			if of == nil {
				of = &carried{view: snapshot.View(extent.Group)}
				from[extent.Group] = of
			}
			of.reads, of.extents = of.reads+counts(snapshot.Object.Key).Reads, of.extents+1
		}
	}
	total, first := 0.0, time.Time{}
	for id, of := range from {
		used := h.tracker.Used(id, now)
		reads, _ := h.watched(used, halfLife, now)
		total += of.share(used, reads)
		if !used.First.IsZero() && (first.IsZero() || used.First.Before(first)) {
			first = used.First
		}
	}
	h.carry(to.ID, to.Class, total, first, now)
}

// CarriedOn has the groups into which a large object was copied be as hot as those were from which their bytes came, and known for as
// long.
func (h *Thermometer) CarriedOn(was []catalog.Extent, class string, is []catalog.Extent) {
	now := h.options.Now()
	halfLife := h.Popularity.halfLife(class)
	begin := int64(0)
	for _, extent := range is {
		total, first := 0.0, time.Time{}
		at, end := int64(0), begin+extent.Length
		for _, from := range was {
			both := min(end, at+from.Length) - max(begin, at)
			at += from.Length
			if both <= 0 {
				continue
			}
			used := h.tracker.Used(from.Group, now)
			reads, _ := h.watched(used, halfLife, now)
			total += reads * float64(both) / float64(extent.Length)
			if !used.First.IsZero() && (first.IsZero() || used.First.Before(first)) {
				first = used.First
			}
		}
		h.carry(extent.Group, class, total, first, now)
		begin = end
	}
}

// carry has a group be known since first, and used so much besides.
func (h *Thermometer) carry(id block.GroupID, class string, total float64, first, now time.Time) {
	if first.IsZero() {
		return
	}
	total += math.Exp2(-float64(max(0, now.Sub(first))) / float64(h.Popularity.halfLife(class))) // the first was a write, which counts once
	h.tracker.Carry(id, h.tracker.Class(class), now, total, first)
}

// carried is what goes from one group into another.
type carried struct {
	view    *catalog.GroupView // nil: it is not known
	reads   float64            // of its keys, as far as they are known here
	extents int64
}

// share is how much goes with it of the reads that its group counted: what its keys were read here, to what the group was used here.
// Where all came of other gateways, each object has as much as the next.
func (c *carried) share(used heat.Use, reads float64) float64 {
	switch {
	case used.Own > 0:
		return min(reads, c.reads*used.Counted/used.Own)
	case c.view != nil && c.view.Live > c.extents:
		return reads * float64(c.extents) / float64(c.view.Live)
	}
	return reads
}
