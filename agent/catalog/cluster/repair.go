package cluster

import (
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// RepairControl is what a person declares of the repair of what was lost. The zero value is the default of the gateways.
type RepairControl struct {
	Paused bool `cbor:"1,keyasint"` // nothing is rebuilt but what is asked for
	Set    bool `cbor:"2,keyasint"` // the limits are those that follow; else the gateways' defaults

	// Limits on bytes read, sent and written, all together, at any one node and in any one failure domain; 0 is none.
	BytesPerSecond       int64 `cbor:"3,keyasint"`
	NodeBytesPerSecond   int64 `cbor:"4,keyasint"`
	DomainBytesPerSecond int64 `cbor:"5,keyasint"`

	// Only groups that survive no further loss are rebuilt until then, in Unix milliseconds, as whoever is named wants; 0: all are.
	DeferredUntil int64  `cbor:"6,keyasint,omitempty"`
	DeferredBy    string `cbor:"7,keyasint,omitempty"`
}

// RepairControl returns what is declared of repair.
func (w *Work) RepairControl(ctx context.Context) (RepairControl, error) {
	values, err := w.engine.Read(ctx, schema.KeyRepair)
	if err != nil {
		return RepairControl{}, fmt.Errorf("reading what is declared of repair: %w", err)
	}
	if values[0] == nil {
		return RepairControl{}, nil
	}
	return codec.Decode[RepairControl](schema.KeyRepair, values[0])
}

// ChangeRepairControl declares what change makes of what was declared before, and returns it. It may call change several
// times.
func (w *Work) ChangeRepairControl(ctx context.Context, change func(RepairControl) RepairControl) (RepairControl, error) {
	var changed RepairControl
	err := w.retry(ctx, func(ctx context.Context) (bool, error) {
		values, err := w.engine.Read(ctx, schema.KeyRepair)
		if err != nil {
			return false, err
		}
		var was RepairControl
		if values[0] != nil {
			if was, err = codec.DecodeToChange[RepairControl](schema.KeyRepair, values[0]); err != nil {
				return false, err
			}
		}
		changed = change(was)
		write := kv.Write{Key: schema.KeyRepair, Value: codec.Encode(changed), Notify: true}
		failed, err := w.engine.Update(ctx, []kv.Check{{Key: schema.KeyRepair, Value: values[0]}}, []kv.Write{write})
		return err == nil && len(failed) == 0, err
	})
	if err != nil {
		return RepairControl{}, fmt.Errorf("declaring how to repair: %w", err)
	}
	return changed, nil
}
