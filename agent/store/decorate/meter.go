package decorate

import (
	"context"
	"math/bits"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/store"
)

// Meter counts operations, errors, bytes and latencies. The zero Meter is ready; it must not be copied.
type Meter struct {
	Now func() time.Time // the clock; nil: time.Now

	mu     sync.Mutex
	counts map[Operation]*Count
}

// Count is what a Meter saw of one operation.
type Count struct {
	Calls     int64          // finished, with an error or without
	Errors    int64          // finished with an error
	Bytes     int64          // of values, stored or read
	Total     time.Duration  // sum of all latencies
	Latencies [buckets]int64 // Latencies[i] calls took less than BucketLimit(i), and no less than BucketLimit(i-1)
}

// buckets is enough for latencies from a microsecond to over half an hour; the last one holds all that is longer.
const buckets = 32

// BucketLimit returns the latency at which bucket i of Count.Latencies ends: 2^i microseconds.
func BucketLimit(i int) time.Duration { return time.Microsecond << i }

// Counts returns a copy of what was counted so far, by operation.
func (m *Meter) Counts() map[Operation]Count {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := make(map[Operation]Count, len(m.counts))
	for operation, count := range m.counts {
		counts[operation] = *count
	}
	return counts
}

// Wrap puts the meter around inner.
func (m *Meter) Wrap(inner store.Store) store.Store {
	return keepLister(inner, &metered{inner, m}, func(_ context.Context, _ string, call func() error) error {
		started := m.now()
		err := call()
		m.count(List, started, 0, err)
		return err
	})
}

func (m *Meter) now() time.Time {
	if m.Now != nil {
		return m.Now()
	}
	return time.Now()
}

// count enters one finished operation.
func (m *Meter) count(operation Operation, started time.Time, size int, err error) {
	latency := max(0, m.now().Sub(started))
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[Operation]*Count{}
	}
	count := m.counts[operation]
	if count == nil {
		count = &Count{}
		m.counts[operation] = count
	}
	count.Calls++
	count.Bytes += int64(size)
	count.Total += latency
	count.Latencies[min(bits.Len64(uint64(latency/time.Microsecond)), buckets-1)]++
	if err != nil {
		count.Errors++
	}
}

type metered struct {
	store.Store
	meter *Meter
}

func (s *metered) Create(ctx context.Context, key string, value []byte) error {
	started := s.meter.now()
	err := s.Store.Create(ctx, key, value)
	size := 0
	if err == nil {
		size = len(value)
	}
	s.meter.count(Create, started, size, err)
	return err
}

func (s *metered) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	started := s.meter.now()
	count, err := s.Store.ReadAt(ctx, key, p, offset)
	s.meter.count(ReadAt, started, count, err)
	return count, err
}

func (s *metered) Delete(ctx context.Context, key string) error {
	started := s.meter.now()
	err := s.Store.Delete(ctx, key)
	s.meter.count(Delete, started, 0, err)
	return err
}

func (s *metered) Info(ctx context.Context) (store.Info, error) {
	started := s.meter.now()
	info, err := s.Store.Info(ctx)
	s.meter.count(Info, started, 0, err)
	return info, err
}
