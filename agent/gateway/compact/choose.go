package compact

import (
	"cmp"
	"slices"

	"github.com/restripe/restripe/agent/block"
)

// candidate is a packed group in which something lives.
type candidate struct {
	id       block.GroupID
	capacity int64 // bytes of its data columns
	live     int64 // of the objects in it
	extents  int64
	columns  int64
}

func (c *candidate) dead() int64 { return c.capacity - c.live }

// share is which part of the group lives.
func (c *candidate) share() float64 { return float64(c.live) / float64(max(1, c.capacity)) }

// isWorth reports whether groups may be emptied into fewer bytes than they take: what they hold, or columns of one object each.
func isWorth(groups []candidate) bool {
	var capacity, live, extents, columns int64
	for i := range groups {
		capacity, live, extents = capacity+groups[i].capacity, live+groups[i].live, extents+groups[i].extents
		columns = max(columns, groups[i].columns)
	}
	if len(groups) == 0 || extents == 0 {
		return false
	}
	return float64(max(live, columns*live/extents)) <= fullEnough*float64(capacity)
}

// fullEnough is the share of a group that lives above which moving it away gains too little.
const fullEnough = 0.9

// choose returns the groups to empty so that of a kind no more is dead than the given percent of what lives: those that are
// emptiest, as they cost least for what they give. With everything it is all that are not full enough.
func choose(groups []candidate, percent int, everything bool) []candidate {
	var capacity, live int64
	for i := range groups {
		capacity, live = capacity+groups[i].capacity, live+groups[i].live
	}
	most := live * int64(percent) / 100
	if everything {
		most = 0
	}
	slices.SortFunc(groups, func(a, b candidate) int {
		if order := cmp.Compare(a.share(), b.share()); order != 0 {
			return order
		}
		return cmp.Or(a.id.Stamp.Compare(b.id.Stamp), cmp.Compare(a.id.Index, b.id.Index))
	})
	dead := capacity - live
	count := 0
	for count < len(groups) && dead > most && groups[count].share() < fullEnough {
		dead -= groups[count].dead()
		count++
	}
	return groups[:count]
}
