package kernel

import (
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

func TestPool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var pool Pool
		var taken [][]byte
		seen := map[*byte]bool{}
		for _, size := range rapid.SliceOfN(rapid.IntRange(0, 300_000), 1, 20).Draw(t, "sizes") {
			buffer := pool.Get(size)
			start := unsafe.SliceData(buffer[:cap(buffer)])
			if len(buffer) != size || uintptr(unsafe.Pointer(start))%64 != 0 {
				t.Fatalf("Get(%d): %d bytes at %p", size, len(buffer), start)
			}
			if seen[start] {
				t.Fatalf("Get(%d) gives out a buffer that is in use", size)
			}
			if waste := cap(buffer) - size; waste > size/8+pageBytes+staggerBytes {
				t.Fatalf("Get(%d) wastes %d bytes", size, waste)
			}
			seen[start] = true
			if taken = append(taken, buffer); rapid.Bool().Draw(t, "put") {
				delete(seen, start)
				pool.Put(buffer)
				taken = taken[:len(taken)-1]
			}
		}
	})
	var pool Pool
	pool.Put(nil)
	pool.Put(make([]byte, 1000))
	pool.Put(pool.Get(5000)[1:])
	if pool.bytes != 0 {
		t.Errorf("the pool took %d bytes that are not whole buffers of its own", pool.bytes)
	}
	for range 100 {
		pool.Put(Buffer(capacityClass(1 << 20)))
	}
	if pool.bytes > maxPooledBytes {
		t.Errorf("the pool holds %d bytes", pool.bytes)
	}
}
