package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/catalogtest"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/catalog/schema"
	"github.com/restripe/restripe/agent/catalog/sqlite"
	"github.com/restripe/restripe/agent/catalog/transfer"
)

func silent(string, int64, float64) {}

// world is a catalog at work.
type world struct {
	engine       kv.Engine
	catalog      *catalog.Catalog
	nodes        []block.NodeID
	incarnations map[block.NodeID]block.Incarnation
	putters      sync.WaitGroup
	stop         context.CancelFunc

	mu           sync.Mutex
	acknowledged map[string]block.Stamp
}

func file(t *testing.T, name string) *sqlite.Engine {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine
}

// newWorld fills a catalog with so many objects.
func newWorld(t *testing.T, engine kv.Engine, objects int) *world {
	t.Helper()
	c, err := catalog.Open(t.Context(), engine, catalog.Owner("gateway", "first"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{engine: engine, catalog: c, acknowledged: map[string]block.Stamp{}}
	w.nodes, w.incarnations = catalogtest.Enroll(t.Context(), t, c)
	for i := range objects {
		w.put(t, fmt.Sprintf("old/%05d", i))
	}
	return w
}

// put puts an object and reports whether that was acknowledged.
func (w *world) put(t *testing.T, key string) bool {
	stamp, err := catalogtest.PutAlone(t.Context(), w.catalog, key, 0, w.nodes, w.incarnations)
	switch {
	case err == nil:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.acknowledged[key] = stamp
	case !errors.Is(err, catalog.ErrClaimed):
		t.Errorf("putting %s: %v", key, err)
	}
	return err == nil
}

// work puts objects until the catalog is not in service any more, or until the world rests.
func (w *world) work(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w.stop = cancel
	for client := range 4 {
		w.putters.Go(func() {
			for i := 0; ctx.Err() == nil && w.put(t, fmt.Sprintf("new/%d/%d", client, i%50)); i++ {
			}
		})
	}
}

// rest ends the work.
func (w *world) rest() {
	w.stop()
	w.putters.Wait()
}

// holds checks that a catalog is consistent and has what was acknowledged until now, and nothing else.
func (w *world) holds(t *testing.T, engine kv.Engine) {
	t.Helper()
	c, err := catalog.Open(t.Context(), engine, catalog.Owner("gateway", "after "+t.Name()))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Audit(t.Context()); err != nil {
		t.Error(err)
	}
	for key, stamp := range w.acknowledged {
		snapshot, err := c.Snapshot(t.Context(), key)
		if err != nil || snapshot.Object.Revision != stamp {
			t.Errorf("%s, acknowledged as %s, is %v, %v", key, stamp, snapshot, err)
		}
	}
}

// A backup of a catalog at work is one of its states; so is the catalog that is made of it.
func TestBackupOfACatalogAtWork(t *testing.T) {
	w := newWorld(t, file(t, "catalog.db"), 400)
	before := len(w.acknowledged)
	w.work(t)
	backup := file(t, "backup.db")
	made, err := transfer.Backup(t.Context(), w.engine, backup, silent)
	if err != nil {
		t.Fatal(err)
	}
	w.rest()
	if _, err := catalog.Open(t.Context(), backup, catalog.Owner("gateway", "x")); !errors.Is(err, catalog.ErrAside) {
		t.Errorf("a gateway opens a backup: %v", err)
	} else {
		t.Log(err)
	}
	engine := mem.New()
	restored, err := transfer.Restore(t.Context(), backup, engine, silent)
	if err != nil {
		t.Fatal(err)
	}
	isSame := restored.Checksum == made.Checksum && restored.Records == made.Records && restored.At.Equal(made.At)
	if !isSame || made.Records < int64(before) {
		t.Errorf("restored is %+v of %+v", restored, made)
	}
	c, err := catalog.Open(t.Context(), engine, catalog.Owner("gateway", "restored"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Audit(t.Context()); err != nil {
		t.Error(err)
	}
	objects, err := c.ListObjects(t.Context(), "old/", "", 1000)
	if err != nil || len(objects) != before {
		t.Errorf("%d objects were restored of %d, %v", len(objects), before, err)
	}
}

// What is not what was backed up is not restored.
func TestDamagedBackup(t *testing.T) {
	w := newWorld(t, mem.New(), 20)
	backup := mem.New()
	if _, err := transfer.Restore(t.Context(), backup, mem.New(), silent); !errors.Is(err, catalog.ErrBadChange) {
		t.Errorf("restoring nothing: %v", err)
	}
	if _, err := transfer.Backup(t.Context(), w.engine, backup, silent); err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.Backup(t.Context(), w.engine, backup, silent); !errors.Is(err, kv.ErrInUse) {
		t.Errorf("a backup is made over a backup: %v", err)
	}
	groups, err := backup.Scan(t.Context(), "g/", "", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Update(t.Context(), nil, []kv.Write{{Key: groups[0].Key, Kind: kv.Remove}}); err != nil {
		t.Fatal(err)
	}
	engine := mem.New()
	if _, err := transfer.Restore(t.Context(), backup, engine, silent); !errors.Is(err, catalog.ErrCorrupt) {
		t.Errorf("restoring a backup that lacks a record: %v", err)
	}
	if _, err := catalog.Open(t.Context(), engine, catalog.Owner("gateway", "x")); !errors.Is(err, catalog.ErrAside) {
		t.Errorf("a gateway opens what was not restored: %v", err)
	}
}

const address = "etcd://elsewhere"

func (w *world) move(to kv.Engine) transfer.Move {
	return transfer.Move{
		Live: w.engine, To: to, Progress: silent,
		Aside: func(ctx context.Context) (kv.Engine, error) {
			return w.engine, transfer.SetAside(ctx, w.engine, transfer.Moved(address))
		},
	}
}

// A catalog moves while it is at work. What was acknowledged, until it was set aside, is in the destination.
func TestMoveUnderLoad(t *testing.T) {
	w := newWorld(t, file(t, "catalog.db"), 2000)
	w.work(t)
	to := file(t, "there.db")
	made, err := w.move(to).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.putters.Wait() // they end by themselves
	t.Logf("%d records, %d written, away for %.3f s", made.Records, made.Written, made.AwaySeconds)
	if made.Written < made.Records {
		t.Errorf("%d records were written of %d", made.Written, made.Records)
	}
	_, err = catalog.Open(t.Context(), w.engine, catalog.Owner("gateway", "again"))
	if !errors.Is(err, catalog.ErrAside) || !strings.Contains(err.Error(), address) {
		t.Errorf("a gateway opens what was moved: %v", err)
	}
	w.holds(t, to)
	again := w.move(to)
	again.Live = nil
	if made, err := again.Run(t.Context()); err != nil || !made.Already {
		t.Errorf("a move that has ended: %+v, %v", made, err)
	}
	if err := transfer.Abort(t.Context(), w.engine, to, address); !errors.Is(err, catalog.ErrBadChange) {
		t.Errorf("a move that has ended is given up: %v", err)
	}
}

// breaking is an engine that breaks down at one of its updates, before or after it is made.
type breaking struct {
	kv.Engine
	left  int
	after bool
}

var errBroken = errors.New("broken off")

func (b *breaking) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	b.left--
	if b.left < 0 && !b.after {
		return nil, errBroken
	}
	failed, err := b.Engine.Update(ctx, checks, writes)
	if b.left < 0 {
		return nil, errBroken
	}
	return failed, err
}

// A move that is broken off at any update, of either side, goes on when it is said again, or is given up and leaves the catalog as it
// was; in between no gateway works on the destination.
func TestMoveThatIsBrokenOff(t *testing.T) {
	for _, giveUp := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			for at, broke := 0, true; broke; at++ {
				w := newWorld(t, mem.New(), 600)
				to := mem.New()
				move := w.move(&breaking{to, at, after})
				_, err := move.Run(t.Context())
				if broke = err != nil; !broke {
					if at < 4 {
						t.Errorf("only %d updates were broken off", at)
					}
					continue
				}
				if !errors.Is(err, errBroken) {
					t.Fatal(err)
				}
				isAside := transfer.SetAside(t.Context(), w.engine, "another reason") != nil
				if !isAside {
					if err := transfer.PutBack(t.Context(), w.engine, "another reason"); err != nil {
						t.Fatal(err)
					}
				}
				values, err := to.Read(t.Context(), catalog.KeySchema)
				if err != nil {
					t.Fatal(err)
				}
				isThere := schema.VersionOf(values[0]) > 0
				if isThere && !isAside {
					t.Fatalf("broken off at %d: both are in service", at)
				}
				again := w.move(to)
				switch {
				case giveUp && !isThere && isAside:
					if err := transfer.Abort(t.Context(), w.engine, to, address); err != nil {
						t.Fatal(err)
					}
					w.holds(t, w.engine)
				case isAside:
					again.Live = nil
					fallthrough
				default:
					if _, err := again.Run(t.Context()); err != nil {
						t.Fatalf("broken off at %d: %v", at, err)
					}
					w.holds(t, to)
				}
			}
		}
	}
}

// A gateway that is starting while the catalog is set aside does not begin, or ends.
func TestSetAsideWhileGatewaysStart(t *testing.T) {
	for round := range 20 {
		w := newWorld(t, mem.New(), 1)
		var starting sync.WaitGroup
		var begun []*catalog.Catalog
		var mu sync.Mutex
		for i := range 8 {
			starting.Go(func() {
				c, err := catalog.Open(t.Context(), w.engine, catalog.Owner(fmt.Sprintf("gateway%d", i), "start"))
				switch {
				case err == nil:
					mu.Lock()
					begun = append(begun, c)
					mu.Unlock()
				case !errors.Is(err, catalog.ErrAside):
					t.Error(err)
				}
			})
		}
		if err := transfer.SetAside(t.Context(), w.engine, "a test"); err != nil {
			t.Fatal(err)
		}
		starting.Wait()
		for _, c := range append(begun, w.catalog) {
			if _, err := catalogtest.PutAlone(t.Context(), c, "late", 0, w.nodes, w.incarnations); !errors.Is(err, catalog.ErrClaimed) {
				t.Fatalf("round %d: a catalog that is set aside takes a put: %v", round, err)
			}
		}
	}
}

// A request to put the destination into service that comes late, when the move was given up and begun anew, has no effect; nor has one
// to put the catalog back.
func TestRequestsThatComeLate(t *testing.T) {
	w := newWorld(t, mem.New(), 300)
	to := mem.New()
	destination, source := &catalogtest.Faulty{Engine: to}, &catalogtest.Faulty{Engine: w.engine}
	destination.Decide = func() catalogtest.Fault {
		values, err := to.Scan(t.Context(), "v/", "", 1)
		if err != nil || len(values) == 0 {
			return catalogtest.None
		}
		return catalogtest.Delay // the last: all records are there
	}
	move := w.move(destination)
	if _, err := move.Run(t.Context()); !errors.Is(err, catalogtest.ErrLost) {
		t.Fatal(err)
	}
	source.Decide = func() catalogtest.Fault { return catalogtest.Delay }
	if err := transfer.Abort(t.Context(), source, to, address); !errors.Is(err, catalogtest.ErrLost) {
		t.Fatal(err)
	}
	if err := transfer.Abort(t.Context(), w.engine, to, address); err != nil {
		t.Fatal(err)
	}
	again := w.move(to)
	again.Aside = func(context.Context) (kv.Engine, error) { return nil, errBroken }
	if _, err := again.Run(t.Context()); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	for destination.Late() > 0 {
		if err := destination.Deliver(t.Context(), 0, false); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := catalog.Open(t.Context(), to, catalog.Owner("gateway", "early")); !errors.Is(err, catalog.ErrAside) {
		t.Fatalf("the destination is in service before its time: %v, %v", c, err)
	}
	last := w.move(to)
	setAside := last.Aside
	last.Aside = func(ctx context.Context) (kv.Engine, error) {
		if _, err := setAside(ctx); err != nil {
			return nil, err
		}
		return w.engine, source.Deliver(ctx, 0, false)
	}
	if _, err := last.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c, err := catalog.Open(t.Context(), w.engine, catalog.Owner("gateway", "late")); !errors.Is(err, catalog.ErrAside) {
		t.Errorf("the catalog that was moved is in service: %v, %v", c, err)
	}
	w.holds(t, to)
}
