package node

import (
	"fmt"

	"golang.org/x/sync/semaphore"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// blocks answers requests about the node's own blocks: read, write, inspect, list, delete.
type blocks struct {
	id       block.NodeID
	store    store.Store
	identity *identity
	reader   *reader
	pool     *kernel.Pool
	counters *counters

	memory      *semaphore.Weighted // for the buffers of requests
	memoryBytes int64
}

// own refuses an address that names another node.
func (b *blocks) own(address block.Address) error {
	if address.Node != b.id {
		return fmt.Errorf("%w: block %s was asked of node %s; correct the node list", wire.ErrBadRequest, address, b.id)
	}
	return nil
}

func (b *blocks) checkAddresses(addresses []block.Address) error {
	if len(addresses) > wire.MaxAddresses {
		return fmt.Errorf("node %s: %w: %d addresses, at most %d are taken at a time", b.id, wire.ErrBadRequest, len(addresses), wire.MaxAddresses)
	}
	for _, address := range addresses {
		if err := b.own(address); err != nil {
			return err
		}
	}
	return nil
}
