package temperature

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/class"
	"github.com/restripe/restripe/agent/stripe"
)

// tally is what a walk has counted so far. Its size depends on the number of classes and codes, not of groups.
type tally struct {
	began, at time.Time
	busy      time.Duration
	groups    int64
	shapes    map[Shape]*ShapeTally
}

// Shape is what groups have in common that are laid out alike: all of them take the same plans.
type Shape struct {
	Class, Scheme, Ladder, Mode string
	Columns, Version            int
	Brought                     int // of the columns, those of other groups
}

// ShapeTally counts the groups of one shape by heat. Bytes are of one cell of each group, which all others are multiples
// of.
type ShapeTally struct {
	Groups, SettledGroups [api.HeatBuckets]int64
	Cells, SettledCells   [api.HeatBuckets]int64
}

// census is how many objects there are, by class.
type census struct {
	at        time.Time // when the count began; zero: there was none yet
	busy      time.Duration
	routes    *class.Routes // when the count began
	classes   map[string]objectTally
	elsewhere map[stray]objectTally
}

// stray is what objects have in common whose key belongs to one class while they are of another.
type stray struct{ belongs, is string }

// add counts an object. Earlier versions are none.
func (c *census) add(object *catalog.ObjectSummary) {
	if block.IsEarlierKey(object.Key) {
		return
	}
	c.classes[object.Class] = c.classes[object.Class].and(object.Size)
	if belongs, found := c.routes.Class(object.Key); found && belongs != object.Class {
		from := stray{belongs, object.Class}
		c.elsewhere[from] = c.elsewhere[from].and(object.Size)
	}
}

type objectTally struct{ objects, bytes int64 }

func (t objectTally) and(size int64) objectTally { return objectTally{t.objects + 1, t.bytes + size} }

func newTally(now time.Time) *tally {
	return &tally{began: now, at: now, shapes: map[Shape]*ShapeTally{}}
}

func (t *tally) add(group *catalog.GroupSummary, heat float64, settled bool) {
	s := Shape{group.Class, group.Scheme, group.Ladder, group.Mode, group.Columns, group.LayoutVersion, len(group.Brought)}
	counts := t.shapes[s]
	if counts == nil {
		counts = &ShapeTally{}
		t.shapes[s] = counts
	}
	bucket, cell := api.HeatBucketOf(heat), int64(group.CellBytes)
	t.groups++
	counts.Groups[bucket]++
	counts.Cells[bucket] += cell
	if settled {
		counts.SettledGroups[bucket]++
		counts.SettledCells[bucket] += cell
	}
}

// sizes are what a group of a shape has per byte of cell.
type sizes struct{ cells, stored int64 }

func (s *Shape) sizes() sizes {
	layout, err := stripe.ParseLayout(s.Version, s.Ladder, s.Mode, s.Columns)
	if err != nil {
		return sizes{}
	}
	scheme, err := stripe.ParseScheme(s.Scheme)
	if err != nil || scheme.K < 1 {
		return sizes{cells: int64(layout.Cells())}
	}
	cells := int64(layout.Cells())
	return sizes{cells: cells, stored: cells + cells/int64(scheme.K)*int64(scheme.M)}
}

// Heat returns the heat report of the last whole walk over the groups, or, while the first goes on, of what it has seen.
func (h *Thermometer) Heat() api.HeatReport {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.report(cmp.Or(h.last, h.present), h.last != nil)
}

// HeatUnder returns the heat report of one class by the groups as they are now, settled or not by a dwell that the class need
// not have.
func (h *Thermometer) HeatUnder(ctx context.Context, class string, dwell time.Duration) (api.HeatReport, error) {
	t, err := h.tallyUnder(ctx, class, dwell)
	if err != nil {
		return api.HeatReport{}, err
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	report := h.report(t, true)
	report.Classes = slices.DeleteFunc(report.Classes, func(c api.ClassHeat) bool { return c.Class != class })
	for i := range report.Classes {
		report.Classes[i].Dwell = dwell.String()
	}
	return report, nil
}

// report makes a report of what a walk has counted, which is complete or of a part.
func (h *Thermometer) report(t *tally, complete bool) api.HeatReport {
	report := api.HeatReport{
		At: t.at.UTC(), Began: t.began.UTC(), Since: h.since, Complete: complete, ObjectsAt: h.objects.at.UTC(), Classes: []api.ClassHeat{},
	}
	report.BusySeconds = (t.busy + h.objects.busy).Seconds()
	report.Tracked, report.TrackedBytes = h.tracker.Len()
	classes := map[string]*api.ClassHeat{}
	for _, class := range h.classes.All() {
		entry := &api.ClassHeat{Class: class.Name, HalfLife: class.HalfLife.String(), Dwell: class.Dwell.String()}
		for _, scheme := range class.Ladder {
			entry.Rungs = append(entry.Rungs, api.RungHeat{Scheme: scheme.String()})
		}
		if estimate, known := (*h.estimates.Load())[class.Name]; known && class.Expected {
			entry.Estimate = (*api.HeatEstimate)(&estimate)
		}
		if class.Prices != nil {
			entry.Shadows = h.shadows[class.Name]
		}
		classes[class.Name] = entry
	}
	classOf := func(name string) *api.ClassHeat {
		if classes[name] == nil {
			classes[name] = &api.ClassHeat{Class: name, HalfLife: api.DefaultHalfLife.String(), Dwell: api.DefaultDwell.String()}
		}
		return classes[name]
	}
	for s, counts := range t.shapes {
		declared := h.classes.Named(s.Class)
		addGroups(rungOf(classOf(s.Class), s.Scheme), &s, counts, declared != nil && !containsAll(s.Ladder, declared.Ladder))
	}
	for name, counts := range h.objects.classes {
		entry := classOf(name)
		entry.Objects, entry.Bytes = counts.objects, counts.bytes
	}
	for from, counts := range h.objects.elsewhere {
		entry := classOf(from.belongs)
		entry.Elsewhere = append(entry.Elsewhere, api.ClassCount{Class: from.is, Objects: counts.objects, Bytes: counts.bytes})
	}
	for _, entry := range classes {
		if h.objects.routes != nil {
			entry.CountedPrefixes = h.objects.routes.Prefixes(entry.Class)
		}
		slices.SortFunc(entry.Elsewhere, func(a, b api.ClassCount) int { return strings.Compare(a.Class, b.Class) })
		if entry.Rungs == nil {
			entry.Rungs = []api.RungHeat{}
		}
		report.Classes = append(report.Classes, *entry)
	}
	slices.SortFunc(report.Classes, func(a, b api.ClassHeat) int { return strings.Compare(a.Class, b.Class) })
	return report
}

// rungOf returns the rung of a scheme, adding it where it is not on the ladder any more.
func rungOf(c *api.ClassHeat, scheme string) *api.RungHeat {
	at := slices.IndexFunc(c.Rungs, func(r api.RungHeat) bool { return r.Scheme == scheme })
	if at < 0 {
		at = len(c.Rungs)
		c.Rungs = append(c.Rungs, api.RungHeat{Scheme: scheme})
	}
	return &c.Rungs[at]
}

// addGroups adds the groups of a shape to a rung.
func addGroups(r *api.RungHeat, s *Shape, counts *ShapeTally, offLadder bool) {
	size := s.sizes()
	if r.Buckets == nil {
		r.Buckets = make([]api.HeatBucket, api.HeatBuckets)
		for i := range api.HeatBuckets - 1 {
			r.Buckets[i].Below = api.HeatEdge(i + 1)
		}
	}
	for i := range counts.Groups {
		b := &r.Buckets[i]
		b.Groups += counts.Groups[i]
		b.Bytes += counts.Cells[i] * size.cells
		b.SettledGroups += counts.SettledGroups[i]
		b.SettledBytes += counts.SettledCells[i] * size.cells
		r.Groups += counts.Groups[i]
		r.Bytes += counts.Cells[i] * size.cells
		r.StoredBytes += counts.Cells[i] * size.stored
		r.CellBytesTotal += counts.Cells[i]
		if offLadder {
			r.OffLadder += counts.Groups[i]
		}
	}
}

// containsAll reports whether a ladder, as text, has every scheme of another.
func containsAll(text string, schemes stripe.Ladder) bool {
	ladder, err := stripe.ParseLadder(text)
	return err == nil && !slices.ContainsFunc(schemes, func(s stripe.Scheme) bool { return !ladder.Contains(s) })
}
