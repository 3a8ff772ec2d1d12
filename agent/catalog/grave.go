package catalog

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// graveyard keeps the dead until their nodes have deleted them, and frees the groups that no object needs any more.
type graveyard struct {
	*records
	grace time.Duration
	swept atomic.Int64 // pieces
}

// Grave is a dead block that may still lie on its node. Dead is for ever: its delete may be late, repeated, and sent by
// anyone (rule 10).
type Grave struct {
	Address   block.Address
	NotBefore time.Time // spares long streams; no rule depends on it
	Cause     string
}

type graveRecord struct {
	NotBefore int64  `cbor:"1,keyasint"` // Unix milliseconds
	Cause     string `cbor:"2,keyasint"`
}

// packedGrace is the longest grace of blocks of groups that small objects share, which are read in one go, or once more.
const packedGrace = 5 * time.Second

// bury returns the writes that put addresses into the graveyard; isPacked says that they are of a group that small objects share.
func (g *graveyard) bury(addresses []block.Address, cause string, isPacked bool) []kv.Write {
	if len(addresses) == 0 {
		return nil
	}
	grace := g.grace
	if isPacked {
		grace = min(grace, packedGrace)
	}
	value := codec.Encode(graveRecord{NotBefore: g.now().Add(grace).UnixMilli(), Cause: cause})
	writes := make([]kv.Write, len(addresses))
	for i, address := range addresses {
		writes[i] = kv.Write{Key: schema.GraveKey(address), Value: value}
	}
	return writes
}

// isDue reports whether the grace of a grave is over. One that would end far later than any that begins now was given by a
// clock that was wrong.
func (g *graveyard) isDue(notBefore int64, now time.Time) bool {
	left := notBefore - now.UnixMilli()
	return left <= 0 || left > (g.grace+clockDrift).Milliseconds()
}

// Graves lists up to limit dead blocks whose grace is over at now, ordered by the text of their addresses. after is the
// Address.String of the last one seen, or empty. Fewer than limit means that there are no more. What Kept says is kept is
// left out.
func (g *graveyard) Graves(ctx context.Context, now time.Time, after string, limit int) ([]Grave, error) {
	kept, err := g.Kept(ctx)
	if err != nil {
		return nil, err
	}
	var graves []Grave
	cursor := schema.PrefixGrave + after
	for len(graves) < limit {
		records, err := g.engine.Scan(ctx, schema.PrefixGrave, cursor, limit)
		if err != nil {
			return nil, fmt.Errorf("listing graves: %w", err)
		}
		for _, record := range records {
			cursor = record.Key
			address, err := schema.AddressOfGrave(record.Key)
			if err != nil {
				return nil, err
			}
			fields, err := codec.Decode[graveRecord](record.Key, record.Value)
			if err != nil {
				return nil, err
			}
			if g.isDue(fields.NotBefore, now) && address.Stamp.Sequence >= kept && len(graves) < limit {
				graves = append(graves, Grave{address, time.UnixMilli(fields.NotBefore), fields.Cause})
			}
		}
		if len(records) < limit {
			break
		}
	}
	return graves, nil
}

// InGraves returns those of addresses that are in the graveyard.
func (g *graveyard) InGraves(ctx context.Context, addresses []block.Address) (dead []block.Address, err error) {
	for batch := range slices.Chunk(addresses, transactionWrites) {
		keys := make([]string, len(batch))
		for i, address := range batch {
			keys[i] = schema.GraveKey(address)
		}
		values, err := g.engine.Read(ctx, keys...)
		if err != nil {
			return nil, fmt.Errorf("reading the graveyard: %w", err)
		}
		for i, address := range batch {
			if values[i] != nil {
				dead = append(dead, address)
			}
		}
	}
	return dead, nil
}

// Buried removes graves once their nodes acknowledged the deletes. Removing an absent one is no error.
func (g *graveyard) Buried(ctx context.Context, addresses []block.Address) error {
	writes := make([]kv.Write, len(addresses))
	for i, address := range addresses {
		writes[i] = kv.Write{Key: schema.GraveKey(address), Kind: kv.Remove}
	}
	for len(writes) > 0 {
		count := min(len(writes), transactionWrites)
		if err := g.apply(ctx, writes[:count]); err != nil {
			return fmt.Errorf("emptying the graveyard: %w", err)
		}
		writes = writes[count:]
	}
	return nil
}

// transactionWrites bounds the writes of transactions that could as well be several.
const transactionWrites = 512
