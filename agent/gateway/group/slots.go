package group

import (
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/member"
)

// The states of a slot, as Stat shows them.
const (
	SlotWhole       = "ok"
	SlotMissing     = "missing"     // the node answers and does not have it
	SlotSuspect     = "suspect"     // the store has lost its contents since
	SlotUnreachable = "unreachable" // the node does not answer
)

// SlotStates asks every node of a group for its blocks; deep has them read and checked whole.
func (g *Groups) SlotStates(ctx context.Context, group *catalog.Group, deep bool) ([]string, error) {
	incarnations, err := g.catalog.Incarnations(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading incarnations: %w", err)
	}
	return g.SlotStatesUnder(ctx, group, incarnations, deep)
}

// SlotStatesUnder is SlotStates where the incarnations that the catalog knows were read already.
func (g *Groups) SlotStatesUnder(ctx context.Context, group *catalog.Group, incarnations map[block.NodeID]block.Incarnation, deep bool) ([]string, error) {
	type finding struct {
		slot  int
		state string
	}
	findings := make(chan finding, len(group.Slots))
	for slot := range group.Slots {
		go func() { findings <- finding{slot, g.slotState(ctx, group, slot, incarnations, deep)} }()
	}
	states := make([]string, len(group.Slots))
	for range group.Slots {
		found := <-findings
		states[found.slot] = found.state
	}
	return states, ctx.Err()
}

// slotState is that of one slot. An empty column is whole: there is nothing that it could miss.
func (g *Groups) slotState(ctx context.Context, group *catalog.Group, slot int, incarnations map[block.NodeID]block.Incarnation, deep bool) string {
	asked := map[block.NodeID][]block.Address{}
	for _, item := range group.Slots[slot] {
		if item.Incarnation != incarnations[item.Node] {
			return SlotSuspect
		}
		asked[item.Node] = append(asked[item.Node], group.Address(slot, item))
	}
	receipts, err := g.Inspect(ctx, asked, deep)
	switch {
	case err != nil && member.GoneBlock(err):
		return SlotMissing
	case err != nil:
		return SlotUnreachable
	}
	for _, item := range group.Slots[slot] {
		if receipt := receipts[group.Address(slot, item)]; receipt == nil || receipt.Checksum != item.Checksum {
			return SlotMissing
		}
	}
	return SlotWhole
}
