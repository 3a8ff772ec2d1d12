package object

import (
	"context"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
)

// openKept is open where the gateway has the object's bytes in memory; nil where it has not, or has those of another revision.
func openKept(ctx context.Context, o *Objects, key string) (*Reader, error) {
	if !o.cache.Has(key) {
		return nil, nil
	}
	object, known := o.catalog.ObjectNow(key)
	if !known {
		snapshot, _, err := o.catalog.SnapshotToRead(ctx, key, 0)
		if err != nil {
			return nil, err
		}
		object = &snapshot.Object
	}
	if object == nil {
		return nil, nil
	}
	return keptReader(o, object), nil
}

// OpenNow is Open where everything is in memory, as it says whether it is: it does not wait for anything. The reader is nil where there is
// no such object.
func OpenNow(o *Objects, key string) (reader *Reader, known bool) {
	if api.CheckKey(key) != nil {
		return nil, false
	}
	object, known := o.catalog.ObjectNow(key)
	if !known || object == nil {
		return nil, known
	}
	reader = keptReader(o, object)
	return reader, reader != nil
}

// keptReader reads an object, as its record is now, from memory; nil where that has not its bytes, or keys of its class are moved by how
// often they are read: that is seen where they are read from.
func keptReader(o *Objects, object *catalog.Object) *Reader {
	if class := o.classes.Named(object.Class); class == nil || class.HotKeys != nil || o.catalog.HasExpired(object) {
		return nil
	}
	data := o.cache.Get(object.Key, object.Revision)
	if data == nil {
		return nil
	}
	for i := range object.Extents {
		o.heat.Used(&catalog.Group{ID: object.Extents[i].Group, Class: object.Class})
		if object.Extents[i].Column != catalog.WholeGroup {
			o.heat.Popularity.Read(object.Class, object.Key)
		}
	}
	return &Reader{
		objects: o, memory: o.groups.Memory.Reads, counted: true, kept: data, current: &catalog.Snapshot{Object: *object},
		repairs: api.DefaultRepairOnRead,
	}
}

// Kept returns the object's bytes where the gateway has them in memory, else nil. Nobody may change them.
func (r *Reader) Kept() []byte { return r.kept }

// mayKeep reports whether the object's bytes are to be kept once they are read.
func (r *Reader) mayKeep() bool {
	object := &r.snapshot().Object
	class := r.objects.classes.Named(object.Class)
	return r.counted && class != nil && class.HotKeys == nil && r.objects.cache.Takes(object.Size)
}
