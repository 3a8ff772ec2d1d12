package shadow

import (
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
	life       []int           // of every candidate, which of them
	limit      int
	sparse     uint // groups are followed whose hash begins with so many zeros
	step       uint32
	groups     map[uint64]*group
	estimates  []Estimate // by half-life
	costs      []float64  // by candidate
}

// group is what candidates know of one group.
type group struct {
	bytes    float64
	uses     float64   // in this step
	written  float64   // of these, the write: 1 in the step in which it was first used, or 0
	born     uint32    // that step
	counted  []float64 // by half-life
	watching []float64 // by half-life, what that would be for one use a day
	rungs    []int8    // by candidate
	movedAt  []uint32  // by candidate, the step
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

// Use counts a use of a group, named by a number whose bits are those of a good hash. The first use is its write.
func (c *Class) Use(name uint64, bytes float64) {
	if c.sparse > 0 && name>>(64-c.sparse) != 0 {
		return
	}
	g := c.groups[name]
	if g == nil {
		g = c.follow(bytes)
		c.groups[name] = g
		c.thin()
	}
	g.uses++
}

func (c *Class) follow(bytes float64) *group {
	g := &group{
		bytes: bytes, written: 1, born: c.step, counted: make([]float64, len(c.lives)), watching: make([]float64, len(c.lives)),
		rungs: make([]int8, len(c.candidates)), movedAt: make([]uint32, len(c.candidates)),
	}
	for i := range c.candidates {
		g.rungs[i], g.movedAt[i] = int8(max(0, c.candidates[i].Always)), c.step
	}
	return g
}

// thin follows half as many groups where they are too many; each stands for twice as many from then on.
func (c *Class) thin() {
	for len(c.groups) > c.limit {
		c.sparse++
		for name := range c.groups {
			if name>>(64-c.sparse) != 0 {
				delete(c.groups, name)
			}
		}
	}
}

// weight is how many groups one that is followed stands for.
func (c *Class) weight() float64 { return math.Ldexp(1, int(c.sparse)) }

// Forget drops a group that is no more.
func (c *Class) Forget(name uint64) { delete(c.groups, name) }

// Advance ends a step: candidates pay for it and move their groups.
func (c *Class) Advance() {
	c.step++
	names := c.names()
	c.count(names)
	rates, weight := make([]float64, len(c.lives)), c.weight()
	for _, name := range names {
		g := c.groups[name]
		for life := range rates {
			rates[life] = c.estimates[life].Rate(g.counted[life], g.watching[life])
		}
		for i := range c.candidates {
			c.costs[i] += weight * g.bytes * c.charge(g, i, rates)
		}
		g.uses, g.written = 0, 0
	}
}

// charge returns what a candidate pays in this step for a byte of a group, and moves the group.
func (c *Class) charge(g *group, i int, rates []float64) float64 {
	candidate, rung := &c.candidates[i], int(g.rungs[i])
	cost := g.uses * c.prices.Use[rung]
	if life := c.life[i]; life >= 0 && time.Duration(c.step-g.movedAt[i])*Step >= candidate.Dwell {
		if to := candidate.Next(&c.prices, rung, rates[life]); to != rung {
			cost += c.prices.Move[rung][to]
			g.rungs[i], g.movedAt[i] = int8(to), c.step
			rung = to
		}
	}
	return cost + c.prices.Stored[rung]*stepDays
}

// count brings the counters of groups up to date, and what is known of the class.
func (c *Class) count(names []uint64) {
	for life, halfLife := range c.lives {
		var sums counts
		keep := math.Exp2(-float64(Step) / float64(halfLife))
		for _, name := range names {
			g := c.groups[name]
			g.counted[life] = g.counted[life]*keep + (g.uses-g.written)*math.Sqrt(keep)
			g.watching[life] = Watched(halfLife, float64(c.step-g.born)*stepDays)
			sums.counted += g.counted[life]
			sums.watched += g.watching[life]
		}
		mean := sums.mean()
		for _, name := range names {
			g := c.groups[name]
			far := g.counted[life] - mean*g.watching[life]
			sums.apart += far * far
			sums.noise += Watched(halfLife/2, float64(c.step-g.born)*stepDays)
			sums.watchedSquares += g.watching[life] * g.watching[life]
		}
		c.estimates[life] = sums.estimate()
	}
}

// Estimate returns what is known of the class under the half-life of a candidate that goes by use.
func (c *Class) Estimate(candidate int) Estimate { return c.estimates[c.life[candidate]] }

// Costs returns what every candidate has paid so far for all groups of the class, in bytes stored for a day.
func (c *Class) Costs() []float64 { return slices.Clone(c.costs) }

// Way returns what it would cost to bring all groups of the class from where they are, which rung says of those that are
// followed, to where every candidate has them, in bytes stored for a day.
func (c *Class) Way(rung func(name uint64) int) []float64 {
	way := make([]float64, len(c.candidates))
	for _, name := range c.names() {
		g, from := c.groups[name], rung(name)
		for i := range c.candidates {
			way[i] += c.weight() * g.bytes * c.prices.Move[from][g.rungs[i]]
		}
	}
	return way
}

// names returns the groups in order, as sums of floating-point numbers are to be the same each time.
func (c *Class) names() []uint64 { return slices.Sorted(maps.Keys(c.groups)) }
