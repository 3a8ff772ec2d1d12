package member

import (
	"maps"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// surveyOf is what a survey finds of groups whose nodes have these contents.
func surveyOf(present map[block.NodeID]block.Incarnation, reported []block.GroupID, groups ...catalog.Group) *Survey {
	s := &Survey{Shapes: map[Shape]*ShapeCount{}, incarnations: present}
	for i := range groups {
		s.add(&groups[i], func(id block.GroupID) bool {
			for _, one := range reported {
				if one == id {
					return true
				}
			}
			return false
		})
	}
	return s
}

// laid is a group of a class whose slots lie on nodes, in their first contents; the last node has a slot that has no block yet.
func laid(number uint64, class string, nodes ...block.NodeID) catalog.Group {
	id := block.GroupID{Stamp: block.Stamp{Sequence: number}}
	g := catalog.Group{ID: id, Class: class, Scheme: "rs(2,1)", CellBytes: 100, Home: nodes}
	for _, id := range nodes[:len(nodes)-1] {
		g.Slots = append(g.Slots, catalog.Slot{catalog.Item{Units: 1, Node: id, Incarnation: "first"}})
	}
	return g
}

func TestSurveys(t *testing.T) {
	t.Parallel()
	first := func(nodes ...block.NodeID) map[block.NodeID]block.Incarnation {
		present := map[block.NodeID]block.Incarnation{}
		for _, id := range nodes {
			present[id] = "first"
		}
		return present
	}
	groups := []catalog.Group{
		laid(1, "a", "n1", "n2", "n3", "n4"), laid(2, "a", "n1", "n2", "n4", "n3"), laid(3, "b", "n3", "n4", "n2", "n1"),
	}
	replaced := first("n1", "n2", "n3", "n4")
	replaced["n3"] = "second"
	type lost struct {
		notWhole int64
		most     int
	}
	for name, test := range map[string]struct {
		present  map[block.NodeID]block.Incarnation
		reported []block.GroupID
		gone     []block.NodeID // since the survey
		a, b     lost
	}{
		"everything there":         {first("n1", "n2", "n3", "n4"), nil, nil, lost{}, lost{}},
		"a node does not answer":   {first("n2", "n3", "n4"), nil, nil, lost{2, 1}, lost{}},
		"other contents":           {replaced, nil, nil, lost{1, 1}, lost{1, 1}},
		"two do not answer":        {first("n2", "n3"), nil, nil, lost{2, 2}, lost{1, 1}},
		"one is reported":          {first("n1", "n2", "n3", "n4"), []block.GroupID{groups[2].ID}, nil, lost{}, lost{1, 1}},
		"reported, and found lost": {first("n1", "n2"), []block.GroupID{groups[2].ID}, nil, lost{2, 1}, lost{1, 2}},
		"gone since":               {first("n1", "n2", "n3", "n4"), nil, []block.NodeID{"n3"}, lost{1, 1}, lost{1, 1}},
		"two gone since":           {first("n1", "n2", "n3", "n4"), nil, []block.NodeID{"n1", "n2"}, lost{2, 2}, lost{1, 1}},
		"one lost, one gone since": {first("n2", "n3", "n4"), nil, []block.NodeID{"n4"}, lost{2, 2}, lost{1, 1}},
		"a stranger gone since":    {first("n1", "n2", "n3", "n4"), nil, []block.NodeID{"n9"}, lost{}, lost{}},
	} {
		s := surveyOf(test.present, test.reported, groups...)
		before := maps.Clone(s.Slots())
		if len(test.gone) > 0 {
			s = s.without(test.gone)
		}
		for class, want := range map[string]lost{"a": test.a, "b": test.b} {
			count := s.Shapes[Shape{Class: class, Scheme: "rs(2,1)"}]
			if have := (lost{count.NotWhole, count.MostLost}); have != want {
				t.Errorf("%s: of class %s is lost %+v, want %+v", name, class, have, want)
			}
		}
		if !maps.Equal(s.Slots(), before) {
			t.Errorf("%s: the slots were %v and are %v", name, before, s.Slots())
		}
		want := map[block.NodeID]SlotCount{"n1": {2, 1, 200}, "n2": {3, 0, 300}, "n3": {2, 1, 200}, "n4": {2, 1, 200}}
		if !maps.Equal(before, want) {
			t.Errorf("%s: slots %v, want %v", name, before, want)
		}
	}
}
