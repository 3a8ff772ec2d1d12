package catalog_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/catalogtest"
)

// widen prepares dissolving a group into further columns of another, on nodes that have nothing of that.
func (w *world) widen(t failer, c *catalog.Catalog, kept, taken *catalog.GroupView) operation {
	t.Helper()
	var nodes []block.NodeID
	for _, node := range slices.Concat(home, []block.NodeID{spare}, further) {
		has := slices.ContainsFunc(kept.Slots, func(slot catalog.Slot) bool { return len(slot) > 0 && slot[0].Node == node })
		if !has && len(nodes) < taken.Columns {
			nodes = append(nodes, node)
		}
	}
	parities := kept.Slots[kept.Columns:]
	columns := kept.Columns + taken.Columns
	set := catalog.BlockSet{Group: kept.ID}
	for i, node := range nodes {
		set.Slots, set.Nodes = append(set.Slots, kept.Columns+i), append(set.Nodes, node)
	}
	for i, slot := range parities {
		set.Slots, set.Nodes = append(set.Slots, columns+i), append(set.Nodes, slot[0].Node)
	}
	attempt := w.begin(t, c, catalog.KindWiden, func(block.Stamp) []catalog.BlockSet { return []catalog.BlockSet{set} }, kept, taken)
	slots := slices.Clone(kept.Slots[:kept.Columns])
	width := catalog.GroupWidth{Columns: columns, Brought: slices.Clone(kept.Brought)}
	dissolved := catalog.GroupWidth{Columns: taken.Columns, Brought: taken.Brought}
	for i, node := range nodes {
		slots = append(slots, w.stage(attempt, node))
		width.Brought = append(width.Brought, catalog.Column{Group: taken.ID, Column: i})
		dissolved.Lies = append(dissolved.Lies, catalog.Column{Group: kept.ID, Column: kept.Columns + i})
	}
	for _, slot := range parities {
		slots = append(slots, w.stage(attempt, slot[0].Node))
	}
	home := slices.Concat(kept.Home[:kept.Columns], nodes, kept.Home[kept.Columns:])
	return operation{Attempt: attempt, change: catalog.Change{Groups: []catalog.GroupChange{
		{Was: kept, Slots: slots, NewEpoch: true, Seal: true, Home: home, Width: &width}, {Was: taken, Width: &dissolved},
	}}}
}

// stage is a slot of four rows that an attempt writes.
func (w *world) stage(attempt *catalog.Attempt, node block.NodeID) catalog.Slot {
	return catalog.Slot{{Units: 4, Stamp: attempt.Stamp(), Node: node, Incarnation: w.incarnations[node]}}
}

// narrow prepares taking a group out of the last columns of another again; nil where it is gone.
func (w *world) narrow(t failer, c *catalog.Catalog, kept, taken *catalog.GroupView) operation {
	t.Helper()
	columns, row := kept.Columns-2, kept.Columns
	node := kept.Slots[row][0].Node
	sets := []catalog.BlockSet{{Group: kept.ID, Slots: []int{columns}, Nodes: []block.NodeID{node}}}
	basis := []catalog.Basis{kept}
	nodes := slices.Clone(home)
	if taken != nil {
		sets = append(sets, catalog.BlockSet{Group: taken.ID, Slots: []int{0, 1, parity}, Nodes: nodes})
		basis = append(basis, taken)
	}
	attempt := w.begin(t, c, catalog.KindNarrow, func(block.Stamp) []catalog.BlockSet { return sets }, basis...)
	groups := []catalog.GroupChange{{
		Was: kept, Slots: append(slices.Clone(kept.Slots[:columns]), w.stage(attempt, node)), NewEpoch: true,
		Home:  slices.Concat(kept.Home[:columns], kept.Home[row:]),
		Width: &catalog.GroupWidth{Columns: columns, Brought: kept.Brought[:len(kept.Brought)-2]},
	}}
	if taken != nil {
		width := &catalog.GroupWidth{Columns: taken.Columns, Brought: taken.Brought}
		back := catalog.GroupChange{Was: taken, NewEpoch: true, Home: nodes, Width: width}
		for _, node := range nodes {
			back.Slots = append(back.Slots, w.stage(attempt, node))
		}
		groups = append(groups, back)
	}
	return operation{Attempt: attempt, change: catalog.Change{Groups: groups}}
}

// lies checks where a key lies, by each way of reading its records.
func (w *world) lies(t *testing.T, key string, want catalog.Column, groups int) {
	t.Helper()
	for range 2 { // the second time by what was seen before
		one := w.snapshot(t, key)
		read, isWhole, err := w.b.SnapshotToRead(w.ctx, key, 1)
		must(t, err)
		again, err := w.b.Again(w.ctx, one, 0, 10)
		must(t, err)
		extent := one.Object.Extents[0]
		inside, err := w.b.Inside(w.ctx, extent.Group, []string{key})
		must(t, err)
		for name, snapshot := range map[string]*catalog.Snapshot{
			"Snapshot": one, "SnapshotToRead": read, "Again": again, "Inside": inside.Snapshots[0],
		} {
			at, in, err := snapshot.Where(extent.Group, extent.Column)
			if err != nil || at != want || in.ID != want.Group || len(snapshot.Groups) != groups || snapshot.View(want.Group) == nil {
				t.Fatalf("%s: %q lies in %v of %d groups, %v; want %v of %d", name, key, at, len(snapshot.Groups), err, want, groups)
			}
		}
		if !isWhole {
			t.Fatalf("not all groups of %q were read", key)
		}
	}
}

// A group is dissolved into columns of another and taken out again: objects go on naming it, and are found, changed and deleted.
func TestAGroupIsDissolvedAndComesBack(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		kept, taken := w.have(t, "a", "b"), w.have(t, "c", "d")
		w.lies(t, "d", catalog.Column{Group: taken, Column: 1}, 1)
		must(t, w.widen(t, w.a, w.group(t, kept), w.group(t, taken)).commit(w))
		w.audit(t)
		w.lies(t, "d", catalog.Column{Group: kept, Column: 3}, 2)
		w.lies(t, "b", catalog.Column{Group: kept, Column: 1}, 1)
		wide, dissolved := w.group(t, kept), w.group(t, taken)
		if wide.Live != 4 || dissolved.Live != 2 || wide.Span() != 2 || wide.Columns != 4 || wide.Open {
			t.Errorf("%+v and %+v", wide, dissolved)
		}
		revision := w.snapshot(t, "d").Object.Revision
		must(t, w.update(t, w.a, w.snapshot(t, "d")).commit(w))
		must(t, w.transition(t, w.b, w.group(t, kept)).commit(w))
		must(t, w.repair(t, w.b, w.group(t, kept), 3, further[2]).commit(w))
		if is := w.snapshot(t, "d"); is.Object.Revision == revision || is.Object.Extents[0].Group != taken {
			t.Errorf("after an update: %+v", is.Object)
		}
		w.audit(t)
		must(t, w.narrow(t, w.a, w.group(t, kept), w.group(t, taken)).commit(w))
		w.audit(t)
		w.lies(t, "d", catalog.Column{Group: taken, Column: 1}, 1)
		narrow, back := w.group(t, kept), w.group(t, taken)
		if narrow.Live != 2 || back.Live != 2 || narrow.Columns != 2 || len(narrow.Slots) != 3 {
			t.Errorf("%+v and %+v", narrow, back)
		}
		for _, key := range []string{"a", "b", "c", "d"} {
			_, err := w.a.Delete(w.ctx, key, nil)
			must(t, err)
		}
		w.empty(t)
	})
}

// What lies in a group keeps it, whatever becomes of its own objects, and no longer than itself.
func TestAColumnKeepsTheGroupThatItLiesIn(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		remove := func(keys ...string) {
			for _, key := range keys {
				_, err := w.a.Delete(w.ctx, key, nil)
				must(t, err)
			}
			for range 2 { // what is free by the first of them may have been looked at before
				_, _, err := w.a.FreeAll(w.ctx)
				must(t, err)
			}
			w.audit(t)
		}
		kept, taken, last := w.have(t, "a", "b"), w.have(t, "c", "d"), w.have(t, "e", "f")
		must(t, w.widen(t, w.a, w.group(t, kept), w.group(t, taken)).commit(w))
		must(t, w.widen(t, w.a, w.group(t, last), w.group(t, kept)).commit(w)) // with what lies in it
		w.audit(t)
		w.lies(t, "c", catalog.Column{Group: last, Column: 4}, 3)
		w.lies(t, "b", catalog.Column{Group: last, Column: 3}, 2)
		remove("a", "b", "e", "f")
		w.lies(t, "c", catalog.Column{Group: last, Column: 4}, 3)
		must(t, w.update(t, w.a, w.snapshot(t, "d")).commit(w))
		remove("c", "d")
		if groups, err := w.b.ListGroups(w.ctx, block.GroupID{}, 10); err != nil || len(groups) > 0 {
			t.Errorf("there still are %v, %v", groups, err)
		}
		w.empty(t)
	})
}

// Columns that are nobody's any more are dropped, and others are not.
func TestNarrowingDropsWhatIsGone(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		kept, taken := w.have(t, "a", "b"), w.have(t, "c", "d")
		must(t, w.widen(t, w.a, w.group(t, kept), w.group(t, taken)).commit(w))
		if err := w.narrow(t, w.a, w.group(t, kept), nil).commit(w); !errors.Is(err, catalog.ErrBadChange) {
			t.Fatalf("dropping columns that somebody's data lies in: %v", err)
		}
		for _, key := range []string{"c", "d"} {
			_, err := w.a.Delete(w.ctx, key, nil)
			must(t, err)
		}
		if err := w.narrow(t, w.a, w.group(t, kept), nil).commit(w); !errors.Is(err, catalog.ErrBadChange) {
			t.Fatalf("dropping columns of a group that is not freed yet: %v", err)
		}
		_, _, err := w.a.FreeAll(w.ctx)
		must(t, err)
		must(t, w.narrow(t, w.a, w.group(t, kept), nil).commit(w))
		if is := w.group(t, kept); is.Live != 2 || is.Columns != 2 {
			t.Errorf("%+v", is)
		}
		w.audit(t)
	})
}

// A widening is computed from records that may change before it commits: each of them is compared, those of columns too.
func TestWideningComparesAllThatItIsComputedFrom(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		for name, meanwhile := range map[string]func(t *testing.T, kept, taken block.GroupID, key string){
			"an update of the group that is dissolved": func(t *testing.T, _, _ block.GroupID, key string) {
				must(t, w.update(t, w.b, w.snapshot(t, key)).commit(w))
			},
			"a transition of the group that is kept": func(t *testing.T, kept, _ block.GroupID, _ string) {
				must(t, w.transition(t, w.b, w.group(t, kept)).commit(w))
			},
			"another widening": func(t *testing.T, kept, taken block.GroupID, _ string) {
				must(t, w.widen(t, w.b, w.group(t, taken), w.group(t, kept)).commit(w))
			},
		} {
			t.Run(name, func(t *testing.T) {
				kept, taken := w.have(t, name+"a"), w.have(t, name+"c")
				late := w.widen(t, w.a, w.group(t, kept), w.group(t, taken))
				meanwhile(t, kept, taken, name+"c")
				violates(t, late.commit(w), catalog.ViolationGroup)
				w.audit(t)
			})
		}
	})
}

func TestWideningsThatContradictThemselves(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		for name, spoil := range map[string]func(kept, taken *catalog.GroupChange, change *catalog.Change){
			"a column that lies nowhere": func(_, taken *catalog.GroupChange, _ *catalog.Change) { taken.Width.Lies[0] = catalog.Column{} },
			"two columns in one":         func(_, taken *catalog.GroupChange, _ *catalog.Change) { taken.Width.Lies[0] = taken.Width.Lies[1] },
			"in a column that was there": func(_, taken *catalog.GroupChange, _ *catalog.Change) { taken.Width.Lies[0].Column = 0 },
			"in itself":                  func(_, taken *catalog.GroupChange, _ *catalog.Change) { taken.Width.Lies[0].Group = taken.Was.ID },
			"nothing brought":            func(kept, _ *catalog.GroupChange, _ *catalog.Change) { kept.Width.Brought = nil },
			"brought from nowhere":       func(kept, _ *catalog.GroupChange, _ *catalog.Change) { kept.Width.Brought[0] = catalog.Column{} },
			"brought from elsewhere":     func(kept, _ *catalog.GroupChange, _ *catalog.Change) { kept.Width.Brought[0].Column = 1 },
			"of fewer columns":           func(kept, _ *catalog.GroupChange, _ *catalog.Change) { kept.Width.Columns-- },
			"nothing dissolved":          func(_, _ *catalog.GroupChange, change *catalog.Change) { change.Groups = change.Groups[:1] },
			"nothing kept":               func(_, _ *catalog.GroupChange, change *catalog.Change) { change.Groups = change.Groups[1:] },
			"another column rewritten": func(kept, _ *catalog.GroupChange, _ *catalog.Change) {
				kept.Slots[0] = catalog.Slot{{Units: 4, Stamp: kept.Slots[0][0].Stamp, Node: spare, Incarnation: w.incarnations[spare]}}
			},
			"fewer rows":   func(kept, _ *catalog.GroupChange, _ *catalog.Change) { kept.Slots[2][0].Units = 3 },
			"no columns":   func(kept, _ *catalog.GroupChange, _ *catalog.Change) { kept.Width = nil },
			"another name": func(kept, _ *catalog.GroupChange, _ *catalog.Change) { kept.Class = "other" },
			"an object beside it": func(_, _ *catalog.GroupChange, change *catalog.Change) {
				change.Put = []catalog.Object{{Key: "beside", Class: "test"}}
			},
		} {
			kept, taken := w.have(t, name+"a"), w.have(t, name+"c")
			o := w.widen(t, w.a, w.group(t, kept), w.group(t, taken))
			spoil(&o.change.Groups[0], &o.change.Groups[1], &o.change)
			if err := o.commit(w); !errors.Is(err, catalog.ErrBadChange) {
				t.Errorf("%s: %v", name, err)
			}
		}
		id := w.have(t, "k")
		width := &catalog.GroupWidth{Columns: 2, Brought: []catalog.Column{{}}}
		for name, o := range map[string]operation{
			"repair":     w.repair(t, w.a, w.group(t, id), 0, spare),
			"update":     w.update(t, w.a, w.snapshot(t, "k")),
			"append":     w.append(t, w.a, w.group(t, id), "other"),
			"transition": w.transition(t, w.a, w.group(t, id)),
		} {
			o.change.Groups[0].Width = width
			if err := o.commit(w); !errors.Is(err, catalog.ErrBadChange) {
				t.Errorf("%s that changes the columns of a group: %v", name, err)
			}
		}
		taken := w.have(t, "grows")
		must(t, w.widen(t, w.a, w.group(t, id), w.group(t, taken)).commit(w))
		grown := w.update(t, w.a, w.snapshot(t, "grows"))
		grown.change.Update.Size += catalogtest.CellBytes
		is(t, grown.commit(w), catalog.ErrBadChange)
		w.audit(t)
	})
}
