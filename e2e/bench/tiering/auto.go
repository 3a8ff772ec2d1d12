package main

import (
	"fmt"
	"math"
	"time"

	"github.com/restripe/restripe/agent/heat/shadow"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/replay"
)

// prices are those of a setting, as candidates reckon with them.
func (s *setting) prices(c costs) shadow.Prices {
	miss := s.missPrice()
	var p shadow.Prices
	for from := range ladder {
		p.Stored = append(p.Stored, ladder[from].Overhead())
		p.Use = append(p.Use, miss[from])
		moves := make([]float64, len(ladder))
		for to := range ladder {
			moves[to] = c.sent[from][to] * s.networkDays
		}
		p.Move = append(p.Move, moves)
	}
	return p
}

// auto is a trace under the candidate that leads.
type auto struct {
	course
	prices     shadow.Prices
	candidates []shadow.Candidate
	class      *shadow.Class
	lead       decide.Lead
	changes    int
	lives      map[time.Duration][]float64 // what each half-life has counted, by group
	bornStep   []int
	byName     map[uint64]int
}

// runAuto moves groups as the candidate wants that leads at the time. limit is how many groups candidates follow.
func runAuto(t *replay.Trace, s setting, c costs, limit int) (*auto, error) {
	declaration, err := s.declaration()
	if err != nil {
		return nil, err
	}
	a := &auto{
		course:     course{setting: s, Trace: t, costs: c, declaration: declaration, groups: make([]group, len(t.Bytes))},
		prices:     s.prices(c),
		candidates: shadow.Candidates(len(ladder)), lead: decide.Lead{Candidate: shadow.First},
		lives: map[time.Duration][]float64{}, bornStep: make([]int, len(t.Bytes)), byName: map[uint64]int{},
	}
	a.out = outcome{name: "auto", groups: len(t.Bytes), shortestStay: time.Duration(math.MaxInt64)}
	if a.class, err = shadow.New(a.prices, a.candidates, limit); err != nil {
		return nil, fmt.Errorf("following %s: %w", t.Name, err)
	}
	for i := range a.candidates {
		a.lives[a.candidates[i].HalfLife] = make([]float64, len(t.Bytes))
	}
	for i := range t.Bytes {
		a.byName[replay.NameOf(i)] = i
	}
	a.obey()
	next := 0
	for i := range s.steps() {
		now := time.Duration(i+1) * step
		next = a.use(i, next, now)
		a.class.Advance()
		if i%24 == 23 {
			a.look()
		}
		a.heatUp(i)
		a.move(now)
		a.account(i)
	}
	return a, nil
}

// use tells of the accesses of a step, from one on, and returns the first one after it.
func (a *auto) use(i, next int, now time.Duration) int {
	for life, counted := range a.lives {
		keep := math.Exp2(-float64(step) / float64(max(1, life)))
		for j := range counted {
			counted[j] *= keep
		}
	}
	miss := a.missPrice()
	for ; next < len(a.Accesses) && a.Accesses[next].At < now; next++ {
		j := a.Accesses[next].Group
		g := &a.groups[j]
		a.class.Use(replay.NameOf(j), shadow.Use{Bytes: float64(a.Bytes[j]), Times: 1})
		a.out.accesses[g.rung]++
		a.out.missCost += miss[g.rung] * float64(a.Bytes[j])
		if !g.born {
			g.born, g.changed, a.bornStep[j] = true, a.Accesses[next].At, i
			continue
		}
		for life, counted := range a.lives {
			counted[j] += math.Exp2(-float64(now-a.Accesses[next].At) / float64(max(1, life)))
		}
	}
	return next
}

// heatUp has the heat of every group as the leader sees it.
func (a *auto) heatUp(i int) {
	leader := &a.candidates[a.lead.Candidate]
	if leader.Always != shadow.ByUse {
		return
	}
	estimate := a.class.Estimate(a.lead.Candidate)
	for j, counted := range a.lives[leader.HalfLife] {
		if g := &a.groups[j]; g.born {
			g.heat = estimate.Rate(counted, shadow.Watched(leader.HalfLife, float64(i+1-a.bornStep[j])*step.Hours()/24))
		}
	}
}

// look sees once a day who leads.
func (a *auto) look() {
	way := a.class.Way(func(name uint64) int { return a.groups[a.byName[name]].rung })
	before := a.lead.Candidate
	if a.lead = a.lead.Look(a.class.Costs(), way); a.lead.Candidate != before {
		a.changes++
	}
	a.obey()
}

// obey makes the leader's rules those of the class.
func (a *auto) obey() {
	leader := a.candidates[a.lead.Candidate]
	a.declaration.Rules, a.declaration.Class.Dwell = decide.RulesOf(leader, ladder, &a.prices, a.lead.Cost == 0), leader.Dwell
	a.dwell = leader.Dwell
}
