package member

import (
	"math"
	"slices"
	"strings"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// Stake is a node's part in the balance of a cluster.
type Stake struct {
	Node     catalog.Node
	Answers  bool
	Takes    bool  // blocks may be moved to it
	Crowded  bool  // they may not, as its store is almost full
	Bytes    int64 // that lie on it
	Fair     int64 // that should
	Capacity int64 // of its store; 0: it does not know

	room int64 // for how many more its store has room before it is crowded
}

// Stakes returns the parts of the members that have one, by id: those that take blocks as far as their records say, but for spares.
// bytes are how many lie on each node. Every node's share of all these bytes is as large as its store is among theirs; where the store
// of one does not know its size, all count as equally large. A node that can take no more than it has, or has room for, leaves the
// rest of its share to the others.
func Stakes(members []Member, bytes map[block.NodeID]int64) []*Stake {
	var stakes []*Stake
	for i := range members {
		m := &members[i]
		if !m.Node.TakesBlocks() || m.Node.Spare {
			continue
		}
		s := &Stake{
			Node: m.Node, Answers: m.Trusted, Takes: m.TakesSpread(), Crowded: m.crowded, Bytes: bytes[m.Node.ID], Capacity: m.capacity,
			room: math.MaxInt64 - bytes[m.Node.ID],
		}
		if !s.Takes && s.Answers {
			s.room = 0
		} else if m.capacity > 0 {
			s.room = max(0, m.capacity/100*crowdedPercent-m.used)
		}
		stakes = append(stakes, s)
	}
	slices.SortFunc(stakes, func(a, b *Stake) int { return strings.Compare(string(a.Node.ID), string(b.Node.ID)) })
	share(stakes)
	return stakes
}

// share fills in what is fair.
func share(stakes []*Stake) {
	sized := !slices.ContainsFunc(stakes, func(s *Stake) bool { return s.Capacity <= 0 })
	weight := func(s *Stake) float64 {
		if sized {
			return float64(s.Capacity)
		}
		return 1
	}
	bytes := 0.0
	for _, s := range stakes {
		bytes += float64(s.Bytes)
	}
	for open := slices.Clone(stakes); len(open) > 0; {
		weights, rest := 0.0, bytes
		for _, s := range open {
			weights += weight(s)
		}
		for _, s := range open {
			s.Fair = int64(math.Round(rest * weight(s) / weights))
		}
		before := len(open)
		open = slices.DeleteFunc(open, func(s *Stake) bool {
			most := s.Bytes + s.room
			if s.Fair <= most {
				return false
			}
			s.Fair = most
			bytes -= float64(most)
			return true
		})
		if len(open) == before {
			return
		}
	}
}

// The tolerance of a balance: a node is even that holds no more than so many percent more or less than its share.
const evenPercent = 5

// IsEven reports whether a node holds about its share: within 5 % of it, or within one slot, of so many bytes.
func (s *Stake) IsEven(slot int64) bool {
	return max(s.Bytes-s.Fair, s.Fair-s.Bytes) <= max(s.Fair/100*evenPercent, slot)
}

// AreEven reports whether all nodes hold about their shares.
func AreEven(stakes []*Stake, slot int64) bool {
	return !slices.ContainsFunc(stakes, func(s *Stake) bool { return !s.IsEven(slot) })
}
