package decorate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/restripe/restripe/agent/store"
)

// Dry passes reads on and writes nothing; Records says what would have been written. Creates and deletes are judged by
// what the store holds and what was recorded before, so that a second Create of a key fails as it would. Bytes are not
// kept: reading a key that was only recorded finds nothing, and listings show the store as it is.
// The zero Dry is ready; use one per store.
type Dry struct {
	mu      sync.Mutex
	records []Record
	latest  map[string]Operation
}

// Record is one write that was not done.
type Record struct {
	Operation Operation // Create or Delete
	Key       string
	Size      int // of the value
}

// Records returns what was recorded so far, in order.
func (d *Dry) Records() []Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]Record(nil), d.records...)
}

// Wrap puts d in front of inner.
func (d *Dry) Wrap(inner store.Store) store.Store {
	return keepLister(inner, &dry{inner, d}, plainly)
}

type dry struct {
	store.Store
	dry *Dry
}

func (s *dry) Create(ctx context.Context, key string, value []byte) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	info, err := s.Store.Info(ctx)
	if err != nil {
		return fmt.Errorf("creating %q, dry run: %w", key, err)
	}
	if info.ValueLimit > 0 && int64(len(value)) > info.ValueLimit {
		return fmt.Errorf("creating %q, dry run: %d bytes, limit %d: %w", key, len(value), info.ValueLimit, store.ErrTooLarge)
	}
	_, readErr := s.Store.ReadAt(ctx, key, nil, 0)
	if readErr != nil && !errors.Is(readErr, store.ErrNotFound) && !errors.Is(readErr, store.ErrCorrupt) {
		return fmt.Errorf("creating %q, dry run: %w", key, readErr)
	}
	s.dry.mu.Lock()
	defer s.dry.mu.Unlock()
	exists := !errors.Is(readErr, store.ErrNotFound)
	if latest, recorded := s.dry.latest[key]; recorded {
		exists = latest == Create
	}
	if exists {
		return fmt.Errorf("creating %q, dry run: %w", key, store.ErrExists)
	}
	s.dry.record(Record{Operation: Create, Key: key, Size: len(value)})
	return nil
}

func (s *dry) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	s.dry.mu.Lock()
	deleted := s.dry.latest[key] == Delete
	s.dry.mu.Unlock()
	if deleted {
		return 0, fmt.Errorf("reading %q, dry run: %w", key, store.ErrNotFound)
	}
	return s.Store.ReadAt(ctx, key, p, offset)
}

func (s *dry) Delete(ctx context.Context, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("deleting %q, dry run: %w", key, err)
	}
	s.dry.mu.Lock()
	defer s.dry.mu.Unlock()
	s.dry.record(Record{Operation: Delete, Key: key})
	return nil
}

// record enters a write; the caller holds d.mu.
func (d *Dry) record(record Record) {
	if d.latest == nil {
		d.latest = map[string]Operation{}
	}
	d.latest[record.Key] = record.Operation
	d.records = append(d.records, record)
}
