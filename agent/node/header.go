package node

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// firstReadBytes is how much of a block is read in the hope that it holds the whole header.
const firstReadBytes = 4 << 10

// stored is the header of a block as the store holds it, and where the payload begins.
type stored struct {
	header    *block.Header
	headBytes int
	starts    []int64 // of each unit within the payload, and the payload's length; nil: every unit is stored in full
}

func newStored(header *block.Header, headBytes int) stored {
	s := stored{header: header, headBytes: headBytes}
	if header.Lengths != nil {
		s.starts = make([]int64, header.Units+1)
		for i, length := range header.Lengths {
			s.starts[i+1] = s.starts[i] + int64(length)
		}
	}
	return s
}

// offset returns where the stored part of a unit begins within the value; that of the unit after the last is the end.
func (s stored) offset(unit int) int64 {
	i := unit - s.header.FirstUnit
	if s.starts != nil {
		return int64(s.headBytes) + s.starts[i]
	}
	return int64(s.headBytes) + int64(i)*int64(s.header.UnitBytes)
}

// length returns how many bytes of a unit are stored; the others are zeros.
func (s stored) length(unit int) int {
	if s.header.Lengths != nil {
		return s.header.Lengths[unit-s.header.FirstUnit]
	}
	return s.header.UnitBytes
}

// checkUnit compares the stored bytes of a unit with its checksum.
func (s stored) checkUnit(unit int, data []byte) error {
	return s.compareUnit(unit, kernel.Checksum(data))
}

// compareUnit compares the checksum of the stored bytes of a unit, to which its zeros are added, with that it should be.
func (s stored) compareUnit(unit int, checksum uint32) error {
	checksum = kernel.ExtendChecksum(checksum, s.header.UnitBytes-s.length(unit))
	if s.header.Checksums[unit-s.header.FirstUnit] != checksum {
		return &unitError{unit, fmt.Errorf("block %s: %w: the checksum of unit %d does not match", s.header.Address(), store.ErrCorrupt, unit)}
	}
	return nil
}

// unitError says which unit of a block is wrong.
type unitError struct {
	unit  int
	cause error
}

func (e *unitError) Error() string { return e.cause.Error() }
func (e *unitError) Unwrap() error { return e.cause }

// readStored reads a header from the store, manifest included. What cannot be read is not remembered any more either.
func (r *reader) readStored(ctx context.Context, address block.Address) (_ stored, err error) {
	defer func() {
		if err != nil {
			r.headers.drop(address)
		}
	}()
	header, headBytes, err := readHeader(ctx, r.store, address)
	if err != nil {
		return stored{}, err
	}
	if header.Address() != address {
		return stored{}, fmt.Errorf("block %s: %w: the header says it is block %s", address, store.ErrCorrupt, header.Address())
	}
	return newStored(header, headBytes), nil
}

// readHeader reads what a store holds as the header of a block, manifest included, and how long it is. It need not name the
// block at address: who asks compares.
func readHeader(ctx context.Context, from store.Store, address block.Address) (header *block.Header, headBytes int, err error) {
	key := address.Key()
	value := make([]byte, firstReadBytes)
	length, err := from.ReadAt(ctx, key, value, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("reading block %s: %w", address, err)
	}
	headBytes, err = block.HeadBytes(value[:length])
	if err != nil {
		return nil, 0, unreadable(address, err)
	}
	if headBytes > length {
		value = make([]byte, headBytes)
		if length, err = from.ReadAt(ctx, key, value, 0); err != nil {
			return nil, 0, fmt.Errorf("reading block %s: %w", address, err)
		}
	}
	header, err = block.DecodeHeader(value[:length])
	if err != nil {
		return nil, 0, unreadable(address, err)
	}
	return header, headBytes, nil
}

// unreadable classes a failure to decode: a newer format is no damage, and must not be repaired away.
func unreadable(address block.Address, err error) error {
	if errors.Is(err, block.ErrVersion) {
		return fmt.Errorf("block %s: %w: %w", address, wire.ErrUnsupported, err)
	}
	return fmt.Errorf("block %s: %w: %w", address, store.ErrCorrupt, err)
}

// lookUp returns a header from the cache or the store, without its manifest. A cached one does not prove that the block
// is still there.
func (r *reader) lookUp(ctx context.Context, address block.Address) (stored, error) {
	if found, ok := r.headers.get(address); ok {
		return found, nil
	}
	found, err := r.readStored(ctx, address)
	if err != nil {
		return stored{}, err
	}
	found.header.Manifest = nil
	r.headers.put(address, found)
	return found, nil
}

func (b *blocks) header(ctx context.Context, request wire.HeaderRequest) (any, error) {
	under, err := b.identity.attached(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.own(request.Address); err != nil {
		return nil, err
	}
	found, err := b.reader.readStored(ctx, request.Address)
	if err != nil {
		return nil, b.identity.judge(ctx, under, err)
	}
	return wire.HeaderReply{Header: *found.header}, nil
}

// headerCache keeps the headers used last, within a bound of bytes. Headers are immutable, so it is never stale; the
// zero cache with a limit is ready.
type headerCache struct {
	limit int64

	mutex   sync.Mutex
	entries map[block.Address]*list.Element // of *cachedHeader
	order   list.List                       // used last first
	bytes   int64
}

type cachedHeader struct {
	address block.Address
	stored  stored
	bytes   int64
}

func (c *headerCache) get(address block.Address) (stored, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	element, found := c.entries[address]
	if !found {
		return stored{}, false
	}
	c.order.MoveToFront(element)
	return element.Value.(*cachedHeader).stored, true
}

func (c *headerCache) put(address block.Address, value stored) {
	h := value.header
	const overhead = 512 // of the structs and the map, roughly
	size := int64(overhead + 20*h.Units + 8*len(h.Lengths) + 8*len(value.starts) + len(h.Class) + len(h.Ladder) + len(h.Mode) + len(h.Scheme))
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if _, found := c.entries[address]; found || size > c.limit {
		return
	}
	if c.entries == nil {
		c.entries = map[block.Address]*list.Element{}
	}
	c.entries[address] = c.order.PushFront(&cachedHeader{address, value, size})
	for c.bytes += size; c.bytes > c.limit; {
		c.remove(c.order.Back())
	}
}

func (c *headerCache) drop(address block.Address) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if element, found := c.entries[address]; found {
		c.remove(element)
	}
}

func (c *headerCache) remove(element *list.Element) {
	entry := c.order.Remove(element).(*cachedHeader)
	delete(c.entries, entry.address)
	c.bytes -= entry.bytes
}

func (c *headerCache) clear() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.entries, c.bytes = nil, 0
	c.order.Init()
}
