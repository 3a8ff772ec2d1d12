package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/mem"
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

// Of puts that overlap the one that is committed last is what there is, whatever their stamps. What comes after both is above both.
func TestPutsOutOfOrder(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		early := w.put(t, w.a, "k")
		w.now = w.now.Add(time.Second)
		late := w.put(t, w.b, "k")
		must(t, late.commit(w))
		must(t, early.commit(w))
		if now := w.snapshot(t, "k"); now.Object.Revision != early.Stamp() {
			t.Errorf("k has the revision %s, want %s", now.Object.Revision, early.Stamp())
		}
		w.now = w.now.Add(-time.Minute)
		if next := w.put(t, w.a, "k"); next.Stamp().Sequence <= late.Stamp().Sequence {
			t.Errorf("stamp %s, and then %s", late.Stamp(), next.Stamp())
		}
		w.audit(t)
	})
}

// A put by an attempt that was announced ahead is refused if what it writes over, or what was there, is above it: also if that came and
// went while it was committed.
func TestPutsAnnouncedAhead(t *testing.T) {
	put := func(t *testing.T, w *world) {
		w.now = w.now.Add(time.Second)
		o := w.put(t, w.b, "k")
		must(t, o.commit(w))
	}
	remove := func(t *testing.T, w *world) {
		_, err := w.b.Delete(w.ctx, "k", nil)
		must(t, err)
	}
	for name, meanwhile := range map[string]func(t *testing.T, w *world){
		"put":             put,
		"put and deleted": func(t *testing.T, w *world) { put(t, w); remove(t, w) },
	} {
		t.Run(name, func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, w *world) {
				before := w.putAhead(w.announceAhead(t, w.a), "k")
				during := w.putAhead(w.announceAhead(t, w.a), "k")
				meanwhile(t, w)
				if err := before.commit(w); !isStale(err, catalog.ViolationAhead) {
					t.Errorf("a put below what was there: %v", err)
				}
				w.engine.beforeUpdate = func() { meanwhile(t, w) }
				if err := during.commit(w); !isStale(err, catalog.ViolationAhead) {
					t.Errorf("a put below what came while it was committed: %v", err)
				}
				w.engine.beforeUpdate = nil
				w.now = w.now.Add(time.Second)
				next := w.putAhead(w.announceAhead(t, w.a), "k")
				must(t, next.commit(w))
				w.audit(t)
			})
		})
	}
}

// An append by an attempt that was announced ahead is refused if its group has been changed by a later one.
func TestAppendsAnnouncedAhead(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		put := w.put(t, w.a, "k")
		must(t, put.commit(w))
		id := w.snapshot(t, "k").Object.Extents[0].Group
		view := w.snapshot(t, "k").View(id)
		blocks := own(&view.Group, 0, parity)
		attempts, err := w.a.BeginAhead(w.ctx, w.now.Add(time.Minute), blocks, blocks, blocks)
		must(t, err)
		late, first, second := attempts[0], attempts[1], attempts[2]
		for i, attempt := range []*catalog.Attempt{first, second, late} {
			w.store(attempt, blocks)
			o := w.appendBy(attempt, w.snapshot(t, "k").View(id), fmt.Sprint(i))
			err := o.commit(w)
			if attempt != late {
				must(t, err)
			} else if !isStale(err, catalog.ViolationAhead) {
				t.Errorf("an append below what was there: %v", err)
			}
		}
		next := w.append(t, w.b, w.snapshot(t, "k").View(id), "k2")
		must(t, next.commit(w))
		w.audit(t)
	})
}

// Of what was announced and not used that has no grave which was never sent.
func TestWhatWasNeverSentHasNoGrave(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		group := func(stamp block.Stamp) block.GroupID { return block.GroupID{Stamp: stamp, Index: 1} }
		attempt := w.begin(t, w.a, catalog.KindPut, func(stamp block.Stamp) []catalog.BlockSet {
			return append(oneGroup(stamp), catalog.BlockSet{Group: group(stamp), Slots: []int{0, 1}, Nodes: home[:2]})
		})
		sent := block.Address{Node: home[0], Group: group(attempt.Stamp()), Slot: 0, Stamp: attempt.Stamp()}
		never := sent
		never.Node, never.Slot = home[1], 1
		put := w.putBy(attempt, "k")
		put.change.Unsent = []block.Address{never}
		must(t, put.commit(w))
		var buried []block.Address
		for page, err := range w.b.AllGraves(w.ctx, catalog.Forever, "") {
			must(t, err)
			for i := range page {
				buried = append(buried, page[i].Address)
			}
		}
		if len(buried) != 1 || buried[0] != sent {
			t.Errorf("there are graves of %v, want one of %v", buried, sent)
		}
	})
}

// What is discarded ends without graves, as nothing was stored.
func TestDiscarded(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		attempts, err := w.a.BeginAhead(w.ctx, w.now.Add(time.Minute), oneGroup, oneGroup, oneGroup)
		must(t, err)
		one, two, used := attempts[0], attempts[1], w.putAhead(attempts[2], "k")
		if one.Stamp().Compare(two.Stamp()) >= 0 || two.Stamp().Compare(used.Stamp()) >= 0 {
			t.Errorf("stamps %s, %s, %s are not in order", one.Stamp(), two.Stamp(), used.Stamp())
		}
		must(t, used.commit(w))
		must(t, w.a.Discard(w.ctx, one, two))
		must(t, w.a.Discard(w.ctx, one))
		for page, err := range w.b.AllGraves(w.ctx, catalog.Forever, "") {
			if must(t, err); len(page) > 0 {
				t.Errorf("there are the graves %v", page)
			}
		}
		intents, err := w.b.Intents(w.ctx, block.Stamp{}, 10)
		if must(t, err); len(intents) > 0 {
			t.Errorf("these are active: %v", intents)
		}
		if err := one.Commit(w.ctx, w.putBy(one, "k").change); err == nil {
			t.Error("what was discarded was committed")
		}
		w.audit(t)
	})
}

// One that cannot be announced costs those beside it nothing: the caller has them, or nobody has.
func TestAnnouncedBesideOneThatCannotBe(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		limited, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		for wrong, want := range []int{0, 2, 2} {
			asked := -1
			blocks := func(stamp block.Stamp) []catalog.BlockSet {
				sets := oneGroup(stamp)
				if asked++; asked%3 == wrong {
					sets[0].Nodes = nil
				}
				return sets
			}
			attempts, err := w.a.BeginAhead(w.ctx, w.now.Add(time.Minute), blocks, blocks, blocks)
			if !errors.Is(err, catalog.ErrBadChange) || len(attempts) != want {
				t.Fatalf("with a wrong number %d there are %d attempts, and %v", wrong, len(attempts), err)
			}
			must(t, w.a.Discard(w.ctx, attempts...))
			for left := 1; left > 0; {
				intents, err := w.b.Intents(limited, block.Stamp{}, 10)
				must(t, err)
				left = len(intents)
			}
		}
		w.audit(t)
	})
}

// The floor never falls, also where a catalog was claimed again and again and nobody drew a stamp in between.
func TestAMergeLeavesTheFloor(t *testing.T) {
	engine := mem.New()
	w := newWorld(t, engine)
	var before uint64
	for _, start := range []string{"2", "3", "4"} {
		c := w.open(t, w.engine, "b", start)
		must(t, c.Claim(w.ctx, nil))
		kept, err := c.Kept(w.ctx)
		if must(t, err); kept <= before {
			t.Errorf("blocks are kept below %d, and were below %d before", kept, before)
		}
		before = kept
	}
	if _, err := catalog.Merge(w.ctx, engine, &catalog.Contents{Cluster: w.b.Cluster(), Next: 1}, false, nil); err != nil {
		t.Fatal(err)
	}
	kept, err := w.open(t, w.engine, "b", "5").Kept(w.ctx)
	if must(t, err); kept <= before {
		t.Errorf("after a merge blocks are kept below %d, and were below %d before", kept, before)
	}
}
