package relocate

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/member"
)

// A group over six nodes in racks, with blocks in its first five slots, and further nodes beside it.
func TestMisplacements(t *testing.T) {
	t.Parallel()
	type world struct {
		racks  string // of n1, n2, ...; the group lies on the first six
		change func(members map[block.NodeID]*member.Member)
		want   []misplaced
	}
	state := func(id block.NodeID, state catalog.NodeState) func(map[block.NodeID]*member.Member) {
		return func(members map[block.NodeID]*member.Member) { members[id].Node.State = state }
	}
	for name, w := range map[string]world{
		"at rest": {racks: "abcdefg"},
		"a node drains": {
			racks: "abcdefg", change: state("n2", catalog.NodeDraining),
			want: []misplaced{{slot: 1, from: "n2", stored: true, leaving: true}},
		},
		"the drain is paused": {racks: "abcdefg", change: func(members map[block.NodeID]*member.Member) {
			members["n2"].Node.State, members["n2"].Node.Drain.Paused = catalog.NodeDraining, true
		}},
		"a draining node is silent": {racks: "abcdefg", change: func(members map[block.NodeID]*member.Member) {
			members["n2"].Node.State, members["n2"].Trusted = catalog.NodeDraining, false
		}},
		"the node of no blocks yet is out": {
			racks: "abcdefg", change: func(members map[block.NodeID]*member.Member) {
				members["n6"].Node.Out, members["n6"].Trusted = "gw", false
			},
			want: []misplaced{{slot: 5, from: "n6", leaving: true}},
		},
		"a node was removed": {
			racks: "abcdefg", change: func(members map[block.NodeID]*member.Member) { delete(members, "n6") },
			want: []misplaced{{slot: 5, from: "n6", leaving: true}},
		},
		"two slots in one rack and another is free": {
			racks: "abadefg", want: []misplaced{{slot: 2, from: "n3", stored: true}},
		},
		"the place without blocks goes first": {
			racks: "abcdeag", want: []misplaced{{slot: 5, from: "n6"}},
		},
		"two slots in one rack and none is free":  {racks: "abadef"},
		"the free node is in a rack of the group": {racks: "abadefb"},
		"three racks hold two each":               {racks: "aabbccabc"},
		"three in one rack, one in another with room": {
			racks: "aaabbcc", want: []misplaced{{slot: 2, from: "n3", stored: true}},
		},
		"the free node takes no blocks": {racks: "abadefg", change: state("n7", catalog.NodeDown)},
		"the free node is silent":       {racks: "abadefg", change: func(m map[block.NodeID]*member.Member) { m["n7"].Trusted = false }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			members := map[block.NodeID]*member.Member{}
			group := &catalog.Group{}
			for i, rack := range w.racks {
				id := block.NodeID("n" + string(rune('1'+i)))
				members[id] = &member.Member{Node: catalog.Node{ID: id, State: catalog.NodeUp, Domain: string(rack)}, Trusted: true}
				if i < 6 {
					group.Home = append(group.Home, id)
				}
				if i < 5 {
					group.Slots = append(group.Slots, catalog.Slot{{Node: id, Units: 1}})
				}
			}
			if w.change != nil {
				w.change(members)
			}
			if have := misplacements(group, members); !slices.Equal(have, w.want) {
				t.Errorf("%+v, want %+v", have, w.want)
			}
		})
	}
}

// Groups on nodes that are leaving and cannot be moved are looked at ever more rarely, until something moves or changes.
func TestRelocationIsPutOff(t *testing.T) {
	t.Parallel()
	var m Relocator
	now := time.Unix(1000, 0)
	versions := map[block.NodeID]uint64{"n1": 1}
	look := func(after time.Duration, roster uint64) bool {
		now = now.Add(after)
		return m.due(maps.Clone(versions), roster, true, now)
	}
	if !look(0, 1) {
		t.Fatal("the first look is not due")
	}
	for _, delay := range []time.Duration{2 * relocationRetry, 4 * relocationRetry, 8 * relocationRetry} {
		m.note(false, false)
		if look(delay-1, 1) || !look(1, 1) {
			t.Fatalf("with nothing moved, the next look is not after %s", delay)
		}
	}
	m.note(false, true)
	if look(relocationRetry-1, 1) || !look(1, 1) {
		t.Error("something was moved, and the next look is not soon")
	}
	m.note(false, false)
	if look(relocationRetry-1, 2) || !look(1, 2) {
		t.Error("a node came back, and the next look is not soon")
	}
	m.note(true, false)
	if look(relocationEvery-1, 2) || !look(1, 2) {
		t.Error("nothing is leaving, and the next look is not at its time")
	}
	versions["n2"] = 1
	if !look(0, 2) {
		t.Error("a node came, and nobody looks")
	}
}

// Spares and stores that are almost full take nothing for the sake of failure domains alone.
func TestSpreadSparesSpares(t *testing.T) {
	t.Parallel()
	nodes := &member.Agents{Nodes: map[block.NodeID]*member.Agent{}}
	enter := func(id block.NodeID, domain string, change func(*member.Agent)) {
		made := &member.Agent{Node: catalog.Node{ID: id, State: catalog.NodeUp, Domain: domain}, Reachable: true, Health: member.Health{State: member.HealthUp}}
		if change != nil {
			change(made)
		}
		nodes.Nodes[id] = made
	}
	enter("n1", "a", nil)
	enter("n2", "a", nil)
	enter("n3", "c", func(a *member.Agent) { a.Node.Spare = true })
	enter("n4", "d", func(a *member.Agent) { a.Hello.Store.CapacityBytes, a.Hello.Store.UsedBytes = 100, 95 })
	g := &Relocator{agents: nodes}
	group := &catalog.Group{Home: []block.NodeID{"n1", "n2"}}
	if list := misplacements(group, g.memberMap()); len(list) != 0 {
		t.Errorf("with nothing but a spare and a full node free: %+v", list)
	}
	enter("n5", "e", func(a *member.Agent) { a.Hello.Store.CapacityBytes, a.Hello.Store.UsedBytes = 100, 50 })
	list := misplacements(group, g.memberMap())
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	if home, err := g.newHomes(group, list, g.memberMap(), nil); err != nil || !slices.Contains(home, "n5") {
		t.Errorf("it goes to %v, %v", home, err)
	}
	list[0].leaving = true
	if home, err := g.newHomes(group, list, g.memberMap(), nil); err != nil || !slices.Contains(home, "n3") {
		t.Errorf("what is leaving goes to %v, not to the spare, %v", home, err)
	}
}
