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

// leastOfFull is which part a group has at least of what would fill it, or of what is left to be moved: each group costs something.
const leastOfFull = 0.5

// Splices distributes objects over new groups so that each stays on its node: every column has objects of one node, about as many bytes as
// the other columns, in the order that they have. columns says which of the nodes, those that have most first, may be the columns
// of one group; nothing where there are too few. rest are the objects that have to leave their nodes, in their order.
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
	for {
		nodes := slices.SortedFunc(maps.Keys(held), func(a, b block.NodeID) int {
			return cmp.Or(cmp.Compare(held[b].Bytes, held[a].Bytes), cmp.Compare(a, b))
		})
		chosen := columns(nodes)
		if len(chosen) < of.Columns {
			break
		}
		most := of.Bytes
		for _, id := range chosen {
			most = min(most, held[id].Bytes)
		}
		var group []Share[T]
		var fullest, sum int64
		for _, id := range chosen {
			share := held[id].head(most, of.Objects, size)
			fullest, sum = max(fullest, share.Bytes), sum+share.Bytes
			group = append(group, share)
		}
		if sum == 0 || float64(sum) < FullEnough*float64(fullest*int64(of.Columns)) ||
			float64(sum) < leastOfFull*float64(min(left, of.Bytes*int64(of.Columns))) {
			break
		}
		for _, share := range group {
			from := held[share.Node]
			from.Objects, from.Bytes = from.Objects[len(share.Objects):], from.Bytes-share.Bytes
			taken[share.Node] += len(share.Objects)
			left -= share.Bytes
		}
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

// head is the first of a share's objects that are no more than so many bytes.
func (s *Share[T]) head(most int64, objects int, size func(T) int64) Share[T] {
	head := Share[T]{Node: s.Node}
	for n, object := range s.Objects {
		if n == objects || head.Bytes+size(object) > most {
			break
		}
		head.Objects, head.Bytes = s.Objects[:n+1], head.Bytes+size(object)
	}
	return head
}
