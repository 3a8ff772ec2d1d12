package main

import (
	"fmt"
	"io"
	"math"

	"github.com/dustin/go-humanize"

	"github.com/restripe/restripe/agent/heat/shadow"
	"github.com/restripe/restripe/operator/price"
	"github.com/restripe/restripe/operator/replay"
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
func choose(t *replay.Trace, s setting, c costs) (choice, error) {
	a, err := runAuto(t, s, c, 0)
	if err != nil {
		return choice{}, err
	}
	hindsight, err := replay.Run(t, s.prices(c))
	if err != nil {
		return choice{}, err
	}
	oracle := runOracle(t, s, c)
	least := oracle.cost(&s)
	made := choice{auto: a.out.cost(&s) / least, changes: a.changes, mostMoves: a.out.mostMoves}
	made.fixed, made.fixedRung, made.candidate = bestOf(hindsight)
	made.fixed, made.candidate = made.fixed/least, made.candidate/least
	return made, nil
}

// bestOf returns what the best code for everything costs, and what the best candidate by use does, both known afterwards only.
func bestOf(out *replay.Outcome) (fixed float64, rung int, byUse float64) {
	fixed, byUse = math.Inf(1), math.Inf(1)
	for i, cost := range out.Written {
		if cost < fixed {
			fixed, rung = cost, i
		}
	}
	for _, candidate := range out.Candidates {
		if candidate.Always == shadow.ByUse {
			byUse = min(byUse, candidate.Cost)
		}
	}
	return fixed, rung, byUse
}

// writePriced compares choices at the price table that policies have where they give no prices, for the group sizes of each trace.
func writePriced(w io.Writer, traces []*replay.Trace) error {
	fmt.Fprintf(w, "\n## At the price table of policies\n\nThe same traces at the documented prices (docs/prices.md): what is stored, "+
		"blocks read and written, and bytes sent, by moves in either direction. Here a move costs something downwards too, so that small "+
		"groups stay where they are written.\n\n")
	fmt.Fprintln(w, "| trace | bytes of a group | best code | best candidate, of it | auto, of it | changes of leader |")
	fmt.Fprintln(w, "|---|---:|---|---:|---:|---:|")
	for _, t := range traces {
		sum := int64(0)
		for _, bytes := range t.Bytes {
			sum += bytes
		}
		mean := sum / int64(len(t.Bytes))
		rungs, err := price.Default().Rungs(ladder, mean)
		if err != nil {
			return err
		}
		out, err := replay.Run(t, shadow.Prices(rungs))
		if err != nil {
			return err
		}
		fixed, rung, byUse := bestOf(out)
		fmt.Fprintf(w, "| %s | %s | %s | %.2f | **%.2f** | %d |\n", t.Name, humanize.IBytes(uint64(mean)), ladder[rung], byUse/fixed,
			out.Auto/fixed, len(out.Changes))
	}
	return nil
}

// Prices at which choices are compared: days that a byte could be stored for what sending it costs, and how many times as dear
// a use of a cold rung is as the bounds of the policy make it.
var (
	networkPrices = []float64{3, 13, 60}
	usePrices     = []float64{1, 4}
)

func writeChoices(w io.Writer, traces []*replay.Trace, s setting, c costs) error {
	fmt.Fprintf(w, "\n## The choice by shadows\n\nWhat was paid in multiples of what the oracle pays at the same prices: the best code for "+
		"everything, the best candidate (both known afterwards only), and `auto`, which begins with the candidate to which no "+
		"group is colder than they are on average, and follows the one ahead. Network is for how many days a byte could be stored for what sending it costs; use, how "+
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
				fmt.Fprintf(w, "| %s | %g | %g | %s | %.2fx | %.2fx | **%.2fx** | %.2f | %d | %d |\n", t.Name, network, use,
					ladder[made.fixedRung], made.fixed, made.candidate, made.auto, made.auto/made.fixed, made.changes, made.mostMoves)
			}
		}
	}
	return nil
}
