package main

import (
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/heat/shadow"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/replay"
)

// On the third day after other objects have become the popular ones, whoever leads costs at most a fifth more than the candidate does
// that is best that day.
func TestTheLeaderFollowsAShift(t *testing.T) {
	const everyDays, within, most = 4, 3, 1.2
	s := testSetting()
	s.days = 16
	c, err := planCosts()
	if err != nil {
		t.Fatal(err)
	}
	traces := synthetic(s.days)
	at := slices.IndexFunc(traces, func(t *replay.Trace) bool { return t.Name == "popular ones, others every four days" })
	for _, network := range networkPrices {
		for _, use := range usePrices {
			priced := s
			priced.networkDays, priced.hot, priced.warm = network, s.hot/use, s.warm/use
			for day, cost := range dailyCosts(t, traces[at], priced.prices(c)) {
				if day > everyDays && day%everyDays == within-1 && cost.leader > most*cost.best {
					t.Errorf("network %g, use %g, day %d: the leader costs %.2f of the best candidate",
						network, use, day+1, cost.leader/cost.best)
				}
			}
		}
	}
}

// dayCost is what was paid on one day, by whoever led and by the candidate that was best.
type dayCost struct{ leader, best float64 }

// dailyCosts follows a trace as operators do.
func dailyCosts(t *testing.T, trace *replay.Trace, prices shadow.Prices) []dayCost {
	t.Helper()
	candidates := shadow.Candidates(len(ladder))
	class, err := shadow.New(prices, candidates, 0)
	if err != nil {
		t.Fatal(err)
	}
	lead, before := decide.Lead{Candidate: shadow.First}, make([]float64, len(candidates))
	var days []dayCost
	next := 0
	for step := range int(trace.Accesses[len(trace.Accesses)-1].At/shadow.Step) + 1 {
		for end := time.Duration(step+1) * shadow.Step; next < len(trace.Accesses) && trace.Accesses[next].At < end; next++ {
			group := trace.Accesses[next].Group
			class.Use(replay.NameOf(group), shadow.Use{Bytes: float64(trace.Bytes[group]), Times: 1})
		}
		if class.Advance(); step%24 != 23 {
			continue
		}
		costs, paid := class.Costs(), make([]float64, len(candidates))
		for i := range costs {
			paid[i] = costs[i] - before[i]
		}
		days = append(days, dayCost{paid[lead.Candidate], slices.Min(paid)})
		before, lead = costs, lead.Look(costs, class.Way(func(name uint64) int { return class.Rung(name, lead.Candidate) }))
	}
	return days
}
