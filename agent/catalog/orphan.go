package catalog

import (
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/block"
)

// orphanBatch bounds how many addresses are judged by one read.
const orphanBatch = 128

// Orphans judges addresses found in stores (rule 12). They must have been listed before the call, never after.
//
// orphans are named by no group record, announced by no active attempt and in no grave: late writes, which may be
// deleted. quarantined are addresses that must not be touched and should alarm somebody: their stamps, or their
// groups', were never drawn from this catalog, which therefore has been rolled back; see Raise. In a catalog that was
// rebuilt, blocks from before are neither, until Accept.
func (a *auditor) Orphans(ctx context.Context, listed []block.Address) (orphans, quarantined []block.Address, err error) {
	for len(listed) > 0 {
		count := min(len(listed), orphanBatch)
		batch := listed[:count]
		listed = listed[count:]
		keys := []string{keyNext, keyRebuilt}
		for _, address := range batch {
			keys = append(keys, groupKey(address.Group), intentKey(address.Stamp), graveKey(address))
		}
		values, err := a.engine.Read(ctx, keys...)
		if err != nil {
			return nil, nil, fmt.Errorf("judging listed blocks: %w", err)
		}
		next, err := decodeNext(values[0])
		if err != nil {
			return nil, nil, err
		}
		kept, err := decodeCount(keyRebuilt, values[1])
		if err != nil {
			return nil, nil, err
		}
		for i, address := range batch {
			if address.Stamp.Sequence >= next || address.Group.Stamp.Sequence >= next {
				quarantined = append(quarantined, address)
				continue
			}
			accounted, err := isAccounted(address, values[2+3*i], values[3+3*i], values[4+3*i])
			if err != nil {
				return nil, nil, err
			}
			if accounted || address.Stamp.Sequence < uint64(kept) {
				continue
			}
			foreign, err := a.drawnTwice(ctx, address)
			if err != nil {
				return nil, nil, err
			}
			if foreign {
				quarantined = append(quarantined, address)
			} else {
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
		group, err := decode[Group](groupKey(address.Group), groupRaw)
		if err != nil {
			return false, err
		}
		if _, live := addresses(&group)[address]; live {
			return true, nil
		}
	}
	if intentRaw != nil {
		intent, err := decode[Intent](intentKey(address.Stamp), intentRaw)
		if err != nil {
			return false, err
		}
		return intent.has(address), nil
	}
	return false, nil
}

// drawnTwice reports whether the catalog remembers a stamp with the number of the address's, or of its group's, and
// another salt: the counter was rolled back and the number drawn anew.
func (a *auditor) drawnTwice(ctx context.Context, address block.Address) (bool, error) {
	for _, stamp := range []block.Stamp{address.Stamp, address.Group.Stamp} {
		for _, prefix := range []string{prefixIntent, prefixEnded} {
			number := fmt.Sprintf("%s%016x.", prefix, stamp.Sequence)
			records, err := a.engine.Scan(ctx, number, number, 2)
			if err != nil {
				return false, fmt.Errorf("judging block %s: %w", address, err)
			}
			for _, record := range records {
				if record.Key != prefix+stamp.String() {
					return true, nil
				}
			}
		}
	}
	return false, nil
}
