package blockstore

import (
	"testing"

	"github.com/restripe/restripe/agent/block"
)

func TestHeadersStayWithinTheirBound(t *testing.T) {
	cache := Headers{limit: 10_000}
	for i := range 1000 {
		header := &block.Header{Units: 1 + i%20, Stamp: block.Stamp{Sequence: uint64(i)}}
		cache.Put(header.Address(), New(header, 64))
		if cache.bytes > cache.limit || cache.order.Len() != len(cache.entries) {
			t.Fatalf("%d bytes in %d entries", cache.bytes, len(cache.entries))
		}
	}
	last := block.Address{Stamp: block.Stamp{Sequence: 999}}
	if _, found := cache.Get(last); !found {
		t.Error("the last header is not there")
	}
	cache.Drop(last)
	if _, found := cache.Get(last); found {
		t.Error("a dropped header is there")
	}
	cache.Clear()
	if cache.bytes != 0 || cache.order.Len() != 0 {
		t.Error("a cleared cache is not empty")
	}
}

func TestRunsOfBytes(t *testing.T) {
	full := New(&block.Header{FirstUnit: 4, Units: 3, UnitBytes: 10}, 64)
	short := New(&block.Header{FirstUnit: 4, Units: 3, UnitBytes: 10, Lengths: []int{10, 3, 7}}, 64)
	for _, c := range []struct {
		in                   Block
		unit, offset, length int
		stored               int
		isOne                bool
	}{
		{full, 4, 0, 30, 30, true},
		{full, 4, 9, 2, 2, true},
		{full, 6, 3, 7, 7, true},
		{full, 6, 3, 8, 0, false}, // goes on after the block
		{full, 3, 0, 1, 0, false}, // begins before it
		{full, 4, 10, 1, 0, false},
		{full, 4, 0, 0, 0, false},
		{short, 4, 0, 10, 10, true},
		{short, 4, 5, 15, 8, true}, // the rest of unit 5 is zeros
		{short, 4, 5, 16, 0, false},
		{short, 5, 2, 5, 1, true},
		{short, 5, 3, 5, 0, true},
		{short, 5, 0, 11, 0, false},
	} {
		if stored, isOne := c.in.Run(c.unit, c.offset, c.length); stored != c.stored || isOne != c.isOne {
			t.Errorf("%d bytes from %d of unit %d on: %d, %t; want %d, %t", c.length, c.offset, c.unit, stored, isOne, c.stored, c.isOne)
		}
	}
}
