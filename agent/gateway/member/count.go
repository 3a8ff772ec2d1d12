package member

import (
	"context"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
)

// slotCount is how many slots of groups concern a node.
type slotCount struct {
	stored int64 // they lie on it
	places int64 // they are to, once they have blocks
}

// slotCounts shares what was counted in the group records between those who ask at about the same time: a count reads them
// all.
type slotCounts struct {
	mutex   sync.Mutex // of what follows
	counted map[block.NodeID]slotCount
	until   time.Time
	turn    chan struct{} // a token: held by who counts
}

// A count is shared for ten times as long as it took, and no longer than this.
const (
	countSharedTimes  = 10
	countSharedAtMost = 5 * time.Second
)

// Forget has the next one who asks count anew.
func (s *slotCounts) Forget() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.until = time.Time{}
}

func (s *slotCounts) shared(now time.Time) (map[block.NodeID]slotCount, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.counted, now.Before(s.until)
}

// get returns a count that is no older than it may be, by count if there is none.
func (s *slotCounts) get(ctx context.Context, count func() (map[block.NodeID]slotCount, error)) (map[block.NodeID]slotCount, error) {
	s.mutex.Lock()
	if s.turn == nil {
		s.turn = make(chan struct{}, 1)
	}
	turn := s.turn
	s.mutex.Unlock()
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	began := time.Now()
	if counted, fresh := s.shared(began); fresh {
		return counted, nil
	}
	counted, err := count()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.counted, s.until = counted, now.Add(min(countSharedTimes*now.Sub(began), countSharedAtMost))
	return counted, nil
}

// slotsByNode counts the slots of groups that lie on each node, and that are to.
func (m *Membership) slotsByNode(ctx context.Context) (map[block.NodeID]slotCount, error) {
	return m.slots.get(ctx, func() (map[block.NodeID]slotCount, error) {
		slots := map[block.NodeID]slotCount{}
		for view, err := range m.catalog.AllGroups(ctx, block.GroupID{}) {
			if err != nil {
				return nil, err
			}
			for slot := range view.Home {
				id, stored := view.Place(slot)
				count := slots[id]
				if stored {
					count.stored++
				} else {
					count.places++
				}
				slots[id] = count
			}
		}
		return slots, nil
	})
}
