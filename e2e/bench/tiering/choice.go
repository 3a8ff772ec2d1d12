package main

import (
	"fmt"
	"io"
	"time"

	"github.com/restripe/restripe/agent/heat/shadow"
)

// choice is what one trace costs at one setting, in multiples of the oracle's cost.
type choice struct {
	fixed     float64 // the best code for everything
	fixedRung int
	candidate float64 // the best candidate, known afterwards
	auto      float64
	changes   int // of the leader
	mostMoves int // of one group
}

// choose compares the choice by shadows with what would have been best.
func choose(t *trace, s setting, c costs) (choice, error) {
	a, err := runAuto(t, s, c, 0)
	if err != nil {
		return choice{}, err
	}
	hindsight, err := follow(t, s, c)
	if err != nil {
		return choice{}, err
	}
	oracle := runOracle(t, s, c)
	least := oracle.cost(&s)
	made := choice{auto: a.out.cost(&s) / least, changes: a.changes, mostMoves: a.out.mostMoves}
	for i, candidate := range shadow.Candidates(len(ladder)) {
		cost := hindsight[i] / least
		if candidate.Always == shadow.ByUse {
			if made.candidate == 0 || cost < made.candidate {
				made.candidate = cost
			}
		} else if made.fixed == 0 || cost < made.fixed {
			made.fixed, made.fixedRung = cost, candidate.Always
		}
	}
	return made, nil
}

// follow returns what every candidate costs that follows all groups of a trace.
func follow(t *trace, s setting, c costs) ([]float64, error) {
	class, err := shadow.New(s.prices(c), shadow.Candidates(len(ladder)), len(t.bytes))
	if err != nil {
		return nil, fmt.Errorf("following %s: %w", t.name, err)
	}
	next := 0
	for i := range s.steps() {
		for now := time.Duration(i+1) * step; next < len(t.accesses) && t.accesses[next].at < now; next++ {
			class.Use(nameOf(t.accesses[next].group), shadow.Use{Bytes: float64(t.bytes[t.accesses[next].group]), Times: 1})
		}
		class.Advance()
	}
	return class.Costs(), nil
}

// Prices at which choices are compared: days that a byte could be stored for what sending it costs, and how many times as dear
// a use of a cold rung is as the bounds of the policy make it.
var (
	networkPrices = []float64{3, 13, 60}
	usePrices     = []float64{1, 4}
)

func writeChoices(w io.Writer, traces []*trace, s setting, c costs) error {
	fmt.Fprintf(w, "\n## The choice by shadows\n\nWhat was paid in multiples of what the oracle pays at the same prices: the best code for "+
		"everything, the best candidate (both known afterwards only), and `auto`, which begins with the candidate that is slow to make "+
		"groups colder and follows the one ahead. Network is for how many days a byte could be stored for what sending it costs; use, how "+
		"many times as dear a use of a cold rung is as the bounds above make it. Candidates follow %d groups of a trace at "+
		"most.\n\n", shadow.Limit)
	fmt.Fprintln(w, "| trace | network | use | best code | its cost | best candidate | auto | of the best code | changes of leader "+
		"| moves of a group, most |")
	fmt.Fprintln(w, "|---|---:|---:|---|---:|---:|---:|---:|---:|---:|")
	for _, t := range traces {
		for _, network := range networkPrices {
			for _, use := range usePrices {
				at := s
				at.networkDays, at.hot, at.warm = network, s.hot/use, s.warm/use
				made, err := choose(t, at, c)
				if err != nil {
					return err
				}
				fmt.Fprintf(w, "| %s | %g | %g | %s | %.2fx | %.2fx | **%.2fx** | %.2f | %d | %d |\n", t.name, network, use,
					ladder[made.fixedRung], made.fixed, made.candidate, made.auto, made.auto/made.fixed, made.changes, made.mostMoves)
			}
		}
	}
	return nil
}
