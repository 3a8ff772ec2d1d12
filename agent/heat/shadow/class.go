package shadow

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Step is how often candidates look at their groups, in the time of the class.
const Step = time.Hour

// stepDays is Step in days.
const stepDays = float64(Step) / float64(24*time.Hour)

// Limit is how many groups of a class are followed where New is told nothing else.
const Limit = 10_000

// Class is the candidates of one class with the groups that they follow.
type Class struct {
	prices     Prices
	candidates []Candidate
	lives      []time.Duration // half-lives of candidates, each once
	life       []int           // of every candidate, which of them; -1 for those that do not go by use
	limit      int
	sparse     uint // groups are followed whose hash begins with so many zeros
	step       uint32
	groups     map[uint64]*group
	estimates  []Estimate // by half-life
	costs      []float64  // by candidate
	done       float64    // what it cost where groups really are
}

// group is what candidates know of one group.
type group struct {
	bytes   float64
	uses    float64 // in this step
	written float64 // of these, the write: 1 in the step in which it was first used, or 0
	born    float64 // that step; before the class was, where the group was in use already
	counted []float32
	places  []place // by candidate
	rung    int8    // on which it really is
}

// place is where a candidate has a group.
type place struct {
	movedAt uint32 // the step
	rung    int8
}

// New returns a Class without groups. Of more groups than the limit (0: Limit) a part is followed, chosen by hash.
func New(prices Prices, candidates []Candidate, limit int) (*Class, error) {
	if err := prices.Check(); err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = Limit
	}
	c := &Class{prices: prices, candidates: candidates, limit: limit, groups: map[uint64]*group{}, costs: make([]float64, len(candidates))}
	for i := range candidates {
		life := slices.Index(c.lives, candidates[i].HalfLife)
		if life < 0 && candidates[i].Always == ByUse {
			life = len(c.lives)
			c.lives = append(c.lives, candidates[i].HalfLife)
		}
		c.life = append(c.life, life)
	}
	c.estimates = make([]Estimate, len(c.lives))
	return c, nil
}

// SetPrices has candidates pay other prices from now on, for as many rungs as before.
func (c *Class) SetPrices(prices Prices) error {
	if err := prices.Check(); err != nil {
		return err
	}
	if len(prices.Stored) != len(c.prices.Stored) {
		return fmt.Errorf("%w: prices of %d rungs, for candidates of %d", ErrPrices, len(prices.Stored), len(c.prices.Stored))
	}
	c.prices = prices
	return nil
}

// SetLimit follows at most so many groups from now on.
func (c *Class) SetLimit(limit int) {
	c.limit = max(1, limit)
	c.thin()
}

// Use is what a class is told of a group.
type Use struct {
	Bytes float64
	Times float64 // it was used since it was told of last
	Rung  int     // on which it is, or is being written

	// What follows is taken of a group that is told of for the first time.

	Days float64 // for how long it has been in use; 0: it is being written, which is the first of Times
	Rate float64 // times a day it was used in these days
}

// Follows reports whether a group is among those that are followed, or would be. The bits of its name are those of a good
// hash.
func (c *Class) Follows(name uint64) bool { return c.sparse == 0 || name>>(64-c.sparse) == 0 }

// Use tells of a group, if it is followed.
func (c *Class) Use(name uint64, use Use) {
	if !c.Follows(name) {
		return
	}
	g := c.groups[name]
	if g == nil {
		g = c.follow(use)
		c.groups[name] = g
		c.settle(use)
		c.thin()
	}
	c.done += c.weight() * use.Bytes * c.prices.Move[g.rung][use.Rung]
	g.bytes, g.uses, g.rung = use.Bytes, g.uses+use.Times, int8(use.Rung)
}

func (c *Class) follow(use Use) *group {
	g := &group{rung: int8(use.Rung), counted: make([]float32, len(c.lives)), places: make([]place, len(c.candidates))}
	if g.born = float64(c.step); use.Days > 0 {
		g.born -= use.Days / stepDays
		for life, halfLife := range c.lives {
			g.counted[life] = float32(use.Rate * Watched(halfLife, use.Days))
		}
	} else {
		g.written = 1
	}
	for i := range c.candidates {
		rung := use.Rung
		if c.candidates[i].Always != ByUse {
			rung = c.candidates[i].Always
		}
		g.places[i] = place{movedAt: c.step, rung: int8(rung)}
	}
	return g
}

// settle charges the candidates that have all groups on one rung for a group that is written: it is written where the class has
// its new groups, and moved from there.
func (c *Class) settle(use Use) {
	if use.Days > 0 {
		return
	}
	for i := range c.candidates {
		if to := c.candidates[i].Always; to != ByUse {
			c.costs[i] += c.weight() * use.Bytes * c.prices.Move[use.Rung][to]
		}
	}
}

// thin follows half as many groups where they are too many; each stands for twice as many from then on.
func (c *Class) thin() {
	for len(c.groups) > c.limit {
		c.sparse++
		maps.DeleteFunc(c.groups, func(name uint64, _ *group) bool { return !c.Follows(name) })
	}
}

// weight is how many groups one that is followed stands for.
func (c *Class) weight() float64 { return math.Ldexp(1, int(c.sparse)) }

// Forget drops a group that is no more.
func (c *Class) Forget(name uint64) { delete(c.groups, name) }

// Followed returns how many groups are followed, and for how many they stand.
func (c *Class) Followed() (followed int, standFor float64) {
	return len(c.groups), float64(len(c.groups)) * c.weight()
}

// Passed returns for how long candidates have paid.
func (c *Class) Passed() time.Duration { return time.Duration(c.step) * Step }

// Advance ends a step: candidates pay for it and move their groups.
func (c *Class) Advance() {
	c.step++
	names := c.names()
	c.count(names)
	rates, weight := make([]float64, len(c.lives)), c.weight()
	for _, name := range names {
		g := c.groups[name]
		for life, halfLife := range c.lives {
			rates[life] = c.estimates[life].Rate(float64(g.counted[life]), c.watched(g, halfLife))
		}
		for i := range c.candidates {
			c.costs[i] += weight * g.bytes * c.charge(g, i, rates)
		}
		c.done += weight * g.bytes * (g.uses*c.prices.Use[g.rung] + c.prices.Stored[g.rung]*stepDays)
		g.uses, g.written = 0, 0
	}
}

// watched is what a counter of a group would have of one use a day.
func (c *Class) watched(g *group, halfLife time.Duration) float64 {
	return Watched(halfLife, (float64(c.step)-g.born)*stepDays)
}

// charge returns what a candidate pays in this step for a byte of a group, and moves the group.
func (c *Class) charge(g *group, i int, rates []float64) float64 {
	candidate, at := &c.candidates[i], &g.places[i]
	rung := int(at.rung)
	cost := g.uses * c.prices.Use[rung]
	if life := c.life[i]; life >= 0 {
		rate := rates[life]
		if candidate.Floor {
			rate = max(rate, c.estimates[life].Mean)
		}
		to := candidate.Next(&c.prices, rung, rate)
		if to != rung && time.Duration(c.step-at.movedAt)*Step >= candidate.Stay(&c.prices, rung, to) {
			cost += c.prices.Move[rung][to]
			*at = place{movedAt: c.step, rung: int8(to)}
			rung = to
		}
	}
	return cost + c.prices.Stored[rung]*stepDays
}

// count brings the counters of groups up to date, and what is known of the class.
func (c *Class) count(names []uint64) {
	for life, halfLife := range c.lives {
		var sums Sums
		keep := math.Exp2(-float64(Step) / float64(halfLife))
		for _, name := range names {
			g := c.groups[name]
			counted := float64(g.counted[life])*keep + (g.uses-g.written)*math.Sqrt(keep)
			g.counted[life] = float32(counted)
			sums.Add(halfLife, counted, (float64(c.step)-g.born)*stepDays)
		}
		c.estimates[life] = sums.Estimate()
	}
}

// Estimate returns what is known of the class under the half-life of a candidate that goes by use.
func (c *Class) Estimate(candidate int) Estimate {
	e := c.estimates[c.life[candidate]]
	e.Floor = c.candidates[candidate].Floor
	return e
}

// Costs returns what every candidate has paid so far for all groups of the class, in the unit of the prices.
func (c *Class) Costs() []float64 { return slices.Clone(c.costs) }

// Done returns what all groups of the class have cost so far where they really were, with the moves from one rung to another, in the
// unit of the prices.
func (c *Class) Done() float64 { return c.done }

// Way returns what it would cost to bring all groups of the class from where they are, which rung says of those that are
// followed, to where every candidate has them.
func (c *Class) Way(rung func(name uint64) int) []float64 {
	way := make([]float64, len(c.candidates))
	for _, name := range c.names() {
		g, from := c.groups[name], rung(name)
		for i := range c.candidates {
			way[i] += c.weight() * g.bytes * c.prices.Move[from][g.places[i].rung]
		}
	}
	return way
}

// Rung returns where a candidate has a group that is followed.
func (c *Class) Rung(name uint64, candidate int) int {
	return int(c.groups[name].places[candidate].rung)
}

// names returns the groups in order, as sums of floating-point numbers are to be the same each time.
func (c *Class) names() []uint64 { return slices.Sorted(maps.Keys(c.groups)) }
