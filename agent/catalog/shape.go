package catalog

import (
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/block"
)

// checkShape checks what must hold of every group record: all data columns are there, the items of a slot are gapless
// and disjoint, and no node has blocks of two slots.
func checkShape(group *Group) error {
	if group.Columns <= 0 || len(group.Slots) < group.Columns {
		return fmt.Errorf("group %s has %d slots for %d columns", group.ID, len(group.Slots), group.Columns)
	}
	if group.CellBytes <= 0 {
		return fmt.Errorf("group %s has cells of %d bytes", group.ID, group.CellBytes)
	}
	slotOf := map[block.NodeID]int{}
	for slot, items := range group.Slots {
		for i, item := range items {
			if item.Units <= 0 || item.Base < 0 || item.Base > item.First || item.Node == "" || item.Stamp.IsZero() {
				return fmt.Errorf("group %s, slot %d: item %+v is malformed", group.ID, slot, item)
			}
			if i > 0 && item.First != items[i-1].First+items[i-1].Units {
				return fmt.Errorf("group %s, slot %d: item at unit %d does not follow the one that ends at unit %d",
					group.ID, slot, item.First, items[i-1].First+items[i-1].Units)
			}
			if other, taken := slotOf[item.Node]; taken && other != slot {
				return fmt.Errorf("group %s: slots %d and %d are both on node %s", group.ID, other, slot, item.Node)
			}
			slotOf[item.Node] = slot
		}
	}
	return nil
}

// checkInside checks that extents lie inside the data cells of group, as far as they concern it. The group may be
// malformed.
func checkInside(group *Group, extents []Extent) error {
	rows := int64(0)
	columns := group.Slots[:max(0, min(group.Columns, len(group.Slots)))]
	for _, slot := range columns {
		rows = max(rows, slot.end())
	}
	for _, extent := range extents {
		if extent.Group != group.ID {
			continue
		}
		limit := rows * int64(group.CellBytes)
		if extent.Column == WholeGroup {
			limit *= int64(group.Columns)
		} else if extent.Column < 0 || extent.Column >= len(columns) {
			return fmt.Errorf("extent %+v: the group has %d columns", extent, len(columns))
		} else {
			limit = columns[extent.Column].end() * int64(group.CellBytes)
		}
		if extent.Offset < 0 || extent.Length <= 0 || extent.Offset > limit-extent.Length {
			return fmt.Errorf("extent %+v: ends beyond byte %d", extent, limit)
		}
	}
	return nil
}

// end returns the unit after the last one of the slot.
func (s Slot) end() int64 {
	if len(s) == 0 {
		return 0
	}
	last := s[len(s)-1]
	return int64(last.First) + int64(last.Units)
}

// addresses returns every address a group names, each once, with the incarnation its slots were stored under.
func addresses(group *Group) map[block.Address]block.Incarnation {
	named := map[block.Address]block.Incarnation{}
	for slot, items := range group.Slots {
		for _, item := range items {
			named[group.Address(slot, item)] = item.Incarnation
		}
	}
	return named
}

// sortAddresses puts addresses into the order of the graveyard.
func sortAddresses(list []block.Address) {
	slices.SortFunc(list, func(a, b block.Address) int {
		switch keyA, keyB := a.String(), b.String(); {
		case keyA < keyB:
			return -1
		case keyA > keyB:
			return 1
		}
		return 0
	})
}

// Check says what is wrong with a group record by itself, if anything is.
func (g *Group) Check() error { return checkShape(g) }
