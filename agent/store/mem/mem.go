package mem

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/restripe/restripe/agent/store"
)

// Store is a store.Store and store.Lister in memory. Use New.
type Store struct {
	capacity int64

	mu     sync.RWMutex
	used   int64
	values map[string][]byte
	keys   []string // of values, ascending
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Lister = (*Store)(nil)
)

// New returns an empty store that holds up to capacity bytes of keys and values; 0 is without limit.
func New(capacity int64) *Store {
	return &Store{capacity: capacity, values: map[string][]byte{}}
}

// Create implements store.Store.
func (s *Store) Create(ctx context.Context, key string, value []byte) error {
	if err := begin(ctx, "creating", key, 0); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, found := s.values[key]; found {
		return fmt.Errorf("creating %q: %w", key, store.ErrExists)
	}
	size := int64(len(key) + len(value))
	if s.capacity > 0 && s.used+size > s.capacity {
		return fmt.Errorf("creating %q: %d of %d bytes are used: %w", key, s.used, s.capacity, store.ErrFull)
	}
	s.used += size
	s.values[key] = slices.Clone(value)
	at, _ := slices.BinarySearch(s.keys, key)
	s.keys = slices.Insert(s.keys, at, key)
	return nil
}

// ReadAt implements store.Store.
func (s *Store) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	if err := begin(ctx, "reading", key, offset); err != nil {
		return 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, found := s.values[key]
	if !found {
		return 0, fmt.Errorf("reading %q: %w", key, store.ErrNotFound)
	}
	if offset >= int64(len(value)) {
		return 0, nil
	}
	return copy(p, value[offset:]), nil
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := begin(ctx, "deleting", key, 0); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if value, found := s.values[key]; found {
		s.used -= int64(len(key) + len(value))
		delete(s.values, key)
		at, _ := slices.BinarySearch(s.keys, key)
		s.keys = slices.Delete(s.keys, at, at+1)
	}
	return nil
}

// List implements store.Lister, in key order; visit may call the store.
func (s *Store) List(ctx context.Context, prefix string, visit func(key string, size int64) error) error {
	type entry struct {
		key  string
		size int64
	}
	var entries []entry
	s.mu.RLock()
	from, _ := slices.BinarySearch(s.keys, prefix)
	for _, key := range s.keys[from:] {
		if !strings.HasPrefix(key, prefix) {
			break
		}
		entries = append(entries, entry{key, int64(len(s.values[key]))})
	}
	s.mu.RUnlock()
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("listing %q: %w", prefix, err)
		}
		if err := visit(entry.key, entry.size); err != nil {
			return err
		}
	}
	return nil
}

// Page implements store.Lister, in key order.
func (s *Store) Page(ctx context.Context, prefix, after string, limit int) (page []string, more bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, fmt.Errorf("listing %q: %w", prefix, err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	from, _ := slices.BinarySearch(s.keys, max(prefix, after))
	for _, key := range s.keys[from:] {
		if !strings.HasPrefix(key, prefix) {
			break
		}
		if len(page) == limit {
			return page, true, nil
		}
		if key != after {
			page = append(page, key)
		}
	}
	return page, false, nil
}

// Info implements store.Store.
func (s *Store) Info(ctx context.Context) (store.Info, error) {
	if err := ctx.Err(); err != nil {
		return store.Info{}, fmt.Errorf("describing the store: %w", err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return store.Info{
		Kind:          "mem",
		Location:      "mem:",
		CapacityBytes: s.capacity,
		UsedBytes:     s.used,
		Warnings:      []string{"Values live in the memory of this process and end with it; use file:, redis: or memcached: for data that matters."},
	}, nil
}

// Close implements store.Store. The store stays usable.
func (s *Store) Close() error { return nil }

// Erase removes everything, as a disk does that was replaced.
func (s *Store) Erase() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used, s.keys = 0, nil
	clear(s.values)
}

// Damage replaces the value of key by what change makes of a copy of it, as a failing disk does. It reports whether
// the key was there.
func (s *Store) Damage(key string, change func(value []byte) []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, found := s.values[key]
	if !found {
		return false
	}
	damaged := change(slices.Clone(value))
	s.used += int64(len(damaged) - len(value))
	s.values[key] = damaged
	return true
}

// begin checks what every operation checks before it touches anything.
func begin(ctx context.Context, doing, key string, offset int64) error {
	if err := store.CheckRead(key, offset); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %q: %w", doing, key, err)
	}
	return nil
}
