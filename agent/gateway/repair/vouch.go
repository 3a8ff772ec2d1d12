package repair

import (
	"context"
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// vouch looks for the blocks of a group that were stored in contents which the catalog does not know any more: a store whose
// contents are in doubt has mostly lost a few blocks, or none. Slots that are there still are recorded to be of the contents
// of now, and no byte is moved. Nodes that do not answer are left for later. It returns how many slots were found, after
// which the record is another.
func (rs *Repairs) vouch(ctx context.Context, view *catalog.GroupView, options Rebuild) (int, error) {
	incarnations, err := rs.catalog.Incarnations(ctx) // before the nodes are asked
	if err != nil {
		return 0, fmt.Errorf("reading incarnations: %w", err)
	}
	slots := slices.Clone(view.Slots)
	var found []int
	for slot, items := range view.Slots {
		if vouched, is := rs.vouchSlot(ctx, &view.Group, slot, incarnations, options); is && !slices.Equal(vouched, items) {
			slots[slot], found = vouched, append(found, slot)
		}
	}
	if len(found) == 0 || ctx.Err() != nil {
		return 0, ctx.Err()
	}
	nothing := func(block.Stamp) []catalog.BlockSet { return nil } // is written
	attempt, err := rs.catalog.Begin(ctx, catalog.KindRepair, rs.groups.Deadline(), nothing, view)
	if err != nil {
		return 0, fmt.Errorf("announcing what was found of group %s: %w", view.ID, err)
	}
	change := catalog.Change{
		Groups:        []catalog.GroupChange{{Was: view, Slots: slots, Scheme: view.Scheme, Seal: true}},
		RepairedSlots: map[block.GroupID][]int{view.ID: found},
	}
	if err := rs.groups.Commit(ctx, attempt, change); err != nil {
		return 0, err
	}
	rs.members.ForgetCounts()
	rs.log.Info("blocks of a store in doubt were found", "group", view.ID, "slots", found)
	return len(found), nil
}

// vouchSlot returns a slot as of the contents of now, and whether all its blocks are there.
func (rs *Repairs) vouchSlot(
	ctx context.Context, group *catalog.Group, slot int, incarnations map[block.NodeID]block.Incarnation, options Rebuild,
) (catalog.Slot, bool) {
	asked := map[block.NodeID][]block.Address{}
	suspect := false
	for _, item := range group.Slots[slot] {
		suspect = suspect || item.Incarnation != incarnations[item.Node]
		if incarnations[item.Node] == "" || !rs.agents.Answers(item.Node) || rs.agents.IsGone(item.Node) {
			return nil, false
		}
		asked[item.Node] = append(asked[item.Node], group.Address(slot, item))
	}
	if !suspect || options.Condemned[slot] {
		return nil, false
	}
	receipts, err := rs.groups.Inspect(ctx, asked, options.Deep)
	if err != nil {
		return nil, false // what cannot be asked is in doubt still
	}
	vouched := slices.Clone(group.Slots[slot])
	for i := range vouched {
		item := &vouched[i]
		receipt := receipts[group.Address(slot, *item)]
		if receipt == nil || receipt.Checksum != item.Checksum || receipt.Fingerprint != item.Fingerprint {
			return nil, false
		}
		item.Incarnation = receipt.Incarnation
	}
	return vouched, true
}
