package catalog

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// decodedBytes is how many bytes the records have, encoded, that are kept decoded, about: twice as many at most. Decoded, a record takes
// some times as much.
const decodedBytes = 4 << 20

// decoded keeps records that were read lately as they were decoded, so that one that is read again as it was is not decoded again. It
// is no cache of the catalog: whoever asks has read the record. The zero value is ready.
type decoded struct {
	mutex      sync.Mutex
	young, old map[string]decodedRecord // by the keys of records; old is dropped when young is full, and takes its place
	bytes      int                      // of the records in young
}

// decodedRecord is a record, of whose value nobody changes anything.
type decodedRecord struct {
	raw   []byte
	value any
}

// of returns what is kept under a key.
func (d *decoded) of(key string) (decodedRecord, bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	found, is := d.young[key]
	if !is {
		if found, is = d.old[key]; is {
			d.put(key, found)
		}
	}
	return found, is
}

func (d *decoded) keep(key string, raw []byte, value any) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.put(key, decodedRecord{raw, value})
}

// put keeps a record among the young. The caller holds the mutex.
func (d *decoded) put(key string, record decodedRecord) {
	if d.bytes > decodedBytes || d.young == nil {
		d.young, d.old, d.bytes = map[string]decodedRecord{}, d.young, 0
	}
	d.young[key] = record
	d.bytes += len(key) + len(record.raw)
}

// decode returns what read makes of a record, which nobody may change.
func decode[T any](d *decoded, key string, raw []byte, read func(key string, raw []byte) (T, error)) (*T, error) {
	if kept, is := d.of(key); is && bytes.Equal(kept.raw, raw) {
		return kept.value.(*T), nil
	}
	value, err := read(key, raw)
	if err != nil {
		return nil, err
	}
	d.keep(key, raw, &value)
	return &value, nil
}

// SnapshotToRead is Snapshot for those who only read the object, with the records of its groups if those are at most so many and it does
// not say itself where it lies, and without any otherwise, as isWhole says. Others have the same records.
func (o *objects) SnapshotToRead(ctx context.Context, key string, mostGroups int) (_ *Snapshot, isWhole bool, err error) {
	found, err := o.SnapshotsToRead(ctx, []string{key}, mostGroups)
	if err != nil {
		return nil, false, fmt.Errorf("reading object %q: %w", key, err)
	}
	return found[0].Snapshot, found[0].IsWhole, found[0].Err
}

// ToRead is what SnapshotToRead returns of one of several objects.
type ToRead struct {
	*Snapshot
	IsWhole bool
	Err     error

	keys []string
	kept decodedRecord // of the object
}

// SnapshotsToRead is SnapshotToRead of several objects, with one read of the catalog as long as they lie where they did.
func (o *objects) SnapshotsToRead(ctx context.Context, keys []string, mostGroups int) ([]ToRead, error) {
	found, left := make([]ToRead, len(keys)), make([]int, len(keys))
	for i, key := range keys {
		name := schema.ObjectKey(key)
		found[i].keys, left[i] = []string{name}, i
		if kept, is := o.decoded.of(name); is { // it most likely lies still where it did
			found[i].kept, found[i].keys = kept, kept.value.(*placed).keys(name, mostGroups)
		}
	}
	for len(left) > 0 {
		names := make([]string, 0, 3*len(left))
		for _, i := range left {
			names = append(names, found[i].keys...)
		}
		values, err := o.readShared(ctx, names)
		if err != nil {
			return nil, err
		}
		left = slices.DeleteFunc(left, func(i int) bool {
			of := values[:len(found[i].keys)]
			values = values[len(of):]
			return o.toRead(&found[i], keys[i], of, mostGroups)
		})
	}
	return found, nil
}

// readShared is Read of the engine, of values that nobody changes.
func (o *objects) readShared(ctx context.Context, names []string) ([][]byte, error) {
	if nearby, is := o.engine.(kv.Nearby); is && ctx.Err() == nil {
		if values, known := nearby.ReadAllNow(names); known {
			return values, nil
		}
	}
	return o.engine.Read(ctx, names...)
}

// toRead makes a snapshot of the values of its keys. It reports whether they were those that the object has.
func (o *objects) toRead(f *ToRead, key string, values [][]byte, mostGroups int) bool {
	if values[0] == nil {
		f.Err = fmt.Errorf("object %q: %w", key, ErrNoObject)
		return true
	}
	name := f.keys[0]
	object, isPlaced := f.kept.value.(*placed)
	if !isPlaced || !bytes.Equal(f.kept.raw, values[0]) {
		var err error
		if object, err = decode(&o.decoded, name, values[0], place); err != nil {
			f.Err = err
			return true
		}
	}
	if wanted := object.keys(name, mostGroups); !slices.Equal(f.keys, wanted) { // it lies elsewhere than it did
		f.keys, f.kept = wanted, decodedRecord{values[0], object}
		return false
	}
	snapshot := &Snapshot{Object: object.Object, object: values[0], Groups: map[block.GroupID]*Group{}}
	for i := 1; i < len(f.keys); i += 2 {
		if values[i] == nil && i >= len(f.keys)-2*len(object.further) { // nothing lies in it any more
			continue
		}
		if values[i] == nil {
			f.Err = fmt.Errorf("object %q has an extent in group %s, which does not exist: %w", key, f.keys[i], ErrCorrupt)
			return true
		}
		group, err := decode(&o.decoded, f.keys[i], values[i], codec.Decode[Group])
		if err == nil {
			view := &GroupView{Group: *group, raw: values[i]}
			view.Live, err = codec.DecodeCount(f.keys[i+1], values[i+1])
			snapshot.shared, snapshot.Groups[group.ID] = append(snapshot.shared, view), &view.Group
		}
		if err != nil {
			f.Err = err
			return true
		}
	}
	lacking, err := lacking(snapshot.Groups, object.further)
	if err != nil {
		f.Err = fmt.Errorf("object %q: %w", key, err)
		return true
	}
	if len(lacking) > 0 {
		further := object.with(name, lacking)
		o.decoded.keep(name, values[0], further)
		f.keys, f.kept = further.keys(name, mostGroups), decodedRecord{values[0], further}
		return false
	}
	f.Snapshot, f.IsWhole = snapshot, len(f.keys) > 1
	return true
}

// ObjectNow returns the record of an object, nil where there is none, if it is in memory what is in the catalog now, as it is of some
// objects and with some engines. It does not wait for anything. Others have the same record.
func (o *objects) ObjectNow(key string) (object *Object, known bool) {
	name := schema.ObjectKey(key)
	nearby, is := o.engine.(kv.Nearby)
	if !is {
		return nil, false
	}
	raw, known := nearby.ReadNow(name)
	if !known || raw == nil {
		return nil, known
	}
	decoded, err := decode(&o.decoded, name, raw, place)
	if err != nil {
		return nil, false
	}
	return &decoded.Object, true
}

// placed is an object, and the keys of its record and of those of its groups, if those are few, or dissolved ones are among them: those
// that columns of these lie in come last.
type placed struct {
	Object
	all     []string
	further []block.GroupID
	astray  bool // see Astray
}

// fewGroups is of how many groups the keys are kept.
const fewGroups = 4

func place(name string, raw []byte) (placed, error) {
	object, err := codec.Decode[Object](name, raw)
	p := placed{Object: object}
	if err == nil && len(object.Extents) <= fewGroups {
		p.all = groupKeys(name, &object)
	}
	return p, err
}

// keys are those of the records of the object and its groups, of the object alone where those are more than so many.
func (p *placed) keys(name string, most int) []string {
	switch {
	case len(p.Extents) > most, p.Location != nil && !p.astray:
		return []string{name}
	case p.all != nil:
		return p.all
	}
	return groupKeys(name, &p.Object)
}

// with returns the object with the keys of further groups.
func (p *placed) with(name string, lacking []block.GroupID) *placed {
	further := &placed{Object: p.Object, all: groupKeys(name, &p.Object), further: slices.Concat(p.further, lacking), astray: p.astray}
	for _, id := range further.further {
		further.all = append(further.all, schema.GroupKey(id), schema.LiveKey(id))
	}
	return further
}

// Astray has an object read with the records of its groups from now on: its record alone was not enough.
func (o *objects) Astray(s *Snapshot) {
	name := schema.ObjectKey(s.Object.Key)
	o.decoded.keep(name, s.object, &placed{Object: s.Object, all: groupKeys(name, &s.Object), astray: true})
}

func groupKeys(name string, object *Object) []string {
	keys := []string{name}
	for _, id := range groupsOf(object.Extents, 0, math.MaxInt64) {
		keys = append(keys, schema.GroupKey(id), schema.LiveKey(id))
	}
	return keys
}
