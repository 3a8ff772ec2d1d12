package member

import (
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// Shares are by what stores can hold, as far as all of them know that, and only of nodes that take part.
func TestStakes(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	type node struct {
		bytes, capacity, used int64
		change                func(*Member)
		fair                  int64 // -1: it takes no part
	}
	for name, nodes := range map[string][]node{
		"nobody knows a size": {{bytes: 300, fair: 150}, {bytes: 0, fair: 150}, {bytes: 150, fair: 150}},
		"one of them does":    {{bytes: 300, capacity: 9 * gib, fair: 150}, {bytes: 0, fair: 150}},
		"by size": {
			{bytes: 3 * gib, capacity: 10 * gib, used: 3 * gib, fair: gib},
			{bytes: 0, capacity: 20 * gib, fair: 2 * gib},
		},
		"a spare, one that drains, one that is down, one that is out, one that was not swept": {
			{bytes: 300, fair: 300}, {bytes: 50, change: func(m *Member) { m.Node.Spare = true }, fair: -1},
			{bytes: 50, change: func(m *Member) { m.Node.State = catalog.NodeDraining }, fair: -1},
			{bytes: 50, change: func(m *Member) { m.Node.State = catalog.NodeDown }, fair: -1},
			{bytes: 50, change: func(m *Member) { m.Node.Out = "gw" }, fair: -1},
			{bytes: 50, change: func(m *Member) { m.Node.Fenced = true }, fair: -1},
		},
		"one that is almost full keeps what it has, and the others share the rest": {
			{bytes: 300, fair: 195}, {bytes: 90, fair: 195}, {bytes: 10, change: func(m *Member) { m.crowded = true }, fair: 10},
		},
		"one has room for no more than a part": {
			{bytes: 6 * gib, capacity: 10 * gib, used: 6 * gib, fair: 14*gib - 10*gib/100*90},
			{bytes: 0, capacity: 10 * gib, used: 8 * gib, fair: 10*gib/100*90 - 8*gib},
		},
		"one that does not answer has its share": {
			{bytes: 300, fair: 150}, {bytes: 0, change: func(m *Member) { m.Trusted = false }, fair: 150},
		},
		"nothing is stored": {{fair: 0}, {fair: 0}},
		"nobody is there":   {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var members []Member
			bytes := map[block.NodeID]int64{}
			for i, n := range nodes {
				id := block.NodeID(rune('a' + i))
				m := Member{Node: catalog.Node{ID: id, State: catalog.NodeUp}, Trusted: true, used: n.used, capacity: n.capacity}
				if n.change != nil {
					n.change(&m)
				}
				members = append(members, m)
				bytes[id] = n.bytes
			}
			fair := map[block.NodeID]int64{}
			for _, s := range Stakes(members, bytes) {
				fair[s.Node.ID] = s.Fair
			}
			for i, n := range nodes {
				id := block.NodeID(rune('a' + i))
				if have, is := fair[id]; !is && n.fair != -1 || is && have != n.fair && (have < n.fair-1 || have > n.fair+1) {
					t.Errorf("node %s has a share of %d (%t), want %d", id, have, is, n.fair)
				}
			}
		})
	}
}
