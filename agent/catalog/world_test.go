package catalog_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/catalogtest"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/catalog/sqlite"
)

// home is where the groups of the tests lie: two data columns, one parity row. spare takes repaired slots.
var home = []block.NodeID{"n0", "n1", "n2"}

const (
	parity = 2
	spare  = block.NodeID("n3")
)

// further are where groups get columns of others.
var further = []block.NodeID{"n4", "n5", "n6", "n7"}

// failer is what testing.T and rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, arguments ...any)
	Errorf(format string, arguments ...any)
}

// world is two gateways over one engine, whose stores are a set of addresses.
type world struct {
	ctx          context.Context
	engine       *hooks
	a, b         *catalog.Catalog
	faults       *catalogtest.Faulty // between a and the engine
	now          time.Time
	behind       time.Duration // by how much the clock of gateway b is
	incarnations map[block.NodeID]block.Incarnation
	stored       map[block.Address]bool
}

// hooks runs functions just before reads and updates reach the engine.
type hooks struct {
	kv.Engine
	beforeRead, beforeUpdate func()
}

func (h *hooks) Read(ctx context.Context, keys ...string) ([][]byte, error) {
	h.fire(&h.beforeRead)
	return h.Engine.Read(ctx, keys...)
}

func (h *hooks) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	h.fire(&h.beforeUpdate)
	return h.Engine.Update(ctx, checks, writes)
}

// fire runs a hook once.
func (h *hooks) fire(hook *func()) {
	if run := *hook; run != nil {
		*hook = nil
		run()
	}
}

// onEveryEngine runs a test over the engines that need no server.
func onEveryEngine(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("mem", func(t *testing.T) { test(t, newWorld(t, mem.New())) })
	t.Run("sqlite", func(t *testing.T) {
		engine, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "catalog.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := engine.Close(); err != nil {
				t.Error(err)
			}
		})
		test(t, newWorld(t, engine))
	})
}

func newWorld(t failer, engine kv.Engine) *world {
	t.Helper()
	w := &world{
		ctx: context.Background(), engine: &hooks{Engine: engine}, now: time.Unix(1_000_000, 0),
		incarnations: map[block.NodeID]block.Incarnation{}, stored: map[block.Address]bool{},
	}
	w.faults = &catalogtest.Faulty{Engine: w.engine}
	w.a = w.open(t, w.faults, "a", "1")
	w.b = w.open(t, w.engine, "b", "1")
	for _, node := range slices.Concat(home, []block.NodeID{spare}, further) {
		w.lose(t, node, "first")
	}
	return w
}

func (w *world) open(t failer, engine kv.Engine, gateway, start string) *catalog.Catalog {
	t.Helper()
	// Salts repeat from run to run, so that a failure can be replayed, and differ between starts.
	random := rand.NewChaCha8(sha256.Sum256([]byte(gateway + start)))
	c, err := catalog.Open(w.ctx, engine, catalog.Owner(gateway, start), catalog.WithRandom(random), catalog.WithHolding(2),
		catalog.WithClock(func() time.Time {
			if gateway == "b" {
				return w.now.Add(-w.behind)
			}
			return w.now
		}),
		catalog.WithPause(func(_ context.Context, turn int) error {
			if turn > 50 {
				return errors.New("patience is over")
			}
			return nil
		}))
	if err != nil {
		t.Fatalf("opening: %v", err)
	}
	return c
}

// lose registers new contents of a node's store.
func (w *world) lose(t failer, node block.NodeID, contents string) {
	t.Helper()
	registered, err := w.b.Incarnations(w.ctx)
	must(t, err)
	w.incarnations[node] = block.Incarnation(fmt.Sprintf("%d.%s contents of %s.", registered[node].Number()+1, contents, node))
	must(t, w.b.RegisterIncarnation(w.ctx, node, registered[node], w.incarnations[node]))
}

func must(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

func is(t failer, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// violates checks that err is an ErrStale with the violation.
func violates(t failer, err error, want catalog.Violation) {
	t.Helper()
	var stale *catalog.StaleError
	if !errors.As(err, &stale) || !stale.Has(want) {
		t.Fatalf("got %v, want a stale record: %s", err, want)
	}
}

// begin announces an attempt and stages its blocks.
func (w *world) begin(t failer, c *catalog.Catalog, kind catalog.Kind, blocks func(block.Stamp) []catalog.BlockSet, basis ...catalog.Basis) *catalog.Attempt {
	t.Helper()
	attempt, err := c.Begin(w.ctx, kind, w.now.Add(time.Minute), blocks, basis...)
	must(t, err)
	w.store(attempt, blocks)
	return attempt
}

// store has the blocks of an attempt in the stores.
func (w *world) store(attempt *catalog.Attempt, blocks func(block.Stamp) []catalog.BlockSet) {
	for _, set := range blocks(attempt.Stamp()) {
		for i, slot := range set.Slots {
			w.stored[block.Address{Node: set.Nodes[i], Group: set.Group, Slot: slot, Stamp: attempt.Stamp()}] = true
		}
	}
}

// operation is an attempt that was begun and staged, and the change it asks for.
type operation struct {
	*catalog.Attempt
	change catalog.Change
	pieces [][]catalog.Group // to be committed before it, of a large object
}

func (o operation) commit(w *world) error { return o.Commit(w.ctx, o.change) }

// put prepares storing keys in a new group, column by column.
func (w *world) put(t failer, c *catalog.Catalog, keys ...string) operation {
	t.Helper()
	return w.putBy(w.begin(t, c, catalog.KindPut, oneGroup, catalogtest.Over(keys...)...), keys...)
}

// oneGroup are the blocks of a put of small objects.
func oneGroup(stamp block.Stamp) []catalog.BlockSet {
	return []catalog.BlockSet{catalogtest.Announce(stamp, 0, home)}
}

// putBy is what an attempt asks for that stores keys in a new group.
func (w *world) putBy(attempt *catalog.Attempt, keys ...string) operation {
	group := catalogtest.NewGroup(attempt.Stamp(), 0, home, w.incarnations)
	change := catalog.Change{NewGroups: []catalog.Group{group}}
	for i, key := range keys {
		change.Put = append(change.Put, object(key, group.ID, i%2, int64(i/2)*10))
	}
	return operation{Attempt: attempt, change: change}
}

// putAhead prepares storing keys by an attempt that was announced ahead.
func (w *world) putAhead(attempt *catalog.Attempt, keys ...string) operation {
	w.store(attempt, oneGroup)
	return w.putBy(attempt, keys...)
}

// announceAhead announces an attempt of which nobody knows yet what it is for.
func (w *world) announceAhead(t failer, c *catalog.Catalog) *catalog.Attempt {
	t.Helper()
	attempts, err := c.BeginAhead(w.ctx, w.now.Add(time.Minute), oneGroup)
	must(t, err)
	return attempts[0]
}

// large prepares storing a key in so many groups, all but the last of them as pieces of two groups at most.
func (w *world) large(t failer, c *catalog.Catalog, key string, groups int) operation {
	t.Helper()
	attempt := w.begin(t, c, catalog.KindPut, func(stamp block.Stamp) (sets []catalog.BlockSet) {
		for i := range groups {
			sets = append(sets, catalogtest.Announce(stamp, uint32(i), home))
		}
		return sets
	}, catalog.Over(key))
	o := operation{Attempt: attempt}
	put := catalog.Object{Key: key, Class: "test", Scheme: "rs(2,1)", Size: int64(groups) * 10}
	var all []catalog.Group
	for i := range groups {
		group := catalogtest.NewGroup(attempt.Stamp(), uint32(i), home, w.incarnations)
		all = append(all, group)
		put.Extents = append(put.Extents, extentIn(group.ID))
	}
	o.change = catalog.Change{Put: []catalog.Object{put}, NewGroups: all[groups-1:]}
	o.pieces = slices.Collect(slices.Chunk(all[:groups-1], 2))
	return o
}

func extentIn(group block.GroupID) catalog.Extent {
	return catalog.Extent{Group: group, Column: 1, Length: 10}
}

// commitPiece commits the next piece of a large object.
func (o *operation) commitPiece(w *world) error {
	var extents []catalog.Extent
	for i := range o.pieces[0] {
		extents = append(extents, extentIn(o.pieces[0][i].ID))
	}
	var key string
	if len(o.change.Put) > 0 {
		key = o.change.Put[0].Key
	} else {
		key = o.change.Move[0].Snapshot.Object.Key
	}
	err := o.CommitPiece(w.ctx, key, o.pieces[0], extents)
	if err == nil {
		o.pieces = o.pieces[1:]
	}
	return err
}

// haveLarge stores a key in so many groups.
func (w *world) haveLarge(t failer, key string, groups int) {
	t.Helper()
	put := w.large(t, w.b, key, groups)
	for len(put.pieces) > 0 {
		must(t, put.commitPiece(w))
	}
	must(t, put.commit(w))
}

// held counts the records that hold extents no object has.
func (w *world) held(t failer) int {
	t.Helper()
	records, err := w.engine.Scan(w.ctx, "p/", "", 1000)
	must(t, err)
	return len(records)
}

// empty sweeps and checks that nothing is left of anything.
func (w *world) empty(t failer) {
	t.Helper()
	_, _, err := w.b.FreeAll(w.ctx)
	must(t, err)
	w.audit(t)
	w.bury(t, w.b)
	w.orphans(t, w.b, w.list())
	w.audit(t)
	if held := w.held(t); held > 0 || len(w.stored) > 0 {
		t.Fatalf("%d records of pieces and %d blocks are left", held, len(w.stored))
	}
}

func object(key string, group block.GroupID, column int, offset int64) catalog.Object {
	return catalog.Object{Key: key, Class: "test", Scheme: "rs(2,1)", Size: 10,
		Extents: []catalog.Extent{{Group: group, Column: column, Offset: offset, Length: 10}}}
}

// have stores keys in a new group and returns the group.
func (w *world) have(t failer, keys ...string) block.GroupID {
	t.Helper()
	put := w.put(t, w.b, keys...)
	must(t, put.commit(w))
	return put.change.NewGroups[0].ID
}

func (w *world) group(t failer, id block.GroupID) *catalog.GroupView {
	t.Helper()
	view, err := w.b.Group(w.ctx, id)
	must(t, err)
	return view
}

func (w *world) snapshot(t failer, key string) *catalog.Snapshot {
	t.Helper()
	snapshot, err := w.b.Snapshot(w.ctx, key)
	must(t, err)
	return snapshot
}

// own names slots of a group on the nodes they are on.
func own(group *catalog.Group, slots ...int) func(block.Stamp) []catalog.BlockSet {
	set := catalog.BlockSet{Group: group.ID, Slots: slots}
	for _, slot := range slots {
		set.Nodes = append(set.Nodes, group.Slots[slot][0].Node)
	}
	return func(block.Stamp) []catalog.BlockSet { return []catalog.BlockSet{set} }
}

// rewritten returns the slots of group with one of them stored anew, as a whole, on node.
func (w *world) rewritten(group *catalog.Group, stamp block.Stamp, slot int, node block.NodeID) []catalog.Slot {
	slots := slices.Clone(group.Slots)
	slots[slot] = catalog.Slot{{Units: 4, Stamp: stamp, Node: node, Incarnation: w.incarnations[node]}}
	return slots
}

// transition prepares replacing the parities of a group.
func (w *world) transition(t failer, c *catalog.Catalog, was *catalog.GroupView) operation {
	t.Helper()
	row := was.Columns
	attempt := w.begin(t, c, catalog.KindTransition, own(&was.Group, row), was)
	slots := w.rewritten(&was.Group, attempt.Stamp(), row, was.Slots[row][0].Node)
	return operation{Attempt: attempt, change: catalog.Change{Groups: []catalog.GroupChange{{Was: was, Slots: slots, NewEpoch: true}}}}
}

// repair prepares rebuilding one slot on node.
func (w *world) repair(t failer, c *catalog.Catalog, was *catalog.GroupView, slot int, node block.NodeID) operation {
	t.Helper()
	attempt := w.begin(t, c, catalog.KindRepair, func(block.Stamp) []catalog.BlockSet {
		return []catalog.BlockSet{{Group: was.ID, Slots: []int{slot}, Nodes: []block.NodeID{node}}}
	}, was)
	return operation{Attempt: attempt, change: catalog.Change{
		Groups:        []catalog.GroupChange{{Was: was, Slots: w.rewritten(&was.Group, attempt.Stamp(), slot, node)}},
		RepairedSlots: map[block.GroupID][]int{was.ID: {slot}},
	}}
}

// update prepares changing the bytes of an object in row 0 of its column.
func (w *world) update(t failer, c *catalog.Catalog, was *catalog.Snapshot) operation {
	t.Helper()
	extent := was.Object.Extents[0]
	at, _, err := was.Where(extent.Group, extent.Column)
	must(t, err)
	view := was.View(at.Group)
	attempt := w.begin(t, c, catalog.KindUpdate, own(&view.Group, at.Column, view.Columns), was, view)
	slots := w.rewritten(&view.Group, attempt.Stamp(), view.Columns, view.Slots[view.Columns][0].Node)
	column := slices.Clone(slots[at.Column])
	item := catalog.Item{Units: 1, Stamp: attempt.Stamp(), Node: column[0].Node, Incarnation: w.incarnations[column[0].Node]}
	if column[0].Units > 1 {
		rest := column[0]
		rest.First, rest.Units = 1, rest.Units-1
		column = slices.Insert(column, 1, rest)
	}
	column[0] = item
	slots[at.Column] = column
	return operation{Attempt: attempt, change: catalog.Change{
		Update: &catalog.ObjectUpdate{Snapshot: was, Size: was.Object.Size},
		Groups: []catalog.GroupChange{{Was: view, Slots: slots, NewEpoch: true}},
	}}
}

// move prepares copying an object into a new group.
func (w *world) move(t failer, c *catalog.Catalog, was *catalog.Snapshot) operation {
	t.Helper()
	attempt := w.begin(t, c, catalog.KindMove, func(stamp block.Stamp) []catalog.BlockSet {
		return []catalog.BlockSet{catalogtest.Announce(stamp, 0, home)}
	}, was)
	group := catalogtest.NewGroup(attempt.Stamp(), 0, home, w.incarnations)
	return operation{Attempt: attempt, change: catalog.Change{
		NewGroups: []catalog.Group{group},
		Move:      []catalog.ObjectMove{{Snapshot: was, Extents: []catalog.Extent{{Group: group.ID, Column: 1, Length: was.Object.Size}}}},
	}}
}

// append prepares putting an object into an open group, in a row after all others.
func (w *world) append(t failer, c *catalog.Catalog, was *catalog.GroupView, key string) operation {
	t.Helper()
	return w.appendBy(w.begin(t, c, catalog.KindPut, own(&was.Group, 0, parity), was, catalog.Over(key)), was, key)
}

// appendBy is append by an attempt that is announced.
func (w *world) appendBy(attempt *catalog.Attempt, was *catalog.GroupView, key string) operation {
	slots := w.rewritten(&was.Group, attempt.Stamp(), parity, was.Slots[parity][0].Node)
	last := was.Slots[0][len(was.Slots[0])-1]
	row := last.First + last.Units
	node := last.Node
	slots[0] = append(slices.Clone(slots[0]), catalog.Item{First: row, Units: 1, Base: row, Stamp: attempt.Stamp(), Node: node, Incarnation: w.incarnations[node]})
	return operation{Attempt: attempt, change: catalog.Change{
		Put:    []catalog.Object{object(key, was.ID, 0, int64(row)*catalogtest.CellBytes)},
		Groups: []catalog.GroupChange{{Was: was, Slots: slots, NewEpoch: true}},
	}}
}

// audit checks the records, that every live block is stored, and that no block is forgotten.
func (w *world) audit(t failer) {
	t.Helper()
	must(t, w.b.Audit(w.ctx))
	accounted := map[block.Address]bool{}
	groups, err := w.b.ListGroups(w.ctx, block.GroupID{}, 1000)
	must(t, err)
	for _, group := range groups {
		for address := range live(&group.Group) {
			accounted[address] = true
			if !w.stored[address] {
				t.Fatalf("live block %s was deleted", address)
			}
		}
	}
	graves, err := w.b.Graves(w.ctx, w.now.Add(1000*time.Hour), "", 10000)
	must(t, err)
	for _, grave := range graves {
		accounted[grave.Address] = true
	}
	intents, err := w.b.Intents(w.ctx, block.Stamp{}, 1000)
	must(t, err)
	for _, intent := range intents {
		for _, set := range intent.Blocks {
			for i, slot := range set.Slots {
				accounted[block.Address{Node: set.Nodes[i], Group: set.Group, Slot: slot, Stamp: intent.Stamp}] = true
			}
		}
	}
	for address := range w.stored {
		if !accounted[address] {
			t.Fatalf("block %s is forgotten", address)
		}
	}
}

func live(group *catalog.Group) map[block.Address]bool {
	named := map[block.Address]bool{}
	for slot, items := range group.Slots {
		for _, item := range items {
			named[group.Address(slot, item)] = true
		}
	}
	return named
}

// bury empties the graveyard, as its worker does.
func (w *world) bury(t failer, c *catalog.Catalog) {
	t.Helper()
	graves, err := c.Graves(w.ctx, w.now.Add(time.Hour), "", 10000)
	must(t, err)
	var addresses []block.Address
	for _, grave := range graves {
		delete(w.stored, grave.Address)
		addresses = append(addresses, grave.Address)
	}
	must(t, c.Buried(w.ctx, addresses))
}

func (w *world) list() []block.Address {
	var listed []block.Address
	for address := range w.stored {
		listed = append(listed, address)
	}
	slices.SortFunc(listed, func(a, b block.Address) int { return slices.Compare([]byte(a.String()), []byte(b.String())) })
	return listed
}

// orphans judges a listing and deletes what is orphaned.
func (w *world) orphans(t failer, c *catalog.Catalog, listed []block.Address) []block.Address {
	t.Helper()
	orphans, quarantined, err := c.Orphans(w.ctx, listed)
	must(t, err)
	if len(quarantined) > 0 {
		t.Fatalf("quarantined: %v", quarantined)
	}
	for _, address := range orphans {
		delete(w.stored, address)
	}
	return orphans
}
