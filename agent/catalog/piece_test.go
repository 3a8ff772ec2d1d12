package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/catalogtest"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/mem"
)

// A put that commits in pieces shows nothing before its last commit, and then all of it.
func TestPieces(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		w.have(t, "k")
		before := w.snapshot(t, "k").Object
		put := w.large(t, w.a, "k", 6)
		for announced := 6; len(put.pieces) > 0; {
			groups := put.pieces[0]
			must(t, put.commitPiece(w))
			announced -= len(groups)
			intents, err := w.b.Intents(w.ctx, block.Stamp{}, 10)
			if err != nil || len(intents) != 1 || len(intents[0].Blocks) != announced {
				t.Errorf("groups that are committed are announced yet: %+v, %v", intents, err)
			}
			for _, group := range groups {
				if view := w.group(t, group.ID); view.Live != 1 {
					t.Errorf("group %s has the live count %d", group.ID, view.Live)
				}
			}
			if count, _, err := w.b.FreeAll(w.ctx); err != nil || count > 0 {
				t.Errorf("freed %d groups of a put that goes on, %v", count, err)
			}
			if got := w.orphans(t, w.b, w.list()); len(got) > 0 {
				t.Errorf("orphans: %v", got)
			}
			if got := w.snapshot(t, "k").Object; got.Revision != before.Revision {
				t.Errorf("before its last commit the put shows: %+v", got)
			}
			w.audit(t)
		}
		// Whoever works on groups does so on those of pieces.
		early := w.group(t, block.GroupID{Stamp: put.Stamp()})
		must(t, w.repair(t, w.b, early, 0, spare).commit(w))
		must(t, w.transition(t, w.b, w.group(t, early.ID)).commit(w))
		must(t, put.commit(w))
		after := w.snapshot(t, "k").Object
		if after.Revision != put.Stamp() || len(after.Extents) != 6 || w.held(t) > 0 {
			t.Errorf("after its last commit: %+v, and %d records hold extents", after, w.held(t))
		}
		must(t, put.commit(w)) // again is as good
		w.audit(t)
		if _, err := w.a.Delete(w.ctx, "k", nil); err != nil {
			t.Fatal(err)
		}
		w.audit(t)
		w.empty(t)
	})
}

// Whatever ends a put between two of its commits leaves nothing behind, and the object that was.
func TestPiecesOfAPutThatEnds(t *testing.T) {
	ends := map[string]func(t *testing.T, w *world, put operation){
		"it is aborted": func(t *testing.T, w *world, put operation) { must(t, put.Abort(w.ctx)) },
		"it expires": func(t *testing.T, w *world, _ operation) {
			w.now = w.now.Add(time.Hour)
			if result, err := w.b.Expire(w.ctx, w.now, 24*time.Hour); err != nil || result.Expired != 1 {
				t.Errorf("%+v, %v", result, err)
			}
		},
		"its gateway is killed": func(t *testing.T, w *world, _ operation) {
			must(t, w.open(t, w.engine, "a", "2").AbortOwn(w.ctx, "a", "2"))
		},
		"another gateway settles it": func(t *testing.T, w *world, put operation) {
			if outcome, err := w.b.Settle(w.ctx, put.Stamp()); err != nil || outcome != catalog.Failed {
				t.Errorf("%s, %v", outcome, err)
			}
		},
		"a store loses its contents": func(t *testing.T, w *world, put operation) {
			w.lose(t, "n1", "second")
			if len(put.pieces) > 0 {
				violates(t, put.commitPiece(w), catalog.ViolationWhole)
				must(t, put.Abort(w.ctx))
				return
			}
			violates(t, put.commit(w), catalog.ViolationWhole)
		},
	}
	for name, end := range ends {
		for pieces := range 4 {
			t.Run(fmt.Sprintf("%s after %d pieces", name, pieces), func(t *testing.T) {
				onEveryEngine(t, func(t *testing.T, w *world) {
					put := w.large(t, w.a, "k", 6)
					for range pieces {
						must(t, put.commitPiece(w))
					}
					if w.held(t) != pieces {
						t.Fatalf("%d pieces, %d records", pieces, w.held(t))
					}
					end(t, w, put)
					w.audit(t)
					if len(put.pieces) > 0 {
						if err := put.commitPiece(w); !errors.Is(err, catalog.ErrNotActive) && !errors.Is(err, catalog.ErrFenced) {
							t.Errorf("a piece of an attempt that has ended: %v", err)
						}
					}
					if err := put.commit(w); err == nil {
						t.Error("an attempt that has ended was committed")
					}
					_, err := w.b.Snapshot(w.ctx, "k")
					is(t, err, catalog.ErrNoObject)
					w.audit(t)
					w.empty(t)
				})
			})
		}
	}
}

// Whatever happens to the first request of a piece, it takes effect once.
func TestPieceThroughAFault(t *testing.T) {
	for _, fault := range faults {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, w *world) {
				next := catalogtest.None
				w.faults.Decide = func() catalogtest.Fault { now := next; next = catalogtest.None; return now }
				put := w.large(t, w.a, "k", 6)
				deliver := func() {
					for w.faults.Late() > 0 {
						must(t, w.faults.Deliver(w.ctx, 0, false))
					}
				}
				for len(put.pieces) > 0 {
					next = fault
					must(t, put.commitPiece(w))
					w.audit(t)
					if len(put.pieces) == 1 {
						deliver() // late, and while the put goes on
					}
				}
				must(t, put.commit(w))
				deliver() // and after it
				w.audit(t)
				next = fault
				existed, err := w.a.Delete(w.ctx, "k", nil)
				if !existed && !errors.Is(err, catalog.ErrNotActive) {
					t.Errorf("deleting: %v, %v", existed, err)
				}
				deliver()
				w.audit(t)
				if !existed {
					_, err = w.a.Delete(w.ctx, "k", nil)
					must(t, err)
				}
				next = fault
				_, _, err = w.a.FreeAll(w.ctx)
				must(t, err)
				deliver()
				w.empty(t)
			})
		})
	}
}

// A request of a piece that comes after its attempt was settled changes nothing, and one that is on its way while somebody sweeps
// is not swept for it.
func TestMistakePieceAfterItsAttempt(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		put := w.large(t, w.a, "k", 4)
		w.faults.Decide = func() catalogtest.Fault { return catalogtest.Delay }
		if err := put.commitPiece(w); !errors.Is(err, catalogtest.ErrLost) {
			t.Fatalf("nobody answered, and it was committed: %v", err)
		}
		w.faults.Decide = nil
		must(t, put.Abort(w.ctx))
		for w.faults.Late() > 0 {
			must(t, w.faults.Deliver(w.ctx, 0, false))
		}
		w.audit(t)
		w.empty(t)

		put = w.large(t, w.a, "k", 4)
		must(t, put.commitPiece(w))
		w.engine.beforeUpdate = func() { must(t, put.Abort(w.ctx)) }
		is(t, put.commitPiece(w), catalog.ErrNotActive)
		w.audit(t)
		w.empty(t)
	})
}

// A sweep between the reading and the writing of a last commit takes nothing away from it, and one that has read pieces of an attempt
// that then ends well sweeps nothing of the object.
func TestMistakeSweepDuringTheLastCommit(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		put := w.large(t, w.a, "k", 5)
		for len(put.pieces) > 0 {
			must(t, put.commitPiece(w))
		}
		w.engine.beforeUpdate = func() {
			_, _, err := w.b.FreeAll(w.ctx)
			must(t, err)
		}
		must(t, put.commit(w))
		w.audit(t)

		again := w.large(t, w.a, "k", 5)
		for len(again.pieces) > 0 {
			must(t, again.commitPiece(w))
		}
		// What held the first object was read by a sweep; before it looks at attempts the last commit comes.
		w.engine.beforeRead = func() { must(t, again.commit(w)) }
		_, _, err := w.b.FreeAll(w.ctx)
		must(t, err)
		w.audit(t)
		if got := w.snapshot(t, "k").Object; got.Revision != again.Stamp() || len(got.Extents) != 5 {
			t.Errorf("%+v", got)
		}
		_, err = w.b.Delete(w.ctx, "k", nil)
		must(t, err)
		w.empty(t)
	})
}

// Two sweeps give up what a piece holds once.
func TestMistakeTwoSweepsOfAPiece(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		w.haveLarge(t, "k", 5)
		w.haveLarge(t, "other", 3)
		_, err := w.a.Delete(w.ctx, "k", nil)
		must(t, err)
		if w.held(t) != 3 { // of two extents at most
			t.Errorf("%d records hold five extents", w.held(t))
		}
		w.engine.beforeUpdate = func() {
			_, _, err := w.b.FreeAll(w.ctx)
			must(t, err)
		}
		_, _, err = w.a.FreeAll(w.ctx)
		must(t, err)
		w.audit(t)
		_, err = w.a.Delete(w.ctx, "other", nil)
		must(t, err)
		w.empty(t)
	})
}

// Large objects are written over by small and by large ones; several keys in one commit are too.
func TestLargeObjectsAreWrittenOver(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		w.haveLarge(t, "k", 5)
		w.haveLarge(t, "k2", 4)
		must(t, w.put(t, w.a, "k", "k2").commit(w))
		if w.held(t) != 5 {
			t.Errorf("%d records hold nine extents", w.held(t))
		}
		w.audit(t)
		w.haveLarge(t, "k", 5)
		w.haveLarge(t, "k", 3)
		w.audit(t)
		must(t, w.update(t, w.a, w.snapshot(t, "k")).commit(w))
		w.audit(t)
		for _, key := range []string{"k", "k2"} {
			_, err := w.a.Delete(w.ctx, key, nil)
			must(t, err)
		}
		w.empty(t)
	})
}

// Pieces that contradict themselves or the protocol are refused, and so is a last commit that does not begin with them.
func TestImpossiblePieces(t *testing.T) {
	for name, try := range map[string]func(w *world, put *operation) error{
		"not of a put": func(w *world, put *operation) error {
			attempt, err := w.a.Begin(w.ctx, catalog.KindUpdate, w.now.Add(time.Minute), func(block.Stamp) []catalog.BlockSet { return nil })
			return errors.Join(attempt.CommitPiece(w.ctx, "k", put.pieces[0][:1], []catalog.Extent{extentIn(put.pieces[0][0].ID)}), err)
		},
		"group of another": func(w *world, put *operation) error { put.pieces[0][0].ID.Stamp.Salt++; return put.commitPiece(w) },
		"not announced": func(w *world, put *operation) error {
			put.pieces[0][0].Slots[0] = catalog.Slot{{Units: 4, Stamp: put.Stamp(), Node: spare, Incarnation: w.incarnations[spare]}}
			return put.commitPiece(w)
		},
		"extent in no group of it": func(w *world, put *operation) error {
			return put.CommitPiece(w.ctx, "k", put.pieces[0][:1], []catalog.Extent{extentIn(put.pieces[0][1].ID)})
		},
		"group without an extent": func(w *world, put *operation) error {
			return put.CommitPiece(w.ctx, "k", put.pieces[0], []catalog.Extent{extentIn(put.pieces[0][0].ID)})
		},
		"put without them": func(w *world, put *operation) error {
			err := put.commitPiece(w)
			put.change.Put[0].Extents, put.change.Put[0].Size = put.change.Put[0].Extents[5:], 10
			return errors.Join(put.commit(w), err)
		},
		"put in another order": func(w *world, put *operation) error {
			err := put.commitPiece(w)
			slices.Reverse(put.change.Put[0].Extents)
			return errors.Join(put.commit(w), err)
		},
		"nothing put": func(w *world, put *operation) error {
			err := put.commitPiece(w)
			put.change.Put, put.change.IfRevision = nil, nil
			return errors.Join(put.commit(w), err)
		},
		"too many extents": func(w *world, put *operation) error {
			put.change.Put[0].Extents = slices.Repeat([]catalog.Extent{extentIn(block.GroupID{Stamp: put.Stamp()})}, catalog.ExtentsLimit+1)
			put.change.Put[0].Size = 10 * (catalog.ExtentsLimit + 1)
			return put.commit(w)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, w *world) {
				put := w.large(t, w.a, "k", 6)
				is(t, try(w, &put), catalog.ErrBadChange)
				must(t, put.Abort(w.ctx))
				w.audit(t)
				w.empty(t)
			})
		})
	}
}

// What was announced for a piece and not used dies with it, and what is announced for others does not.
func TestPieceBuriesWhatItDoesNotUse(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		put := w.large(t, w.a, "k", 4)
		for _, index := range []uint32{0, 3} {
			id := block.GroupID{Stamp: put.Stamp(), Index: index}
			set := catalog.BlockSet{Group: id, Slots: []int{0}, Nodes: []block.NodeID{spare}}
			must(t, put.Extend(w.ctx, []catalog.BlockSet{set}, w.now.Add(time.Hour)))
			w.stored[block.Address{Node: spare, Group: id, Stamp: put.Stamp()}] = true
		}
		for want := 1; want <= 2; want++ {
			if len(put.pieces) == 2 {
				must(t, put.commitPiece(w))
			} else {
				must(t, put.commitPiece(w))
				must(t, put.commit(w))
			}
			graves, err := w.b.Graves(w.ctx, w.now.Add(time.Hour), "", 10)
			if err != nil || len(graves) != want || graves[want-1].Address.Node != spare {
				t.Errorf("graves: %+v, %v, want %d", graves, err, want)
			}
			w.audit(t)
		}
		_, err := w.a.Delete(w.ctx, "k", nil)
		must(t, err)
		w.empty(t)
	})
}

// Where many blocks were announced and not used a piece is committed as several: each block that is buried takes a record.
func TestAPieceWithManyUnusedBlocks(t *testing.T) {
	w := newWorld(t, catalogtest.Bounded{Engine: mem.New()})
	const groups, unused = 500, 5
	attempt, err := w.a.Begin(w.ctx, catalog.KindPut, w.now.Add(time.Hour), func(stamp block.Stamp) (sets []catalog.BlockSet) {
		for i := range uint32(groups) {
			set := catalogtest.Announce(stamp, i, home)
			for slot := range unused {
				set.Slots, set.Nodes = append(set.Slots, slot), append(slices.Clone(set.Nodes), spare)
			}
			sets = append(sets, set)
		}
		return sets
	})
	must(t, err)
	put := catalog.Object{Key: "k", Size: 10 * groups}
	var made []catalog.Group
	share := 0.0
	for i := range uint32(groups) {
		group := catalogtest.NewGroup(attempt.Stamp(), i, home, w.incarnations)
		share += catalog.PieceShare(&group)
		made, put.Extents = append(made, group), append(put.Extents, extentIn(group.ID))
	}
	if share > 1 {
		t.Fatalf("%d groups are %.2f of a piece", groups, share)
	}
	must(t, attempt.CommitPiece(w.ctx, "k", made, put.Extents))
	if w.held(t) < 2 {
		t.Error("they were committed as one")
	}
	must(t, attempt.Commit(w.ctx, catalog.Change{Put: []catalog.Object{put}}))
	must(t, w.b.Audit(w.ctx))
	graves, err := w.b.Graves(w.ctx, w.now.Add(time.Hour), "", 10*groups)
	if err != nil || len(graves) != groups*unused {
		t.Errorf("%d graves, %v", len(graves), err)
	}
}

// Of an object of the most extents the record fits into an update that puts it over another such one: beside it there are the record
// that is compared, and those that hold what was in it.
func TestTheLargestRecordsFit(t *testing.T) {
	object := catalog.Object{Key: strings.Repeat("k", 4096), Size: math.MaxInt64}
	stamp := block.Stamp{Sequence: math.MaxUint64, Salt: math.MaxUint64}
	object.Extents = slices.Repeat([]catalog.Extent{{
		Group: block.GroupID{Stamp: stamp, Index: catalog.ExtentsLimit}, Column: catalog.WholeGroup, Length: 64 << 20,
	}}, catalog.ExtentsLimit)
	record := len(codec.Encode(object))
	held := catalog.ExtentsLimit / 512 * (len(object.Key) + 256)
	t.Logf("%d bytes, %.1f an extent", record, float64(record)/catalog.ExtentsLimit)
	if total := 3*record + held; total > kv.UpdateBytes*95/100 {
		t.Errorf("a put of the largest object over one has %d bytes, %d are allowed", total, kv.UpdateBytes)
	}
}

// A merge brings in what a put committed after the catalog was put back, in place of its pieces, and leaves other pieces to be swept.
func TestMergeOverPieces(t *testing.T) {
	for _, isCommitted := range []bool{true, false} {
		t.Run(fmt.Sprintf("committed %v", isCommitted), func(t *testing.T) {
			engine := mem.New()
			w := newWorld(t, engine)
			w.haveLarge(t, "gone", 4)
			_, err := w.b.Delete(w.ctx, "gone", nil)
			must(t, err)
			put := w.large(t, w.a, "k", 5)
			must(t, put.commitPiece(w))
			// So far the catalog remembers. The stores have all of the object, or what was staged of it.
			contents := &catalog.Contents{Cluster: w.b.Cluster(), Next: put.Stamp().Sequence + 1, Incarnations: w.incarnations}
			groups := slices.Concat(put.pieces[0], put.change.NewGroups)
			for i := range groups {
				groups[i].Generation, groups[i].Epoch = put.Stamp(), put.Stamp()
			}
			for i := range 2 {
				groups = append(groups, w.group(t, block.GroupID{Stamp: put.Stamp(), Index: uint32(i)}).Group)
			}
			contents.Groups = groups
			if isCommitted {
				object := put.change.Put[0]
				object.Revision = put.Stamp()
				contents.Objects = []catalog.Object{object}
			}
			merged, err := catalog.Merge(w.ctx, engine, contents, false, nil)
			must(t, err)
			if merged.Attempts != 1 || merged.Objects != len(contents.Objects) {
				t.Errorf("%+v", merged)
			}
			c, err := catalog.Open(context.Background(), engine, catalog.Owner("c", "1"), catalog.WithClock(func() time.Time { return w.now }))
			must(t, err)
			must(t, c.Audit(w.ctx))
			_, _, err = c.FreeAll(w.ctx)
			must(t, err)
			must(t, c.Audit(w.ctx))
			left, err := c.ListGroups(w.ctx, block.GroupID{}, 100)
			if want := 5 * len(contents.Objects); err != nil || len(left) != want || w.held(t) > 0 {
				t.Errorf("%d groups are left, want %d, and %d records of pieces: %v", len(left), want, w.held(t), err)
			}
		})
	}
}
