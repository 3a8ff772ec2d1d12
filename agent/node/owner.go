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

// ownerKey is where a store says whose it is: the id of a node, created with the first attach and never changed.
const ownerKey = "restripe/node"

// sampledHeaders is how many blocks of a store that nobody owns yet are asked whose they are.
const sampledHeaders = 256

// owner returns the node that the store belongs to, empty for none.
func (i *identity) owner(ctx context.Context) (block.NodeID, error) {
	owner, err := i.readMarker(ctx, ownerKey)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", down(fmt.Errorf("node %s: reading which node the store belongs to: %w", i.id, err))
	}
	return block.NodeID(owner), nil
}

// checkOwner refuses a store that is another node's.
func (i *identity) checkOwner(ctx context.Context) error {
	owner, err := i.owner(ctx)
	if err != nil || owner == "" || owner == i.id {
		return err
	}
	return i.foreign(owner)
}

func (i *identity) foreign(owner block.NodeID) error {
	return fmt.Errorf("node %s: %w: this store is node %s's: start the agent with --id %s (a disk that moved keeps its id), "+
		"or give %s a store of its own",
		i.id, wire.ErrBadRequest, owner, owner, i.id)
}

// bindOwner makes the store this node's, unless it is another's or holds blocks that say they are.
func (i *identity) bindOwner(ctx context.Context) error {
	owner, err := i.owner(ctx)
	if err != nil {
		return err
	}
	if owner == "" {
		if err := i.checkBlocks(ctx); err != nil {
			return err
		}
		err = i.store.Create(ctx, ownerKey, []byte(i.id))
		if err != nil && !errors.Is(err, store.ErrExists) {
			return down(fmt.Errorf("node %s: noting whose the store is: %w", i.id, err))
		}
	}
	return i.checkOwner(ctx)
}

// checkBlocks looks at some blocks of a store that does not say whose it is, as stores of earlier releases do not. A store
// that cannot list is believed.
func (i *identity) checkBlocks(ctx context.Context) error {
	lister, can := i.store.(store.Lister)
	if !can {
		return nil
	}
	var sample []block.Address
	enough := errors.New("enough") // ends the listing
	err := lister.List(ctx, block.KeyPrefix, func(key string, _ int64) error {
		if address, err := block.ParseKey(i.id, key); err == nil {
			sample = append(sample, address)
		}
		if len(sample) == sampledHeaders {
			return enough
		}
		return nil
	})
	if err != nil && !errors.Is(err, enough) {
		return down(fmt.Errorf("node %s: listing the store to see whose it is: %w", i.id, err))
	}
	for _, address := range sample {
		header, _, err := blockstore.ReadHeader(ctx, i.store, address)
		switch {
		case err == nil && header.Node != i.id:
			return i.foreign(header.Node)
		case err != nil && !store.Definite(err) && !errors.Is(err, wire.ErrUnsupported):
			return down(fmt.Errorf("node %s: seeing whose the store is: %w", i.id, err))
		}
	}
	return nil
}
