package node

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/blockstore"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// inspectors is how many blocks one request has inspected at a time.
const inspectors = 8

func (b *blocks) inspect(ctx context.Context, request wire.InspectRequest) (reply wire.InspectReply, err error) {
	under, err := b.identity.attached(ctx)
	if err != nil {
		return reply, err
	}
	if err := b.checkAddresses(request.Addresses); err != nil {
		return reply, err
	}
	if request.Deep {
		size := min(inspectors*pieceBytes, b.memoryBytes)
		if err := b.memory.Acquire(ctx, size); err != nil {
			return reply, fmt.Errorf("node %s: inspecting blocks: waiting for memory: %w", b.id, err)
		}
		defer b.memory.Release(size)
	}
	receipts := make([]*block.Receipt, len(request.Addresses))
	damages := make([]*wire.Damage, len(request.Addresses))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(inspectors)
	for i, address := range request.Addresses {
		group.Go(func() error {
			receipt, err := b.inspectOne(groupCtx, under, address, request.Deep)
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			if errors.Is(err, store.ErrCorrupt) {
				damages[i] = damageOf(address, err)
				return nil
			}
			receipts[i] = receipt
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return reply, b.identity.judge(ctx, under, err)
	}
	// Blocks may be missing because all are, and a receipt vouches for the contents as they are now.
	if err := b.identity.still(ctx, under); err != nil {
		return reply, err
	}
	for i, receipt := range receipts {
		if receipt == nil {
			reply.Missing = append(reply.Missing, request.Addresses[i])
			if damages[i] != nil {
				reply.Damaged = append(reply.Damaged, *damages[i])
			}
		} else {
			reply.Receipts = append(reply.Receipts, *receipt)
		}
	}
	return reply, nil
}

func damageOf(address block.Address, err error) *wire.Damage {
	damage := &wire.Damage{Address: address, Unit: -1, Cause: err.Error()}
	var unit *blockstore.UnitError
	if errors.As(err, &unit) {
		damage.Unit = unit.Unit
	}
	return damage
}

func (b *blocks) inspectOne(ctx context.Context, under *serving, address block.Address, deep bool) (*block.Receipt, error) {
	found, err := b.reader.readStored(ctx, address) // not from the cache: the question is whether it is there
	if err != nil {
		return nil, err
	}
	if deep {
		err = b.reader.auditPayload(ctx, under, found)
	} else {
		err = b.reader.checkLength(ctx, found)
	}
	if err != nil {
		return nil, err
	}
	return receiptOf(found.Header, under), nil
}

// checkLength reads across the end of the value.
func (r *reader) checkLength(ctx context.Context, found stored) error {
	var last [2]byte
	end := found.Offset(found.Header.FirstUnit + found.Header.Units)
	length, err := r.store.ReadAt(ctx, found.Header.Address().Key(), last[:], end-1)
	if err != nil {
		return fmt.Errorf("reading the end of block %s: %w", found.Header.Address(), err)
	}
	if length != 1 {
		return fmt.Errorf("block %s: %w: it does not end after %d bytes", found.Header.Address(), store.ErrCorrupt, end)
	}
	return nil
}

// auditPayload is verifyPayload that computes every unit's fingerprint anew too, so that the header's are those of the
// bytes as they are.
func (r *reader) auditPayload(ctx context.Context, under *serving, found stored) error {
	h := found.Header
	if err := r.checkLength(ctx, found); err != nil {
		return err
	}
	var print block.Fingerprint
	var wrong error
	err := r.readPieces(ctx, found, h.FirstUnit, h.Units, func(_, offset int, data []byte) {
		if offset == 0 {
			print = under.printer.Sum(data)
		} else {
			print = under.printer.Join(print, under.printer.Sum(data), len(data))
		}
	}, func(unit int) {
		is := under.printer.Extend(print, found.Length(unit), h.UnitBytes)
		if found.Length(unit) == 0 {
			is = block.Fingerprint{}
		}
		if is != h.Fingerprints[unit-h.FirstUnit] && wrong == nil {
			cause := fmt.Errorf("block %s: %w: the fingerprint of unit %d does not match", h.Address(), store.ErrCorrupt, unit)
			wrong = &blockstore.UnitError{Unit: unit, Cause: cause}
		}
	})
	return errors.Join(err, wrong)
}

// verifyPayload reads all units and compares their checksums.
func (r *reader) verifyPayload(ctx context.Context, found stored) error {
	h := found.Header
	if err := r.checkLength(ctx, found); err != nil {
		return err
	}
	return r.readPieces(ctx, found, h.FirstUnit, h.Units, func(int, int, []byte) {}, func(int) {})
}

// pieceBytes is how much of a block is read at a time where its bytes are only passed over.
const pieceBytes = 1 << 20

// readPieces reads units first..first+units-1 of a block in pieces. It calls piece with stored bytes of one unit, from
// offset on, in order; they are not verified yet. It calls complete when all that is stored of a unit was passed and its
// checksum was right.
func (r *reader) readPieces(ctx context.Context, found stored, first, units int, piece func(unit, offset int, data []byte), complete func(unit int)) error {
	position, end := found.Offset(first), found.Offset(first+units)
	buffer := r.pool.Get(int(min(end-position, pieceBytes)))
	defer r.pool.Put(buffer)
	var data []byte // read and not passed yet
	for unit := first; unit < first+units; unit++ {
		var sum uint32
		length := found.Length(unit)
		for offset := 0; offset < length; {
			if len(data) == 0 {
				data = buffer[:min(end-position, int64(len(buffer)))]
				if err := r.readExactly(ctx, found, data, position); err != nil {
					return err
				}
				position += int64(len(data))
			}
			part := data[:min(len(data), length-offset)]
			sum = kernel.UpdateChecksum(sum, part)
			piece(unit, offset, part)
			offset += len(part)
			data = data[len(part):]
		}
		if err := found.CompareUnit(unit, sum); err != nil {
			return err
		}
		r.counters.add(wire.Counters{BlocksRead: 1, BytesRead: int64(found.Header.UnitBytes)})
		complete(unit)
	}
	return nil
}

// readExactly fills data from a block; a value that ends before is torn.
func (r *reader) readExactly(ctx context.Context, found stored, data []byte, offset int64) error {
	return found.ReadExactly(ctx, r.store, data, offset)
}
