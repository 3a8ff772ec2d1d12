package catalog

import (
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// View is what a gateway says of the nodes, and its sign of life: it is written anew every few seconds.
type View struct {
	Gateway string         `cbor:"1,keyasint"`
	Count   uint64         `cbor:"2,keyasint"` // of the views it wrote since it started
	At      int64          `cbor:"3,keyasint"` // by its clock, Unix milliseconds
	Unheard []block.NodeID `cbor:"4,keyasint"` // members that do not answer it, in order
	// Water are the highest marks of stores that the gateway heard, itself or from another.
	Water map[block.NodeID]block.Watermark `cbor:"5,keyasint,omitempty"`
}

// PutView replaces the view of a gateway.
func (m *members) PutView(ctx context.Context, view View) error {
	if err := m.assign(ctx, schema.ViewKey(view.Gateway), codec.Encode(view)); err != nil {
		return fmt.Errorf("saving what gateway %s hears: %w", view.Gateway, err)
	}
	return nil
}

// Views returns the last views of all gateways there ever were, by gateway.
func (m *members) Views(ctx context.Context) ([]View, error) {
	var views []View
	err := m.each(ctx, schema.PrefixView, func(record kv.Record) error {
		view, err := codec.Decode[View](record.Key, record.Value)
		views = append(views, view)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading what gateways hear: %w", err)
	}
	return views, nil
}
