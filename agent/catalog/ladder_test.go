package catalog_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/catalogtest"
)

// A transition changes the ladder of a group, and nobody else does.
func TestLadderOfAGroup(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k")
		other := &catalog.GroupLayout{Ladder: "rs(2,1),rep(2)", Mode: "row", Version: 1}
		changes := func(o operation) operation {
			o.change.Groups[0].Layout = other
			return o
		}
		for name, o := range map[string]operation{
			"repair": w.repair(t, w.a, w.group(t, id), 0, spare),
			"update": w.update(t, w.a, w.snapshot(t, "k")),
			"append": w.append(t, w.a, w.group(t, id), "other"),
		} {
			if err := changes(o).commit(w); !errors.Is(err, catalog.ErrBadChange) {
				t.Errorf("%s that changes the ladder of a group: %v", name, err)
			}
		}
		was := w.group(t, id)
		late := w.transition(t, w.b, was) // computed by the ladder as it was
		must(t, changes(w.transition(t, w.a, was)).commit(w))
		is := w.group(t, id)
		if is.Ladder != other.Ladder || is.Mode != other.Mode || !slices.EqualFunc(is.Slots[:is.Columns], was.Slots[:was.Columns], slices.Equal) {
			t.Errorf("%+v", is.Group)
		}
		violates(t, late.commit(w), catalog.ViolationGroup)
		w.audit(t)
	})
}

// largeMove prepares copying a large object into new groups, all but the last of them as pieces of two groups at most.
func (w *world) largeMove(t failer, c *catalog.Catalog, was *catalog.Snapshot) operation {
	t.Helper()
	count := len(was.Object.Extents)
	attempt := w.begin(t, c, catalog.KindMove, func(stamp block.Stamp) (sets []catalog.BlockSet) {
		for i := range count {
			sets = append(sets, catalogtest.Announce(stamp, uint32(i), home))
		}
		return sets
	}, was)
	var all []catalog.Group
	move := catalog.ObjectMove{Snapshot: was}
	for i := range count {
		group := catalogtest.NewGroup(attempt.Stamp(), uint32(i), home, w.incarnations)
		all, move.Extents = append(all, group), append(move.Extents, extentIn(group.ID))
	}
	return operation{
		Attempt: attempt, change: catalog.Change{Move: []catalog.ObjectMove{move}, NewGroups: all[count-1:]},
		pieces: slices.Collect(slices.Chunk(all[:count-1], 2)),
	}
}

// A large object is moved in pieces: whole or not at all, under its revision, and only if it is as it was read.
func TestPiecesOfAMove(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		w.haveLarge(t, "k", 6)
		was := w.snapshot(t, "k")
		late := w.largeMove(t, w.a, was)
		must(t, late.commitPiece(w))
		move := w.largeMove(t, w.b, was)
		for len(move.pieces) > 0 {
			must(t, move.commitPiece(w))
			w.audit(t)
			if is := w.snapshot(t, "k").Object; !slices.Equal(is.Extents, was.Object.Extents) {
				t.Fatalf("before its last commit the move shows: %+v", is)
			}
		}
		must(t, move.commit(w))
		must(t, move.commit(w)) // again is as good
		is := w.snapshot(t, "k").Object
		if is.Revision != was.Object.Revision || is.Size != was.Object.Size || !slices.Equal(is.Extents, move.change.Move[0].Extents) {
			t.Errorf("%+v was moved and is %+v", was.Object, is)
		}
		for len(late.pieces) > 0 {
			must(t, late.commitPiece(w))
		}
		violates(t, late.commit(w), catalog.ViolationObject)
		w.audit(t)
		if _, err := w.a.Delete(w.ctx, "k", nil); err != nil {
			t.Fatal(err)
		}
		w.empty(t)
	})
}

// A move says of which class objects and groups are, and nothing else of the groups.
func TestClassOfAGroup(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k", "l")
		was, view := w.snapshot(t, "k"), w.group(t, id)
		into := func(basis ...catalog.Basis) operation {
			attempt := w.begin(t, w.a, catalog.KindMove, func(block.Stamp) []catalog.BlockSet { return nil }, basis...)
			return operation{Attempt: attempt, change: catalog.Change{
				Move:   []catalog.ObjectMove{{Snapshot: was, Extents: was.Object.Extents, Class: "other"}},
				Groups: []catalog.GroupChange{{Was: view, Slots: view.Slots, Class: "other", Seal: true}},
			}}
		}
		wrong := into(was, view)
		wrong.change.Groups[0].Scheme = "rep(2)"
		if err := wrong.commit(w); !errors.Is(err, catalog.ErrBadChange) {
			t.Errorf("a move that changes the scheme of a group: %v", err)
		}
		transition := w.transition(t, w.a, view)
		transition.change.Groups[0].Class = "other"
		if err := transition.commit(w); !errors.Is(err, catalog.ErrBadChange) {
			t.Errorf("a transition that changes the class of a group: %v", err)
		}
		late := into(was, view)
		must(t, into(was, view).commit(w))
		is, group := w.snapshot(t, "k").Object, w.group(t, id)
		if is.Class != "other" || is.Revision != was.Object.Revision || !slices.Equal(is.Extents, was.Object.Extents) {
			t.Errorf("%+v", is)
		}
		if group.Class != "other" || group.Open || group.Live != view.Live || !slices.EqualFunc(group.Slots, view.Slots, slices.Equal) {
			t.Errorf("%+v", group)
		}
		if class := w.snapshot(t, "l").Object.Class; class == "other" {
			t.Errorf("an object that was not named is of class %s", class)
		}
		violates(t, late.commit(w), catalog.ViolationGroup)
		w.audit(t)
	})
}
