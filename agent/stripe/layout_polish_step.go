package stripe

// polishStep keeps the cost of the step from one level to another, stripe by stripe.
type polishStep struct {
	search   *chainSearch
	rank     importance
	from, to *polishLevel
	tallies  []tally // per stripe of from
}

// tally says how a stripe falls apart in another level.
type tally struct {
	overlap  int32 // cells of the largest segment
	segments int32
}

// changedStripe is a stripe that an exchange may make dearer or cheaper.
type changedStripe struct {
	step   *polishStep
	stripe int32
	now    tally
}

func newPolishStep(s *chainSearch, levels []*polishLevel, from, to int) *polishStep {
	step := &polishStep{
		search: s, rank: s.importance(min(from, to), max(from, to)), from: levels[from], to: levels[to],
		tallies: make([]tally, len(levels[from].used)),
	}
	strict := 0
	for index := range step.tallies {
		now := step.tally(int32(index))
		step.tallies[index] = now
		stripeStrict, _ := s.stripeCost(step.from.k, int(now.overlap), int(now.segments))
		strict += stripeStrict
	}
	if least, _ := s.leastCost(step.from.k, step.to.k); s.mode == ModeFree && step.rank.adjacent && strict == least {
		step.rank.insisted = true
	}
	return step
}

func (s *polishStep) tally(stripe int32) tally {
	cells, counts := s.from.stripe(stripe), s.to.counts
	var now tally
	for _, cell := range cells {
		of := s.to.of[cell]
		counts[of]++
		if counts[of] == 1 {
			now.segments++
		}
		now.overlap = max(now.overlap, counts[of])
	}
	for _, cell := range cells {
		counts[s.to.of[cell]] = 0
	}
	return now
}

func (s *polishStep) scoreOf(t tally) score {
	return s.rank.score(s.search.stripeCost(s.from.k, int(t.overlap), int(t.segments)))
}

// try applies an exchange and returns what it adds to the score; matters is false, and nothing is applied, if it cannot
// change any. Only stripes that hold x or y count, and of a pair of levels only if one of them takes part in the
// exchange and both tell x from y.
func (p *polisher) try(e exchange) (delta score, matters bool) {
	p.changes = p.changes[:0]
	last := min(e.last, len(p.steps)-1)
	for inner := e.first; inner <= last; inner++ {
		l := p.levels[inner]
		s, t := l.of[e.x], l.of[e.y]
		if s == t {
			continue
		}
		for outer := range p.steps {
			if outer >= e.first && outer <= last {
				continue
			}
			u, v := p.levels[outer].of[e.x], p.levels[outer].of[e.y]
			if u == v {
				continue
			}
			there, back := p.steps[inner][outer], p.steps[outer][inner]
			p.changes = append(p.changes, changedStripe{step: there, stripe: s}, changedStripe{step: there, stripe: t},
				changedStripe{step: back, stripe: u}, changedStripe{step: back, stripe: v})
		}
	}
	if len(p.changes) == 0 {
		return score{}, false
	}
	p.apply(e)
	for i := range p.changes {
		c := &p.changes[i]
		c.now = c.step.tally(c.stripe)
		if old := c.step.tallies[c.stripe]; c.now != old {
			delta = delta.plus(c.step.scoreOf(c.now)).minus(c.step.scoreOf(old))
		}
	}
	return delta, true
}
