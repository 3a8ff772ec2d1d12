// Package blockstore reads blocks from the stores of nodes, and believes nothing that it has not verified.
package blockstore

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// firstReadBytes is how much of a block is read in the hope that it holds the whole header.
const firstReadBytes = 4 << 10

// Block is a block as a store holds it: its header, and where the payload begins.
type Block struct {
	Header    *block.Header
	headBytes int
	starts    []int64 // of each unit within the payload, and the payload's length; nil: every unit is stored in full
}

// New returns a block of which the header takes so many bytes of its value.
func New(header *block.Header, headBytes int) Block {
	b := Block{Header: header, headBytes: headBytes}
	if header.Lengths != nil {
		b.starts = make([]int64, header.Units+1)
		for i, length := range header.Lengths {
			b.starts[i+1] = b.starts[i] + int64(length)
		}
	}
	return b
}

// Offset returns where the stored part of a unit begins within the value; that of the unit after the last is the end.
func (b Block) Offset(unit int) int64 {
	i := unit - b.Header.FirstUnit
	if b.starts != nil {
		return int64(b.headBytes) + b.starts[i]
	}
	return int64(b.headBytes) + int64(i)*int64(b.Header.UnitBytes)
}

// Length returns how many bytes of a unit are stored; the others are zeros.
func (b Block) Length(unit int) int {
	if b.Header.Lengths != nil {
		return b.Header.Lengths[unit-b.Header.FirstUnit]
	}
	return b.Header.UnitBytes
}

// CheckUnit compares the stored bytes of a unit with its checksum.
func (b Block) CheckUnit(unit int, data []byte) error {
	return b.CompareUnit(unit, kernel.Checksum(data))
}

// CompareUnit compares the checksum of the stored bytes of a unit, to which its zeros are added, with that it should be.
func (b Block) CompareUnit(unit int, checksum uint32) error {
	checksum = kernel.ExtendChecksum(checksum, b.Header.UnitBytes-b.Length(unit))
	if b.Header.Checksums[unit-b.Header.FirstUnit] != checksum {
		return &UnitError{unit, fmt.Errorf("block %s: %w: the checksum of unit %d does not match", b.Header.Address(), store.ErrCorrupt, unit)}
	}
	return nil
}

// UnitError says which unit of a block is wrong.
type UnitError struct {
	Unit  int
	Cause error
}

// Error says what is wrong.
func (e *UnitError) Error() string { return e.Cause.Error() }

// Unwrap returns the class of what is wrong.
func (e *UnitError) Unwrap() error { return e.Cause }

// ReadHeader reads what a store holds as the header of a block, manifest included, and how long it is. It need not name the
// block at address: who asks compares.
func ReadHeader(ctx context.Context, from store.Store, address block.Address) (header *block.Header, headBytes int, err error) {
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

// Fetch reads the headers of blocks of one store that are not kept, together, and keeps those that it can: whoever needs another one looks
// it up, and learns why.
func (c *Headers) Fetch(ctx context.Context, from store.ManyReader, addresses []block.Address) {
	var reads []store.Read
	var missing []block.Address
	for _, address := range addresses {
		if _, kept := c.Get(address); !kept && !slices.Contains(missing, address) {
			missing = append(missing, address)
			reads = append(reads, store.Read{Key: address.Key(), Into: make([]byte, firstReadBytes)})
		}
	}
	if len(missing) == 0 {
		return
	}
	from.ReadMany(ctx, reads)
	for i, address := range missing {
		value := reads[i].Into[:reads[i].Count]
		headBytes, err := block.HeadBytes(value)
		if reads[i].Err != nil || err != nil || headBytes > len(value) {
			continue
		}
		if header, err := block.DecodeHeader(value); err == nil && header.Address() == address {
			c.Put(address, New(header, headBytes))
		}
	}
}

// unreadable classes a failure to decode: a newer format is no damage, and must not be repaired away.
func unreadable(address block.Address, err error) error {
	if errors.Is(err, block.ErrVersion) {
		return fmt.Errorf("block %s: %w: %w", address, wire.ErrUnsupported, err)
	}
	return fmt.Errorf("block %s: %w: %w", address, store.ErrCorrupt, err)
}

// ReadExactly fills data from a block; a value that ends before is torn.
func (b Block) ReadExactly(ctx context.Context, from store.Store, data []byte, offset int64) error {
	address := b.Header.Address()
	length, err := from.ReadAt(ctx, address.Key(), data, offset)
	if err != nil {
		return fmt.Errorf("reading block %s: %w", address, err)
	}
	if length != len(data) {
		return fmt.Errorf("block %s: %w: it ends at byte %d", address, store.ErrCorrupt, offset+int64(length))
	}
	return nil
}

// Run is how many of length bytes from an offset in a unit on, which may go on in the units after it, are stored one after the other,
// and whether all others are zeros after them.
func (b Block) Run(unit, offset, length int) (stored int, isOne bool) {
	h := b.Header
	first, last := unit, unit+(offset+length-1)/h.UnitBytes
	if length <= 0 || offset < 0 || offset >= h.UnitBytes || first < h.FirstUnit || last >= h.FirstUnit+h.Units {
		return 0, false
	}
	for ; unit < last; unit++ {
		if b.Length(unit) != h.UnitBytes {
			return 0, false
		}
	}
	end := (last-first)*h.UnitBytes + b.Length(last) // of what is stored, from the beginning of the first unit on
	return max(0, min(length, end-offset)), true
}

// ReadRun fills data from an offset in a unit on with the bytes that have this CRC-32C, of which so many are stored, as Run says; others
// are corrupt.
func (b Block) ReadRun(ctx context.Context, from store.Store, data []byte, unit, offset, stored int, checksum uint32) error {
	clear(data[stored:])
	if err := b.ReadExactly(ctx, from, data[:stored], b.Offset(unit)+int64(offset)); err != nil {
		return err
	}
	return b.CheckRun(data, unit, offset, checksum)
}

// CheckRun compares bytes from an offset in a unit on with the CRC-32C that they should have.
func (b Block) CheckRun(data []byte, unit, offset int, checksum uint32) error {
	if kernel.Checksum(data) != checksum {
		return fmt.Errorf("block %s: %w: the bytes from %d of unit %d on do not have the checksum that they should",
			b.Header.Address(), store.ErrCorrupt, offset, unit)
	}
	return nil
}

// Headers keeps the blocks whose headers were used last, without their manifests, within a bound of bytes. Headers are immutable, so it
// is never stale; that a block is in it does not prove that it is still stored.
type Headers struct {
	limit int64

	mutex   sync.Mutex
	entries map[block.Address]*list.Element // of *cachedHeader
	order   list.List                       // used last first
	bytes   int64
}

// NewHeaders returns a cache of so many bytes, about.
func NewHeaders(limit int64) *Headers { return &Headers{limit: limit} }

// Read reads the header of the block at address, manifest included, which must be that block. What cannot be read is not kept any more
// either.
func (c *Headers) Read(ctx context.Context, from store.Store, address block.Address) (_ Block, err error) {
	defer func() {
		if err != nil {
			c.Drop(address)
		}
	}()
	header, headBytes, err := ReadHeader(ctx, from, address)
	if err != nil {
		return Block{}, err
	}
	if header.Address() != address {
		return Block{}, fmt.Errorf("block %s: %w: the header says it is block %s", address, store.ErrCorrupt, header.Address())
	}
	return New(header, headBytes), nil
}

// LookUp returns a block that is kept, or reads and keeps it.
func (c *Headers) LookUp(ctx context.Context, from store.Store, address block.Address) (Block, error) {
	if found, ok := c.Get(address); ok {
		return found, nil
	}
	found, err := c.Read(ctx, from, address)
	if err == nil {
		c.Put(address, found)
	}
	return found, err
}

type cachedHeader struct {
	address block.Address
	block   Block
	bytes   int64
}

// Get returns a block that is kept.
func (c *Headers) Get(address block.Address) (Block, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	element, found := c.entries[address]
	if !found {
		return Block{}, false
	}
	c.order.MoveToFront(element)
	return element.Value.(*cachedHeader).block, true
}

// Put keeps a block without its manifest, which it takes out.
func (c *Headers) Put(address block.Address, value Block) {
	h := value.Header
	h.Manifest = nil
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

// Drop forgets a block.
func (c *Headers) Drop(address block.Address) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if element, found := c.entries[address]; found {
		c.remove(element)
	}
}

func (c *Headers) remove(element *list.Element) {
	entry := c.order.Remove(element).(*cachedHeader)
	delete(c.entries, entry.address)
	c.bytes -= entry.bytes
}

// Clear forgets all.
func (c *Headers) Clear() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.entries, c.bytes = nil, 0
	c.order.Init()
}
