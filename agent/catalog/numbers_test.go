package catalog_test

import (
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/catalogtest"
)

// What comes after a put has a later stamp, though the clock of its gateway is an hour behind and it has drawn none yet.
func TestStampsFollowWhatTheyReplace(t *testing.T) {
	for name, follow := range map[string]func(t *testing.T, w *world) block.Stamp{
		"put": func(t *testing.T, w *world) block.Stamp { return w.put(t, w.b, "k").Stamp() },
		"put after a delete": func(t *testing.T, w *world) block.Stamp {
			existed, err := w.b.Delete(w.ctx, "k", nil)
			if must(t, err); !existed {
				t.Error("nothing was deleted")
			}
			return w.put(t, w.b, "k").Stamp()
		},
		"update": func(t *testing.T, w *world) block.Stamp {
			attempt, err := w.b.Begin(w.ctx, catalog.KindUpdate, w.now, noBlocks, w.snapshot(t, "k"))
			must(t, err)
			return attempt.Stamp()
		},
		"transition": func(t *testing.T, w *world) block.Stamp {
			was := w.snapshot(t, "k")
			return w.transition(t, w.b, was.View(was.Object.Extents[0].Group)).Stamp()
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, w *world) {
				w.behind = time.Hour
				first := w.put(t, w.a, "k")
				must(t, first.commit(w))
				if next := follow(t, w); next.Sequence <= first.Stamp().Sequence {
					t.Errorf("stamp %s, and then %s", first.Stamp(), next)
				}
				w.audit(t)
			})
		})
	}
}

// Puts whose commits come in another order than their announcements: the one that was announced first is overwritten at once,
// and nothing of it is left over.
func TestAPutIsOvertaken(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		early := w.put(t, w.a, "k", "other")
		w.now = w.now.Add(time.Second)
		late := w.put(t, w.b, "k")
		must(t, late.commit(w))
		must(t, early.commit(w))
		must(t, early.commit(w)) // asked again
		if now := w.snapshot(t, "k"); now.Object.Revision != late.Stamp() {
			t.Errorf("k has the revision %s, want %s", now.Object.Revision, late.Stamp())
		}
		if now := w.snapshot(t, "other"); now.Object.Revision != early.Stamp() {
			t.Errorf("other has the revision %s, want %s", now.Object.Revision, early.Stamp())
		}
		alone := w.put(t, w.a, "k")
		w.now = w.now.Add(time.Second)
		must(t, w.put(t, w.b, "k").commit(w))
		must(t, alone.commit(w))
		freed, err := w.a.FreeAll(w.ctx)
		if must(t, err); freed != 2 {
			t.Errorf("%d groups were freed, want that of the first k and that of the one that was overtaken alone", freed)
		}
		w.audit(t)
	})
}

// Where the outcome depends on what there was, a put that is overtaken fails. So does one that did not say what it is over: it
// may have begun after what it would hide.
func TestAPutThatCannotBeOvertaken(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		unsaid := w.begin(t, w.a, catalog.KindPut, func(stamp block.Stamp) []catalog.BlockSet {
			return []catalog.BlockSet{catalogtest.Announce(stamp, 0, home)}
		})
		guess := w.put(t, w.a, "k")
		w.now = w.now.Add(time.Second)
		must(t, w.put(t, w.b, "k").commit(w))
		guess.change.IfRevision = map[string]block.Stamp{"k": w.snapshot(t, "k").Object.Revision}
		violates(t, guess.commit(w), catalog.ViolationRevision)
		group := catalogtest.NewGroup(unsaid.Stamp(), 0, home, w.incarnations)
		err := unsaid.Commit(w.ctx, catalog.Change{NewGroups: []catalog.Group{group}, Put: []catalog.Object{object("k", group.ID, 0, 0)}})
		violates(t, err, catalog.ViolationRevision)
		w.audit(t)
	})
}
