package temperature

import (
	"math"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/class"
	"github.com/restripe/restripe/agent/heat"
	"github.com/restripe/restripe/agent/heat/shadow"
	"github.com/restripe/restripe/agent/stripe"
)

// Bounds on what shadows take: about 300 bytes for each group that they follow.
const (
	mostFollowed  = 100_000 // groups of all classes together
	leastFollowed = 16      // of each class
	mostCatchUp   = 48      // steps that are made up for at once, after a gateway has been asleep
)

// HeatOf returns how many times a day a group is used, as of now: what was counted, or what is to be expected from that and from
// the use of its whole class.
func (h *Thermometer) HeatOf(class string, id block.GroupID, now time.Time) float64 {
	return h.expected(class, h.tracker.Used(id, now), now)
}

// HeatNow is the same as of now.
func (h *Thermometer) HeatNow(group *catalog.Group) float64 {
	return h.HeatOf(group.Class, group.ID, h.options.Now())
}

func (h *Thermometer) expected(class string, used heat.Use, now time.Time) float64 {
	entry := h.classes.Named(class)
	if entry == nil || !entry.Expected {
		return used.Rate
	}
	estimate, known := (*h.estimates.Load())[class]
	if !known {
		return used.Rate
	}
	counted, days := h.watched(used, entry.HalfLife, now)
	return estimate.Rate(counted, shadow.Watched(entry.HalfLife, days))
}

// stay returns how long a group has to be under its scheme until it counts as settled: the dwell, and, where it costs less further
// down the ladder, until it would have paid for the move there.
func (h *Thermometer) stay(group *catalog.GroupSummary, heat float64, dwell time.Duration) time.Duration {
	entry := h.classes.Named(group.Class)
	if entry == nil || !entry.Expected {
		return dwell
	}
	rung := slices.IndexFunc(entry.Ladder, func(s stripe.Scheme) bool { return s.String() == group.Scheme })
	if rung < 0 {
		return dwell
	}
	prices := (*shadow.Prices)(entry.Prices)
	return max(dwell, prices.Payback(rung, prices.Best(shadow.Typical(api.HeatBucketOf(heat)))))
}

// StayOf returns how long groups of a class have to be under one scheme before they go to another, by the prices and the dwell in
// force; what is counted as settled by the walks is what has been there so long.
func (h *Thermometer) StayOf(class string, from, to stripe.Scheme) time.Duration {
	entry := h.classes.Named(class)
	if entry == nil || !entry.Expected {
		return h.dwellOf(class)
	}
	old, next := slices.Index(entry.Ladder, from), slices.Index(entry.Ladder, to)
	if old < 0 || next < 0 {
		return entry.Dwell
	}
	return max(entry.Dwell, (*shadow.Prices)(entry.Prices).Payback(old, next))
}

// watched returns what was counted of a group besides its write, and for how many days. A group that is not tracked was not used
// for as long as anybody counts.
func (h *Thermometer) watched(used heat.Use, halfLife time.Duration, now time.Time) (counted, days float64) {
	if used.First.IsZero() {
		return 0, max(0, now.Sub(h.since)).Hours() / 24
	}
	age := max(0, now.Sub(used.First))
	return max(0, used.Counted-math.Exp2(-float64(age)/float64(halfLife))), age.Hours() / 24
}

// look is what one walk learns of classes with prices: how their groups are used, and, where it is time, what candidates would
// have paid for them.
type look struct {
	h         *Thermometer
	began     time.Time
	sums      map[string]*shadow.Sums
	due       map[string]int // by class, how many steps have passed
	followers map[string]*follower
	cells     map[Shape]int64 // of a group
}

// follower tells the candidates of one class of its groups.
type follower struct {
	class  *shadow.Class
	ladder []string
	prices *api.RungPrices
	since  time.Time
	looked time.Time // until when candidates have paid
	groups map[uint64]sighting
}

// sighting is how a group was when candidates were told of it.
type sighting struct {
	rate float64
	at   time.Time
	rung int
}

// beginLook sees which classes have prices and whose candidates are to be told of their groups.
func (h *Thermometer) beginLook(now time.Time) *look {
	l := &look{
		h: h, began: now, sums: map[string]*shadow.Sums{}, due: map[string]int{}, followers: map[string]*follower{}, cells: map[Shape]int64{},
	}
	for _, entry := range h.classes.All() {
		if entry.Prices != nil {
			l.sums[entry.Name] = &shadow.Sums{}
			l.followers[entry.Name] = h.followers[entry.Name]
		}
	}
	for name := range l.sums {
		l.follow(h.classes.Named(name), mostOf(len(l.sums)))
	}
	h.followers = l.followers
	return l
}

// mostOf is how many groups of each of so many classes are followed.
func mostOf(classes int) int {
	return min(shadow.Limit, max(leastFollowed, mostFollowed/max(1, classes)))
}

// follow has a class followed by its prices and ladder of now.
func (l *look) follow(entry *class.Entry, limit int) {
	if entry == nil || entry.Prices == nil { // changed meanwhile
		return
	}
	var ladder []string
	for _, scheme := range entry.Ladder {
		ladder = append(ladder, scheme.String())
	}
	f := l.followers[entry.Name]
	if f == nil || !slices.Equal(f.ladder, ladder) {
		fresh, err := shadow.New(shadow.Prices(*entry.Prices), shadow.Candidates(len(ladder)), limit)
		if err != nil { // what is in force was checked
			l.h.log.Error("shadows of a class", "class", entry.Name, "cause", err)
			return
		}
		l.followers[entry.Name] = &follower{
			class: fresh, ladder: ladder, prices: entry.Prices, since: l.began, looked: l.began, groups: map[uint64]sighting{},
		}
		l.due[entry.Name] = 0
		return
	}
	f.class.SetLimit(limit)
	if f.prices != entry.Prices {
		if err := f.class.SetPrices(shadow.Prices(*entry.Prices)); err != nil {
			l.h.log.Error("shadows of a class", "class", entry.Name, "cause", err)
		}
		f.prices = entry.Prices
	}
	switch passed := l.began.Sub(f.looked); {
	case passed < 0: // a clock that was set back: time goes on from there
		f.looked = l.began
	case passed >= shadow.Step:
		l.due[entry.Name] = int(min(passed/shadow.Step, mostCatchUp))
	}
}

// see learns of a group.
func (l *look) see(group *catalog.GroupSummary, used heat.Use, now time.Time) {
	sums := l.sums[group.Class]
	entry := l.h.classes.Named(group.Class)
	if sums == nil || entry == nil {
		return
	}
	counted, days := l.h.watched(used, entry.HalfLife, now)
	sums.Add(entry.HalfLife, counted, days)
	steps, due := l.due[group.Class]
	f := l.followers[group.Class]
	if !due || f == nil {
		return
	}
	name := heat.Hash(group.ID)
	rung := slices.Index(f.ladder, group.Scheme)
	if rung < 0 || !f.class.Follows(name) {
		return
	}
	told := shadow.Use{Bytes: float64(int64(group.CellBytes) * l.cellsOf(group)), Rung: rung}
	before, known := f.groups[name]
	switch {
	case known:
		told.Times = timesSince(before, used, entry.HalfLife, now)
	case steps > 0 && !used.First.Before(f.looked):
		told.Times = 1 + counted
	default:
		told.Days = max(days, 1.0/(24*60))
		told.Rate = counted / shadow.Watched(entry.HalfLife, told.Days)
	}
	f.class.Use(name, told)
	f.groups[name] = sighting{rate: used.Rate, at: now, rung: rung}
}

// cellsOf returns how many cells a group has.
func (l *look) cellsOf(group *catalog.GroupSummary) int64 {
	shape := Shape{Ladder: group.Ladder, Mode: group.Mode, Columns: group.Columns, Version: group.LayoutVersion, Scheme: group.Scheme}
	cells, known := l.cells[shape]
	if !known {
		cells = shape.sizes().cells
		l.cells[shape] = cells
	}
	return cells
}

// timesSince returns how often a group was used since it was sighted, taken to be half-way. It goes by rates, which stay as they
// are when the half-life changes.
func timesSince(before sighting, used heat.Use, halfLife time.Duration, now time.Time) float64 {
	half := math.Exp2(-float64(max(0, now.Sub(before.at))) / 2 / float64(halfLife))
	return max(0, used.Rate-before.rate*half*half) / half * halfLife.Hours() / 24 / math.Ln2
}

// end takes over what a whole walk has learned, and has candidates pay. It reports whether heat was judged without an estimate,
// so that the walk has to be made again.
func (l *look) end() (again bool) {
	was := *l.h.estimates.Load()
	estimates := map[string]shadow.Estimate{}
	for name, sums := range l.sums {
		if entry := l.h.classes.Named(name); entry != nil && entry.Expected {
			estimate := sums.Estimate()
			estimate.Floor = entry.ExpectMean
			before, known := was[name]
			again = again || !known || before.Floor != estimate.Floor
			estimates[name] = estimate
		}
	}
	l.h.estimates.Store(&estimates)
	reports := map[string]*api.Shadows{}
	for name, f := range l.followers {
		if f == nil {
			continue
		}
		if steps, due := l.due[name]; due {
			f.advance(l.began, steps)
		}
		reports[name] = f.report()
	}
	l.h.mutex.Lock()
	defer l.h.mutex.Unlock()
	l.h.shadows = reports
	return again
}

// advance forgets the groups that were not sighted since a walk began, and has candidates pay for the steps that have passed.
func (f *follower) advance(began time.Time, steps int) {
	for name, sighted := range f.groups {
		if sighted.at.Before(began) || !f.class.Follows(name) {
			f.class.Forget(name)
			delete(f.groups, name)
		}
	}
	for range steps {
		f.class.Advance()
	}
	if f.looked = f.looked.Add(time.Duration(steps) * shadow.Step); began.Sub(f.looked) >= shadow.Step {
		f.looked = began
	}
}

// report says what candidates have paid.
func (f *follower) report() *api.Shadows {
	followed, groups := f.class.Followed()
	report := &api.Shadows{
		Since: f.since.UTC(), Days: f.class.Passed().Hours() / 24, Followed: followed, Groups: int64(groups), Done: f.class.Done(),
	}
	costs, way := f.class.Costs(), f.class.Way(func(name uint64) int { return f.groups[name].rung })
	for i, candidate := range shadow.Candidates(len(f.ladder)) {
		report.Candidates = append(report.Candidates, api.ShadowCost{Name: candidate.Name(), Cost: costs[i], Way: way[i]})
	}
	return report
}
