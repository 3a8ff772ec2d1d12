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
	"github.com/restripe/restripe/agent/catalog/kv"
)

var faults = []catalogtest.Fault{catalogtest.None, catalogtest.LoseRequest, catalogtest.LoseAnswer, catalogtest.Delay, catalogtest.Duplicate}

// Every call that insists comes to the right end whatever happens to its first request, and a late copy changes nothing.
func TestOneFault(t *testing.T) {
	for _, fault := range faults {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, w *world) {
				next := catalogtest.None
				w.faults.Decide = func() catalogtest.Fault { now := next; next = catalogtest.None; return now }
				id := w.have(t, "k")

				next = fault
				put := w.put(t, w.a, "k2")
				next = fault
				must(t, put.Extend(w.ctx, []catalog.BlockSet{{Group: block.GroupID{Stamp: put.Stamp()}, Slots: []int{0, 1}, Nodes: []block.NodeID{spare, "n1"}}}, w.now.Add(time.Hour)))
				intents, err := w.b.Intents(w.ctx, block.Stamp{}, 10)
				if err != nil || len(intents) != 1 || len(intents[0].Blocks) != 2 || len(intents[0].Blocks[1].Slots) != 1 {
					t.Errorf("after extending: %+v, %v", intents, err)
				}
				w.stored[block.Address{Node: spare, Group: block.GroupID{Stamp: put.Stamp()}, Stamp: put.Stamp()}] = true
				must(t, put.commit(w))
				graves, err := w.b.Graves(w.ctx, w.now.Add(time.Hour), "", 10)
				if err != nil || len(graves) != 1 || graves[0].Address.Node != spare {
					t.Errorf("announced and not used, but not buried: %+v, %v", graves, err)
				}

				next = fault
				job := &catalog.Job{ID: "job", Body: []byte("one")}
				must(t, w.a.SaveJob(w.ctx, job))
				next = fault
				job.Body = []byte("two")
				must(t, w.a.SaveJob(w.ctx, job))
				is(t, w.b.SaveJob(w.ctx, &catalog.Job{ID: "job", Version: 1}), catalog.ErrStale)

				next = fault
				member, err := w.a.ChangeNode(w.ctx, catalog.Node{}, catalog.Node{ID: "n0", State: catalog.NodeUp})
				must(t, err)
				_, err = w.b.ChangeNode(w.ctx, catalog.Node{}, catalog.Node{ID: "n0", State: catalog.NodeUp})
				is(t, err, catalog.ErrStale)
				next = fault
				down, err := w.a.ChangeNode(w.ctx, member, catalog.Node{ID: "n0", State: catalog.NodeDown})
				must(t, err)
				if down.Version != member.Version+1 || !down.Fenced {
					t.Errorf("declared down: %+v, of %+v", down, member)
				}
				_, err = w.b.ChangeNode(w.ctx, member, member)
				is(t, err, catalog.ErrStale)
				next = fault
				registered, err := w.b.Incarnations(w.ctx)
				must(t, err)
				must(t, w.a.RegisterIncarnation(w.ctx, "n2", registered["n2"], "2.older."))
				must(t, w.b.RegisterIncarnation(w.ctx, "n2", "2.older.", "3.newer."))
				is(t, w.a.RegisterIncarnation(w.ctx, "n2", registered["n2"], "4.late."), catalog.ErrStale)

				next = fault
				must(t, w.a.Buried(w.ctx, []block.Address{graves[0].Address}))
				delete(w.stored, graves[0].Address)
				if _, err := w.b.Delete(w.ctx, "k", nil); err != nil {
					t.Fatal(err)
				}
				next = fault
				if freed, err := w.a.Free(w.ctx, id); err != nil || !freed {
					t.Errorf("freeing: %v, %v", freed, err)
				}
				next = fault
				must(t, w.put(t, w.b, "k3").Abort(w.ctx))

				for w.faults.Late() > 0 {
					must(t, w.faults.Deliver(w.ctx, 0, false))
				}
				w.audit(t)
				saved, err := w.b.Job(w.ctx, "job")
				if err != nil || string(saved.Body) != "two" || saved.Version != 2 {
					t.Errorf("job: %+v, %v", saved, err)
				}
				nodes, err := w.b.Nodes(w.ctx)
				if err != nil || len(nodes) != 1 || nodes[0] != down {
					t.Errorf("nodes: %+v, %v", nodes, err)
				}
				incarnations, err := w.b.Incarnations(w.ctx)
				if err != nil || incarnations["n2"] != "3.newer." {
					t.Errorf("incarnations: %+v, %v", incarnations, err)
				}
			})
		})
	}
}

// An engine that never answers leaves the outcome unknown, and says so.
func TestDeadEngine(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		w.have(t, "k")
		update := w.update(t, w.a, w.snapshot(t, "k"))
		w.faults.Decide = func() catalogtest.Fault { return catalogtest.LoseRequest }
		is(t, update.commit(w), catalog.ErrUnknown)
		_, err := w.a.Delete(w.ctx, "k", nil)
		is(t, err, catalog.ErrUnknown)
		is(t, update.Abort(w.ctx), catalog.ErrUnknown)
		if _, err := w.a.Begin(w.ctx, catalog.KindPut, w.now, func(block.Stamp) []catalog.BlockSet { return nil }); err == nil {
			t.Error("an announcement nobody received succeeded")
		}
		w.faults.Decide = nil
		is(t, update.Abort(w.ctx), nil)
		w.audit(t)
	})
}

// A caller that gave up is settled for, and its attempt has not taken effect.
func TestCommitOfACancelledCaller(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		put := w.put(t, w.a, "k")
		ctx, cancel := context.WithCancel(w.ctx)
		w.engine.beforeUpdate = cancel
		err := put.Commit(ctx, put.change)
		outcome, settleErr := w.b.Settle(w.ctx, put.Stamp())
		must(t, settleErr)
		if (err == nil) != (outcome == catalog.Done) || (err != nil && !errors.Is(err, catalog.ErrNotActive)) {
			t.Errorf("told %v, and the attempt is %s", err, outcome)
		}
		put = w.put(t, w.a, "k")
		is(t, put.Commit(ctx, put.change), catalog.ErrNotActive)
		is(t, put.Abort(ctx), nil)
		w.audit(t)
	})
}

// Of two who save the same version of a job one is told that it is stale.
func TestJobs(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		one, two := &catalog.Job{ID: "job", Owner: "one"}, &catalog.Job{ID: "job", Owner: "two"}
		w.engine.beforeUpdate = func() { must(t, w.b.SaveJob(w.ctx, two)) }
		is(t, w.a.SaveJob(w.ctx, one), catalog.ErrStale)
		jobs, err := w.a.Jobs(w.ctx)
		if err != nil || len(jobs) != 1 || jobs[0].Owner != "two" || jobs[0].Version != two.Version {
			t.Errorf("jobs: %+v, %v", jobs, err)
		}
		must(t, w.a.DropJob(w.ctx, *one)) // it has changed since
		_, err = w.a.Job(w.ctx, "job")
		must(t, err)
		must(t, w.a.DropJob(w.ctx, *two))
		_, err = w.a.Job(w.ctx, "job")
		is(t, err, catalog.ErrNoJob)
	})
}

// An extension does not revive what ended, and an expiry does not end what was extended.
func TestExtend(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		put := w.put(t, w.a, "k")
		w.now = w.now.Add(time.Hour)
		w.engine.beforeUpdate = func() { must(t, put.Extend(w.ctx, nil, w.now.Add(time.Hour))) }
		if result, err := w.b.Expire(w.ctx, w.now, time.Hour); err != nil || result.Expired != 0 {
			t.Errorf("expired what was extended: %+v, %v", result, err)
		}
		must(t, put.commit(w))
		is(t, put.Extend(w.ctx, nil, w.now), catalog.ErrNotActive)
		given := w.put(t, w.a, "k")
		w.engine.beforeUpdate = func() { must(t, given.Abort(w.ctx)) }
		is(t, given.Extend(w.ctx, nil, w.now), catalog.ErrNotActive)
		w.audit(t)
	})
}

// Outcomes are remembered for the retention and forgotten after it.
func TestRetention(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		w.have(t, "k")
		done := w.put(t, w.a, "k")
		must(t, done.commit(w))
		if _, err := w.a.Delete(w.ctx, "k", nil); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(23 * time.Hour)
		if result, err := w.a.Expire(w.ctx, w.now, 24*time.Hour); err != nil || result.Forgotten != 0 {
			t.Errorf("forgotten early: %+v, %v", result, err)
		}
		is(t, done.Abort(w.ctx), catalog.ErrCommitted)
		w.now = w.now.Add(2 * time.Hour)
		if result, err := w.a.Expire(w.ctx, w.now, 24*time.Hour); err != nil || result.Forgotten != 3 {
			t.Errorf("two attempts and a delete are old: %+v, %v", result, err)
		}
		outcome, err := w.b.Settle(w.ctx, done.Stamp())
		if err != nil || outcome != catalog.Unknown {
			t.Errorf("forgotten, and %s, %v", outcome, err)
		}
		is(t, done.Abort(w.ctx), catalog.ErrUnknown)
		is(t, done.commit(w), catalog.ErrUnknown)
		w.audit(t)
	})
}

// Begin compares its basis inside the transaction, and one stale basis fails nobody else.
func TestBasis(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k")
		object, group := w.snapshot(t, "k"), w.group(t, id)
		must(t, w.update(t, w.b, object).commit(w))
		none := func(block.Stamp) []catalog.BlockSet { return nil }
		_, err := w.a.Begin(w.ctx, catalog.KindUpdate, w.now, none, object)
		violates(t, err, catalog.ViolationObject)
		_, err = w.a.Begin(w.ctx, catalog.KindTransition, w.now, none, group)
		violates(t, err, catalog.ViolationGroup)
		// While the lead is busy, others gather and share the next transaction.
		errs := make(chan error, 8)
		w.engine.beforeUpdate = func() {
			for i := range cap(errs) {
				basis := w.snapshot(t, "k")
				if i%2 == 0 {
					basis = object
				}
				go func() {
					_, err := w.a.Begin(w.ctx, catalog.KindUpdate, w.now.Add(time.Minute), none, basis)
					errs <- err
				}()
			}
		}
		_, err = w.a.Begin(w.ctx, catalog.KindPut, w.now.Add(time.Minute), none)
		must(t, err)
		stale := 0
		for range cap(errs) {
			if err := <-errs; errors.Is(err, catalog.ErrStale) {
				stale++
			} else {
				must(t, err)
			}
		}
		if stale != cap(errs)/2 {
			t.Errorf("%d announcements are stale", stale)
		}
		_, err = w.a.Begin(w.ctx, catalog.KindPut, w.now, func(block.Stamp) []catalog.BlockSet { return []catalog.BlockSet{{Slots: []int{1}}} })
		is(t, err, catalog.ErrBadChange)
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		_, err = w.a.Begin(ctx, catalog.KindPut, w.now, none)
		is(t, err, context.Canceled)
		_, err = w.a.Begin(w.ctx, catalog.KindPut, w.now, none)
		must(t, err)
	})
}

// Changes that contradict themselves or the protocol are refused and the attempt is settled.
func TestImpossibleChanges(t *testing.T) {
	for name, spoil := range map[string]func(w *world, change *catalog.Change){
		"a key twice":        func(_ *world, c *catalog.Change) { c.Put = append(c.Put, c.Put[0]) },
		"empty key":          func(_ *world, c *catalog.Change) { c.Put[0].Key = "" },
		"key too long":       func(_ *world, c *catalog.Change) { c.Put[0].Key = strings.Repeat("k", 5000) },
		"size and extents":   func(_ *world, c *catalog.Change) { c.Put[0].Size++ },
		"huge extents":       func(_ *world, c *catalog.Change) { c.Put[0].Extents[0].Offset = math.MaxInt64 },
		"outside the column": func(_ *world, c *catalog.Change) { c.Put[0].Extents[0].Column = 2 },
		"deleted and put":    func(_ *world, c *catalog.Change) { c.Delete = []string{c.Put[0].Key} },
		"group of another":   func(_ *world, c *catalog.Change) { c.NewGroups[0].ID.Stamp.Salt++ },
		"group twice":        func(_ *world, c *catalog.Change) { c.NewGroups = append(c.NewGroups, c.NewGroups[0]) },
		"not announced": func(w *world, c *catalog.Change) {
			c.NewGroups[0].Slots[0] = catalog.Slot{{Units: 4, Stamp: c.NewGroups[0].ID.Stamp, Node: spare, Incarnation: w.incarnations[spare]}}
		},
		"two slots on a node": func(_ *world, c *catalog.Change) { c.NewGroups[0].Slots[0][0].Node = "n1" },
		"gap": func(_ *world, c *catalog.Change) {
			slot := c.NewGroups[0].Slots[0]
			next := slot[0]
			next.First = 5
			c.NewGroups[0].Slots[0] = append(slot, next)
		},
		"base after first":  func(_ *world, c *catalog.Change) { c.NewGroups[0].Slots[0][0].Base = 1 },
		"missing column":    func(_ *world, c *catalog.Change) { c.NewGroups[0].Slots = c.NewGroups[0].Slots[:1] },
		"group not changed": func(_ *world, c *catalog.Change) { c.NewGroups = nil },
		"repaired, not changed": func(_ *world, c *catalog.Change) {
			c.RepairedSlots = map[block.GroupID][]int{c.NewGroups[0].ID: {0}}
		},
		"change of nothing": func(_ *world, c *catalog.Change) { c.Groups = []catalog.GroupChange{{}} },
	} {
		t.Run(name, func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, w *world) {
				put := w.put(t, w.a, "k", "k2")
				spoil(w, &put.change)
				is(t, put.commit(w), catalog.ErrBadChange)
				outcome, err := w.b.Settle(w.ctx, put.Stamp())
				if err != nil || outcome != catalog.Failed {
					t.Errorf("the attempt %s, %v", outcome, err)
				}
				w.audit(t)
			})
		})
	}
}

// Operations are held to their own fields.
func TestForeignFields(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k")
		was := w.group(t, id)
		touching := w.transition(t, w.a, was)
		touching.change.Groups[0].Slots = slices.Clone(touching.change.Groups[0].Slots)
		item := was.Slots[0][0]
		item.Fingerprint[0]++
		touching.change.Groups[0].Slots[0] = catalog.Slot{item}
		is(t, touching.commit(w), catalog.ErrBadChange)

		repair := w.repair(t, w.a, was, 0, spare)
		repair.change.Groups[0].NewEpoch = true
		is(t, repair.commit(w), catalog.ErrBadChange)
		repair = w.repair(t, w.a, was, 0, spare)
		repair.change.RepairedSlots[id] = []int{1}
		is(t, repair.commit(w), catalog.ErrBadChange)

		w.lose(t, "n1", "second")
		pretending := w.append(t, w.a, was, "k2")
		item = was.Slots[1][0]
		item.Incarnation = w.incarnations["n1"]
		pretending.change.Groups[0].Slots[1] = catalog.Slot{item}
		is(t, pretending.commit(w), catalog.ErrBadChange)
		w.audit(t)
	})
}

// Sealed groups take no appends; preconditions are the client's.
func TestSealAndPreconditions(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k")
		last := w.append(t, w.a, w.group(t, id), "k2")
		last.change.Groups[0].Seal = true
		must(t, last.commit(w))
		violates(t, w.append(t, w.a, w.group(t, id), "k3").commit(w), catalog.ViolationSealed)

		create := w.put(t, w.a, "k")
		create.change.IfRevision = map[string]block.Stamp{"k": {}}
		violates(t, create.commit(w), catalog.ViolationRevision)
		match := w.put(t, w.a, "k")
		match.change.IfRevision = map[string]block.Stamp{"k": w.snapshot(t, "k").Object.Revision}
		must(t, match.commit(w))
		stale := create.Stamp()
		_, err := w.a.Delete(w.ctx, "k", &stale)
		violates(t, err, catalog.ViolationRevision)
		_, err = w.a.Delete(w.ctx, "never", nil)
		is(t, err, catalog.ErrNoObject)
		revision := match.Stamp()
		if existed, err := w.a.Delete(w.ctx, "k", &revision); err != nil || !existed {
			t.Errorf("deleting: %v, %v", existed, err)
		}
		w.audit(t)
	})
}

// Audit finds what must not be.
func TestAuditFinds(t *testing.T) {
	for name, damage := range map[string]func(w *world, id block.GroupID) []kv.Write{
		"live count": func(_ *world, id block.GroupID) []kv.Write {
			return []kv.Write{{Key: "l/" + id.String(), Kind: kv.Increment, Add: 1}}
		},
		"missing group": func(_ *world, id block.GroupID) []kv.Write {
			return []kv.Write{{Key: "g/" + id.String(), Kind: kv.Remove}}
		},
		"grave of a live block": func(_ *world, id block.GroupID) []kv.Write {
			return []kv.Write{{Key: "d/" + block.Address{Node: "n0", Group: id, Stamp: id.Stamp}.String(), Value: []byte{0xa0}}}
		},
		"damaged record": func(*world, block.GroupID) []kv.Write {
			return []kv.Write{{Key: "o/k", Value: []byte("\xff")}}
		},
		"forgotten stamps": func(*world, block.GroupID) []kv.Write {
			return []kv.Write{{Key: "u/b/1", Kind: kv.Remove}}
		},
		"missing object": func(*world, block.GroupID) []kv.Write {
			return []kv.Write{{Key: "o/k", Kind: kv.Remove}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, w *world) {
				id := w.have(t, "k")
				w.audit(t)
				if _, err := w.engine.Update(w.ctx, nil, damage(w, id)); err != nil {
					t.Fatal(err)
				}
				err := w.a.Audit(w.ctx)
				is(t, err, catalog.ErrCorrupt)
				t.Log(err)
			})
		})
	}
}

// Graves come page by page, those whose grace is not over left out.
func TestGravePages(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		for range 4 {
			must(t, w.put(t, w.a, "k").Abort(w.ctx))
			w.now = w.now.Add(time.Minute)
		}
		for now, want := range map[time.Duration]int{-3 * time.Minute: 3, -time.Minute: 9, 0: 12} {
			var seen []string
			for after := ""; ; {
				graves, err := w.a.Graves(w.ctx, w.now.Add(now), after, 2)
				must(t, err)
				for _, grave := range graves {
					after = grave.Address.String()
					seen = append(seen, after)
				}
				if len(graves) < 2 {
					break
				}
			}
			if len(slices.Compact(seen)) != want || !slices.IsSorted(seen) {
				t.Errorf("at %s: %d graves, want %d", now, len(seen), want)
			}
		}
	})
}

// An announcement that got lost, or arrives while its caller asks again, is told apart by the number of the last stamp.
func TestUnclearAnnouncement(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		none := func(block.Stamp) []catalog.BlockSet { return nil }
		begin := func(c *catalog.Catalog) *catalog.Attempt {
			attempt, err := c.Begin(w.ctx, catalog.KindPut, w.now.Add(time.Minute), none)
			must(t, err)
			return attempt
		}
		for name, prepare := range map[string]func() catalogtest.Fault{
			"lost":                 func() catalogtest.Fault { return catalogtest.LoseRequest },
			"lost, and other drew": func() catalogtest.Fault { begin(w.b); return catalogtest.LoseRequest },
			"late, and other drew": func() catalogtest.Fault { begin(w.b); return catalogtest.Delay },
			"late, before the caller looks": func() catalogtest.Fault {
				w.engine.beforeRead = func() { must(t, w.faults.Deliver(w.ctx, 0, false)) }
				return catalogtest.Delay
			},
			"late, after the caller looked": func() catalogtest.Fault {
				w.engine.beforeRead = func() {
					w.engine.beforeUpdate = func() { must(t, w.faults.Deliver(w.ctx, 0, false)) }
				}
				return catalogtest.Delay
			},
		} {
			w.faults.Decide = func() catalogtest.Fault { w.faults.Decide = nil; return prepare() }
			attempt := begin(w.a)
			for w.faults.Late() > 0 {
				must(t, w.faults.Deliver(w.ctx, 0, false))
			}
			if outcome, err := w.b.Settle(w.ctx, attempt.Stamp()); err != nil || outcome != catalog.Failed {
				t.Errorf("%s: the attempt was %s when it was settled, %v", name, outcome, err)
			}
			if next := begin(w.a); next.Stamp().Sequence <= attempt.Stamp().Sequence {
				t.Errorf("%s: stamp %s after %s", name, next.Stamp(), attempt.Stamp())
			}
		}
	})
}
