package catalog_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/catalogtest"
	"github.com/restripe/restripe/agent/catalog/mem"
	"pgregory.net/rapid"
)

// machine runs random interleavings of attempts of two catalogs, with lost, late and repeated requests, against a model
// that is told outcomes only: the revision of every key.
type machine struct {
	*world
	keys      []string
	revisions map[string]block.Stamp // as told; absent keys have none
	latest    map[string]block.Stamp // the greatest that each key had
	attempts  []*modelled
	ahead     []*modelled // announced, and not used yet
	losses    int
	counts    map[string]int // of commits, by operation and answer
}

// modelled is an operation and what the model knows of it.
type modelled struct {
	operation
	name     string
	deadline time.Time
	ended    bool
	done     bool
	isAhead  bool
	owner    *catalog.Catalog // of one that was announced ahead
}

// TestInterleavings compares the catalog with the model after every step, and audits it.
func TestInterleavings(t *testing.T) {
	if err := flag.Set("rapid.steps", "80"); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	defer func() { t.Log(counts) }()
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{
			counts: counts, world: newWorld(rt, mem.New()), keys: []string{"k0", "k1", "k2"},
			revisions: map[string]block.Stamp{}, latest: map[string]block.Stamp{},
		}
		m.behind = time.Duration(rapid.IntRange(0, 20).Draw(rt, "behind")) * time.Second
		m.faults.Decide = func() catalogtest.Fault {
			// Mostly none: a call has to come to an end.
			return max(0, catalogtest.Fault(rapid.IntRange(-12, int(catalogtest.Duplicate)).Draw(rt, "fault")))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"":           m.check,
			"put":        m.beginPut,
			"announce1":  m.announceOne,
			"announce2":  m.announceOne,
			"use1":       m.useAhead,
			"use2":       m.useAhead,
			"discard":    m.discardAhead,
			"large":      m.beginLarge,
			"piece1":     m.commitPiece,
			"piece2":     m.commitPiece,
			"append":     m.beginAppend,
			"update":     m.beginUpdate,
			"move":       m.beginMove,
			"transition": m.beginTransition,
			"repair":     m.beginRepair,
			"widen1":     m.beginWiden,
			"widen2":     m.beginWiden,
			"narrow":     m.beginNarrow,
			"commit1":    m.commit,
			"commit2":    m.commit,
			"commit3":    m.commit,
			"commit4":    m.commit,
			"commit5":    m.commit,
			"have1":      m.putAtOnce,
			"have2":      m.putAtOnce,
			"abort":      m.abort,
			"settle":     m.settle,
			"expire":     m.expire,
			"delete":     m.delete,
			"free":       m.free,
			"late":       m.late,
			"bury":       func(rt *rapid.T) { m.bury(rt, m.pick(rt)) },
			"scan":       func(rt *rapid.T) { m.orphans(rt, m.pick(rt), m.list()) },
			"lose":       m.loseContents,
		})
	})
}

func (m *machine) pick(rt *rapid.T) *catalog.Catalog {
	return rapid.SampledFrom([]*catalog.Catalog{m.a, m.b}).Draw(rt, "catalog")
}

func (m *machine) key(rt *rapid.T) string { return rapid.SampledFrom(m.keys).Draw(rt, "key") }

func (m *machine) add(name string, o operation) {
	m.attempts = append(m.attempts, &modelled{operation: o, name: name, deadline: m.now.Add(time.Minute)})
}

func (m *machine) beginPut(rt *rapid.T) {
	keys := rapid.SliceOfNDistinct(rapid.SampledFrom(m.keys), 1, 3, rapid.ID[string]).Draw(rt, "keys")
	put := m.put(rt, m.pick(rt), keys...)
	m.follows(rt, put.Stamp(), keys)
	if rapid.Bool().Draw(rt, "conditional") {
		put.change.IfRevision = map[string]block.Stamp{keys[0]: m.revisions[keys[0]]}
	}
	m.add("put", put)
}

func (m *machine) announceOne(rt *rapid.T) {
	owner := m.pick(rt)
	m.ahead = append(m.ahead, &modelled{
		operation: operation{Attempt: m.announceAhead(rt, owner)}, name: "put ahead", deadline: m.now.Add(time.Minute),
		isAhead: true, owner: owner,
	})
}

// anyAhead takes an attempt that was announced ahead.
func (m *machine) anyAhead(rt *rapid.T) *modelled {
	if len(m.ahead) == 0 {
		rt.Skip("none was announced ahead")
	}
	i := rapid.IntRange(0, len(m.ahead)-1).Draw(rt, "ahead")
	o := m.ahead[i]
	m.ahead = slices.Delete(m.ahead, i, i+1)
	return o
}

func (m *machine) useAhead(rt *rapid.T) {
	keys := rapid.SliceOfNDistinct(rapid.SampledFrom(m.keys), 1, 3, rapid.ID[string]).Draw(rt, "keys")
	o := m.anyAhead(rt)
	if o.ended {
		rt.Skip("it has expired, so that nothing is written under it")
	}
	o.operation = m.putAhead(o.Attempt, keys...)
	m.attempts = append(m.attempts, o)
}

func (m *machine) discardAhead(rt *rapid.T) {
	o := m.anyAhead(rt)
	must(rt, o.owner.Discard(m.ctx, o.Attempt))
	if err := o.Abort(m.ctx); err != nil {
		rt.Fatalf("an attempt that was discarded: %v", err)
	}
}

func (m *machine) beginLarge(rt *rapid.T) {
	key := m.key(rt)
	put := m.large(rt, m.pick(rt), key, rapid.IntRange(2, 5).Draw(rt, "groups"))
	m.follows(rt, put.Stamp(), []string{key})
	m.add("large put", put)
}

// commitPiece commits the next piece of a large object, now and then with what else may happen between its reading and its writing.
func (m *machine) commitPiece(rt *rapid.T) {
	o := m.anyAttempt(rt)
	if len(o.pieces) == 0 {
		rt.Skip("no piece")
	}
	piece := &modelled{operation: operation{change: catalog.Change{NewGroups: o.pieces[0]}}}
	wish := !o.ended && m.admissible(rt, piece)
	if other := m.anyAttempt(rt); other != o && len(other.pieces) == 0 && rapid.Bool().Draw(rt, "race") {
		m.engine.beforeUpdate = func() {
			m.commitOne(rt, other, nil)
			_, _, err := m.b.FreeAll(m.ctx)
			must(rt, err)
			wish = wish && m.admissible(rt, piece)
		}
		defer func() { m.engine.beforeUpdate = nil }()
	}
	err := o.commitPiece(m.world)
	m.count("piece", err)
	switch {
	case err == nil && !wish:
		rt.Fatalf("a piece of %s was committed and must not be", o.Stamp())
	case err != nil && wish:
		rt.Fatalf("committing a piece of %s, with nothing against it: %v", o.Stamp(), err)
	case err != nil && !errors.Is(err, catalog.ErrStale) && !errors.Is(err, catalog.ErrNotActive):
		rt.Fatalf("committing a piece of %s: %v", o.Stamp(), err)
	}
}

// putAtOnce stores keys without disturbance, for the other operations to work on.
func (m *machine) putAtOnce(rt *rapid.T) {
	keys := rapid.SliceOfNDistinct(rapid.SampledFrom(m.keys), 1, 3, rapid.ID[string]).Draw(rt, "keys")
	put := m.put(rt, m.b, keys...)
	m.follows(rt, put.Stamp(), keys)
	if !m.admissible(rt, &modelled{operation: put}) {
		rt.Fatalf("a put of the stores as they are is not admissible")
	}
	must(rt, put.commit(m.world))
	for _, key := range keys {
		m.told(key, put.Stamp())
	}
}

// follows checks that a put that begins has a later stamp than whatever its keys had (rule 43).
func (m *machine) follows(rt *rapid.T, stamp block.Stamp, keys []string) {
	for _, key := range keys {
		if stamp.Compare(m.latest[key]) <= 0 {
			rt.Fatalf("a put of %q is announced as %s, and there was %s", key, stamp, m.latest[key])
		}
	}
}

// told takes note of a revision.
func (m *machine) told(key string, revision block.Stamp) {
	m.revisions[key] = revision
	if m.latest[key].Compare(revision) > 0 {
		m.counts["commit out of order"]++
		return
	}
	m.latest[key] = revision
}

func (m *machine) anyGroup(rt *rapid.T) *catalog.GroupView {
	groups, err := m.b.ListGroups(m.ctx, block.GroupID{}, 100)
	must(rt, err)
	if len(groups) == 0 {
		rt.Skip("no group")
	}
	return &groups[rapid.IntRange(0, len(groups)-1).Draw(rt, "group")]
}

// aGroup is anyGroup that meets a condition.
func (m *machine) aGroup(rt *rapid.T, is func(*catalog.GroupView) bool) *catalog.GroupView {
	group := m.anyGroup(rt)
	if !is(group) {
		rt.Skip("no such group")
	}
	return group
}

func isNarrow(group *catalog.GroupView) bool { return len(group.Brought) == 0 }

func (m *machine) beginWiden(rt *rapid.T) {
	kept := m.aGroup(rt, isNarrow)
	taken := m.aGroup(rt, func(group *catalog.GroupView) bool {
		return isNarrow(group) && group.ID != kept.ID && sameRows(kept, group)
	})
	m.add("widen", m.widen(rt, m.pick(rt), kept, taken))
}

// sameRows reports whether no column of the groups has been appended to.
func sameRows(groups ...*catalog.GroupView) bool {
	for _, group := range groups {
		for _, slot := range group.Slots[:group.Columns] {
			if slot.End() != 4 {
				return false
			}
		}
	}
	return true
}

func (m *machine) beginNarrow(rt *rapid.T) {
	kept := m.aGroup(rt, func(group *catalog.GroupView) bool { return !isNarrow(group) })
	taken, err := m.b.Group(m.ctx, kept.Brought[0].Group)
	if errors.Is(err, catalog.ErrNoGroup) {
		taken, err = nil, nil
	}
	must(rt, err)
	m.add("narrow", m.narrow(rt, m.pick(rt), kept, taken))
}

func (m *machine) anySnapshot(rt *rapid.T) *catalog.Snapshot {
	snapshot, err := m.b.Snapshot(m.ctx, m.key(rt))
	if errors.Is(err, catalog.ErrNoObject) {
		rt.Skip("no object")
	}
	must(rt, err)
	return snapshot
}

func (m *machine) beginAppend(rt *rapid.T) {
	m.add("append", m.append(rt, m.pick(rt), m.aGroup(rt, isNarrow), m.key(rt)))
}
func (m *machine) beginMove(rt *rapid.T) { m.add("move", m.move(rt, m.pick(rt), m.anySnapshot(rt))) }
func (m *machine) beginTransition(rt *rapid.T) {
	m.add("transition", m.transition(rt, m.pick(rt), m.anyGroup(rt)))
}

func (m *machine) beginUpdate(rt *rapid.T) {
	snapshot := m.anySnapshot(rt)
	if snapshot.Object.Extents[0].Column == parity {
		rt.Skip("not in a data column")
	}
	m.add("update", m.update(rt, m.pick(rt), snapshot))
}

func (m *machine) beginRepair(rt *rapid.T) {
	group := m.anyGroup(rt)
	slot := rapid.IntRange(0, group.Columns).Draw(rt, "slot")
	if items := group.Slots[slot]; len(items) > 1 {
		rt.Skip("the slot is in several blocks")
	}
	node := group.Slots[slot][0].Node
	if free := m.freeNode(&group.Group); rapid.Bool().Draw(rt, "elsewhere") {
		node = free
	}
	m.add("repair", m.repair(rt, m.pick(rt), group, slot, node))
}

// freeNode returns the node that has no slot of the group.
func (m *machine) freeNode(group *catalog.Group) block.NodeID {
	nodes := slices.Concat(home, []block.NodeID{spare}, further)
	for _, items := range group.Slots {
		for _, item := range items {
			nodes = slices.DeleteFunc(nodes, func(node block.NodeID) bool { return node == item.Node })
		}
	}
	return nodes[0]
}

func (m *machine) anyAttempt(rt *rapid.T) *modelled {
	if len(m.attempts) == 0 {
		rt.Skip("no attempt")
	}
	var open []*modelled
	for _, o := range m.attempts {
		if !o.ended {
			open = append(open, o)
		}
	}
	// Now and then one that has ended: a late or repeated call.
	if len(open) > 0 && rapid.IntRange(0, 4).Draw(rt, "ended") > 0 {
		return rapid.SampledFrom(open).Draw(rt, "attempt")
	}
	return m.attempts[len(m.attempts)-1-rapid.IntRange(0, min(5, len(m.attempts)-1)).Draw(rt, "attempt")]
}

// commit commits an attempt, now and then with another one's commit between its reading and its writing.
func (m *machine) commit(rt *rapid.T) {
	o := m.anyAttempt(rt)
	if len(o.pieces) > 0 {
		rt.Skip("it has pieces to commit")
	}
	if other := m.anyAttempt(rt); other != o && len(other.pieces) == 0 && rapid.Bool().Draw(rt, "race") {
		m.commitOne(rt, o, func() { m.commitOne(rt, other, nil) })
		return
	}
	m.commitOne(rt, o, nil)
}

// commitOne predicts the outcome from the records as they are just before they are written, and compares.
func (m *machine) commitOne(rt *rapid.T, o *modelled, between func()) {
	wish := m.admissible(rt, o)
	if between != nil {
		m.engine.beforeUpdate = func() {
			between()
			wish = wish && m.admissible(rt, o)
		}
		defer func() { m.engine.beforeUpdate = nil }()
	}
	wasDone, wasEnded := o.done, o.ended
	err := o.Attempt.Commit(m.ctx, o.change)
	o.ended = true
	m.count(o.name, err)
	switch {
	case wasDone:
		must(rt, err)
		return
	case wasEnded || !wish:
		if err == nil {
			rt.Fatalf("%s %s committed and must not", o.name, o.Stamp())
		}
		if !errors.Is(err, catalog.ErrStale) && !errors.Is(err, catalog.ErrNotActive) {
			rt.Fatalf("committing %s: %v", o.name, err)
		}
		return
	case o.isAhead && isStale(err, catalog.ViolationAhead):
		m.counts["put ahead, overtaken"]++
		return
	case err != nil:
		// Only a request that was lost may fail what is admissible.
		if !errors.Is(err, catalog.ErrNotActive) || !errors.Is(err, catalogtest.ErrLost) {
			rt.Fatalf("committing %s, with nothing against it: %v", o.name, err)
		}
		return
	}
	o.done = true
	for _, object := range o.change.Put {
		if o.isAhead && m.latest[object.Key].Compare(o.Stamp()) > 0 {
			rt.Fatalf("%q was put by %s, which was announced ahead, and there was %s", object.Key, o.Stamp(), m.latest[object.Key])
		}
		m.told(object.Key, o.Stamp())
	}
	if o.change.Update != nil {
		m.told(o.change.Update.Snapshot.Object.Key, o.Stamp())
	}
}

func isStale(err error, violation catalog.Violation) bool {
	var stale *catalog.StaleError
	return errors.As(err, &stale) && stale.Has(violation)
}

// count shows in the log of the test that every operation did commit and was refused.
func (m *machine) count(name string, err error) {
	switch {
	case err == nil:
		name += " committed"
	case errors.Is(err, catalog.ErrStale):
		name += " stale"
	default:
		name += " not active"
	}
	m.counts[name]++
}

// admissible is rule 6 in a few lines, over records as they are now.
func (m *machine) admissible(rt *rapid.T, o *modelled) bool {
	whole := func(slots []catalog.Slot, only []int) bool {
		for slot, items := range slots {
			for _, item := range items {
				if (only == nil || slices.Contains(only, slot)) && item.Incarnation != m.incarnations[item.Node] {
					return false
				}
			}
		}
		return true
	}
	for i := range o.change.NewGroups {
		if !whole(o.change.NewGroups[i].Slots, nil) {
			return false
		}
	}
	for _, group := range o.change.Groups {
		now, err := m.b.Group(m.ctx, group.Was.ID)
		if errors.Is(err, catalog.ErrNoGroup) {
			return false
		}
		must(rt, err)
		if now.Generation != group.Was.Generation || !whole(group.Slots, o.change.RepairedSlots[group.Was.ID]) {
			return false
		}
		if len(o.change.Put) > 0 && !now.Open { // it was dissolved once, or took columns of others
			return false
		}
	}
	for key, revision := range o.change.IfRevision {
		if m.revisions[key] != revision {
			return false
		}
	}
	asRead := func(was *catalog.Snapshot) bool {
		now, err := m.b.Snapshot(m.ctx, was.Object.Key)
		if errors.Is(err, catalog.ErrNoObject) {
			return false
		}
		must(rt, err)
		return now.Object.Revision == was.Object.Revision && slices.Equal(now.Object.Extents, was.Object.Extents)
	}
	if o.change.Update != nil && !asRead(o.change.Update.Snapshot) {
		return false
	}
	for _, move := range o.change.Move {
		if !asRead(move.Snapshot) {
			return false
		}
	}
	return true
}

func (m *machine) abort(rt *rapid.T) {
	o := m.anyAttempt(rt)
	err := o.Abort(m.ctx)
	if o.done != errors.Is(err, catalog.ErrCommitted) || (!o.done && err != nil) {
		rt.Fatalf("aborting %s, done %v: %v", o.name, o.done, err)
	}
	o.ended = true
}

func (m *machine) settle(rt *rapid.T) {
	o := m.anyAttempt(rt)
	outcome, err := m.pick(rt).Settle(m.ctx, o.Stamp())
	must(rt, err)
	if (outcome == catalog.Done) != o.done || outcome == catalog.Unknown {
		rt.Fatalf("settling %s, done %v: %s", o.name, o.done, outcome)
	}
	o.ended = true
}

func (m *machine) expire(rt *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(0, 40).Draw(rt, "seconds")) * time.Second)
	want := 0
	result, err := m.b.Expire(m.ctx, m.now, 24*time.Hour)
	must(rt, err)
	for _, o := range slices.Concat(m.attempts, m.ahead) {
		if !o.ended && o.deadline.Before(m.now) {
			o.ended = true
			want++
		}
	}
	if result.Expired != want {
		rt.Fatalf("%d attempts expired, want %d", result.Expired, want)
	}
}

func (m *machine) delete(rt *rapid.T) {
	key := m.key(rt)
	var condition *block.Stamp
	if rapid.Bool().Draw(rt, "conditional") {
		revision := m.revisions[key]
		condition = &revision
		if rapid.Bool().Draw(rt, "stale") {
			condition = &block.Stamp{Sequence: 1, Salt: 1}
		}
	}
	existed, err := m.pick(rt).Delete(m.ctx, key, condition)
	revision, there := m.revisions[key]
	stale := condition != nil && *condition != revision
	switch {
	case errors.Is(err, catalog.ErrNotActive) && errors.Is(err, catalogtest.ErrLost):
		// A lost request; the model keeps the key.
	case stale:
		is(rt, err, catalog.ErrStale)
	case !there:
		is(rt, err, catalog.ErrNoObject)
	default:
		must(rt, err)
		delete(m.revisions, key)
	}
	if existed != (err == nil) {
		rt.Fatalf("deleting %q: existed %v, %v", key, existed, err)
	}
}

func (m *machine) free(rt *rapid.T) {
	c := m.pick(rt)
	if rapid.Bool().Draw(rt, "all") {
		_, _, err := c.FreeAll(m.ctx)
		must(rt, err)
		return
	}
	group := m.anyGroup(rt)
	if len(group.Brought) > 0 && rapid.Bool().Draw(rt, "what lies in it") {
		lies, err := m.b.Group(m.ctx, group.Brought[0].Group)
		if errors.Is(err, catalog.ErrNoGroup) {
			rt.Skip("it is gone")
		}
		must(rt, err)
		group = lies
	}
	freed, err := c.Free(m.ctx, group.ID)
	must(rt, err)
	if freed != (group.Live == 0) {
		rt.Fatalf("group of live count %d: freed %v", group.Live, freed)
	}
}

// late lets a delayed or repeated request arrive, or a block be written after its delete.
func (m *machine) late(rt *rapid.T) {
	if count := m.faults.Late(); count > 0 {
		must(rt, m.faults.Deliver(context.Background(), rapid.IntRange(0, count-1).Draw(rt, "request"), rapid.Bool().Draw(rt, "again")))
	}
}

func (m *machine) loseContents(rt *rapid.T) {
	node := rapid.SampledFrom(slices.Concat(home, []block.NodeID{spare}, further)).Draw(rt, "node")
	m.losses++
	m.lose(rt, node, fmt.Sprint(m.losses))
}

// check compares the records with the model.
func (m *machine) check(rt *rapid.T) {
	m.audit(rt)
	objects, err := m.b.ListObjects(m.ctx, "", "", 100)
	must(rt, err)
	if len(objects) != len(m.revisions) {
		rt.Fatalf("%d objects, the model has %d", len(objects), len(m.revisions))
	}
	for _, object := range objects {
		if m.revisions[object.Key] != object.Revision {
			rt.Fatalf("object %q has the revision %s, the model %s", object.Key, object.Revision, m.revisions[object.Key])
		}
	}
}
