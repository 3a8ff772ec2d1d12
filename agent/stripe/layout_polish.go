package stripe

import "slices"

// Bounds of polish, part of LayoutVersion. They keep a layout of up to 64 rows within some tens of milliseconds.
const (
	polishAtoms     = 20_000  // larger groups are not polished
	polishPerAtom   = 400     // proposals per atom and level
	polishProposals = 300_000 // most proposals
	polishSeed      = 88172645463325252
)

// segmentCost is what one more segment adds to the weighted cost: a block at m = 2 and two at m = 3.
const segmentCost = 3

// polish improves the best layout of the search by exchanging cells between stripes, by threshold accepting (Dueck and
// Scheuer, J. Comput. Phys. 90, 1990) in integers with a fixed generator, so that the result is the same on every
// machine. An exchange is accepted if it lowers the strict cost, or keeps it and raises the weighted cost by no more
// than a threshold, which falls from one segment of the weightiest pair to 0 over the first three quarters of the
// proposals. The best layout seen is kept.
//
// The strict cost never rises: what the mode insists on stays at its least. In mode free the adjacent steps that start
// at their least for every m are insisted on too. It stops early where all pairs are at their least at once.
func (s *chainSearch) polish() {
	if s.cells > polishAtoms || s.real < 3 {
		return
	}
	p := newPolisher(s)
	if p.total.weighted == p.least {
		return
	}
	p.run(min(polishProposals, polishPerAtom*s.cells*p.rows), segmentCost*p.heaviest)
	s.best = p.cuts()
	s.bestScore = s.layoutScore(s.best)
}

// polisher is a layout under polish, in atoms.
type polisher struct {
	cells, columns int
	levels         []*polishLevel
	rows           int             // the last level, which stays as it is
	steps          [][]*polishStep // from one level of the ladder to another; nil on the diagonal

	total    score
	least    int // lower bound of the weighted cost
	heaviest int // largest weight of a step
	random   uint64
	since    []exchange      // accepted since the best layout
	changes  []changedStripe // of the proposal under way
}

// polishLevel is a partition whose cells can change places.
type polishLevel struct {
	k      int
	of     []int32  // stripe of each cell
	cells  []int32  // stripe t holds cells[t*k:(t+1)*k]
	at     []int32  // where each cell is in cells
	used   []uint64 // columns of each stripe, a bit each
	counts []int32  // per stripe, zero between uses
}

// exchange swaps the stripes of cells x and y in the levels first to last. It is its own inverse.
type exchange struct {
	x, y        int32
	first, last int
}

func newPolisher(s *chainSearch) *polisher {
	p := &polisher{cells: s.cells, columns: s.columns, rows: len(s.widths) - 1, random: polishSeed}
	for _, c := range s.best {
		p.levels = append(p.levels, newPolishLevel(c, s.columns))
	}
	p.steps = make([][]*polishStep, s.real)
	for from := range p.steps {
		p.steps[from] = make([]*polishStep, s.real)
		for to := range p.steps[from] {
			if from == to {
				continue
			}
			step := newPolishStep(s, p.levels, from, to)
			p.steps[from][to] = step
			for _, now := range step.tallies {
				p.total = p.total.plus(step.scoreOf(now))
			}
			_, least := s.leastCost(s.widths[from], s.widths[to])
			p.least += step.rank.weight * least
			p.heaviest = max(p.heaviest, step.rank.weight)
		}
	}
	return p
}

func newPolishLevel(c *cut, columns int) *polishLevel {
	l := &polishLevel{
		k: c.k, of: slices.Clone(c.of), cells: make([]int32, 0, len(c.of)), at: make([]int32, len(c.of)),
		used: make([]uint64, len(c.stripes)), counts: make([]int32, len(c.stripes)),
	}
	for index, stripe := range c.stripes {
		for _, cell := range stripe {
			l.at[cell] = int32(len(l.cells))
			l.cells = append(l.cells, cell)
			l.used[index] |= 1 << (int(cell) % columns)
		}
	}
	return l
}

func (l *polishLevel) stripe(index int32) []int32 {
	first, end := int(index)*l.k, (int(index)+1)*l.k
	return l.cells[first:end:end]
}

// run makes this many proposals, with the threshold falling from start, and ends at the best layout seen.
func (p *polisher) run(proposals, start int) {
	best := p.total
	for i := range proposals {
		e, possible := p.propose()
		if !possible {
			continue
		}
		delta, matters := p.try(e)
		if !matters {
			continue
		}
		threshold := max(0, start*(3*proposals-4*i)/(3*proposals))
		if delta.strict > 0 || delta.strict == 0 && delta.weighted > threshold {
			p.apply(e)
			continue
		}
		p.accept(e, delta)
		if p.total.less(best) {
			best = p.total
			p.since = p.since[:0]
			if best.weighted == p.least {
				break
			}
		}
	}
	for _, e := range slices.Backward(p.since) {
		p.apply(e)
	}
	p.since, p.total = nil, best
}

// below returns a number from 0 to n-1 (Marsaglia, Xorshift RNGs, J. Stat. Software 8, 2003).
func (p *polisher) below(n int) int {
	p.random ^= p.random << 13
	p.random ^= p.random >> 7
	p.random ^= p.random << 17
	return int(p.random % uint64(n))
}

// propose draws an exchange and reports whether it changes a stripe and leaves the columns of all stripes distinct.
// Half of them exchange two cells of a stripe in all finer levels, which leaves the steps between those and up to that
// stripe's level as they are; a quarter exchange two cells of some stripe in one level; a quarter are arbitrary.
func (p *polisher) propose() (e exchange, possible bool) {
	within := -1 // level of the stripe that holds both cells
	switch p.below(4) {
	case 0, 1:
		e.last = p.below(p.rows)
		within = e.last + 1
	case 2:
		e.first = p.below(p.rows)
		e.last = e.first
		within = p.below(p.rows + 1)
	default:
		a, b := p.below(p.rows), p.below(p.rows)
		e.first, e.last = min(a, b), max(a, b)
	}
	e.x = int32(p.below(p.cells))
	if within < 0 {
		e.y = int32(p.below(p.cells))
	} else {
		l := p.levels[within]
		e.y = l.stripe(l.of[e.x])[p.below(l.k)]
	}
	return e, p.possible(e)
}

func (p *polisher) possible(e exchange) bool {
	x, y := uint64(1)<<(int(e.x)%p.columns), uint64(1)<<(int(e.y)%p.columns)
	changes := false
	for _, l := range p.levels[e.first : e.last+1] {
		s, t := l.of[e.x], l.of[e.y]
		if s == t {
			continue
		}
		if x != y && (l.used[s]&y != 0 || l.used[t]&x != 0) {
			return false
		}
		changes = true
	}
	return changes
}

func (p *polisher) apply(e exchange) {
	flip := uint64(1)<<(int(e.x)%p.columns) ^ uint64(1)<<(int(e.y)%p.columns)
	for _, l := range p.levels[e.first : e.last+1] {
		s, t := l.of[e.x], l.of[e.y]
		if s == t {
			continue
		}
		l.of[e.x], l.of[e.y] = t, s
		l.used[s] ^= flip
		l.used[t] ^= flip
		i, j := l.at[e.x], l.at[e.y]
		l.cells[i], l.cells[j] = e.y, e.x
		l.at[e.x], l.at[e.y] = j, i
	}
}

// accept makes the exchange that was tried last part of the layout.
func (p *polisher) accept(e exchange, delta score) {
	for _, c := range p.changes {
		c.step.tallies[c.stripe] = c.now
	}
	p.total = p.total.plus(delta)
	p.since = append(p.since, e)
}

// cuts returns the layout.
func (p *polisher) cuts() []*cut {
	cuts := make([]*cut, len(p.levels))
	for level, l := range p.levels {
		stripes := make([][]int32, len(l.used))
		for index := range stripes {
			stripes[index] = l.stripe(int32(index))
		}
		cuts[level] = newCut(l.k, p.cells, stripes)
	}
	return cuts
}
