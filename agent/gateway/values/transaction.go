package values

import (
	"context"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
)

// Entry is a value to be stored under a key, with others.
type Entry struct {
	Key string
	Put Put
}

// PutMany stores values, all of them or none. Of those with one key the last counts.
func (s *Session) PutMany(ctx context.Context, entries []Entry) error {
	t := s.Begin()
	for _, entry := range entries {
		if _, err := t.Put(ctx, entry.Key, entry.Put); err != nil {
			return err
		}
	}
	return t.Commit(ctx)
}

// Transaction is commands that take effect together or not at all. They see what they have written. It belongs to one goroutine.
type Transaction struct {
	session *Session
	writes  map[string]*Change
	seen    map[string]block.Stamp // revisions that were read, the zero stamp where there was none
	bytes   int64                  // that are to be written
}

// Begin returns a transaction of nothing. The revisions are those that values must still have when it is committed: of keys that were
// watched, the zero stamp where there was none.
func (s *Session) Begin() *Transaction {
	return &Transaction{session: s, writes: map[string]*Change{}, seen: map[string]block.Stamp{}}
}

// Expect has Commit fail unless a key still has a revision, the zero stamp for none.
func (t *Transaction) Expect(key string, revision block.Stamp) { t.seen[key] = revision }

// note remembers what was read, and fails with ErrConflict where it is another version than was read, or expected, before.
func (t *Transaction) note(key string, revision block.Stamp) error {
	if before, known := t.seen[key]; known && before != revision {
		return api.Refuse(api.ErrConflict, "%.80q was changed meanwhile", key)
	}
	t.seen[key] = revision
	return nil
}

// Get returns what the value of a key will be.
func (t *Transaction) Get(ctx context.Context, key string) (*Value, error) {
	if write := t.writes[key]; write != nil {
		if write.Put == nil || hasExpired(write.Put.Expires) {
			return nil, nil
		}
		return &Value{Data: write.Put.Data, Class: write.Put.Class, Expires: write.Put.Expires, Metadata: write.Put.Metadata}, nil
	}
	value, err := t.session.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	var revision block.Stamp
	if value != nil {
		revision = value.Revision
	}
	if err := t.note(key, revision); err != nil {
		value.Release()
		return nil, err
	}
	return value, nil
}

func hasExpired(at time.Time) bool { return !at.IsZero() && !time.Now().Before(at) }

// Look returns what will be known of a value.
func (t *Transaction) Look(ctx context.Context, key string) (*Info, error) {
	if t.writes[key] != nil {
		value, err := t.Get(ctx, key)
		if value == nil || err != nil {
			return nil, err
		}
		return &Info{
			Size: int64(len(value.Data)), Class: value.Class, Modified: time.Now(), Expires: value.Expires, Metadata: value.Metadata,
		}, nil
	}
	info, err := t.session.Look(ctx, key)
	if err != nil {
		return nil, err
	}
	var revision block.Stamp
	if info != nil {
		revision = info.Revision
	}
	return info, t.note(key, revision)
}

// Put stores a value when the transaction is committed. Its revision is not known before, so that the zero stamp is returned.
func (t *Transaction) Put(ctx context.Context, key string, put Put) (block.Stamp, error) {
	if err := t.session.checkSize(key, put.Data); err != nil {
		return block.Stamp{}, err
	}
	if err := t.session.mayWrite(ctx, key, put.Class); err != nil {
		return block.Stamp{}, err
	}
	bytes := t.bytes - t.written(key) + int64(len(put.Data))
	if most := t.session.memory.Bytes; bytes > most {
		return block.Stamp{}, api.Refuse(api.ErrBadRequest, "the values that are put together have %d bytes, at most %d may have", bytes, most)
	}
	put.Data = slices.Clone(put.Data)
	t.writes[key], t.bytes = &Change{Put: &put}, bytes
	return block.Stamp{}, nil
}

// written is how many bytes are to be written to a key.
func (t *Transaction) written(key string) int64 {
	if write := t.writes[key]; write != nil && write.Put != nil {
		return int64(len(write.Put.Data))
	}
	return 0
}

// Delete removes a value when the transaction is committed.
func (t *Transaction) Delete(ctx context.Context, key string) (existed bool, err error) {
	if err := t.session.mayDelete(ctx, key); err != nil {
		return false, err
	}
	info, err := t.Look(ctx, key)
	if err == nil && info != nil {
		t.bytes -= t.written(key)
		t.writes[key] = &Change{Delete: true}
	}
	return info != nil, err
}

// Modify has decide say what becomes of a value when the transaction is committed. It is asked once.
func (t *Transaction) Modify(ctx context.Context, key string, decide func(now *Value) (Change, error)) (block.Stamp, error) {
	now, err := t.Get(ctx, key)
	if err != nil {
		return block.Stamp{}, err
	}
	defer now.Release()
	change, err := decide(now)
	return block.Stamp{}, t.become(ctx, key, change, now != nil, err)
}

// Replace is Modify of a decision that needs no bytes of the value.
func (t *Transaction) Replace(ctx context.Context, key string, decide func(now *Info) (Change, error)) (block.Stamp, error) {
	now, err := t.Look(ctx, key)
	if err != nil {
		return block.Stamp{}, err
	}
	change, err := decide(now)
	return block.Stamp{}, t.become(ctx, key, change, now != nil, err)
}

// Accumulate is Modify: what others do at the same time is seen when the transaction is committed.
func (t *Transaction) Accumulate(ctx context.Context, key string, decide func(now *Value) (Change, error)) error {
	_, err := t.Modify(ctx, key, decide)
	return err
}

// become changes a value as was decided.
func (t *Transaction) become(ctx context.Context, key string, change Change, exists bool, err error) error {
	switch {
	case err != nil:
	case change.Put != nil:
		_, err = t.Put(ctx, key, *change.Put)
	case change.Delete && exists:
		_, err = t.Delete(ctx, key)
	}
	return err
}

// Commit has all take effect. It fails with ErrConflict, and changes nothing, if a value is not what was read or expected any more.
func (t *Transaction) Commit(ctx context.Context) error {
	writes := make([]object.Write, 0, len(t.writes))
	for key, change := range t.writes {
		write := object.Write{Key: key, Delete: change.Delete}
		if put := change.Put; put != nil {
			write.Data = put.Data
			write.Options = api.PutOptions{Class: put.Class, Expires: put.Expires, Metadata: put.Metadata}
		}
		writes = append(writes, write)
	}
	if len(writes) == 0 && len(t.seen) == 0 {
		return nil
	}
	return classed(t.session.parts.Objects.Apply(ctx, writes, t.seen))
}
