package group

import (
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/trace"
	"github.com/restripe/restripe/agent/wire"
)

// Splice is a new group of small objects that nodes put together from the blocks that they hold: no column of it leaves its node.
type Splice struct {
	Class    *api.Class
	Code     *Code
	Cell     int                   // bytes
	Home     []block.NodeID        // those of the columns hold what is copied into them
	Manifest []block.ManifestEntry // what the group will hold
	Copies   map[int][]wire.Copy   // by column
}

// Splice has the nodes write a new group, and returns its record to commit and what it cost. Either all of it is written or it fails:
// a manifest may not name bytes that are not there.
func (g *Groups) Splice(ctx context.Context, attempt *catalog.Attempt, s *Splice) (made *catalog.Group, _ wire.Counters, err error) {
	ctx, span := trace.Within(ctx, "splice group")
	defer func() { span.End(err) }()
	layout := s.Code.Layout
	plan, err := stripe.NewSplicePlan(layout, s.Code.Scheme)
	if err != nil {
		return nil, wire.Counters{}, err
	}
	made = &catalog.Group{
		ID: block.GroupID{Stamp: attempt.Stamp()}, Class: s.Class.Name, Ladder: s.Class.Ladder.String(), Mode: string(layout.Mode),
		LayoutVersion: layout.Version, Columns: layout.Columns, Scheme: s.Code.Scheme.String(), CellBytes: s.Cell, Packed: true,
		Home: append([]block.NodeID{}, s.Home...), Slots: make([]catalog.Slot, s.Code.Slots()),
	}
	r, err := bind(made, plan, s.Code, s.Code)
	if err != nil {
		return nil, wire.Counters{}, err
	}
	r.copies = s.Copies
	if r.manifest, err = block.EncodeManifest(s.Manifest); err != nil {
		return nil, wire.Counters{}, fmt.Errorf("encoding the manifest: %w", err)
	}
	done, err := g.Execute(ctx, attempt, r)
	if err != nil {
		return nil, wire.Counters{}, err
	}
	made.Slots = done.Slots
	return made, done.Counters, nil
}
