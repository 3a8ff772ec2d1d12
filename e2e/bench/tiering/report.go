package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/restripe/restripe/operator/replay"
)

// compare runs the contenders on every trace and writes the tables.
func compare(w io.Writer, traces []*replay.Trace, s setting) error {
	c, err := planCosts()
	if err != nil {
		return err
	}
	for _, t := range traces {
		outcomes, err := contenders(t, s, c)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		var users int64
		for _, bytes := range t.Bytes {
			users += bytes
		}
		fmt.Fprintf(w, "\n## %s\n\n%d accesses to %d groups of %s.\n\n", t.Name, len(t.Accesses), len(t.Bytes), humanize.IBytes(uint64(users)))
		writeSummary(w, outcomes, &s)
		writeDays(w, []outcome{outcomes[0], outcomes[1], outcomes[3], outcomes[5], outcomes[6]})
	}
	var all []*replay.Trace
	for _, t := range traces {
		all = append(append(all, t), halvesOf(t, s.days)...)
	}
	all = append(all, synthetic(s.days)...)
	if err := writeChoices(w, all, s, c); err != nil {
		return err
	}
	return writePriced(w, all)
}

// contenders are everything on the first rung, everything on the last, the policy with its half-life and with a shorter
// and a longer one, the choice by shadows, and the oracle.
func contenders(t *replay.Trace, s setting, c costs) ([]outcome, error) {
	outcomes := []outcome{runStatic(t, s, 0), runStatic(t, s, len(ladder)-1)}
	for _, halfLife := range []time.Duration{s.halfLife / 3, s.halfLife, s.halfLife * 3} {
		other := s
		other.halfLife = halfLife
		policy, err := runPolicy(t, other, c)
		if err != nil {
			return nil, err
		}
		policy.name = fmt.Sprintf("policy, %.0fh", halfLife.Hours())
		outcomes = append(outcomes, policy)
	}
	chosen, err := runAuto(t, s, c, 0)
	if err != nil {
		return nil, err
	}
	return append(outcomes, chosen.out, runOracle(t, s, c)), nil
}

func writeSummary(w io.Writer, outcomes []outcome, s *setting) {
	least := outcomes[len(outcomes)-1].cost(s)
	fmt.Fprintf(w, "| | stored, byte-days | of rep(3) | sent | written | accesses on %s, %s, %s | moves a group, most | back, flaps | shortest stay | cost of oracle's |\n", ladder[0], ladder[1], ladder[2])
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for i := range outcomes {
		o := &outcomes[i]
		all := float64(max(1, o.accesses[0]+o.accesses[1]+o.accesses[2]))
		stay := "-"
		if o.shortestStay < time.Duration(math.MaxInt64) {
			stay = o.shortestStay.Truncate(time.Hour).String()
		}
		fmt.Fprintf(w, "| %s | %s | %.0f %% | %s | %s | %.0f, %.0f, %.0f %% | %.2f, %d | %d, %d | %s | %.2fx |\n",
			o.name, humanize.IBytes(uint64(o.storedDays)), 100*o.storedDays/outcomes[0].storedDays, humanize.IBytes(uint64(o.sent)), humanize.IBytes(uint64(o.written)),
			100*float64(o.accesses[0])/all, 100*float64(o.accesses[1])/all, 100*float64(o.accesses[2])/all,
			float64(o.moves)/float64(max(1, o.groups)), o.mostMoves, o.returns, o.flaps, stay, o.cost(s)/least)
	}
}

func writeDays(w io.Writer, outcomes []outcome) {
	fmt.Fprint(w, "\nStored at the end of each day, and sent + written by moves until then:\n\n| day |")
	for i := range outcomes {
		fmt.Fprintf(w, " %s |", outcomes[i].name)
	}
	fmt.Fprint(w, "\n|---:|")
	for range outcomes {
		fmt.Fprint(w, "---:|")
	}
	fmt.Fprintln(w)
	for d := range outcomes[0].days {
		fmt.Fprintf(w, "| %d |", d+1)
		for i := range outcomes {
			at := outcomes[i].days[d]
			fmt.Fprintf(w, " %s", humanize.IBytes(uint64(at.stored)))
			if outcomes[i].sent+outcomes[i].written > 0 {
				fmt.Fprintf(w, ", %s + %s", humanize.IBytes(uint64(at.sent)), humanize.IBytes(uint64(at.written)))
			}
			fmt.Fprint(w, " |")
		}
		fmt.Fprintln(w)
	}
}
