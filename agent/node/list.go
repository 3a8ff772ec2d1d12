package node

import (
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// list returns one page of blocks, in the order in which the store lists.
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
	reply := wire.ListReply{More: true}
	for after := request.After; reply.More && len(reply.Addresses) < limit; {
		var keys []string
		keys, reply.More, err = lister.Page(ctx, block.KeyPrefix, after, limit-len(reply.Addresses))
		if err != nil {
			return nil, b.identity.judge(ctx, under, fmt.Errorf("listing node %s: %w", b.id, err))
		}
		for _, key := range keys {
			after = key
			if address, err := block.ParseKey(b.id, key); err == nil { // else it is not a block of ours
				reply.Addresses = append(reply.Addresses, address)
			}
		}
	}
	return reply, nil
}
