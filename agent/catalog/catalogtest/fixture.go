package catalogtest

import (
	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// CellBytes is the cell size of the groups NewGroup makes.
const CellBytes = 1 << 10

// NewGroup returns a packed open group of len(nodes)-1 columns, four rows and one parity row, all blocks of it under
// stamp, one slot on each node.
func NewGroup(stamp block.Stamp, index uint32, nodes []block.NodeID, incarnations map[block.NodeID]block.Incarnation) catalog.Group {
	group := catalog.Group{
		ID: block.GroupID{Stamp: stamp, Index: index}, Class: "test", Ladder: "rs(2,1)", Mode: "free", LayoutVersion: 1,
		Columns: len(nodes) - 1, Scheme: "rs(2,1)", CellBytes: CellBytes, Packed: true, Open: true, Home: nodes,
	}
	for _, node := range nodes {
		group.Slots = append(group.Slots, catalog.Slot{{Units: 4, Stamp: stamp, Node: node, Incarnation: incarnations[node]}})
	}
	return group
}

// Announce returns the block set of every slot of a group named after stamp and index, on nodes.
func Announce(stamp block.Stamp, index uint32, nodes []block.NodeID) catalog.BlockSet {
	set := catalog.BlockSet{Group: block.GroupID{Stamp: stamp, Index: index}, Nodes: nodes}
	for slot := range nodes {
		set.Slots = append(set.Slots, slot)
	}
	return set
}
