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
