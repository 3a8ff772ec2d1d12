package node

import (
	"context"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/blockstore"
	"github.com/restripe/restripe/agent/wire"
)

// stored is a block as the store holds it.
type stored = blockstore.Block

// readStored reads a header from the store, manifest included. What cannot be read is not remembered any more either.
func (r *reader) readStored(ctx context.Context, address block.Address) (stored, error) {
	return r.headers.Read(ctx, r.store, address)
}

// lookUp returns a header from the cache or the store, without its manifest. A cached one does not prove that the block
// is still there.
func (r *reader) lookUp(ctx context.Context, address block.Address) (stored, error) {
	return r.headers.LookUp(ctx, r.store, address)
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
	return wire.HeaderReply{Header: *found.Header}, nil
}
