package storetest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/restripe/restripe/agent/store"
)

// Benchmark measures a backend: whole values of three sizes, small ranges of large values, and deletions.
func Benchmark(b *testing.B, newStore func(t testing.TB) store.Store) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("create/%dKiB", size>>10), func(b *testing.B) { benchmarkCreate(b, newStore(b), size) })
		b.Run(fmt.Sprintf("read/%dKiB", size>>10), func(b *testing.B) { benchmarkRead(b, newStore(b), size, size) })
	}
	for _, length := range []int{4 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("read-range/%dKiB-of-1MiB", length>>10), func(b *testing.B) { benchmarkRead(b, newStore(b), 1<<20, length) })
	}
}

// benchmarkCreate creates values and, so that the store does not fill up, deletes each again: a pair is one operation.
func benchmarkCreate(b *testing.B, s store.Store, size int) {
	defer closeStore(b, s)
	value := content("value", size)
	var next atomic.Int64
	b.SetBytes(int64(size))
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			key := fmt.Sprintf("b/%d", next.Add(1))
			if err := s.Create(b.Context(), key, value); err != nil {
				b.Error(err)
				return
			}
			if err := s.Delete(b.Context(), key); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// benchmarkRead reads ranges of length bytes from 16 values.
func benchmarkRead(b *testing.B, s store.Store, size, length int) {
	defer closeStore(b, s)
	for i := range 16 {
		create(b, s, fmt.Sprintf("b/%d", i), content("value", size))
	}
	var next atomic.Int64
	b.SetBytes(int64(length))
	b.SetParallelism(4)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		p := make([]byte, length)
		for pb.Next() {
			i := next.Add(1)
			offset := i * 4096 % int64(size-length+1)
			if count, err := s.ReadAt(b.Context(), fmt.Sprintf("b/%d", i%16), p, offset); err != nil || count != length {
				b.Errorf("reading: %d of %d bytes, %v", count, length, err)
				return
			}
		}
	})
}
