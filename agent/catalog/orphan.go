package catalog

import (
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// orphanBatch bounds how many addresses are judged by one read.
const orphanBatch = 128

// Orphans judges addresses found in stores (rule 12). They must have been listed before the call, never after.
//
// orphans are named by no group record, announced by no active attempt and in no grave: late writes, which may be
// deleted. quarantined are addresses that nobody names and that must not be touched, and should alarm somebody: no session of
// this catalog has drawn their stamps, or their groups' (rule 27), so it was put back, or a copy of it is at work; see
// RaiseAlarm. In a catalog that was rebuilt or claimed, blocks from before are not orphans until Accept.
func (a *auditor) Orphans(ctx context.Context, listed []block.Address) (orphans, quarantined []block.Address, err error) {
	drawn, err := a.drawn(ctx)
	if err != nil {
		return nil, nil, err
	}
	for len(listed) > 0 {
		count := min(len(listed), orphanBatch)
		batch := listed[:count]
		listed = listed[count:]
		keys := []string{schema.KeyKept}
		for _, address := range batch {
			keys = append(keys, schema.GroupKey(address.Group), schema.IntentKey(address.Stamp), schema.GraveKey(address))
		}
		values, err := a.engine.Read(ctx, keys...)
		if err != nil {
			return nil, nil, fmt.Errorf("judging listed blocks: %w", err)
		}
		kept, err := codec.DecodeCount(schema.KeyKept, values[0])
		if err != nil {
			return nil, nil, err
		}
		for i, address := range batch {
			accounted, err := isAccounted(address, values[1+3*i], values[2+3*i], values[3+3*i])
			if err != nil {
				return nil, nil, err
			}
			switch {
			case accounted:
			case !drawn.has(address.Stamp) || !drawn.has(address.Group.Stamp):
				quarantined = append(quarantined, address)
			case address.Stamp.Sequence >= uint64(kept):
				orphans = append(orphans, address)
			}
		}
	}
	return orphans, quarantined, nil
}

// isAccounted reports whether address is live, announced, or in the graveyard.
func isAccounted(address block.Address, groupRaw, intentRaw, graveRaw []byte) (bool, error) {
	if graveRaw != nil {
		return true, nil
	}
	if groupRaw != nil {
		group, err := codec.Decode[Group](schema.GroupKey(address.Group), groupRaw)
		if err != nil {
			return false, err
		}
		if _, live := group.Addresses()[address]; live {
			return true, nil
		}
	}
	if intentRaw != nil {
		intent, err := codec.Decode[Intent](schema.IntentKey(address.Stamp), intentRaw)
		if err != nil {
			return false, err
		}
		return intent.Has(address), nil
	}
	return false, nil
}
