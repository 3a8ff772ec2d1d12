package relocate

import (
	"context"
	"errors"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/member"
)

// Move is one slot of a group that is to lie on another node.
type Move struct {
	Slot     int
	From, To block.NodeID
}

// Moved is what came of moves.
type Moved struct {
	Slots int
	Bytes int64 // of the cells of these slots
	Sent  int64 // between nodes
}

// MoveSlots moves slots of a group to the nodes that are named, once that is admitted. What is no longer as it was when that was
// decided is left alone: slots that lie elsewhere, or on a node that does not answer or is leaving, nodes that take nothing or have
// something of the group, and moves after which the group would lie less evenly in its failure domains.
func MoveSlots(ctx context.Context, rl *Relocator, id block.GroupID, moves []Move, admit group.Admission) (moved Moved, err error) {
	err = group.RetryRaces(ctx, func(full map[block.NodeID]bool) error {
		moved = Moved{}
		view, err := rl.catalog.Group(ctx, id)
		if errors.Is(err, catalog.ErrNoGroup) {
			return nil
		}
		if err != nil {
			return err
		}
		members := rl.memberMap()
		home, list := moving(&view.Group, members, moves, full)
		if len(list) == 0 {
			return nil
		}
		done, err := rl.copySlots(ctx, view, list, home, members, admit)
		if err != nil || done.slots == 0 {
			return err
		}
		moved.Slots, moved.Sent = done.slots, done.bytes
		for _, one := range list {
			moved.Bytes += member.SlotBytes(&view.Group, one.slot)
		}
		return nil
	})
	if err != nil {
		rl.report(id, err)
	}
	return moved, err
}

// moving returns the homes of a group after those of the moves that can be made, and these.
func moving(
	of *catalog.Group, members map[block.NodeID]*member.Member, moves []Move, full map[block.NodeID]bool,
) ([]block.NodeID, []misplaced) {
	home := make([]block.NodeID, len(of.Home))
	for slot := range home {
		home[slot], _ = of.Place(slot)
	}
	var list []misplaced
	for _, move := range moves {
		if move.Slot >= len(home) || home[move.Slot] != move.From {
			continue
		}
		from, to := members[move.From], members[move.To]
		_, stored := of.Place(move.Slot)
		if !stored || from == nil || !from.Trusted || from.IsLeaving() || to == nil || !to.TakesSpread() || full[move.To] ||
			slices.Contains(home, move.To) || !KeepsSpread(home, members, move.From, move.To) {
			continue
		}
		home[move.Slot] = move.To
		list = append(list, misplaced{slot: move.Slot, from: move.From, stored: true})
	}
	return home, list
}

// KeepsSpread reports whether a group that lies on the nodes of home lies at least as evenly in its failure domains once what it has on
// one node lies on another.
func KeepsSpread(home []block.NodeID, members map[block.NodeID]*member.Member, from, to block.NodeID) bool {
	if members[from] == nil || members[to] == nil {
		return false
	}
	leaves, takes := member.Domain(members[from].Node), member.Domain(members[to].Node)
	if leaves == takes {
		return true
	}
	balance := 0 // how many more slots lie in the domain that is left
	for _, id := range home {
		if m := members[id]; m != nil && !m.IsLeaving() {
			switch member.Domain(m.Node) {
			case leaves:
				balance++
			case takes:
				balance--
			}
		}
	}
	return balance >= 1
}
