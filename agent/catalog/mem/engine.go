package mem

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// Engine is a kv.Engine. The zero Engine is not usable; see New.
type Engine struct {
	mu     sync.RWMutex
	values map[string][]byte
	keys   []string // ascending
	closed bool
	hub    kv.Hub
}

var _ kv.Engine = (*Engine)(nil)

// New returns an empty engine.
func New() *Engine { return &Engine{values: map[string][]byte{}} }

// Clone returns an engine with a copy of the records as they are now, as a restore from a backup would.
func (e *Engine) Clone() *Engine {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return &Engine{values: maps.Clone(e.values), keys: slices.Clone(e.keys)} // values are never changed in place
}

// Read implements kv.Engine.
func (e *Engine) Read(ctx context.Context, keys ...string) ([][]byte, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	values := make([][]byte, len(keys))
	for i, key := range keys {
		values[i] = bytes.Clone(e.values[key])
	}
	return values, nil
}

// ReadNow implements kv.Nearby.
func (e *Engine) ReadNow(key string) (value []byte, known bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.values[key], !e.closed // values are never changed in place
}

// ReadAllNow implements kv.Nearby.
func (e *Engine) ReadAllNow(keys []string) (values [][]byte, known bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	values = make([][]byte, len(keys))
	for i, key := range keys {
		values[i] = e.values[key]
	}
	return values, !e.closed
}

// Scan implements kv.Engine.
func (e *Engine) Scan(ctx context.Context, prefix, after string, limit int) ([]kv.Record, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	var records []kv.Record
	start := sort.Search(len(e.keys), func(i int) bool { return e.keys[i] >= prefix && e.keys[i] > after })
	for _, key := range e.keys[start:] {
		if len(records) >= limit || !strings.HasPrefix(key, prefix) {
			break
		}
		records = append(records, kv.Record{Key: key, Value: bytes.Clone(e.values[key])})
	}
	return records, nil
}

// Update implements kv.Engine.
func (e *Engine) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	var failed []int
	for i, check := range checks {
		value, present := e.values[check.Key]
		if present != (check.Value != nil) || !bytes.Equal(value, check.Value) {
			failed = append(failed, i)
		}
	}
	if len(failed) > 0 {
		return failed, nil
	}
	for _, write := range writes {
		if write.Kind == kv.Increment {
			if value, present := e.values[write.Key]; present {
				if _, err := strconv.ParseInt(string(value), 10, 64); err != nil {
					return nil, fmt.Errorf("incrementing record %q: %w", write.Key, err)
				}
			}
		}
	}
	for _, write := range writes {
		e.write(write)
	}
	e.hub.Made(writes)
	return nil, nil
}

// Watch implements kv.Engine.
func (e *Engine) Watch(ctx context.Context, keys ...string) <-chan struct{} {
	return e.hub.Watch(ctx, keys...)
}

func (e *Engine) write(write kv.Write) {
	value, present := e.values[write.Key]
	at, _ := slices.BinarySearch(e.keys, write.Key)
	switch write.Kind {
	case kv.Remove:
		if present {
			delete(e.values, write.Key)
			e.keys = slices.Delete(e.keys, at, at+1)
		}
		return
	case kv.Count:
		value = strconv.AppendInt(nil, write.Add, 10)
	case kv.Increment:
		count, err := strconv.ParseInt(string(value), 10, 64)
		if present && err != nil {
			panic(err) // looked at before the first write
		}
		value = strconv.AppendInt(nil, count+write.Add, 10)
	default:
		value = append([]byte{}, write.Value...)
	}
	if !present {
		e.keys = slices.Insert(e.keys, at, write.Key)
	}
	e.values[write.Key] = value
}

// Snapshot implements kv.Engine.
func (e *Engine) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	if _, err := e.Read(ctx); err != nil {
		return nil, err
	}
	return e.Clone(), nil
}

// Size implements kv.Engine.
func (e *Engine) Size(ctx context.Context) (kv.Size, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	size := kv.Size{Records: int64(len(e.keys))}
	for key, value := range e.values {
		size.Bytes += int64(len(key) + len(value))
	}
	return size, e.usable(ctx)
}

// Close implements kv.Engine. The records are gone.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed, e.values, e.keys = true, nil, nil
	e.hub.Close()
	return nil
}

func (e *Engine) usable(ctx context.Context) error {
	if e.closed {
		return kv.ErrClosed
	}
	return ctx.Err()
}
