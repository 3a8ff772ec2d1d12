package balance

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/gateway/relocate"
)

// crossings is how often a byte that is moved counts against a rate: it is read, sent and written.
const crossings = 3

// census is what lies where, by the records of all groups.
type census struct {
	nodes map[block.NodeID]int64 // bytes of the cells of slots
	bytes int64                  // of all nodes
	slot  int64                  // of the largest slot
	heats [heatBuckets]int64     // bytes by how hot their groups are
}

// heatBuckets is by how many powers of two groups are told apart by their heat.
const heatBuckets = 64

// heatBucket is greater for what is used more often; 0 is for what is hardly ever.
func heatBucket(heat float64) int {
	if !(heat > 0) {
		return 0
	}
	return min(max(0, math.Ilogb(heat)+heatBuckets/2), heatBuckets-1)
}

func (c *census) add(of *catalog.Group, heat float64) {
	for slot := range of.Slots {
		id, stored := of.Place(slot)
		if !stored {
			continue
		}
		bytes := member.SlotBytes(of, slot)
		c.nodes[id] += bytes
		c.bytes += bytes
		c.slot = max(c.slot, bytes)
		c.heats[heatBucket(heat)] += bytes
	}
}

// coldest is the last of the buckets of the colder half of all bytes.
func (c *census) coldest() (last int, all bool) {
	sum := int64(0)
	for last = range c.heats {
		if sum += c.heats[last]; 2*sum >= c.bytes {
			break
		}
	}
	return last, sum == c.bytes
}

// step is what is to be moved of one group.
type step struct {
	id    block.GroupID
	heat  float64
	moves []relocate.Move
}

// plan is what is to be moved, as far as it was made. Its stakes are as they will be after that.
type plan struct {
	members map[block.NodeID]*member.Member
	stakes  map[block.NodeID]*member.Stake
	takers  []*member.Stake

	keep                 int // of so many groups the moves are kept
	steps                []step
	groups, slots, bytes int64
}

// newPlan moves nothing yet.
func newPlan(members []member.Member, stakes []*member.Stake, keep int) *plan {
	p := &plan{members: map[block.NodeID]*member.Member{}, stakes: map[block.NodeID]*member.Stake{}, keep: keep}
	for i := range members {
		p.members[members[i].Node.ID] = &members[i]
	}
	for _, s := range stakes {
		p.stakes[s.Node.ID] = s
		if s.Takes {
			p.takers = append(p.takers, s)
		}
	}
	return p
}

// isOver reports whether nobody lacks anything.
func (p *plan) isOver() bool {
	return !slices.ContainsFunc(p.takers, func(s *member.Stake) bool { return s.Bytes < s.Fair })
}

// fullness is how much of its share a node holds.
func fullness(s *member.Stake) float64 {
	if s.Fair <= 0 {
		return math.Inf(1)
	}
	return float64(s.Bytes) / float64(s.Fair)
}

// add plans what is moved of one more group.
func (p *plan) add(of *catalog.Group, heat float64) {
	moves, bytes := p.choose(of)
	if len(moves) == 0 {
		return
	}
	p.groups++
	p.slots += int64(len(moves))
	p.bytes += bytes
	if len(p.steps) < p.keep {
		p.steps = append(p.steps, step{of.ID, heat, moves})
	}
}

// choose picks slots of a group on nodes that hold more than their shares, those first that hold most of theirs, and for each the node
// that holds least of its share, of those that have nothing of the group and do not make it lie less evenly in its failure domains. A
// slot is moved if both nodes are nearer to their shares after that.
func (p *plan) choose(of *catalog.Group) (moves []relocate.Move, moved int64) {
	type giver struct {
		slot  int
		bytes int64
		stake *member.Stake
	}
	var givers []giver
	for slot := range of.Slots {
		id, stored := of.Place(slot)
		if s := p.stakes[id]; stored && s != nil && s.Answers {
			if bytes := member.SlotBytes(of, slot); 2*(s.Bytes-s.Fair) > bytes {
				givers = append(givers, giver{slot, bytes, s})
			}
		}
	}
	if len(givers) == 0 {
		return nil, 0
	}
	slices.SortFunc(givers, func(a, b giver) int {
		return cmp.Or(cmp.Compare(fullness(b.stake), fullness(a.stake)), cmp.Compare(a.slot, b.slot))
	})
	home := make([]block.NodeID, len(of.Home))
	for slot := range home {
		home[slot], _ = of.Place(slot)
	}
	for _, g := range givers {
		to := p.taker(home, g.stake.Node.ID, g.bytes)
		if to == nil {
			continue
		}
		moves = append(moves, relocate.Move{Slot: g.slot, From: g.stake.Node.ID, To: to.Node.ID})
		moved += g.bytes
		home[g.slot] = to.Node.ID
		g.stake.Bytes -= g.bytes
		to.Bytes += g.bytes
	}
	return moves, moved
}

// taker returns the node that takes so many bytes of a group from another; nil: there is none.
func (p *plan) taker(home []block.NodeID, from block.NodeID, bytes int64) (best *member.Stake) {
	for _, s := range p.takers {
		if 2*(s.Fair-s.Bytes) < bytes || best != nil && fullness(s) >= fullness(best) || slices.Contains(home, s.Node.ID) ||
			!relocate.KeepsSpread(home, p.members, from, s.Node.ID) {
			continue
		}
		best = s
	}
	return best
}

// lacking is how many bytes nodes lack of their shares.
func lacking(stakes []*member.Stake) (bytes int64) {
	for _, s := range stakes {
		bytes += max(0, s.Fair-s.Bytes)
	}
	return bytes
}

// unheard names the nodes that take part and do not answer.
func unheard(stakes []*member.Stake) (names []string) {
	for _, s := range stakes {
		if !s.Answers {
			names = append(names, string(s.Node.ID))
		}
	}
	return names
}

// seconds is how long so many bytes take to move at a rate; -1 without one.
func seconds(bytes, bytesPerSecond int64) float64 {
	if bytesPerSecond <= 0 {
		return -1
	}
	return float64(crossings*bytes) / float64(bytesPerSecond)
}

// uneven says in words which nodes do not hold about their shares though nothing more can be moved; empty: all do.
func uneven(stakes []*member.Stake, slot int64) string {
	var names []string
	for _, s := range stakes {
		if !s.IsEven(slot) {
			names = append(names, string(s.Node.ID))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "no further block can be moved without a group lying twice on a node or less evenly in its failure domains: " +
		strings.Join(names, ", ") + " hold more or less than about their shares"
}

// describe tells of a plan: stakes are as they were before it.
func (p *plan) describe(before []*member.Stake, slot, bytesPerSecond int64) api.BalancePlan {
	is := api.BalancePlan{
		Bytes: p.bytes, Slots: p.slots, Groups: p.groups, LeastBytes: lacking(before), BytesPerSecond: bytesPerSecond,
		Seconds: seconds(p.bytes, bytesPerSecond), Even: member.AreEven(before, slot), Nodes: make([]api.BalanceNode, 0, len(before)),
	}
	var after []*member.Stake
	for _, s := range before {
		then := p.stakes[s.Node.ID]
		after = append(after, then)
		node := api.BalanceNode{
			ID: s.Node.ID, Domain: member.Domain(s.Node), CapacityBytes: s.Capacity, FairBytes: s.Fair,
			BytesBefore: s.Bytes, BytesAfter: then.Bytes,
		}
		switch {
		case !s.Answers:
			node.Note = "does not answer"
		case s.Crowded:
			node.Note = "almost full: it takes none"
		}
		is.Nodes = append(is.Nodes, node)
	}
	if names := unheard(before); len(names) > 0 {
		is.Note = waitsFor(names)
	} else {
		is.Note = uneven(after, slot)
	}
	return is
}

// waitsFor says in words that nothing is moved while nodes do not answer.
func waitsFor(names []string) string {
	return "nothing is moved while a node that takes part does not answer: " + strings.Join(names, ", ") +
		"; bring it back, or declare it down"
}
