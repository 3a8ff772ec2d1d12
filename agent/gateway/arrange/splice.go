package arrange

import (
	"cmp"
	"maps"
	"slices"

	"github.com/restripe/restripe/agent/block"
)

// Share is what a new group has in one of its columns: objects that the node of the column holds already.
type Share[T any] struct {
	Node    block.NodeID
	Objects []T
	Bytes   int64
}

// Bounds are how much a new group takes.
type Bounds struct {
	Columns int
	Bytes   int64 // of a column
	Objects int   // in a column
}

// leastOfFull is which part of what would fill it a group of fewer than leastHalf objects has, unless it has all that is left to be moved:
// each group costs something, and two are not made of what fits into one.
const leastOfFull = 0.5

// Splices distributes objects over new groups so that each stays on its node: every column has objects of one node, in their order.
// A group is as full as if its objects were packed wherever there is room: nine tenths at least. columns says which of the nodes,
// those that have most first, may be the columns of one group: no more than there are, and none to have no more groups.
// rest are the objects that have to leave their nodes, in their order.
func Splices[T any](
	objects []T, of Bounds, node func(T) block.NodeID, size func(T) int64, columns func(nodes []block.NodeID) []block.NodeID,
) (groups [][]Share[T], rest []T) {
	held := map[block.NodeID]*Share[T]{}
	taken := map[block.NodeID]int{}
	var left int64
	for _, object := range objects {
		share := held[node(object)]
		if share == nil {
			share = &Share[T]{Node: node(object)}
			held[share.Node] = share
		}
		share.Objects, share.Bytes = append(share.Objects, object), share.Bytes+size(object)
		left += size(object)
	}
	for left > 0 {
		nodes := slices.SortedFunc(maps.Keys(held), func(a, b block.NodeID) int {
			return cmp.Or(cmp.Compare(held[b].Bytes, held[a].Bytes), cmp.Compare(a, b))
		})
		group, sum := together(held, columns(nodes), of, size)
		count := 0
		for _, share := range group {
			count += len(share.Objects)
		}
		if sum == 0 || sum < left && count < leastHalf && float64(sum) < leastOfFull*float64(of.Bytes*int64(of.Columns)) {
			break
		}
		for _, share := range group {
			from := held[share.Node]
			from.Objects, from.Bytes = from.Objects[len(share.Objects):], from.Bytes-share.Bytes
			taken[share.Node] += len(share.Objects)
			if len(from.Objects) == 0 {
				delete(held, share.Node)
			}
		}
		left -= sum
		groups = append(groups, group)
	}
	for _, object := range objects {
		if id := node(object); taken[id] > 0 {
			taken[id]--
		} else {
			rest = append(rest, object)
		}
	}
	return groups, rest
}

// together is what one group takes of what nodes hold, and how many bytes that is: 0 where it would not be full enough. No column takes
// more than the node has that has least, or than the largest first object.
func together[T any](
	held map[block.NodeID]*Share[T], nodes []block.NodeID, of Bounds, size func(T) int64,
) (group []Share[T], sum int64) {
	if len(nodes) == 0 {
		return nil, 0
	}
	least, first := of.Bytes, int64(0)
	for _, id := range nodes {
		least, first = min(least, held[id].Bytes), max(first, size(held[id].Objects[0]))
	}
	var fullest, largest int64
	for _, id := range nodes {
		share := Share[T]{Node: id}
		for n, object := range held[id].Objects {
			if n == of.Objects || share.Bytes+size(object) > max(least, first) {
				break
			}
			share.Objects, share.Bytes, largest = held[id].Objects[:n+1], share.Bytes+size(object), max(largest, size(object))
		}
		fullest, sum = max(fullest, share.Bytes), sum+share.Bytes
		group = append(group, share)
	}
	packed := max(largest, (sum+int64(of.Columns)-1)/int64(of.Columns)) // as full as the fullest column has to be, wherever objects go
	if float64(packed) < FullEnough*float64(fullest) {
		return nil, 0
	}
	return group, sum
}
