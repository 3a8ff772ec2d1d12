package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/restripe/restripe/agent/wire"
)

func (n *Node) delete(ctx context.Context, request wire.DeleteRequest) (any, error) {
	under, err := n.attached(ctx)
	if err != nil {
		return nil, err
	}
	if err := n.checkAddresses(request.Addresses); err != nil {
		return nil, err
	}
	var failures []error
	for _, address := range request.Addresses {
		n.headers.drop(address)
		if err := n.store.Delete(ctx, address.Key()); err != nil {
			failures = append(failures, fmt.Errorf("deleting block %s: %w", address, err))
			if ctx.Err() != nil {
				break
			}
		}
	}
	return nil, n.judge(ctx, under, errors.Join(failures...))
}
