package node

import (
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/blockstore"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// read returns the asked ranges one after the other, without zeros at their end if that was asked for, in a buffer that release gives
// back.
func (b *blocks) read(ctx context.Context, request wire.ReadRequest) (_ []byte, release func(), err error) {
	under, err := b.identity.attached(ctx)
	if err != nil {
		return nil, nil, err
	}
	address := request.Address
	if err := b.own(address); err != nil {
		return nil, nil, err
	}
	found, err := b.reader.lookUp(ctx, address)
	if err != nil {
		return nil, nil, b.identity.judge(ctx, under, err)
	}
	h := found.Header
	total := int64(0)
	for _, r := range request.Ranges {
		if r.Unit < h.FirstUnit || r.Unit >= h.FirstUnit+h.Units || r.Offset < 0 || r.Length < 0 || r.Length > h.UnitBytes || r.Offset > h.UnitBytes-r.Length {
			return nil, nil, fmt.Errorf("reading block %s: %w: %d bytes at %d of unit %d; it holds units %d+%d of %d bytes",
				address, wire.ErrBadRequest, r.Length, r.Offset, r.Unit, h.FirstUnit, h.Units, h.UnitBytes)
		}
		total += int64(r.Length)
		if total > wire.MaxPayloadBytes {
			return nil, nil, fmt.Errorf("reading block %s: %w: more than %d bytes; ask for less at a time", address, wire.ErrTooLarge, wire.MaxPayloadBytes)
		}
	}
	size := min(total+int64(h.UnitBytes), b.memoryBytes) // the reply, and one unit that is read for it
	if err := b.memory.Acquire(ctx, size); err != nil {
		return nil, nil, fmt.Errorf("reading block %s: waiting for memory: %w", address, err)
	}
	out := b.pool.Get(int(total))
	release = func() {
		b.pool.Put(out)
		b.memory.Release(size)
	}
	if err := b.reader.fill(ctx, found, request.Ranges, out); err != nil {
		release()
		return nil, nil, b.identity.judge(ctx, under, err)
	}
	if request.Short {
		return out[:endOf(found, request.Ranges)], release, nil
	}
	return out, release, nil
}

// endOf returns how many bytes of ranges, one after the other, are followed by nothing but zeros that are not stored.
func endOf(found stored, ranges []wire.Range) (end int) {
	at := 0
	for _, r := range ranges {
		if kept := min(found.Length(r.Unit)-r.Offset, r.Length); kept > 0 {
			end = at + kept
		}
		at += r.Length
	}
	return end
}

// reader reads stored blocks, header and units, and believes no bytes that it did not verify.
type reader struct {
	*background
	store    store.Store
	headers  *blockstore.Headers
	flights  flights
	pool     *kernel.Pool
	counters *counters
}

// fill reads the ranges into out. Runs of whole units are read at once, right where they are wanted; parts of a unit
// come from one shared reading of it. For bytes that are zeros because they are not stored nothing is read.
func (r *reader) fill(ctx context.Context, found stored, ranges []wire.Range, out []byte) error {
	unitBytes := found.Header.UnitBytes
	for len(ranges) > 0 {
		whole := 0
		for whole < len(ranges) && ranges[whole].Length == unitBytes && ranges[whole].Unit == ranges[0].Unit+whole {
			whole++
		}
		if whole == 0 {
			asked := ranges[0]
			if err := r.fillPart(ctx, found, asked, out[:asked.Length]); err != nil {
				return err
			}
			out, ranges = out[asked.Length:], ranges[1:]
			continue
		}
		if err := r.fillUnits(ctx, found, ranges[0].Unit, out[:whole*unitBytes]); err != nil {
			return err
		}
		out, ranges = out[whole*unitBytes:], ranges[whole:]
	}
	return nil
}

// fillPart reads part of a unit.
func (r *reader) fillPart(ctx context.Context, found stored, asked wire.Range, out []byte) error {
	if asked.Offset < found.Length(asked.Unit) {
		unit, done, err := r.readShared(ctx, found, asked.Unit)
		if err != nil {
			return err
		}
		out = out[copy(out, unit[asked.Offset:]):]
		done()
	}
	clear(out)
	return nil
}

// fillUnits reads consecutive whole units, of which out has room for the full ones.
func (r *reader) fillUnits(ctx context.Context, found stored, first int, out []byte) error {
	unitBytes := found.Header.UnitBytes
	units := len(out) / unitBytes
	// What is stored is read to the end of out and moved to its places from the front: no unit's place reaches into
	// what is stored of a later one.
	data := out[len(out)-int(found.Offset(first+units)-found.Offset(first)):]
	if len(data) > 0 {
		if err := r.readExactly(ctx, found, data, found.Offset(first)); err != nil {
			return err
		}
	}
	for i := range units {
		length := found.Length(first + i)
		if err := found.CheckUnit(first+i, data[:length]); err != nil {
			return err
		}
		place := out[i*unitBytes : (i+1)*unitBytes]
		copy(place, data[:length])
		clear(place[length:])
		data = data[length:]
	}
	r.counters.add(wire.Counters{BlocksRead: int64(units), BytesRead: int64(len(out))})
	return nil
}
