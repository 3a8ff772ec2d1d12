package node_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/store/mem"
	"github.com/restripe/restripe/agent/wire"
)

// counted is a store that counts the keys that its listings pass.
type counted struct {
	*mem.Store
	passed atomic.Int64
}

func (c *counted) List(ctx context.Context, prefix string, visit func(key string, size int64) error) error {
	return c.Store.List(ctx, prefix, func(key string, size int64) error {
		c.passed.Add(1)
		return visit(key, size)
	})
}

func (c *counted) Page(ctx context.Context, prefix, after string, limit int) ([]string, bool, error) {
	keys, more, err := c.Store.Page(ctx, prefix, after, limit)
	c.passed.Add(int64(len(keys)))
	return keys, more, err
}

func TestAPageOfAListingCostsThePage(t *testing.T) {
	const blocks, limit = 2000, 100
	s := &counted{Store: mem.New(0)}
	a := start(t, "n1", s, node.Options{})
	a.attach()
	for i := range blocks {
		h := header("n1", 0, stamp(uint64(i+2)), 0, 1, 1)
		if err := s.Create(t.Context(), h.Address().Key(), nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Create(t.Context(), fmt.Sprintf("other/%d", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[block.Address]bool{}
	for after, more := "", true; more; {
		s.passed.Store(0)
		var reply wire.ListReply
		if err := a.call(wire.OpList, wire.ListRequest{After: after, Limit: limit}, nil, &reply); err != nil {
			t.Fatal(err)
		}
		if passed := s.passed.Load(); passed > 2*limit {
			t.Fatalf("a page of %d blocks passed %d keys of the store", len(reply.Addresses), passed)
		}
		for _, address := range reply.Addresses {
			seen[address] = true
			after = address.Key()
		}
		more = reply.More && len(reply.Addresses) > 0
	}
	if len(seen) != blocks {
		t.Errorf("the pages have %d blocks of %d", len(seen), blocks)
	}
}
