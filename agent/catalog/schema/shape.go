package schema

import (
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/block"
)

// Check checks what must hold of every group record by itself: all data columns are there, the items of a slot are gapless
// and disjoint, and no node has blocks of two slots.
func (g *Group) Check() error {
	if g.IsDissolved() {
		return g.checkDissolved()
	}
	if len(g.Brought) >= g.Columns {
		return fmt.Errorf("group %s has %d columns, and %d that were brought", g.ID, g.Columns, len(g.Brought))
	}
	if g.Columns <= 0 || len(g.Slots) < g.Columns {
		return fmt.Errorf("group %s has %d slots for %d columns", g.ID, len(g.Slots), g.Columns)
	}
	if g.CellBytes <= 0 {
		return fmt.Errorf("group %s has cells of %d bytes", g.ID, g.CellBytes)
	}
	slotOf := map[block.NodeID]int{}
	for slot, items := range g.Slots {
		for i, item := range items {
			if item.Units <= 0 || item.Base < 0 || item.Base > item.First || item.Node == "" || item.Stamp.IsZero() {
				return fmt.Errorf("group %s, slot %d: item %+v is malformed", g.ID, slot, item)
			}
			if i > 0 && item.First != items[i-1].First+items[i-1].Units {
				return fmt.Errorf("group %s, slot %d: item at unit %d does not follow the one that ends at unit %d",
					g.ID, slot, item.First, items[i-1].First+items[i-1].Units)
			}
			if other, taken := slotOf[item.Node]; taken && other != slot {
				return fmt.Errorf("group %s: slots %d and %d are both on node %s", g.ID, other, slot, item.Node)
			}
			slotOf[item.Node] = slot
		}
	}
	return nil
}

// CheckExtents checks that extents lie inside the data cells of the group, as far as they concern it. The group may be
// malformed; one that was dissolved has to be Gathered.
func (g *Group) CheckExtents(extents []Extent) error {
	rows, span := int64(0), int64(g.Span())
	columns := g.Slots[:max(0, min(g.Span(), len(g.Slots)))]
	for _, slot := range columns {
		rows = max(rows, slot.End())
	}
	for _, extent := range extents {
		if extent.Group != g.ID {
			continue
		}
		limit := rows * int64(g.CellBytes)
		if extent.Column == WholeGroup {
			limit *= span
		} else if extent.Column < 0 || extent.Column >= len(columns) {
			return fmt.Errorf("extent %+v: the group has %d columns", extent, len(columns))
		} else {
			limit = columns[extent.Column].End() * int64(g.CellBytes)
		}
		if extent.Offset < 0 || extent.Length <= 0 || extent.Offset > limit-extent.Length {
			return fmt.Errorf("extent %+v: ends beyond byte %d", extent, limit)
		}
		for _, column := range g.Empty() {
			if column < int(span) && extent.has(column, span, int64(g.CellBytes)) {
				return fmt.Errorf("extent %+v: column %d is empty", extent, column)
			}
		}
	}
	return nil
}

// has reports whether bytes of the extent lie in a column of its group.
func (e *Extent) has(column int, columns, cellBytes int64) bool {
	if e.Column != WholeGroup {
		return e.Column == column
	}
	first, last := e.Offset/cellBytes, (e.Offset+e.Length-1)/cellBytes
	return (int64(column)-first%columns+columns)%columns <= last-first
}

// End returns the unit after the last one of the slot.
func (s Slot) End() int64 {
	if len(s) == 0 {
		return 0
	}
	last := s[len(s)-1]
	return int64(last.First) + int64(last.Units)
}

// Addresses returns every address the group names, each once, with the incarnation its slots were stored under.
func (g *Group) Addresses() map[block.Address]block.Incarnation {
	named := map[block.Address]block.Incarnation{}
	for slot, items := range g.Slots {
		for _, item := range items {
			named[g.Address(slot, item)] = item.Incarnation
		}
	}
	return named
}

// SortAddresses puts addresses into the order of the graveyard.
func SortAddresses(list []block.Address) {
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

// Addresses returns every address that the attempt may write.
func (i *Intent) Addresses() []block.Address {
	var addresses []block.Address
	for _, set := range i.Blocks {
		for at, slot := range set.Slots {
			addresses = append(addresses, block.Address{Node: set.Nodes[at], Group: set.Group, Slot: slot, Stamp: i.Stamp})
		}
	}
	return addresses
}

// CheckLengths checks that extents are well-formed and hold size bytes.
func CheckLengths(key string, extents []Extent, size int64) error {
	sum := int64(0)
	for _, extent := range extents {
		if extent.Length <= 0 || extent.Offset < 0 || extent.Column < WholeGroup {
			return fmt.Errorf("object %q has the extent %+v", key, extent)
		}
		sum += extent.Length
	}
	if sum != size {
		return fmt.Errorf("object %q has %d bytes and extents for %d", key, size, sum)
	}
	return nil
}

// Newest returns the number of the latest stamp that the record names: its revision's, or that of a group it was moved to.
func (o *Object) Newest() uint64 {
	number := o.Revision.Sequence
	for _, extent := range o.Extents {
		number = max(number, extent.Group.Stamp.Sequence)
	}
	return number
}

// With returns the blocks that the intent announces with further ones, of which some may be among them.
func (i *Intent) With(further []BlockSet) []BlockSet {
	known := map[block.Address]bool{}
	for _, address := range i.Addresses() {
		known[address] = true
	}
	sets := i.Blocks
	for _, set := range further {
		added := BlockSet{Group: set.Group}
		for at, slot := range set.Slots {
			address := block.Address{Node: set.Nodes[at], Group: set.Group, Slot: slot, Stamp: i.Stamp}
			if !known[address] {
				known[address] = true
				added.Slots, added.Nodes = append(added.Slots, slot), append(added.Nodes, set.Nodes[at])
			}
		}
		if len(added.Slots) > 0 {
			sets = append(sets, added)
		}
	}
	return sets
}

// Has reports whether the intent announces address.
func (i *Intent) Has(address block.Address) bool {
	if i.Stamp != address.Stamp {
		return false
	}
	for _, set := range i.Blocks {
		if set.Group != address.Group {
			continue
		}
		for at, slot := range set.Slots {
			if slot == address.Slot && set.Nodes[at] == address.Node {
				return true
			}
		}
	}
	return false
}
