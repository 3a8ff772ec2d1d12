package catalog_test

import (
	"errors"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// expiring stores a key that is gone after a while.
func (w *world) expiring(t failer, key string, after time.Duration) {
	t.Helper()
	put := w.put(t, w.b, key)
	put.change.Put[0].Expires = w.now.Add(after).UnixMilli()
	put.change.Put[0].Metadata = map[string]string{"flags": "7"}
	must(t, put.commit(w))
}

func (w *world) removeExpired(t failer, want int) {
	t.Helper()
	removed, err := w.b.RemoveExpired(w.ctx)
	must(t, err)
	if removed != want {
		t.Fatalf("%d objects were removed, want %d", removed, want)
	}
	w.audit(t)
}

// Whatever is done to an object that expires, the record of when it does goes with it, which the audit holds it to; and once its time
// has come it is no object for conditions, and is removed.
func TestObjectsExpire(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		for _, key := range []string{"kept", "over", "deleted", "moved", "updated", "later", "untouched"} {
			w.expiring(t, key, time.Minute)
		}
		w.have(t, "stays")
		w.audit(t)
		w.have(t, "over") // does not expire any more
		w.expiring(t, "later", time.Hour)
		existed, err := w.a.Delete(w.ctx, "deleted", nil)
		must(t, err)
		if !existed {
			t.Error("an object that has not expired is not there")
		}
		move := w.move(t, w.b, w.snapshot(t, "moved"))
		must(t, move.commit(w))
		update := w.update(t, w.b, w.snapshot(t, "updated"))
		must(t, update.commit(w))
		for _, key := range []string{"moved", "updated"} {
			if is := w.snapshot(t, key).Object; is.Expires != w.now.Add(time.Minute).UnixMilli() || is.Metadata["flags"] != "7" {
				t.Errorf("%s: %+v", key, is)
			}
		}
		w.audit(t)
		w.removeExpired(t, 0)

		before := w.snapshot(t, "kept").Object.Revision
		w.now = w.now.Add(time.Minute)
		if _, err := w.a.Delete(w.ctx, "kept", nil); !errors.Is(err, catalog.ErrNoObject) {
			t.Errorf("deleting an object that has expired: %v", err)
		}
		if _, err := w.a.Delete(w.ctx, "kept", &before); !errors.Is(err, catalog.ErrStale) {
			t.Errorf("deleting the revision of an object that has expired: %v", err)
		}
		stale := w.put(t, w.a, "kept")
		stale.change.IfRevision = map[string]block.Stamp{"kept": before}
		if err := stale.commit(w); !errors.Is(err, catalog.ErrStale) {
			t.Errorf("writing over the revision of an object that has expired: %v", err)
		}
		absent := w.put(t, w.a, "kept")
		absent.change.IfRevision = map[string]block.Stamp{"kept": {}}
		must(t, absent.commit(w))
		w.audit(t)

		w.removeExpired(t, 3) // moved, updated, untouched
		w.removeExpired(t, 0)
		w.now = w.now.Add(time.Hour)
		w.removeExpired(t, 1) // later
		for key, there := range map[string]bool{"kept": true, "over": true, "stays": true, "later": false, "moved": false} {
			if _, err := w.b.Snapshot(w.ctx, key); (err == nil) != there {
				t.Errorf("%s: %v", key, err)
			}
		}
	})
}

// A thousand objects that expire at once are removed page by page, those with many groups too.
func TestManyObjectsExpire(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		const count = 600
		for i := range count {
			w.expiring(t, string(rune('a'+i%26))+time.Duration(i).String(), time.Duration(i)*time.Millisecond+1)
		}
		large := w.large(t, w.b, "large", 7)
		large.change.Put[0].Expires = w.now.UnixMilli()
		for len(large.pieces) > 0 {
			must(t, large.commitPiece(w))
		}
		must(t, large.commit(w))
		w.now = w.now.Add(time.Second)
		w.removeExpired(t, count+1)
		w.now = w.now.Add(time.Hour)
		w.empty(t)
	})
}

// Several changes of one object each are made together or not at all, and hold others to what they were.
func TestChangesTogether(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		for _, key := range []string{"seen", "gone", "over"} {
			w.have(t, key)
		}
		w.haveLarge(t, "large", 7)
		attempt := func() operation {
			put := w.put(t, w.a, "over", "new")
			put.change.Delete = []string{"gone", "never", "large"}
			put.change.IfRevision = map[string]block.Stamp{
				"seen": w.snapshot(t, "seen").Object.Revision, "gone": w.snapshot(t, "gone").Object.Revision, "new": {}, "absent": {}, "never": {},
			}
			return put
		}
		for name, disturb := range map[string]func(){
			"seen":   func() { w.have(t, "seen") },
			"gone":   func() { w.have(t, "gone") },
			"absent": func() { w.have(t, "absent") },
			"never":  func() { w.have(t, "never") },
		} {
			all := attempt()
			disturb()
			if err := all.commit(w); !errors.Is(err, catalog.ErrStale) {
				t.Fatalf("%s was changed, and the commit says %v", name, err)
			}
			if _, err := w.b.Snapshot(w.ctx, "new"); !errors.Is(err, catalog.ErrNoObject) {
				t.Fatalf("%s was changed, and a part was made", name)
			}
			for _, key := range []string{"absent", "never"} {
				if _, err := w.b.Delete(w.ctx, key, nil); err != nil && !errors.Is(err, catalog.ErrNoObject) {
					t.Fatal(err)
				}
			}
			w.audit(t)
		}
		all := attempt()
		w.engine.beforeUpdate = func() { w.have(t, "seen") } // after it was read, before it is compared
		if err := all.commit(w); !errors.Is(err, catalog.ErrStale) {
			t.Fatalf("what was read is not compared: %v", err)
		}
		all = attempt()
		must(t, all.commit(w))
		w.audit(t)
		for key, there := range map[string]bool{"seen": true, "over": true, "new": true, "gone": false, "large": false} {
			if _, err := w.b.Snapshot(w.ctx, key); (err == nil) != there {
				t.Errorf("%s: %v", key, err)
			}
		}
	})
}
