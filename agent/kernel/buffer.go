package kernel

import (
	"sync"
	"unsafe"
)

const (
	lineBytes = 64
	pageBytes = 4096
	// staggerBytes is added to whole pages, so that equally long blocks do not fall on the same cache sets
	// (page-aligned strides cost 1.3 to 1.4 times in set conflicts).
	staggerBytes = 512
)

// Buffer returns size zeroed bytes that begin on a 64-byte boundary.
func Buffer(size int) []byte {
	raw := make([]byte, size+lineBytes-1)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(raw))) & (lineBytes - 1))
	return raw[skip : skip+size : skip+size]
}

// Pool keeps buffers for reuse. The zero Pool is ready; it is safe for concurrent use. It holds at most
// maxPooledBytes of idle buffers, everything beyond that goes to the garbage collector.
type Pool struct {
	mutex sync.Mutex
	idle  map[int][][]byte // by capacity class
	bytes int
}

const maxPooledBytes = 32 << 20

// Get returns size bytes that begin on a 64-byte boundary, with any content.
func (p *Pool) Get(size int) []byte {
	class := capacityClass(size)
	p.mutex.Lock()
	if list := p.idle[class]; len(list) > 0 {
		buffer := list[len(list)-1]
		list[len(list)-1] = nil
		p.idle[class] = list[:len(list)-1]
		p.bytes -= class
		p.mutex.Unlock()
		return buffer[:size]
	}
	p.mutex.Unlock()
	return Buffer(class)[:size]
}

// Put gives a buffer back; the caller must not touch it again. Buffers that Get did not make are ignored, as is nil.
func (p *Pool) Put(buffer []byte) {
	class := cap(buffer)
	if class == 0 || capacityClass(class) != class || uintptr(unsafe.Pointer(unsafe.SliceData(buffer)))&(lineBytes-1) != 0 {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.bytes+class > maxPooledBytes {
		return
	}
	if p.idle == nil {
		p.idle = map[int][][]byte{}
	}
	p.idle[class] = append(p.idle[class], buffer[:0:class])
	p.bytes += class
}

// capacityClass rounds size up so that few distinct capacities exist: an eighth of the leading power of two at most is
// wasted, plus the stagger.
func capacityClass(size int) int {
	if size <= staggerBytes {
		return staggerBytes
	}
	step := pageBytes
	for step*16 < size-staggerBytes {
		step *= 2
	}
	return (size-staggerBytes+step-1)/step*step + staggerBytes
}
