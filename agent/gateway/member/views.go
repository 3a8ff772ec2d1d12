package member

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// Gateways tell each other, by the catalog, which nodes do not answer them, so that one that alone does not hear a node,
// for want of a route to it, does not give it up again and again while others take it back; and how far the stores had come,
// so that whichever attaches a node knows whether its store went back.

const (
	beatsAtMost   = 5 * time.Second      // between two views of a gateway, and between two looks at those of others of which nobody told
	markRest      = 5 * time.Millisecond // for each node between two records of marks, which have some 50 bytes for each
	lifeAtLeast   = 10 * time.Second     // how long a gateway whose view does not change counts as running
	staysDoubling = 10                   // how often the time that a disputed node stays is doubled at most
)

// views is what the gateways said last of the nodes.
type views struct {
	mutex   sync.Mutex
	own     catalog.View                     // as written last
	written time.Time                        // when that was; zero: never
	marked  time.Time                        // when marks were written last; zero: never
	marks   map[block.NodeID]block.Watermark // these
	reading *semaphore.Weighted              // one at a time reads and takes
	begun   atomic.Int64                     // reads of all, with the marks
	taken   int64                            // the last of them that was taken. The caller holds reading
	seen    map[string]sighting
	life    time.Duration // how long a sighting counts
	stay    map[block.NodeID]stay
	water   map[block.NodeID]block.Watermark // the highest mark of each store that any gateway heard
}

// sighting is the view of another gateway.
type sighting struct {
	view    catalog.View
	at      time.Time     // when it was first seen
	watched bool          // it came after another, so that ahead is known
	ahead   time.Duration // by how much its writer's clock is ahead of this gateway's
}

// stay is until when a node that was given up against another gateway's view, and is back, stays.
type stay struct {
	until   time.Time
	returns int // in dispute, in a row
}

// confer tells the other gateways which nodes do not answer, hears what they say, and gives up who most do not hear.
func (a *Agents) confer(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, greatestPatience) // a slow catalog must not keep probes waiting
	defer cancel()
	if err := exchangeViews(ctx, a); err != nil {
		if ctx.Err() == nil {
			a.log.Warn("conferring with other gateways", "cause", err)
		}
		return
	}
	a.giveUp(ctx)
}

// beat is the time between two views of a gateway.
func beat(a *Agents) time.Duration { return max(time.Second, min(beatsAtMost, a.patient().down/4)) }

func exchangeViews(ctx context.Context, a *Agents) error {
	if Wrote(a).IsZero() { // this one, before it was started again, may have heard more
		if err := readViews(ctx, a); err != nil {
			return err
		}
	}
	view, due := a.views.next(a.unheard(), beat(a))
	if !due {
		return nil
	}
	if !a.catalog.IsUpgraded() { // it is of the release before, and may have been upgraded since
		if err := a.catalog.Refresh(ctx); err != nil {
			return err
		}
	}
	if water, due := a.views.nextMarks(beat(a)); due { // before the view, for that of an earlier release has its marks in it
		if err := a.catalog.PutMarks(ctx, view.Gateway, water); err != nil {
			return err
		}
		a.views.wroteMarks(water)
	}
	view.At = a.Clock().UnixMilli()
	if err := a.catalog.PutView(ctx, a.views.last(), view); err != nil {
		return err
	}
	a.views.wrote(view)
	return nil
}

// readViews takes note of what all gateways say, among them this one before it was started again, and of the marks of stores that they
// heard, all as of a moment after the call. Calls that wait for a read share the next one.
func readViews(ctx context.Context, a *Agents) error {
	before := a.views.begun.Load()
	if err := a.views.reading.Acquire(ctx, 1); err != nil {
		return err
	}
	defer a.views.reading.Release(1)
	if a.views.taken > before {
		return nil
	}
	this := a.views.begun.Add(1)
	if err := readBy(ctx, a, a.catalog.Views); err != nil {
		return err
	}
	a.views.taken = this
	return nil
}

// hear takes note of what all gateways say of nodes.
func hear(ctx context.Context, a *Agents) error {
	ctx, cancel := context.WithTimeout(ctx, greatestPatience)
	defer cancel()
	if err := a.views.reading.Acquire(ctx, 1); err != nil {
		return err
	}
	defer a.views.reading.Release(1)
	if err := readBy(ctx, a, a.catalog.Signs); err != nil {
		return warn(ctx, a, "hearing other gateways", err)
	}
	return nil
}

// readBy reads views and takes note of them. The caller holds reading.
func readBy(ctx context.Context, a *Agents, read func(context.Context) ([]catalog.View, error)) error {
	all, err := read(ctx)
	if err != nil {
		return err
	}
	a.views.take(all, a.Clock(), max(lifeAtLeast, a.patient().down))
	return nil
}

// unheard returns the members that do not answer, in order.
func (a *Agents) unheard() (ids []block.NodeID) {
	for _, target := range a.All() {
		if trusted, _, _ := target.State(); !trusted {
			ids = append(ids, target.Node.ID)
		}
	}
	return ids
}

// next is the view to write, if it is time to or the nodes that are not heard are others.
func (v *views) next(unheard []block.NodeID, every time.Duration) (view catalog.View, due bool) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	due = v.written.IsZero() || time.Since(v.written) >= every || !slices.Equal(v.own.Unheard, unheard)
	return catalog.View{Gateway: v.own.Gateway, Count: v.own.Count + 1, Unheard: unheard, Schema: catalog.SchemaVersion}, due
}

// last is the view that was written last; zero: none was.
func (v *views) last() catalog.View {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.own
}

// nextMarks is the marks to write, if they have changed and were not written a moment ago, which is longer the more there are.
func (v *views) nextMarks(every time.Duration) (water map[block.NodeID]block.Watermark, due bool) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	due = len(v.water) > 0 && time.Since(v.marked) >= max(every, time.Duration(len(v.water))*markRest) && !maps.Equal(v.marks, v.water)
	return maps.Clone(v.water), due
}

func (v *views) wroteMarks(water map[block.NodeID]block.Watermark) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.marks, v.marked = water, time.Now()
}

// Wrote is when the gateway of the agents last wrote to the catalog what it sees of them, which it does every few seconds; zero: not
// yet.
func Wrote(a *Agents) time.Time {
	a.views.mutex.Lock()
	defer a.views.mutex.Unlock()
	return a.views.written
}

func (v *views) wrote(view catalog.View) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.own, v.written = view, time.Now()
}

// take takes note of the views of all gateways. One whose view does not change for life does not run any more.
func (v *views) take(all []catalog.View, clock time.Time, life time.Duration) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	now, seen := time.Now(), map[string]sighting{}
	for _, view := range all {
		for node, mark := range view.Water {
			v.noteWater(node, mark)
		}
		if view.Gateway == v.own.Gateway || view.Count == 0 {
			continue
		}
		was, known := v.seen[view.Gateway]
		if known && was.view.Count == view.Count && was.view.At == view.At {
			seen[view.Gateway] = was
			continue
		}
		seen[view.Gateway] = sighting{view: view, at: now, watched: known, ahead: time.UnixMilli(view.At).Sub(clock)}
	}
	v.seen, v.life = seen, life
}

// heard takes note of the mark that the agent of a node says its store has.
func (v *views) heard(node block.NodeID, mark block.Watermark) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.noteWater(node, mark)
}

// noteWater is heard for a caller that holds the mutex.
func (v *views) noteWater(node block.NodeID, mark block.Watermark) {
	if v.water == nil {
		v.water = map[block.NodeID]block.Watermark{}
	}
	v.water[node] = v.water[node].Max(mark)
}

// waterOf returns the highest mark of a node's store that is known.
func (v *views) waterOf(node block.NodeID) block.Watermark {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.water[node]
}

// live returns the views of the gateways that run, this one's first. The caller holds the mutex.
func (v *views) live() []catalog.View {
	list := []catalog.View{v.own}
	for _, found := range v.seen {
		if time.Since(found.at) <= v.life {
			list = append(list, found.view)
		}
	}
	return list
}

// IsUnheard reports whether most of the gateways that run do not hear a node.
func (a *Agents) IsUnheard(id block.NodeID) bool {
	a.views.mutex.Lock()
	defer a.views.mutex.Unlock()
	live := a.views.live()
	return 2*countUnheard(live, id) > len(live)
}

func countUnheard(views []catalog.View, id block.NodeID) (count int) {
	for i := range views {
		if slices.Contains(views[i].Unheard, id) {
			count++
		}
	}
	return count
}

// returned takes note of a node that was given up and is back. If somebody still does not hear it, it stays for a time that
// doubles with every such return.
func (v *views) returned(id block.NodeID, p patience) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.stay == nil {
		v.stay = map[block.NodeID]stay{}
	}
	if countUnheard(v.live(), id) == 0 {
		delete(v.stay, id)
		return
	}
	returns := v.stay[id].returns
	v.stay[id] = stay{until: time.Now().Add(max(p.out, 0) << min(returns, staysDoubling)), returns: returns + 1}
}

// stays reports whether a node is not given up yet, as it came back while gateways disagreed about it.
func (v *views) stays(id block.NodeID) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return time.Now().Before(v.stay[id].until)
}

// Disagreement is a node that some gateways reach and others do not.
type Disagreement struct {
	Node           block.NodeID
	Heard, Unheard []string // gateways that run, in order
}

// Disagreements returns the nodes about which the gateways that run disagree.
func (a *Agents) Disagreements() (list []Disagreement) {
	a.views.mutex.Lock()
	live := a.views.live()
	a.views.mutex.Unlock()
	slices.SortFunc(live, func(one, other catalog.View) int { return cmp.Compare(one.Gateway, other.Gateway) })
	for _, target := range a.All() {
		d := Disagreement{Node: target.Node.ID}
		for i := range live {
			if slices.Contains(live[i].Unheard, d.Node) {
				d.Unheard = append(d.Unheard, live[i].Gateway)
			} else {
				d.Heard = append(d.Heard, live[i].Gateway)
			}
		}
		if len(d.Heard) > 0 && len(d.Unheard) > 0 {
			list = append(list, d)
		}
	}
	return list
}

// ClocksAhead returns by how much the clocks of the other gateways that run are ahead of this one's, as far as it was seen
// when they wrote: to a few seconds.
func (a *Agents) ClocksAhead() map[string]time.Duration {
	a.views.mutex.Lock()
	defer a.views.mutex.Unlock()
	ahead := map[string]time.Duration{}
	for gateway, found := range a.views.seen {
		if found.watched && time.Since(found.at) <= a.views.life {
			ahead[gateway] = found.ahead
		}
	}
	return ahead
}
