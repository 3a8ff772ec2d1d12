package object

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/direct"
)

// OpenEach is Open of each of several keys, with one read of the catalog for all. Where known is false Open has to be asked; where it is
// true, and there is no reader, there is no such object.
func OpenEach(ctx context.Context, o *Objects, keys []string) (readers []*Reader, known []bool) {
	readers, known = make([]*Reader, len(keys)), make([]bool, len(keys))
	found, err := o.catalog.SnapshotsToRead(ctx, keys, o.readGroups)
	if err != nil {
		return readers, known
	}
	for i := range found {
		current := found[i].Snapshot
		switch err := found[i].Err; {
		case api.CheckKey(keys[i]) != nil || err != nil && !errors.Is(err, catalog.ErrNoObject):
			continue
		case err == nil && !o.catalog.HasExpired(&current.Object):
			if o.cache.Has(keys[i]) {
				readers[i] = keptReader(o, &current.Object)
			}
			if readers[i] == nil {
				readers[i] = newReader(o, current, found[i].IsWhole)
			}
		}
		known[i] = true
	}
	return readers, known
}

// Whole is all bytes of an object that was read together with others, of which Index says which of them it is. Free is due once they are
// not to count any more; they stay as they are. Where Data is nil, they have to be read by the reader itself.
type Whole struct {
	Index int
	Data  []byte
	Free  func()
}

// ReadTogether reads small objects whose bytes are known by a checksum straight from the stores of the nodes that have them: of each store
// together, and with what others read. tell is called with them in their order: once for all, but for what comes late, and for what cannot
// be read so. All are told of before it returns.
func ReadTogether(ctx context.Context, o *Objects, readers []*Reader, tell func(some []Whole)) {
	known, groups := make([]*direct.Known, len(readers)), make([]*catalog.Group, len(readers))
	var started []*direct.Known
	var left []int
	var told []Whole
	for i, r := range readers {
		at, group := r.near(0, r.Size())
		if group == nil {
			at, group = r.located(0, r.Size())
		}
		free, room := func() {}, group != nil && at.Checksum != 0
		if room {
			free, room = r.memory.Try(int64(at.Length))
		}
		if !room {
			r.apart = group != nil
			told = append(told, Whole{Index: i})
			continue
		}
		known[i], groups[i] = &direct.Known{Place: at, Free: free}, group
		started, left = append(started, known[i]), append(left, i)
	}
	if len(told) > 0 {
		tell(told)
	}
	began := time.Now()
	reads, late := o.direct.Start(started), time.NewTimer(o.hedge.Delay(began, quickBytes))
	defer late.Stop()
	for len(left) > 0 {
		over := true
		select {
		case <-reads.Ended():
		case <-ctx.Done():
		case now := <-late.C:
			over = now.Sub(began) >= quickPatience
			late.Reset(o.hedge.Delay(now, quickBytes))
		}
		told = told[:0]
		left = slices.DeleteFunc(left, func(i int) bool {
			if !over && !known[i].HasEnded() {
				return false
			}
			told = append(told, readers[i].whole(i, known[i], groups[i], began))
			return true
		})
		if len(told) > 0 {
			tell(told)
		}
	}
}

// whole is what came of a read of the object.
func (r *Reader) whole(i int, read *direct.Known, group *catalog.Group, began time.Time) Whole {
	data := read.Take()
	if data == nil {
		r.apart = true
		return Whole{Index: i}
	}
	r.served(group, len(data), began)
	if r.mayKeep() {
		object := &r.current.Object
		r.objects.cache.Put(object.Key, object.Revision, data)
	}
	return Whole{i, data, read.Free}
}
