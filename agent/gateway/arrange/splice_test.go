package arrange

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/block"
)

// lying is an object of some size on a node.
type lying struct {
	name int
	node block.NodeID
	size int64
}

func splicesOf(objects []lying, of Bounds, columns func([]block.NodeID) []block.NodeID) ([][]Share[lying], []lying) {
	return Splices(objects, of, func(o lying) block.NodeID { return o.node }, func(o lying) int64 { return o.size }, columns)
}

// first takes the first of the nodes that hold most.
func first(columns int) func([]block.NodeID) []block.NodeID {
	return func(nodes []block.NodeID) []block.NodeID { return nodes[:min(columns, len(nodes))] }
}

// Every object is in one column or in the rest, once, in order; a column has objects of its node alone, and keeps the bounds; a group
// is full enough.
func TestSplicesLeaveObjectsOnTheirNodes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		nodes := rapid.IntRange(1, 9).Draw(r, "nodes")
		of := Bounds{
			Columns: rapid.IntRange(1, 5).Draw(r, "columns"), Bytes: int64(rapid.IntRange(100, 4000).Draw(r, "bytes")),
			Objects: rapid.IntRange(1, 60).Draw(r, "objects of a column"),
		}
		var objects []lying
		for i := range rapid.IntRange(0, 300).Draw(r, "objects") {
			objects = append(objects, lying{
				i, block.NodeID(fmt.Sprint(rapid.IntRange(1, nodes).Draw(r, "node"))), int64(rapid.IntRange(1, 120).Draw(r, "size")),
			})
		}
		groups, rest := splicesOf(objects, of, first(of.Columns))
		seen := map[int]bool{}
		note := func(list []lying) {
			for i, object := range list {
				if seen[object.name] {
					r.Fatalf("object %d is placed twice", object.name)
				}
				seen[object.name] = true
				if i > 0 && list[i-1].name > object.name {
					r.Fatalf("objects %d and %d have changed places", list[i-1].name, object.name)
				}
			}
		}
		note(rest)
		for _, group := range groups {
			var fullest, largest, sum int64
			var at []block.NodeID
			for _, share := range group {
				for _, object := range share.Objects {
					largest = max(largest, object.size)
				}
			}
			for _, share := range group {
				note(share.Objects)
				var bytes int64
				for _, object := range share.Objects {
					if bytes += object.size; object.node != share.Node {
						r.Fatalf("object %d is on node %s and put into a column on %s", object.name, object.node, share.Node)
					}
				}
				if bytes != share.Bytes || bytes > max(of.Bytes, largest) || len(share.Objects) > of.Objects || slices.Contains(at, share.Node) {
					r.Fatalf("a column of %d bytes in %d objects on %s says %d, within %+v", bytes, len(share.Objects), share.Node, share.Bytes, of)
				}
				at, fullest, sum = append(at, share.Node), max(fullest, bytes), sum+bytes
			}
			packed := max(largest, (sum+int64(of.Columns)-1)/int64(of.Columns))
			if len(group) > of.Columns || sum == 0 || float64(packed) < FullEnough*float64(fullest) {
				r.Fatalf("%d columns have %d bytes, where the fullest has %d and the largest object %d", len(group), sum, fullest, largest)
			}
		}
		if len(seen) != len(objects) {
			r.Fatalf("%d of %d objects are placed", len(seen), len(objects))
		}
	})
}

func TestSplices(t *testing.T) {
	even := func(nodes, each int) (objects []lying) {
		for i := range nodes * each {
			objects = append(objects, lying{i, block.NodeID(fmt.Sprint("n", i%nodes)), 10})
		}
		return objects
	}
	for _, c := range []struct {
		name    string
		objects []lying
		of      Bounds
		columns func([]block.NodeID) []block.NodeID
		groups  int
		rest    int
	}{
		{"nothing", nil, Bounds{3, 1000, 100}, first(3), 0, 0},
		{"all of it", even(3, 50), Bounds{3, 1000, 100}, first(3), 1, 0},
		{"several groups", even(3, 200), Bounds{3, 1000, 100}, first(3), 2, 0},
		{"nodes beyond the columns take turns", even(6, 100), Bounds{3, 1000, 100}, first(3), 2, 0},
		{"what is left fills no group", even(4, 60), Bounds{3, 1000, 100}, first(3), 1, 60},
		{"too few nodes", even(2, 100), Bounds{3, 1000, 100}, first(3), 0, 200},
		{"no nodes that may be together", even(4, 100), Bounds{3, 1000, 100}, func([]block.NodeID) []block.NodeID { return nil }, 0, 400},
		{"spread over many nodes, and many of each", even(30, 60), Bounds{3, 1000, 100}, first(3), 10, 0},
		{"spread too thinly to be worth a group", even(30, 10), Bounds{3, 1000, 100}, first(3), 0, 300},
		{"a column for each object", []lying{{0, "a", 90}, {1, "b", 60}, {2, "c", 50}}, Bounds{3, 1000, 100}, first(3), 1, 0},
		{"fewer objects than columns", []lying{{0, "a", 90}, {1, "b", 60}}, Bounds{3, 1000, 100}, first(3), 1, 0},
		{"two of one node", []lying{{0, "a", 90}, {1, "a", 60}}, Bounds{3, 1000, 100}, first(3), 0, 2},
	} {
		groups, rest := splicesOf(c.objects, c.of, c.columns)
		if len(groups) != c.groups || len(rest) != c.rest {
			t.Errorf("%s: %d groups and %d left, want %d and %d", c.name, len(groups), len(rest), c.groups, c.rest)
		}
	}
}
