package catalogtest

import (
	"context"
	"fmt"
	"testing"
	"time"

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

// Over is what an attempt that puts keys is based on.
func Over(keys ...string) []catalog.Basis {
	basis := make([]catalog.Basis, len(keys))
	for i, key := range keys {
		basis[i] = catalog.Over(key)
	}
	return basis
}

// Enroll registers the contents of three nodes.
func Enroll(ctx context.Context, t *testing.T, c *catalog.Catalog) (nodes []block.NodeID, incarnations map[block.NodeID]block.Incarnation) {
	t.Helper()
	nodes, incarnations = []block.NodeID{"n0", "n1", "n2"}, map[block.NodeID]block.Incarnation{}
	for _, node := range nodes {
		incarnations[node] = block.Incarnation("contents of " + node)
		if err := c.RegisterIncarnation(ctx, node, "", incarnations[node]); err != nil {
			t.Fatal(err)
		}
	}
	return nodes, incarnations
}

// PutAlone puts an object of ten bytes into a column of a group of its own. The stamp is zero where it was not announced.
func PutAlone(
	ctx context.Context, c *catalog.Catalog, key string, column int, nodes []block.NodeID, incarnations map[block.NodeID]block.Incarnation,
) (block.Stamp, error) {
	attempt, err := c.Begin(ctx, catalog.KindPut, time.Now().Add(time.Hour), func(stamp block.Stamp) []catalog.BlockSet {
		return []catalog.BlockSet{Announce(stamp, 0, nodes)}
	}, catalog.Over(key))
	if err != nil {
		return block.Stamp{}, fmt.Errorf("announcing: %w", err)
	}
	group := NewGroup(attempt.Stamp(), 0, nodes, incarnations)
	return attempt.Stamp(), attempt.Commit(ctx, catalog.Change{
		NewGroups: []catalog.Group{group},
		Put:       []catalog.Object{{Key: key, Size: 10, Extents: []catalog.Extent{{Group: group.ID, Column: column, Length: 10}}}},
	})
}
