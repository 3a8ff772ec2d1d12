package catalog_test

import (
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
)

// extend gives every record under prefix a field that this release does not know.
func (w *world) extend(t *testing.T, prefix string) {
	t.Helper()
	records, err := w.engine.Scan(w.ctx, prefix, "", 1000)
	must(t, err)
	if len(records) == 0 {
		t.Fatalf("there are no records under %q", prefix)
	}
	for _, record := range records {
		var fields map[uint64]any
		must(t, cbor.Unmarshal(record.Value, &fields))
		fields[999] = "of a later release"
		value, err := cbor.CoreDetEncOptions().EncMode()
		must(t, err)
		raw, err := value.Marshal(fields)
		must(t, err)
		_, err = w.engine.Update(w.ctx, nil, []kv.Write{{Key: record.Key, Value: raw}})
		must(t, err)
	}
}

// kept checks that the records under prefix still have the field of extend.
func (w *world) kept(t *testing.T, prefix string) {
	t.Helper()
	records, err := w.engine.Scan(w.ctx, prefix, "", 1000)
	must(t, err)
	for _, record := range records {
		var fields map[uint64]any
		must(t, cbor.Unmarshal(record.Value, &fields))
		if fields[999] == nil {
			t.Errorf("record %q has lost its field of a later release", record.Key)
		}
	}
}

// A record that a later release has extended is read, and every change of it refused: it would drop what it does not know.
func TestFieldsOfALaterReleaseAreNotDropped(t *testing.T) {
	job := catalog.Job{ID: "job"}
	node := catalog.Node{ID: "n9", Address: "a:1"}
	for _, c := range []struct {
		name, prefix string
		change       func(t *testing.T, w *world, running *catalog.Attempt) error
	}{
		{"an object is put anew", "o/", func(t *testing.T, w *world, _ *catalog.Attempt) error { return w.put(t, w.b, "a").commit(w) }},
		{"an object is deleted", "o/", func(_ *testing.T, w *world, _ *catalog.Attempt) error {
			_, err := w.b.Delete(w.ctx, "a", nil)
			return err
		}},
		{"an object is updated", "o/", func(t *testing.T, w *world, _ *catalog.Attempt) error {
			return w.update(t, w.b, w.snapshot(t, "a")).commit(w)
		}},
		{"an object is moved", "o/", func(t *testing.T, w *world, _ *catalog.Attempt) error {
			return w.move(t, w.b, w.snapshot(t, "a")).commit(w)
		}},
		{"a group of an update", "g/", func(t *testing.T, w *world, _ *catalog.Attempt) error {
			return w.update(t, w.b, w.snapshot(t, "a")).commit(w)
		}},
		{"a group is restriped", "g/", func(t *testing.T, w *world, _ *catalog.Attempt) error {
			return w.transition(t, w.b, w.group(t, w.snapshot(t, "a").Object.Extents[0].Group)).commit(w)
		}},
		{"a group is repaired", "g/", func(t *testing.T, w *world, _ *catalog.Attempt) error {
			return w.repair(t, w.b, w.group(t, w.snapshot(t, "a").Object.Extents[0].Group), 0, spare).commit(w)
		}},
		{"a job is saved", "j/", func(_ *testing.T, w *world, _ *catalog.Attempt) error {
			saved := catalog.Job{ID: "job", Version: 1}
			return w.b.SaveJob(w.ctx, &saved)
		}},
		{"a node is changed", "n/", func(_ *testing.T, w *world, _ *catalog.Attempt) error {
			was := node
			was.Version = 1
			is := was
			is.Address = "a:2"
			_, err := w.b.ChangeNode(w.ctx, was, is)
			return err
		}},
		{"a class is changed", "c/", func(_ *testing.T, w *world, _ *catalog.Attempt) error {
			return w.b.ChangeClasses(w.ctx, func(classes []catalog.Class) ([]catalog.Class, error) { return classes, nil })
		}},
		{"what is declared of repair", "meta/repair", func(_ *testing.T, w *world, _ *catalog.Attempt) error {
			_, err := w.b.ChangeRepairControl(w.ctx, func(was catalog.RepairControl) catalog.RepairControl {
				was.Paused = false
				return was
			})
			return err
		}},
		{"an attempt is extended", "i/", func(_ *testing.T, w *world, running *catalog.Attempt) error {
			return running.Extend(w.ctx, nil, w.now.Add(time.Hour))
		}},
		{"an attempt is aborted", "i/", func(_ *testing.T, w *world, running *catalog.Attempt) error { return running.Abort(w.ctx) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, w *world) {
				w.have(t, "a")
				saved := job
				must(t, w.b.SaveJob(w.ctx, &saved))
				_, err := w.b.ChangeNode(w.ctx, catalog.Node{}, node)
				must(t, err)
				must(t, w.b.ChangeClasses(w.ctx, func([]catalog.Class) ([]catalog.Class, error) {
					return []catalog.Class{{Name: "class"}}, nil
				}))
				_, err = w.b.ChangeRepairControl(w.ctx, func(catalog.RepairControl) catalog.RepairControl {
					return catalog.RepairControl{Paused: true}
				})
				must(t, err)
				running := w.put(t, w.b, "b").Attempt
				w.extend(t, c.prefix)
				is(t, c.change(t, w, running), catalog.ErrNewer)
				w.kept(t, c.prefix)

				// What is only read is.
				w.snapshot(t, "a")
				_, err = w.b.Nodes(w.ctx)
				must(t, err)
				_, _, err = w.b.Classes(w.ctx)
				must(t, err)
				_, err = w.b.Intents(w.ctx, block.Stamp{}, 10)
				must(t, err)
			})
		})
	}
}
