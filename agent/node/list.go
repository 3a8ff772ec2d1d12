package node

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// list returns one page of blocks. The store lists in no particular order, so each page passes over all keys and keeps
// the smallest ones.
func (b *blocks) list(ctx context.Context, request wire.ListRequest) (any, error) {
	under, err := b.identity.attached(ctx)
	if err != nil {
		return nil, err
	}
	lister, can := b.store.(store.Lister)
	if !can {
		return nil, fmt.Errorf("listing node %s: %w", b.id, wire.ErrUnsupported)
	}
	limit := request.Limit
	if limit <= 0 || limit > wire.MaxListed {
		limit = wire.MaxListed
	}
	var page largestFirst
	more := false
	err = lister.List(ctx, block.KeyPrefix, func(key string, _ int64) error {
		if key <= request.After {
			return nil
		}
		if len(page) > limit && key >= page[0] {
			more = more || key > page[0]
			return nil
		}
		if _, err := block.ParseKey(b.id, key); err != nil {
			return nil // not a block of ours
		}
		heap.Push(&page, strings.Clone(key))
		if len(page) > limit+1 {
			heap.Pop(&page)
			more = true
		}
		return nil
	})
	if err != nil {
		return nil, b.identity.judge(ctx, under, fmt.Errorf("listing node %s: %w", b.id, err))
	}
	slices.Sort(page)
	page = slices.Compact(page) // a key may be seen twice
	reply := wire.ListReply{More: more || len(page) > limit}
	for _, key := range page[:min(len(page), limit)] {
		address, err := block.ParseKey(b.id, key)
		if err != nil {
			return nil, fmt.Errorf("listing node %s: %w", b.id, err)
		}
		reply.Addresses = append(reply.Addresses, address)
	}
	return reply, nil
}

// largestFirst is a heap of keys.
type largestFirst []string

func (h largestFirst) Len() int           { return len(h) }
func (h largestFirst) Less(i, j int) bool { return h[i] > h[j] }
func (h largestFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *largestFirst) Push(key any)      { *h = append(*h, key.(string)) }
func (h *largestFirst) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
