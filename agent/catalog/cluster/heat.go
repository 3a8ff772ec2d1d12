package cluster

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// HeatPart is what one gateway counted of one part of the groups.
type HeatPart struct {
	Part    int
	Gateway string
	Raw     []byte // the gateway's own encoding; nil where there is nothing to keep
}

// SaveHeat replaces parts, together. Each gateway saves its own; where an answer is lost an older state may come back,
// which is as good as one saved earlier.
func (k *Keeper) SaveHeat(ctx context.Context, parts []HeatPart) error {
	writes := make([]kv.Write, 0, len(parts))
	for _, part := range parts {
		write := kv.Write{Key: schema.HeatKey(part.Part, part.Gateway), Value: part.Raw}
		if part.Raw == nil {
			write.Kind = kv.Remove
		}
		writes = append(writes, write)
	}
	if len(writes) == 0 {
		return nil
	}
	writes = append(writes, tell(SubjectHeat))
	if err := k.apply(ctx, writes); err != nil {
		return fmt.Errorf("saving heat counters: %w", err)
	}
	return nil
}

// Heat returns what every gateway counted of one part, by gateway.
func (k *Keeper) Heat(ctx context.Context, part int) ([]HeatPart, error) {
	var parts []HeatPart
	prefix := schema.HeatPrefix(part)
	err := k.each(ctx, prefix, func(record kv.Record) error {
		parts = append(parts, HeatPart{Part: part, Gateway: record.Key[len(prefix):], Raw: record.Value})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading heat counters: %w", err)
	}
	return parts, nil
}

// DropHeat removes a part if it is still as it was read.
func (k *Keeper) DropHeat(ctx context.Context, part HeatPart) error {
	key := schema.HeatKey(part.Part, part.Gateway)
	err := k.retry(ctx, func(ctx context.Context) (bool, error) {
		_, err := k.engine.Update(ctx, []kv.Check{{Key: key, Value: part.Raw}}, []kv.Write{{Key: key, Kind: kv.Remove}})
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("dropping heat counters of gateway %s: %w", part.Gateway, err)
	}
	return nil
}

// HeatSince returns since when accesses are counted in this cluster: since now, for the first who asks.
func (k *Keeper) HeatSince(ctx context.Context) (since time.Time, err error) {
	err = k.retry(ctx, func(ctx context.Context) (bool, error) {
		values, err := k.engine.Read(ctx, schema.KeyHeat)
		if err != nil {
			return false, err
		}
		if values[0] != nil {
			milliseconds, err := codec.DecodeCount(schema.KeyHeat, values[0])
			since = time.UnixMilli(milliseconds).UTC()
			return err == nil, err
		}
		first := strconv.AppendInt(nil, k.now().UnixMilli(), 10)
		_, err = k.engine.Update(ctx, []kv.Check{{Key: schema.KeyHeat}}, []kv.Write{{Key: schema.KeyHeat, Value: first}})
		return false, err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("reading since when accesses are counted: %w", err)
	}
	return since, nil
}
