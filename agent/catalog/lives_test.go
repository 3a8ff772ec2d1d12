package catalog_test

import (
	"context"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// fill is what lives in a group by its counts.
func (w *world) fill(t failer, id block.GroupID) catalog.GroupFill {
	t.Helper()
	for page, err := range w.b.PackedGroups(w.ctx) {
		must(t, err)
		for _, fill := range page {
			if fill.ID == id {
				return fill
			}
		}
	}
	t.Fatalf("there is no packed group %s", id)
	return catalog.GroupFill{}
}

// moveAll prepares copying objects that share a group into a new one, those alone that are not changed.
func (w *world) moveAll(t failer, c *catalog.Catalog, snapshots []*catalog.Snapshot) operation {
	t.Helper()
	moving := w.move(t, c, snapshots[0])
	moving.change.LeaveOut = true
	id := moving.change.NewGroups[0].ID
	for i, snapshot := range snapshots[1:] {
		extent := catalog.Extent{Group: id, Column: 0, Offset: int64(i) * snapshot.Object.Size, Length: snapshot.Object.Size}
		moving.change.Move = append(moving.change.Move, catalog.ObjectMove{Snapshot: snapshot, Extents: []catalog.Extent{extent}})
	}
	return moving
}

// Live bytes follow puts, updates of size, moves and deletes, and go with their group.
func TestLiveBytes(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k1", "k2", "k3")
		each := w.snapshot(t, "k1").Object.Size
		if fill := w.fill(t, id); fill.Live != 3 || fill.Bytes != 3*each {
			t.Errorf("%d extents, %d bytes of 3 objects of %d", fill.Live, fill.Bytes, each)
		}
		shorter := w.update(t, w.a, w.snapshot(t, "k1"))
		shorter.change.Update.Size = each - 1
		must(t, shorter.commit(w))
		if fill := w.fill(t, id); fill.Bytes != 3*each-1 {
			t.Errorf("%d bytes after an object has lost one of %d", fill.Bytes, 3*each)
		}
		w.have(t, "k2")
		if _, err := w.a.Delete(w.ctx, "k3", nil); err != nil {
			t.Fatal(err)
		}
		if fill := w.fill(t, id); fill.Live != 1 || fill.Bytes != each-1 {
			t.Errorf("%d extents, %d bytes of one object of %d", fill.Live, fill.Bytes, each-1)
		}
		must(t, w.move(t, w.b, w.snapshot(t, "k1")).commit(w))
		w.audit(t)
		if _, _, err := w.b.FreeAll(w.ctx); err != nil {
			t.Fatal(err)
		}
		if left, err := w.engine.Read(w.ctx, schema.BytesKey(id)); err != nil || left[0] != nil {
			t.Errorf("the group is gone, and its count %q, %v", left[0], err)
		}
		w.audit(t)
	})
}

// What a release that did not count live bytes has left is counted when a group is looked into, unless something changes meanwhile.
func TestLiveBytesOfEarlierReleases(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k1", "k2", "k3")
		each := w.snapshot(t, "k1").Object.Size
		if _, err := w.engine.Update(w.ctx, nil, []kv.Write{{Key: schema.BytesKey(id), Kind: kv.Remove}}); err != nil {
			t.Fatal(err)
		}
		if fill := w.fill(t, id); fill.Bytes >= 0 {
			t.Errorf("%d bytes that nobody counted", fill.Bytes)
		}
		w.have(t, "k3") // now it is below 0
		if fill := w.fill(t, id); fill.Bytes != -each {
			t.Errorf("%d bytes, want %d", fill.Bytes, -each)
		}
		w.engine.beforeUpdate = func() { w.have(t, "k2") }
		if _, err := w.a.Inside(w.ctx, id, []string{"k1", "k2", "k3"}); err != nil {
			t.Fatal(err)
		}
		if fill := w.fill(t, id); fill.Bytes != -2*each {
			t.Errorf("%d bytes after a count that was overtaken, want %d", fill.Bytes, -2*each)
		}
		inside, err := w.a.Inside(w.ctx, id, []string{"k1", "k2", "k3", "never", "k1"})
		if err != nil || !inside.All || len(inside.Snapshots) != 1 {
			t.Fatalf("%+v, %v", inside, err)
		}
		if fill := w.fill(t, id); fill.Bytes != each {
			t.Errorf("%d bytes were counted, of one object of %d", fill.Bytes, each)
		}
		if part, err := w.a.Inside(w.ctx, id, nil); err != nil || part.All {
			t.Errorf("nobody was asked for, and that is all: %+v, %v", part, err)
		}
		w.audit(t)
	})
}

// A move that may leave out moves what is as it was read, and nothing else; where that is nothing it fails.
func TestMovesLeaveOut(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		keys := []string{"k1", "k2", "k3"}
		id := w.have(t, keys...)
		inside, err := w.a.Inside(w.ctx, id, keys)
		must(t, err)
		moving := w.moveAll(t, w.a, inside.Snapshots)
		w.have(t, "k1")
		if _, err := w.b.Delete(w.ctx, "k2", nil); err != nil {
			t.Fatal(err)
		}
		// One more changes between the reading of the commit and its transaction.
		overwritten := false
		w.engine.beforeUpdate = func() {
			overwritten = true
			must(t, w.update(t, w.b, w.snapshot(t, "k1")).commit(w))
		}
		must(t, moving.commit(w))
		at := func(key string) block.GroupID { return w.snapshot(t, key).Object.Extents[0].Group }
		if to := moving.change.NewGroups[0].ID; !overwritten || at("k1") == to || at("k3") != to || w.fill(t, to).Live != 1 {
			t.Errorf("k1 is in %s, k3 in %s, and %d live in %s", at("k1"), at("k3"), w.fill(t, to).Live, to)
		}
		if _, err := w.b.Snapshot(w.ctx, "k2"); err == nil {
			t.Error("a move brought back what was deleted")
		}
		w.audit(t)

		id = at("k3")
		inside, err = w.a.Inside(w.ctx, id, keys)
		must(t, err)
		moving = w.moveAll(t, w.a, inside.Snapshots)
		w.have(t, "k3")
		violates(t, moving.commit(w), catalog.ViolationObject)
		w.audit(t)
	})
}

// A count that is not one of the records is told by the audit.
func TestAuditCountsLiveBytes(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k1")
		must(t, w.b.Audit(w.ctx))
		values, err := w.engine.Read(context.Background(), schema.BytesKey(id))
		must(t, err)
		count, err := codec.DecodeCount("", values[0])
		must(t, err)
		for _, wrong := range []int64{count + 1, 0} {
			if _, err := w.engine.Update(w.ctx, nil, []kv.Write{{Key: schema.BytesKey(id), Kind: kv.Count, Add: wrong}}); err != nil {
				t.Fatal(err)
			}
			if w.b.Audit(w.ctx) == nil {
				t.Errorf("%d live bytes are believed, of %d", wrong, count)
			}
		}
	})
}
