package arrange

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/block"
)

// Candidate is a packed group in which something lives.
type Candidate struct {
	ID       block.GroupID
	Capacity int64 // bytes of its data columns
	Live     int64 // of the objects in it
	Extents  int64
	Columns  int64
	Age      time.Duration // for how long it has been there
}

// Dead is how many bytes of the group nothing has.
func (c *Candidate) Dead() int64 { return c.Capacity - c.Live }

// Share is which part of the group lives.
func (c *Candidate) Share() float64 { return float64(c.Live) / float64(max(1, c.Capacity)) }

// gain says how much is won by emptying a group now. What lives in it has to be moved for what is dead: live/dead. And every byte that
// dies by itself later makes that cheaper, so that a group in which much dies waits: the rate by which it has been dying is dead/age.
// It is the choice of least declining cost (Lomet, Luo, VLDB 2021), in which what is dead counts once more.
func (c *Candidate) gain() float64 {
	dead := 1 - c.Share()
	if dead >= 1 {
		return math.Inf(1)
	}
	return dead * dead * max(c.Age, time.Second).Seconds() / (1 - dead)
}

// IsWorth reports whether groups may be emptied into fewer bytes than they take: what they hold, or columns of one object each.
func IsWorth(groups []Candidate) bool {
	var capacity, live, extents, columns int64
	for i := range groups {
		capacity, live, extents = capacity+groups[i].Capacity, live+groups[i].Live, extents+groups[i].Extents
		columns = max(columns, groups[i].Columns)
	}
	if len(groups) == 0 || extents == 0 {
		return false
	}
	return float64(max(live, columns*live/extents)) <= FullEnough*float64(capacity)
}

// FullEnough is the share of a group that lives above which moving it away gains too little.
const FullEnough = 0.9

// Choose returns the groups to empty so that of a kind no more is dead than the given percent of what lives: those by which most is
// won. Of groups of one age these are the emptiest. With everything it is all that are not full enough.
func Choose(groups []Candidate, percent int, everything bool) []Candidate {
	var capacity, live int64
	for i := range groups {
		capacity, live = capacity+groups[i].Capacity, live+groups[i].Live
	}
	most := live * int64(percent) / 100
	if everything {
		most = 0
	}
	dead := capacity - live
	groups = slices.DeleteFunc(groups, func(c Candidate) bool { return c.Share() >= FullEnough })
	slices.SortFunc(groups, func(a, b Candidate) int {
		if order := cmp.Compare(b.gain(), a.gain()); order != 0 {
			return order
		}
		return cmp.Or(a.ID.Stamp.Compare(b.ID.Stamp), cmp.Compare(a.ID.Index, b.ID.Index))
	})
	count := 0
	for count < len(groups) && dead > most {
		dead -= groups[count].Dead()
		count++
	}
	return groups[:count]
}
