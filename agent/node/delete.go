package node

import (
	"context"
	"errors"
	"fmt"

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
	var failures []error
	for _, address := range request.Addresses {
		b.reader.headers.drop(address)
		if err := b.store.Delete(ctx, address.Key()); err != nil {
			failures = append(failures, fmt.Errorf("deleting block %s: %w", address, err))
			if ctx.Err() != nil {
				break
			}
		}
	}
	return nil, b.identity.judge(ctx, under, errors.Join(failures...))
}
