package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/job"
)

// Survey is what lies where, by the records of all groups, and what of it is lost. Nobody changes one.
type Survey struct {
	Shapes map[Shape]*ShapeCount

	incarnations map[block.NodeID]block.Incarnation // that counted as there: of nodes that answered
}

// Shape is what groups have in common that are laid out alike.
type Shape struct {
	Class, Scheme, Ladder, Mode string
	Columns, LayoutVersion      int
}

// ShapeCount counts the groups of one shape.
type ShapeCount struct {
	Groups    int64
	CellBytes int64 // of one cell of each group
	NotWhole  int64 // groups of which anything is lost
	MostLost  int   // most slots lost of one group
	Nodes     map[block.NodeID]SlotCount
}

// SlotCount is how many slots of groups concern a node.
type SlotCount struct {
	Stored int64 // they lie on it
	Places int64 // they are to, once they have blocks
	Bytes  int64 // of the cells of those that lie on it
}

// present are the contents of the nodes that answer.
func (m *Membership) present(ctx context.Context) (map[block.NodeID]block.Incarnation, error) {
	incarnations, err := m.catalog.Incarnations(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading incarnations: %w", err)
	}
	for id := range incarnations {
		if !m.agents.Answers(id) {
			delete(incarnations, id)
		}
	}
	return incarnations, nil
}

// walk makes a survey.
func (m *Membership) walk(ctx context.Context, rest func(records int) error) (*Survey, error) {
	incarnations, err := m.present(ctx)
	if err != nil {
		return nil, err
	}
	s := &Survey{Shapes: map[Shape]*ShapeCount{}, incarnations: incarnations}
	for groups, err := range m.catalog.GroupRecords(ctx) {
		if err != nil {
			return nil, err
		}
		for i := range groups {
			s.add(&groups[i], m.options.Reported)
		}
		if err := rest(len(groups)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Survey) add(group *catalog.Group, reported func(block.GroupID) bool) {
	shape := Shape{group.Class, group.Scheme, group.Ladder, group.Mode, group.Columns, group.LayoutVersion}
	count := s.Shapes[shape]
	if count == nil {
		count = &ShapeCount{Nodes: map[block.NodeID]SlotCount{}}
		s.Shapes[shape] = count
	}
	count.Groups++
	count.CellBytes += int64(group.CellBytes)
	lost := 0
	for _, slot := range group.Slots {
		for _, item := range slot {
			if there, is := s.incarnations[item.Node]; !is || item.Incarnation != there {
				lost++
				break
			}
		}
	}
	if lost == 0 && reported(group.ID) {
		lost = 1 // a read, a scrub or a repair that failed found what no record shows
	}
	if lost > 0 {
		count.NotWhole++
	}
	count.MostLost = max(count.MostLost, lost)
	for slot := range group.Home {
		id, stored := group.Place(slot)
		slots := count.Nodes[id]
		if stored {
			slots.Stored++
			slots.Bytes += SlotBytes(group, slot)
		} else {
			slots.Places++
		}
		count.Nodes[id] = slots
	}
}

// SlotBytes is how many bytes the cells of a slot have, those of trailing zeros too, which are not stored.
func SlotBytes(group *catalog.Group, slot int) int64 {
	units := 0
	for _, item := range group.Slots[slot] {
		units += item.Units
	}
	return int64(units) * int64(group.CellBytes)
}

// Slots are how many slots concern each node.
func (s *Survey) Slots() map[block.NodeID]SlotCount {
	slots := map[block.NodeID]SlotCount{}
	for _, count := range s.Shapes {
		for id, of := range count.Nodes {
			slots[id] = SlotCount{slots[id].Stored + of.Stored, slots[id].Places + of.Places, slots[id].Bytes + of.Bytes}
		}
	}
	return slots
}

// without returns the survey of groups that have lost what lay on some nodes besides. What cannot be told from the counts is
// taken for the worst: that each slot was lost by another group which was whole, and one group lost a slot on each node.
func (s *Survey) without(nodes []block.NodeID) *Survey {
	worse := &Survey{Shapes: map[Shape]*ShapeCount{}, incarnations: s.incarnations}
	for shape, count := range s.Shapes {
		less := *count
		for _, id := range nodes {
			if slots := count.Nodes[id].Stored; slots > 0 {
				less.NotWhole = min(less.NotWhole+slots, less.Groups)
				less.MostLost++
			}
		}
		worse.Shapes[shape] = &less
	}
	return worse
}

// Survey returns what lies where: now, or by the last walk over all groups where that takes long. What nodes have lost since
// then that do not answer now, or have other contents, counts as lost.
func (m *Membership) Survey(ctx context.Context) (job.Found[*Survey], error) {
	found, err := m.survey.Ask(ctx, false)
	if err != nil {
		return found, err
	}
	present, err := m.present(ctx)
	if err != nil {
		return found, err
	}
	var gone []block.NodeID
	for id, was := range found.Value.incarnations {
		if present[id] != was {
			gone = append(gone, id)
		}
	}
	if len(gone) > 0 {
		found.Value = found.Value.without(gone)
	}
	return found, nil
}

// Counting tells of the first survey: how many groups it has looked at and, while it is under way, when it began.
func (m *Membership) Counting() (began time.Time, groups int64, isUnderWay bool) {
	return m.survey.First()
}

// slotPatience is how long whoever asks about nodes waits for the first count of what lies on them.
const slotPatience = 500 * time.Millisecond

// slotCounts are how many slots concern the nodes, as far as that is known.
type slotCounts struct {
	nodes map[block.NodeID]SlotCount // nil: not counted yet
	at    time.Time                  // they held then
	old   bool                       // and may hold no more
}

// slots counts what lies on the nodes: a few seconds ago at most, or by the last walk over all groups where that takes long.
func (m *Membership) slots(ctx context.Context) (slotCounts, error) {
	waiting, cancel := context.WithTimeout(ctx, slotPatience)
	defer cancel()
	found, err := m.survey.Ask(waiting, true)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return slotCounts{}, nil
	}
	if err != nil {
		return slotCounts{}, err
	}
	return slotCounts{found.Value.Slots(), found.Began, found.Old}, nil
}

// stored is how many slots lie on a node; -1 where that is not known.
func (s *slotCounts) stored(id block.NodeID) int64 {
	if s.nodes == nil {
		return -1
	}
	return s.nodes[id].Stored
}

// bytes is how many bytes the cells on a node have; -1 where that is not known.
func (s *slotCounts) bytes(id block.NodeID) int64 {
	if s.nodes == nil {
		return -1
	}
	return s.nodes[id].Bytes
}

// fairShares are the shares of the members that have one; nil where the slots were not counted.
func fairShares(members []Member, slots *slotCounts) map[block.NodeID]int64 {
	if slots.nodes == nil {
		return nil
	}
	bytes := map[block.NodeID]int64{}
	for id := range slots.nodes {
		bytes[id] = slots.nodes[id].Bytes
	}
	fair := map[block.NodeID]int64{}
	for _, s := range Stakes(members, bytes) {
		fair[s.Node.ID] = s.Fair
	}
	return fair
}

// left is how many slots have to leave a node that is emptied since a time; -1 where they were not counted since.
func (s *slotCounts) left(id block.NodeID, since time.Time) int64 {
	if s.nodes == nil || s.old && s.at.Before(since) {
		return -1
	}
	return s.nodes[id].Stored + s.nodes[id].Places
}
