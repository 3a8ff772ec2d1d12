package values

import (
	"context"
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
)

const (
	getTries    = 10  // how often a read starts over because the value was overwritten meanwhile
	modifyTries = 100 // how often a change does
	manyAtOnce  = 32  // how many values are read side by side for one command
)

// Get returns the value of a key, nil where there is none.
func (s *Session) Get(ctx context.Context, key string) (*Value, error) {
	return s.get(ctx, key, nil, s.reserve)
}

// get reads a value, by a reader at first if there is one.
func (s *Session) get(ctx context.Context, key string, begun *object.Reader, reserve reserving) (*Value, error) {
	user, in, err := s.scope(ctx, access.Read)
	if err != nil {
		return nil, err
	}
	if _, some := in.HasKey(key); !some {
		return nil, refused(user, "read on objects is missing for key %.80q", key)
	}
	for try := 0; ; try++ {
		value, err := s.version(ctx, key, begun, reserve, func(class string) error {
			if !in.Has(key, class) {
				return refused(user, "read on objects of class %s is missing", class)
			}
			return nil
		})
		begun = nil
		if try == getTries || !errors.Is(err, api.ErrConflict) {
			return value, classed(err)
		}
	}
}

// GetNow is Get where all is in memory, as it says whether it is: it does not wait for anything. What it returns takes none of the memory
// of values; its Release does nothing.
func (s *Session) GetNow(ctx context.Context, key string) (value *Value, known bool) {
	_, in, err := s.scope(ctx, access.Read)
	if err != nil {
		return nil, false
	}
	if _, some := in.HasKey(key); !some {
		return nil, false
	}
	reader, known := object.OpenNow(s.parts.Objects, key)
	if reader == nil {
		return nil, known
	}
	is := reader.Record()
	if !in.Has(key, is.Class) || is.Size > s.parts.MaxBytes {
		return nil, false
	}
	return valueOf(is, reader.Kept(), nil), true
}

func valueOf(is *catalog.Object, data []byte, free func()) *Value {
	value := &Value{Data: data, Class: is.Class, Revision: is.Revision, Metadata: is.Metadata, free: free}
	if is.Expires != 0 {
		value.Expires = time.UnixMilli(is.Expires).UTC()
	}
	return value
}

// GetMany returns the values of keys, nil for those that have none. After an error there are none to be released.
func (s *Session) GetMany(ctx context.Context, keys []string) ([]*Value, error) {
	if len(keys) == 1 {
		one, err := s.Get(ctx, keys[0])
		return []*Value{one}, err
	}
	values, err := s.getMany(ctx, keys, s.reserveNow)
	if s.isAhead || !errors.Is(err, ErrNoRoom) {
		return values, err
	}
	// Who waited for the room of one while holding that of others might wait for somebody who does the same.
	free, err := s.reserveAll(ctx, keys)
	if err != nil {
		return nil, err
	}
	values, err = s.getMany(ctx, keys, func(context.Context, int64) (func(), error) { return func() {}, nil })
	for _, value := range slices.Backward(values) {
		if value != nil {
			value.free = free
			return values, nil
		}
	}
	free()
	return values, err
}

// getMany reads values together, and side by side.
func (s *Session) getMany(ctx context.Context, keys []string, reserve reserving) ([]*Value, error) {
	values := make([]*Value, len(keys))
	work, working := errgroup.WithContext(ctx)
	work.SetLimit(manyAtOnce)
	for from := 0; from < len(keys) && working.Err() == nil; from += manyAtOnce {
		some := keys[from:min(from+manyAtOnce, len(keys))]
		getTogether(working, s, some, reserve, func(told []Got) {
			for _, got := range told {
				if values[from+got.Index] = got.Value; got.Known {
					continue
				}
				work.Go(func() (err error) {
					values[from+got.Index], err = s.get(working, some[got.Index], got.Begun.reader, reserve)
					return err
				})
			}
		})
	}
	err := work.Wait()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		for _, value := range values {
			value.Release()
		}
		values = nil
	}
	return values, err
}

// reserveAll takes memory for all values of keys together, as large as they are now.
func (s *Session) reserveAll(ctx context.Context, keys []string) (free func(), err error) {
	total := int64(0)
	for _, key := range keys {
		info, err := s.Look(ctx, key)
		if err != nil {
			return nil, err
		}
		if info != nil {
			total += info.Size
		}
	}
	if most := s.memory.Bytes / 2; total > most {
		return nil, api.Refuse(api.ErrBadRequest,
			"the values of the %d keys have %d bytes together, at most %d are read at once; ask for fewer", len(keys), total, most)
	}
	return s.reserve(ctx, total)
}

// version reads one version of a value, of a class that may be read.
func (s *Session) version(
	ctx context.Context, key string, reader *object.Reader, reserve reserving, may func(class string) error,
) (_ *Value, err error) {
	if reader == nil {
		reader, err = s.parts.Objects.Open(ctx, key)
	}
	if errors.Is(err, catalog.ErrNoObject) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	is := reader.Record()
	if err := may(is.Class); err != nil {
		return nil, err
	}
	if is.Size > s.parts.MaxBytes {
		return nil, api.Refuse(api.ErrBadRequest,
			"object %.80q has %d bytes, a value has at most %d; read it over HTTP", key, is.Size, s.parts.MaxBytes)
	}
	free, err := reserve(ctx, is.Size)
	if err != nil {
		return nil, err
	}
	if data := reader.Kept(); data != nil {
		return valueOf(is, data, free), nil
	}
	value := valueOf(is, make([]byte, 0, is.Size), free)
	if err := reader.WriteTo(ctx, (*appending)(&value.Data), 0, is.Size); err != nil {
		free()
		return nil, err
	}
	return value, nil
}

// appending takes what is written to it.
type appending []byte

// Write appends.
func (a *appending) Write(data []byte) (int, error) {
	*a = append(*a, data...)
	return len(data), nil
}

// Look returns what is known of a value, nil where there is none.
func (s *Session) Look(ctx context.Context, key string) (*Info, error) {
	user, in, err := s.scope(ctx, access.Read)
	if err != nil {
		return nil, err
	}
	if _, some := in.HasKey(key); !some {
		return nil, refused(user, "read on objects is missing for key %.80q", key)
	}
	is, err := s.parts.Objects.Find(ctx, key)
	if err != nil || is == nil {
		return nil, classed(err)
	}
	if !in.Has(key, is.Class) {
		return nil, refused(user, "read on objects of class %s is missing", is.Class)
	}
	return infoOf(is), nil
}

func infoOf(is *api.Object) *Info {
	return &Info{
		Size: is.Size, Class: is.Class, Scheme: is.Scheme, Revision: is.Revision, Modified: is.Modified, Expires: is.Expires,
		Metadata: is.Metadata,
	}
}

func (s *Session) put(ctx context.Context, key string, put Put, over *block.Stamp) (block.Stamp, error) {
	if err := s.checkSize(key, put.Data); err != nil {
		return block.Stamp{}, err
	}
	if err := s.mayWrite(ctx, key, put.Class); err != nil {
		return block.Stamp{}, err
	}
	return s.store(ctx, key, put, over)
}

// store stores a value that may be stored.
func (s *Session) store(ctx context.Context, key string, put Put, over *block.Stamp) (block.Stamp, error) {
	object, err := s.parts.Objects.PutBytes(ctx, key, put.Data, api.PutOptions{
		Class: put.Class, Size: int64(len(put.Data)), IfRevision: over, Expires: put.Expires, Metadata: put.Metadata,
	})
	return object.Revision, classed(err)
}

func (s *Session) checkSize(key string, data []byte) error {
	if int64(len(data)) > s.parts.MaxBytes {
		return api.Refuse(api.ErrBadRequest,
			"the value of %.80q has %d bytes, at most %d are allowed; put it over HTTP", key, len(data), s.parts.MaxBytes)
	}
	return nil
}

// Delete removes a value, and reports whether there was one.
func (s *Session) Delete(ctx context.Context, key string) (existed bool, err error) {
	return s.delete(ctx, key, nil)
}

func (s *Session) delete(ctx context.Context, key string, over *block.Stamp) (existed bool, err error) {
	if err := s.mayDelete(ctx, key); err != nil {
		return false, err
	}
	err = s.parts.Objects.Delete(ctx, key, over)
	if errors.Is(err, catalog.ErrNoObject) {
		return false, nil
	}
	return err == nil, classed(err)
}

// Modify has decide say what becomes of a value. Those of one key go one after the other, as far as they come to this gateway.
func (s *Session) Modify(ctx context.Context, key string, decide func(now *Value) (Change, error)) (block.Stamp, error) {
	return s.inTurn(ctx, key, func() (block.Stamp, error) { return s.modify(ctx, key, decide) })
}

// Replace is Modify of a decision that needs no bytes of the value.
func (s *Session) Replace(ctx context.Context, key string, decide func(now *Info) (Change, error)) (block.Stamp, error) {
	return s.inTurn(ctx, key, func() (block.Stamp, error) {
		now, err := s.Look(ctx, key)
		if err != nil {
			return block.Stamp{}, err
		}
		var over block.Stamp
		if now != nil {
			over = now.Revision
		}
		change, err := decide(now)
		if err != nil {
			return block.Stamp{}, err
		}
		return s.become(ctx, key, change, over)
	})
}

// inTurn tries to make a change, until no other comes between.
func (s *Session) inTurn(ctx context.Context, key string, change func() (block.Stamp, error)) (block.Stamp, error) {
	leave, err := s.turns.enter(ctx, key)
	if err != nil {
		return block.Stamp{}, err
	}
	defer leave()
	for try := range modifyTries {
		revision, err := change()
		if !errors.Is(err, api.ErrConflict) {
			return revision, err
		}
		if err := Pause(ctx, try); err != nil {
			return block.Stamp{}, err
		}
	}
	return block.Stamp{}, api.Refuse(api.ErrBusy, "others changed %.80q first %d times; try again", key, modifyTries)
}

func (s *Session) modify(ctx context.Context, key string, decide func(now *Value) (Change, error)) (block.Stamp, error) {
	now, err := s.Get(ctx, key)
	if err != nil {
		return block.Stamp{}, err
	}
	defer now.Release()
	var over block.Stamp
	if now != nil {
		over = now.Revision
	}
	change, err := decide(now)
	if err != nil {
		return block.Stamp{}, err
	}
	return s.become(ctx, key, change, over)
}

// become changes a value that has a revision, the zero stamp where there is none.
func (s *Session) become(ctx context.Context, key string, change Change, over block.Stamp) (block.Stamp, error) {
	switch {
	case change.Put != nil:
		return s.put(ctx, key, *change.Put, &over)
	case change.Delete && over != block.Stamp{}:
		_, err := s.delete(ctx, key, &over)
		return block.Stamp{}, err
	}
	return over, nil
}

// Pause waits a little before another try, longer the more there were.
func Pause(ctx context.Context, try int) error {
	longest := time.Millisecond << min(try, 6)
	timer := time.NewTimer(rand.N(longest))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// List returns up to limit values whose key begins with prefix and comes after the given one, by key, of those that the user may see,
// and whether there may be more after them: the last key that was looked at, else "".
func (s *Session) List(ctx context.Context, prefix, after string, limit int) (keys []string, next string, err error) {
	user, in, err := s.scope(ctx, access.List)
	if err != nil {
		return nil, "", err
	}
	_, some := in.HasKey(prefix)
	if !some && prefix != "" {
		return nil, "", refused(user, "list on objects is missing for prefix %.80q", prefix)
	}
	list, err := s.parts.Objects.Names(ctx, prefix, after, limit)
	if err != nil {
		return nil, "", classed(err)
	}
	if len(list) == limit && limit > 0 {
		next = list[limit-1].Key
	}
	for _, one := range list {
		if in.Has(one.Key, one.Class) {
			keys = append(keys, one.Key)
		}
	}
	return keys, next, nil
}

// Count returns how many values there are, those that have expired and are not removed yet too, if the user may list all and they can be
// counted without a look at each; where that takes long, how many there were when they were counted last. recently: what was counted a
// moment before will do.
func (s *Session) Count(ctx context.Context, recently bool) (count int64, known bool, err error) {
	_, in, err := s.scope(ctx, access.List)
	if err != nil {
		return 0, false, err
	}
	if every, _ := in.HasKey(""); !every || s.parts.Count == nil {
		return 0, false, nil
	}
	count, err = s.parts.Count(ctx, recently)
	return count, err == nil, classed(err)
}

// turns has the changes of one key wait for each other: those that overlap would be refused, and begin anew.
type turns struct {
	seed  maphash.Seed
	once  sync.Once
	lanes [1024]chan struct{} // by a hash of the key
}

func (t *turns) enter(ctx context.Context, key string) (leave func(), err error) {
	t.once.Do(func() {
		t.seed = maphash.MakeSeed()
		for i := range t.lanes {
			t.lanes[i] = make(chan struct{}, 1)
		}
	})
	lane := t.lanes[maphash.String(t.seed, key)%uint64(len(t.lanes))]
	select {
	case lane <- struct{}{}:
		return func() { <-lane }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
