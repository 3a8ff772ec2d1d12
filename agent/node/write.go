package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/blockstore"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

func (b *blocks) write(ctx context.Context, request wire.WriteRequest, payload []byte) (any, error) {
	under, err := b.identity.attached(ctx)
	if err != nil {
		return nil, err
	}
	header := request.Header
	if err := b.checkNew(&header); err != nil {
		return nil, err
	}
	if err := b.identity.obeys.checkWrite(ctx, header.Stamp); err != nil {
		return nil, err
	}
	if int64(len(payload)) != header.PayloadBytes() {
		return nil, fmt.Errorf("writing block %s: %w: %d bytes came, the header says %d for %d units of %d bytes",
			header.Address(), wire.ErrBadRequest, len(payload), header.PayloadBytes(), header.Units, header.UnitBytes)
	}
	room, err := headRoom(&header)
	if err != nil {
		return nil, err
	}
	size := min(int64(room+len(payload)), b.memoryBytes)
	if err := b.memory.Acquire(ctx, size); err != nil {
		return nil, fmt.Errorf("writing block %s: waiting for memory: %w", header.Address(), err)
	}
	defer b.memory.Release(size)
	buffer := b.pool.Get(room + len(payload))
	defer b.pool.Put(buffer)
	copy(buffer[room:], payload)
	receipt, err := b.create(ctx, under, header, buffer, room)
	if err != nil {
		return nil, err
	}
	return *receipt, nil
}

// checkNew refuses headers that this node must not write.
func (b *blocks) checkNew(header *block.Header) error {
	if err := b.own(header.Address()); err != nil {
		return err
	}
	if err := header.ValidateShape(); err != nil {
		return fmt.Errorf("%w: %w", wire.ErrBadRequest, err)
	}
	if len(header.Checksums) != 0 || len(header.Fingerprints) != 0 {
		return fmt.Errorf("writing block %s: %w: checksums and fingerprints are the agent's to fill in", header.Address(), wire.ErrBadRequest)
	}
	if header.FullBytes() > wire.MaxPayloadBytes { // full units: whatever is stored can be read in one reply
		return fmt.Errorf("writing block %s: %w: %d bytes, at most %d are allowed", header.Address(), wire.ErrTooLarge, header.FullBytes(), wire.MaxPayloadBytes)
	}
	return nil
}

// headRoom returns how many bytes the encoded header takes at most, whatever the checksums and lengths will be.
func headRoom(header *block.Header) (int, error) {
	largest := *header
	largest.Checksums = make([]uint32, header.Units)
	for i := range largest.Checksums {
		largest.Checksums[i] = ^uint32(0)
	}
	largest.Fingerprints = make([]block.Fingerprint, header.Units)
	largest.Lengths = slices.Repeat([]int{header.UnitBytes}, header.Units)
	largest.Lengths[0]-- // one unit at least is short where there are lengths
	head, err := block.EncodeHeader(&largest)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", wire.ErrBadRequest, err)
	}
	return len(head), nil
}

// create stores the block whose payload, laid out as header says, is buffer[room:], with the header right before it and
// without the zeros units end in; buffer is changed. A block that is there already with the same content is as good, be
// it stored in full; another content is ErrConflict.
func (b *blocks) create(ctx context.Context, under *serving, header block.Header, buffer []byte, room int) (*block.Receipt, error) {
	address := header.Address()
	payload := header.Pack(buffer[room:])
	header.Checksums = make([]uint32, header.Units)
	header.Fingerprints = make([]block.Fingerprint, header.Units)
	for i, rest := 0, payload; i < header.Units; i++ {
		length := header.UnitBytes
		if header.Lengths != nil {
			length = header.Lengths[i]
		}
		header.Checksums[i] = kernel.ExtendChecksum(kernel.Checksum(rest[:length]), header.UnitBytes-length)
		header.Fingerprints[i] = under.printer.Extend(under.printer.Sum(rest[:length]), length, header.UnitBytes)
		rest = rest[length:]
	}
	head, err := block.EncodeHeader(&header)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", wire.ErrBadRequest, err)
	}
	value := buffer[room-len(head) : room+len(payload)]
	copy(value, head)
	kept, isNew := blockstore.New(&header, len(head)), true
	err = b.identity.create(ctx, under, address.Key(), value, func() error {
		err := b.store.Create(ctx, address.Key(), value)
		if errors.Is(err, store.ErrExists) {
			isNew = false
			kept, err = b.compare(ctx, &header)
			return err
		}
		if err != nil {
			return fmt.Errorf("writing block %s: %w", address, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if isNew {
		b.counters.add(wire.Counters{BlocksWritten: int64(header.Units), BytesWritten: header.FullBytes()})
	}
	receipt := receiptOf(&header, under)
	b.reader.headers.Put(address, kept)
	return receipt, nil
}

// compare accepts a block that is there already if it holds, whole, what header says, and returns how: another manifest
// or lengths may have been written with the same units.
func (b *blocks) compare(ctx context.Context, header *block.Header) (stored, error) {
	address := header.Address()
	there, err := b.reader.readStored(ctx, address)
	if err != nil {
		return stored{}, err
	}
	h := there.Header
	if h.FirstUnit != header.FirstUnit || h.Units != header.Units || h.UnitBytes != header.UnitBytes || h.ContentChecksum() != header.ContentChecksum() {
		return stored{}, fmt.Errorf("writing block %s: %w: units %d+%d with checksum %08x are there, units %d+%d with checksum %08x were to be written",
			address, wire.ErrConflict, h.FirstUnit, h.Units, h.ContentChecksum(), header.FirstUnit, header.Units, header.ContentChecksum())
	}
	return there, b.reader.verifyPayload(ctx, there)
}

// receiptOf vouches for a block in the contents the node serves under.
func receiptOf(header *block.Header, under *serving) *block.Receipt {
	return &block.Receipt{
		Address: header.Address(), Checksum: header.ContentChecksum(), Fingerprints: header.Fingerprints,
		Fingerprint: under.printer.JoinUnits(header.Fingerprints, header.UnitBytes),
		FirstUnit:   header.FirstUnit, Units: header.Units, Incarnation: under.incarnation,
	}
}
