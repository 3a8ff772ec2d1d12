package cache_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/cache"
)

func revision(n uint64) block.Stamp { return block.Stamp{Sequence: n, Salt: 1} }

func TestBytesAreThoseOfARevision(t *testing.T) {
	c := cache.New(1 << 20)
	c.Put("k", revision(1), []byte("one"))
	if got := c.Get("k", revision(1)); string(got) != "one" {
		t.Errorf("%q", got)
	}
	if got := c.Get("k", revision(2)); got != nil || !c.Has("k") {
		t.Errorf("another revision has %q", got)
	}
	c.Put("k", revision(2), []byte("two"))
	if c.Get("k", revision(1)) != nil || string(c.Get("k", revision(2))) != "two" {
		t.Error("the later revision does not take the place of the earlier one")
	}
	if c.Has("other") || c.Get("other", revision(1)) != nil {
		t.Error("what was not put is there")
	}
}

func TestLargeAndEmptyObjectsAreNotKept(t *testing.T) {
	c := cache.New(1 << 20)
	for size, takes := range map[int]bool{0: false, 1: true, cache.Largest: true, cache.Largest + 1: false} {
		key := fmt.Sprint(size)
		c.Put(key, revision(1), make([]byte, size))
		if c.Has(key) != takes || c.Takes(int64(size)) != takes {
			t.Errorf("%d bytes are kept: %v", size, c.Has(key))
		}
	}
}

func TestACacheOfNothing(t *testing.T) {
	c := cache.New(0)
	c.Put("k", revision(1), []byte("one"))
	if c.Has("k") || c.Get("k", revision(1)) != nil || c.Takes(1) {
		t.Error("it keeps something")
	}
	if n := testutil.CollectAndCount(c); n != 3 {
		t.Errorf("%d metrics", n)
	}
}

// However much is put from many sides, the cache stays within its bounds, and never has wrong bytes.
func TestTheCacheIsBounded(t *testing.T) {
	const limit = 256 << 10
	c := cache.New(limit)
	var work sync.WaitGroup
	for worker := range 8 {
		work.Go(func() {
			for i := range 2000 {
				n := uint64(i*(worker+1)) % 701
				key, want := fmt.Sprint(n), bytes.Repeat([]byte{byte(n)}, 1024)
				if got := c.Get(key, revision(n)); got == nil {
					c.Put(key, revision(n), want)
				} else if !bytes.Equal(got, want) {
					t.Errorf("%s has the bytes of another one", key)
				}
			}
		})
	}
	work.Wait()
	c.Put("last", revision(1), []byte("x"))
	kept := 0
	for n := range uint64(701) {
		kept += len(c.Get(fmt.Sprint(n), revision(n)))
	}
	if kept > limit || kept < limit/4 {
		t.Errorf("%d bytes are kept, where %d may be", kept, limit)
	}
}
