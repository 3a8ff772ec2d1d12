package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/blockstore"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

func (b *blocks) delete(ctx context.Context, request wire.DeleteRequest) (any, error) {
	under, err := b.identity.attached(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.checkAddresses(request.Addresses); err != nil {
		return nil, err
	}
	done, err := b.identity.obeys.beginDelete(ctx, request.Timeline)
	if err != nil {
		return nil, err
	}
	defer done()
	var reply wire.DeleteReply
	var failures []error
	for _, address := range request.Addresses {
		if request.Orphans {
			foreign, err := b.isForeign(ctx, address)
			if foreign {
				reply.Foreign = append(reply.Foreign, address)
			}
			if foreign || err != nil {
				failures = append(failures, err)
				continue
			}
		}
		b.reader.headers.Drop(address)
		if err := b.store.Delete(ctx, address.Key()); err != nil {
			failures = append(failures, fmt.Errorf("deleting block %s: %w", address, err))
			if ctx.Err() != nil {
				break
			}
		}
	}
	return reply, b.identity.judge(ctx, under, errors.Join(failures...))
}

// isForeign reports whether the block that the store holds under an address of this node says that it is another node's, or is
// of a later release, which alone can tell. A header that is damaged says nothing; who has such a block has lost it.
func (b *blocks) isForeign(ctx context.Context, address block.Address) (bool, error) {
	header, _, err := blockstore.ReadHeader(ctx, b.store, address)
	switch {
	case errors.Is(err, wire.ErrUnsupported):
		return true, nil
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrCorrupt):
		return false, nil
	case err != nil:
		return false, err
	}
	return header.Node != b.id, nil
}
