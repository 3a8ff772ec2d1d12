package catalog_test

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/catalogtest"
	"github.com/restripe/restripe/agent/catalog/mem"
)

// These tests replay the shortest traces of PROTOCOL section 4, as far as records are concerned, and are named after
// the mistake each of them shows to be excluded.

// A data cell keeps the stamp it was written under while its group moves to another epoch: it is no orphan.
func TestMistake01OrphansByAgeAndEpoch(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k")
		old := w.group(t, id)
		must(t, w.transition(t, w.a, old).commit(w))
		if got := w.orphans(t, w.a, w.list()); len(got) > 0 {
			t.Errorf("orphans: %v", got)
		}
		w.audit(t)
		w.bury(t, w.a)
		w.audit(t)
		if w.stored[old.Address(parity, old.Slots[parity][0])] {
			t.Error("the old parity is still there")
		}
	})
}

// Blocks are judged by the catalog as it is after they were listed, in whatever state their attempt was then.
func TestMistake02CatalogFirstListSecond(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		put := w.put(t, w.a, "k")
		listed := w.list()
		if got := w.orphans(t, w.b, listed); len(got) > 0 {
			t.Errorf("announced blocks are orphans: %v", got)
		}
		must(t, put.commit(w))
		if got := w.orphans(t, w.b, listed); len(got) > 0 {
			t.Errorf("committed blocks are orphans: %v", got)
		}
		given := w.put(t, w.a, "k")
		listed = w.list()
		must(t, given.Abort(w.ctx))
		if got := w.orphans(t, w.b, listed); len(got) > 0 {
			t.Errorf("blocks in the graveyard are orphans: %v", got)
		}
		w.bury(t, w.b)
		late := block.Address{Node: "n0", Group: block.GroupID{Stamp: given.Stamp()}, Slot: 0, Stamp: given.Stamp()}
		w.stored[late] = true
		if got := w.orphans(t, w.b, w.list()); !slices.Equal(got, []block.Address{late}) {
			t.Errorf("orphans after a late write: %v", got)
		}
		w.audit(t)
	})
}

// A repair that gives up condemns only blocks of its own; it cannot claim the group's own address.
func TestMistake03RepairUnderTheSameStamp(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k")
		w.lose(t, "n0", "second")
		was := w.group(t, id)
		first := w.repair(t, w.a, was, 0, "n0")
		same := first.change
		same.Groups = []catalog.GroupChange{{Was: was, Slots: w.rewritten(&was.Group, was.Epoch, 0, spare)}}
		is(t, first.Commit(w.ctx, same), catalog.ErrBadChange)
		second := w.repair(t, w.b, w.group(t, id), 0, "n0")
		must(t, second.commit(w))
		w.bury(t, w.a)
		w.audit(t)
		if got := w.group(t, id).Slots[0][0].Stamp; got != second.Stamp() {
			t.Errorf("slot 0 has the stamp %s", got)
		}
	})
}

// A repair leaves the epoch alone, a transition leaves the data alone: both compare the generation.
func TestMistake04RepairAgainstTransition(t *testing.T) {
	for name, repairFirst := range map[string]bool{"transition first": false, "repair first": true} {
		t.Run(name, func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, w *world) {
				id := w.have(t, "k")
				was := w.group(t, id)
				transition := w.transition(t, w.a, was)
				repair := w.repair(t, w.b, was, parity, spare)
				first, second := transition, repair
				if repairFirst {
					first, second = repair, transition
				}
				must(t, first.commit(w))
				violates(t, second.commit(w), catalog.ViolationGroup)
				w.audit(t)
				w.bury(t, w.a)
				w.audit(t)
				if got := w.group(t, id).Slots[parity][0].Stamp; got != first.Stamp() {
					t.Errorf("the parity has the stamp %s", got)
				}
			})
		})
	}
}

// The same, with the other's commit between the reading and the writing of the first.
func TestMistake04RacingInsideTheCommit(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k")
		was := w.group(t, id)
		transition, repair := w.transition(t, w.a, was), w.repair(t, w.b, was, parity, spare)
		w.engine.beforeUpdate = func() { must(t, repair.commit(w)) }
		violates(t, transition.commit(w), catalog.ViolationGroup)
		w.audit(t)
		was = w.group(t, id)
		freed, transition := w.transition(t, w.a, was), w.transition(t, w.a, was)
		w.engine.beforeUpdate = func() {
			if _, err := w.b.Delete(w.ctx, "k", nil); err != nil {
				t.Error(err)
			}
			if count, _, err := w.b.FreeAll(w.ctx); err != nil || count != 1 {
				t.Errorf("freed %d groups, %v", count, err)
			}
		}
		violates(t, freed.commit(w), catalog.ViolationFreed)
		violates(t, transition.commit(w), catalog.ViolationFreed)
		w.audit(t)
	})
}

// The live count is no field of the group record, so a transition cannot write back an old one.
func TestMistake05WritingBackTheWholeRecord(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k1", "k2")
		transition := w.transition(t, w.a, w.group(t, id))
		w.have(t, "k1") // overwritten in another group
		must(t, transition.commit(w))
		w.audit(t)
		if got := w.group(t, id).Live; got != 1 {
			t.Errorf("live count %d, want 1", got)
		}
		behind := w.transition(t, w.a, w.group(t, id))
		must(t, w.append(t, w.b, w.group(t, id), "k3").commit(w))
		violates(t, behind.commit(w), catalog.ViolationGroup)
		w.audit(t)
		if _, err := w.a.Delete(w.ctx, "k2", nil); err != nil {
			t.Fatal(err)
		}
		if freed, err := w.a.Free(w.ctx, id); err != nil || freed {
			t.Fatalf("freed under a live object: %v, %v", freed, err)
		}
		if _, err := w.a.Delete(w.ctx, "k3", nil); err != nil {
			t.Fatal(err)
		}
		if count, _, err := w.a.FreeAll(w.ctx); err != nil || count != 1 {
			t.Fatalf("freed %d groups, %v", count, err)
		}
		w.audit(t)
	})
}

// A copier compares the object record, and an update changes it.
func TestMistake06UpdateAgainstMove(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		w.have(t, "k")
		was := w.snapshot(t, "k")
		update, move := w.update(t, w.a, was), w.move(t, w.b, was)
		must(t, update.commit(w))
		violates(t, move.commit(w), catalog.ViolationObject)
		w.audit(t)
		was = w.snapshot(t, "k")
		if was.Object.Revision != update.Stamp() {
			t.Errorf("revision %s after an update by %s", was.Object.Revision, update.Stamp())
		}
		update, move = w.update(t, w.a, was), w.move(t, w.b, was)
		must(t, move.commit(w))
		violates(t, update.commit(w), catalog.ViolationObject)
		w.audit(t)
		if got := w.snapshot(t, "k").Object.Revision; got != was.Object.Revision {
			t.Errorf("a move changed the revision to %s", got)
		}
	})
}

// What a put frees is what it finds inside its transaction.
func TestMistake07FreeingWhatWasReadAtTheStart(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		packed := w.have(t, "k", "other")
		first, second := w.put(t, w.a, "k"), w.put(t, w.b, "k")
		must(t, first.commit(w))
		must(t, second.commit(w))
		w.audit(t)
		if got := w.group(t, packed).Live; got != 1 {
			t.Errorf("live count %d, want 1", got)
		}
		if count, _, err := w.a.FreeAll(w.ctx); err != nil || count != 1 {
			t.Errorf("freed %d groups, %v; the first put's is one", count, err)
		}
		w.bury(t, w.a)
		w.audit(t)
	})
}

// The same, with the second put between the reading and the writing of the first.
func TestMistake07RacingInsideTheCommit(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		w.have(t, "k")
		first, second := w.put(t, w.a, "k"), w.put(t, w.b, "k")
		w.engine.beforeUpdate = func() { must(t, second.commit(w)) }
		must(t, first.commit(w))
		w.audit(t)
		if got := w.snapshot(t, "k").Object.Revision; got != first.Stamp() {
			t.Errorf("revision %s, want that of the last commit", got)
		}
		if count, _, err := w.a.FreeAll(w.ctx); err != nil || count != 2 {
			t.Errorf("freed %d groups, %v", count, err)
		}
	})
}

// A commit whose answer is lost is settled before it is answered; one that arrives after that does nothing.
func TestMistake08AnswerOfTheCommitLost(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault catalogtest.Fault
		want  error
	}{
		{"answer lost", catalogtest.LoseAnswer, nil},
		{"request lost", catalogtest.LoseRequest, catalog.ErrNotActive},
		{"request late", catalogtest.Delay, catalog.ErrNotActive},
		{"request twice", catalogtest.Duplicate, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, w *world) {
				w.have(t, "k")
				update := w.update(t, w.a, w.snapshot(t, "k"))
				fault := test.fault
				w.faults.Decide = func() catalogtest.Fault { now := fault; fault = catalogtest.None; return now }
				is(t, update.commit(w), test.want)
				w.audit(t)
				before := w.snapshot(t, "k").Object.Revision
				if (before == update.Stamp()) != (test.want == nil) {
					t.Errorf("told %v, and the object has the revision %s", test.want, before)
				}
				w.bury(t, w.a)
				for w.faults.Late() > 0 {
					must(t, w.faults.Deliver(w.ctx, 0, false))
				}
				w.audit(t)
				if got := w.snapshot(t, "k").Object.Revision; got != before {
					t.Errorf("a late request changed the revision to %s", got)
				}
			})
		})
	}
}

// A coordinator whose commit was applied and overtaken still learns that it was done, and buries nothing.
func TestMistake08CommittedAndOvertaken(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k")
		first := w.transition(t, w.a, w.group(t, id))
		must(t, first.commit(w))
		must(t, w.transition(t, w.b, w.group(t, id)).commit(w))
		is(t, first.Abort(w.ctx), catalog.ErrCommitted)
		must(t, first.commit(w))
		w.bury(t, w.a)
		w.audit(t)
	})
}

// A delete whose answer was lost is not sent again blindly: what was put meanwhile stays.
func TestMistake09BlindRetryOfADelete(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault catalogtest.Fault
		want  error
	}{
		{"answer lost", catalogtest.LoseAnswer, nil},
		{"request lost", catalogtest.LoseRequest, catalog.ErrNotActive},
		{"request late", catalogtest.Delay, catalog.ErrNotActive},
		{"request twice", catalogtest.Duplicate, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, w *world) {
				w.have(t, "k")
				fault := test.fault
				w.faults.Decide = func() catalogtest.Fault {
					now := fault
					fault = catalogtest.None
					if now == catalogtest.LoseAnswer {
						// The answer is lost and somebody puts the key before the delete looks again.
						w.engine.beforeRead = func() { w.have(t, "k") }
					}
					return now
				}
				existed, err := w.a.Delete(w.ctx, "k", nil)
				is(t, err, test.want)
				if existed != (test.want == nil) {
					t.Errorf("the key existed: %v, with %v", existed, err)
				}
				w.audit(t)
				var before block.Stamp
				snapshot, err := w.b.Snapshot(w.ctx, "k")
				if err == nil {
					before = snapshot.Object.Revision
				}
				for w.faults.Late() > 0 {
					must(t, w.faults.Deliver(w.ctx, 0, false))
				}
				w.audit(t)
				snapshot, err = w.b.Snapshot(w.ctx, "k")
				switch {
				case before.IsZero():
					is(t, err, catalog.ErrNoObject)
				case err != nil || snapshot.Object.Revision != before:
					t.Errorf("a late delete took the object away: %v", err)
				}
				if wantThere := test.fault != catalogtest.Duplicate; wantThere == before.IsZero() {
					t.Errorf("revision %s after the delete", before)
				}
			})
		})
	}
}

// A put between the reading and the writing of a delete: the delete takes what is there then, or, with a condition,
// nothing.
func TestMistake09PutInsideTheDelete(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		w.have(t, "k")
		revision := w.snapshot(t, "k").Object.Revision
		w.engine.beforeUpdate = func() { w.have(t, "k") }
		_, err := w.a.Delete(w.ctx, "k", &revision)
		violates(t, err, catalog.ViolationRevision)
		w.audit(t)
		w.engine.beforeUpdate = func() { w.have(t, "k") }
		if existed, err := w.a.Delete(w.ctx, "k", nil); err != nil || !existed {
			t.Errorf("deleting: %v, %v", existed, err)
		}
		w.audit(t)
		_, err = w.b.Snapshot(w.ctx, "k")
		is(t, err, catalog.ErrNoObject)
	})
}

// An attempt that was swept cannot commit any more.
func TestMistake10SweepingWithoutSettling(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		put := w.put(t, w.a, "k")
		w.now = w.now.Add(time.Hour)
		result, err := w.b.Expire(w.ctx, w.now, 24*time.Hour)
		if err != nil || result.Expired != 1 {
			t.Fatalf("expiring: %+v, %v", result, err)
		}
		w.bury(t, w.b)
		is(t, put.commit(w), catalog.ErrNotActive)
		_, err = w.b.Snapshot(w.ctx, "k")
		is(t, err, catalog.ErrNoObject)
		w.audit(t)

		// In between reading and writing, too.
		put = w.put(t, w.a, "k")
		w.engine.beforeUpdate = func() {
			if _, err := w.b.Expire(w.ctx, w.now.Add(time.Hour), 24*time.Hour); err != nil {
				t.Error(err)
			}
		}
		is(t, put.commit(w), catalog.ErrNotActive)
		w.audit(t)
	})
}

// Whoever dies after a commit leaves the old parities in the graveyard, where anybody finds them.
func TestMistake11CrashBetweenCommitAndDelete(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k")
		old := w.group(t, id)
		must(t, w.transition(t, w.a, old).commit(w))
		graves, err := w.b.Graves(w.ctx, w.now.Add(time.Hour), "", 10)
		must(t, err)
		if len(graves) != 1 || graves[0].Address != old.Address(parity, old.Slots[parity][0]) {
			t.Errorf("graves: %+v", graves)
		}
		// Another start of the gateway aborts what the dead one had begun.
		abandoned := w.put(t, w.a, "k")
		again := w.open(t, w.engine, "a", "2")
		must(t, again.AbortOwn(w.ctx, "a", "2"))
		outcome, err := w.b.Settle(w.ctx, abandoned.Stamp())
		if err != nil || outcome != catalog.Failed {
			t.Errorf("the abandoned attempt %s, %v", outcome, err)
		}
		w.bury(t, again)
		w.audit(t)
	})
}

// A result that is not whole any more does not commit.
func TestMistake12LossBetweenAcknowledgementAndCommit(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		put := w.put(t, w.a, "k")
		w.lose(t, "n1", "second")
		violates(t, put.commit(w), catalog.ViolationWhole)
		_, err := w.b.Snapshot(w.ctx, "k")
		is(t, err, catalog.ErrNoObject)
		w.audit(t)

		// The data cell of a transition, lost between the reading and the writing of its commit.
		id := w.have(t, "k")
		transition := w.transition(t, w.a, w.group(t, id))
		w.engine.beforeUpdate = func() { w.lose(t, "n0", "second") }
		violates(t, transition.commit(w), catalog.ViolationWhole)
		w.audit(t)

		// A repair looks at its own slot alone, or two losses could never be repaired.
		w.lose(t, "n1", "third")
		must(t, w.repair(t, w.a, w.group(t, id), 0, spare).commit(w))
		must(t, w.repair(t, w.b, w.group(t, id), 1, "n1").commit(w))
		must(t, w.transition(t, w.a, w.group(t, id)).commit(w))
		lost := w.repair(t, w.a, w.group(t, id), 1, "n0")
		w.lose(t, "n0", "third")
		violates(t, lost.commit(w), catalog.ViolationWhole)
		w.audit(t)
	})
}

// An append into a group that was freed, or is being freed, does not commit; nor is a group freed that was appended to.
func TestMistake13AppendAgainstFree(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k")
		if _, err := w.b.Delete(w.ctx, "k", nil); err != nil {
			t.Fatal(err)
		}
		late := w.append(t, w.a, w.group(t, id), "new")
		if freed, err := w.b.Free(w.ctx, id); err != nil || !freed {
			t.Fatalf("freeing: %v, %v", freed, err)
		}
		violates(t, late.commit(w), catalog.ViolationFreed)
		w.audit(t)

		id = w.have(t, "k")
		if _, err := w.b.Delete(w.ctx, "k", nil); err != nil {
			t.Fatal(err)
		}
		slips := w.append(t, w.a, w.group(t, id), "new")
		w.engine.beforeUpdate = func() { must(t, slips.commit(w)) }
		if freed, err := w.b.Free(w.ctx, id); err != nil || freed {
			t.Fatalf("freed under a live object: %v, %v", freed, err)
		}
		w.audit(t)
		if _, err := w.b.Snapshot(w.ctx, "new"); err != nil {
			t.Error(err)
		}

		// A transition that slips in between leaves no parity behind.
		id = w.have(t, "k")
		if _, err := w.b.Delete(w.ctx, "k", nil); err != nil {
			t.Fatal(err)
		}
		transition := w.transition(t, w.a, w.group(t, id))
		w.engine.beforeUpdate = func() { must(t, transition.commit(w)) }
		if freed, err := w.b.Free(w.ctx, id); err != nil || !freed {
			t.Fatalf("freeing: %v, %v", freed, err)
		}
		w.audit(t)
	})
}

// A cached snapshot counts only once it was read again.
func TestMistake14CachedRecord(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k")
		cached := w.snapshot(t, "k")
		confirm := func(want bool) {
			t.Helper()
			now, err := w.a.Again(w.ctx, cached, 0, math.MaxInt64)
			if errors.Is(err, catalog.ErrNoObject) && !want {
				return
			}
			must(t, err)
			same := now.Object.Revision == cached.Object.Revision && len(now.Groups) == len(cached.Groups)
			for id, group := range now.Groups {
				same = same && cached.Groups[id] != nil && group.Generation == cached.Groups[id].Generation
			}
			if same != want {
				t.Errorf("unchanged: %v, want %v", same, want)
			}
		}
		confirm(true)
		must(t, w.update(t, w.b, w.snapshot(t, "k")).commit(w))
		confirm(false)
		cached = w.snapshot(t, "k")
		must(t, w.transition(t, w.b, w.group(t, id)).commit(w))
		confirm(false)
		cached = w.snapshot(t, "k")
		w.have(t, "another")
		confirm(true)
		if _, err := w.b.Delete(w.ctx, "k", nil); err != nil {
			t.Fatal(err)
		}
		confirm(false)
	})
}

// The records of a snapshot are of one instant, whatever happens between the reads it is made of.
func TestMistake15RecordsReadOneByOne(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		w.have(t, "k")
		var moved operation
		w.engine.beforeRead = func() { // before the first read, arrange for the second
			w.engine.beforeRead = func() {
				moved = w.move(t, w.b, w.snapshot(t, "k"))
				must(t, moved.commit(w))
				if _, _, err := w.b.FreeAll(w.ctx); err != nil {
					t.Error(err)
				}
			}
		}
		snapshot, err := w.a.Snapshot(w.ctx, "k")
		must(t, err)
		if extent := snapshot.Object.Extents[0]; extent.Group.Stamp != moved.Stamp() || snapshot.Groups[extent.Group] == nil {
			t.Errorf("a snapshot with the extent %+v and the groups %v", extent, snapshot.Groups)
		}
	})
}

// Dead blocks are left alone for a grace, so that streams that read them may end.
func TestMistake17StreamWhileItsGroupIsFreed(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k")
		streaming := w.snapshot(t, "k")
		w.have(t, "k")
		if freed, err := w.a.Free(w.ctx, id); err != nil || !freed {
			t.Fatalf("freeing: %v, %v", freed, err)
		}
		graves, err := w.a.Graves(w.ctx, w.now, "", 10)
		if err != nil || len(graves) > 0 {
			t.Errorf("graves without a grace: %v, %v", graves, err)
		}
		graves, err = w.a.Graves(w.ctx, w.now.Add(time.Minute), "", 10)
		if err != nil || len(graves) != 3 {
			t.Errorf("graves after the grace: %v, %v", graves, err)
		}
		if now := w.snapshot(t, "k"); now.Object.Revision == streaming.Object.Revision {
			t.Error("a reader that looks again does not see that the object is another")
		}
		w.audit(t)
	})
}

// A stamp is drawn once, however many draw at a time.
func TestMistake18TwoAttemptsUnderOneNumber(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		drawn := map[block.Stamp]bool{}
		var all sync.WaitGroup
		for client := range 32 {
			all.Go(func() {
				c := w.a
				if client%2 == 0 {
					c = w.b
				}
				for range 5 {
					attempt, err := c.Begin(w.ctx, catalog.KindPut, w.now, func(block.Stamp) []catalog.BlockSet { return nil })
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if drawn[attempt.Stamp()] {
						t.Errorf("stamp %s was drawn twice", attempt.Stamp())
					}
					drawn[attempt.Stamp()] = true
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if len(drawn) != 160 {
			t.Errorf("%d stamps drawn", len(drawn))
		}
	})
}

// A catalog restored from an old copy may draw numbers again: salts tell the attempts apart, and blocks that it never drew are
// quarantined instead of deleted, however long nobody decides. Who remembers more than the copy has changes nothing in it.
func TestMistake18RestoredFromAnOldCopy(t *testing.T) {
	engine := mem.New()
	w := newWorld(t, engine)
	w.have(t, "k")
	copied := engine.Clone()
	lost := w.put(t, w.a, "k")
	must(t, lost.commit(w))
	forgotten := w.put(t, w.a, "k")
	must(t, forgotten.commit(w))

	w.engine.Engine = copied
	_, quarantined, err := w.b.Orphans(w.ctx, w.list())
	if err != nil || len(quarantined) != 6 {
		t.Fatalf("quarantined: %v, %v; the two lost puts have three blocks each", quarantined, err)
	}
	again := w.put(t, w.b, "k")
	if again.Stamp() == lost.Stamp() {
		t.Fatalf("stamp %s twice", again.Stamp())
	}
	is(t, lost.commit(w), catalog.ErrUnknown)
	must(t, again.commit(w))
	_, err = w.a.Begin(w.ctx, catalog.KindPut, w.now, noBlocks)
	is(t, err, catalog.ErrBehind)
	judged := func(wantOrphans, wantQuarantined int) {
		t.Helper()
		orphans, quarantined, err := w.b.Orphans(w.ctx, w.list())
		if err != nil || len(orphans) != wantOrphans || len(quarantined) != wantQuarantined {
			t.Errorf("orphans %v, quarantined %v, %v; want %d and %d", orphans, quarantined, err, wantOrphans, wantQuarantined)
		}
	}
	judged(0, 6)
	w.now = w.now.Add(48 * time.Hour)
	if _, err := w.b.Expire(w.ctx, w.now, 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	judged(0, 6)
	must(t, w.b.RaiseAlarm(w.ctx, catalog.Alarm{Gateway: "b", Node: "n0", Blocks: 2, Stamp: forgotten.Stamp()}))
	is(t, w.b.CheckAlarm(w.ctx), catalog.ErrAlarm)
	is(t, w.b.Accept(w.ctx), catalog.ErrAlarm)

	must(t, w.b.Claim(w.ctx, []string{"a/3"}))
	is(t, w.b.PutMembership(w.ctx, catalog.Membership{}), catalog.ErrClaimed)
	w.b = w.open(t, w.engine, "b", "2")
	must(t, w.b.CheckAlarm(w.ctx))
	if next := w.put(t, w.b, "k"); next.Stamp().Sequence <= forgotten.Stamp().Sequence {
		t.Errorf("stamp %s after claiming a catalog whose nodes have %s", next.Stamp(), forgotten.Stamp())
	}
	judged(0, 6)
	must(t, w.b.RaiseAlarm(w.ctx, catalog.Alarm{Gateway: "b", Node: "n0", Blocks: 2, Stamp: forgotten.Stamp()}))
	must(t, w.b.CheckAlarm(w.ctx)) // it was told of before
	graves, err := w.b.Graves(w.ctx, catalog.Forever, "", 100)
	if err != nil || len(graves) > 0 {
		t.Errorf("graves of before the claim: %v, %v; want none until it is accepted", graves, err)
	}
	must(t, w.b.Accept(w.ctx))
	judged(6, 0)
}
