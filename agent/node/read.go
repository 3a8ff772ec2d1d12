package node

import (
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/wire"
)

// read returns the asked ranges one after the other, in a buffer that release gives back.
func (n *Node) read(ctx context.Context, request wire.ReadRequest) (_ []byte, release func(), err error) {
	under, err := n.attached(ctx)
	if err != nil {
		return nil, nil, err
	}
	address := request.Address
	if err := n.own(address); err != nil {
		return nil, nil, err
	}
	found, err := n.lookUp(ctx, address)
	if err != nil {
		return nil, nil, n.judge(ctx, under, err)
	}
	h := found.header
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
	size := min(total+int64(h.UnitBytes), n.options.MemoryBytes) // the reply, and one unit that is read for it
	if err := n.memory.Acquire(ctx, size); err != nil {
		return nil, nil, fmt.Errorf("reading block %s: waiting for memory: %w", address, err)
	}
	out := n.pool.Get(int(total))
	release = func() {
		n.pool.Put(out)
		n.memory.Release(size)
	}
	if err := n.fill(ctx, found, request.Ranges, out); err != nil {
		release()
		return nil, nil, n.judge(ctx, under, err)
	}
	return out, release, nil
}

// fill reads the ranges into out. Runs of whole units are read at once, right where they are wanted; parts of a unit
// come from one shared reading of it.
func (n *Node) fill(ctx context.Context, found stored, ranges []wire.Range, out []byte) error {
	unitBytes := found.header.UnitBytes
	for len(ranges) > 0 {
		whole := 0
		for whole < len(ranges) && ranges[whole].Length == unitBytes && ranges[whole].Unit == ranges[0].Unit+whole {
			whole++
		}
		if whole == 0 {
			r := ranges[0]
			unit, done, err := n.readShared(ctx, found, r.Unit)
			if err != nil {
				return err
			}
			copy(out[:r.Length], unit[r.Offset:])
			done()
			out, ranges = out[r.Length:], ranges[1:]
			continue
		}
		data := out[:whole*unitBytes]
		if err := n.readExactly(ctx, found, data, found.offset(ranges[0].Unit)); err != nil {
			return err
		}
		for i := range whole {
			if err := found.checkUnit(ranges[i].Unit, data[i*unitBytes:(i+1)*unitBytes]); err != nil {
				return err
			}
		}
		n.counters.add(wire.Counters{BlocksRead: int64(whole), BytesRead: int64(len(data))})
		out, ranges = out[len(data):], ranges[whole:]
	}
	return nil
}
