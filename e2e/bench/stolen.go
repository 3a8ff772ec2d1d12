//go:build linux

package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// calmShare is how much of the processors' time a hypervisor may give to others in a round that counts as calm.
const calmShare = 0.05

// calmTime is after how long no round is measured again for want of calm.
const calmTime = 4 * time.Minute

// calmRule is what decides which rounds count, for the pages.
var calmRule = fmt.Sprintf("Rounds in which a hypervisor gave more than %.0f %% of the processors' time to others are measured again, within %.0f minutes in all, and the calmest count. ", 100*calmShare, calmTime.Minutes())

// disturbance is how calm the rounds were that results come from.
type disturbance struct {
	kept, measured int     // rounds
	most           float64 // share of the processors' time that others had in the worst round that was kept
}

// String is for the pages.
func (d disturbance) String() string {
	return fmt.Sprintf("%d of %d rounds, in which others had at most %.0f %%", d.kept, d.measured, 100*d.most)
}

// forCalm reports whether there is time yet to measure a round again.
func forCalm() (again func() bool) {
	began := time.Now()
	return func() bool { return time.Since(began) < calmTime }
}

// calm measures as many rounds as are wanted, and again until so many were calm or again says no; it returns the calmest in
// the order in which they were measured. Only what others took decides, not what was measured.
func calm[T any](want int, again func() bool, stolen func() (processorTicks, error), measure func(round int) (T, error)) (kept []T, d disturbance, err error) {
	type round struct {
		number int
		share  float64
		result T
	}
	var rounds []round
	for calms := 0; len(rounds) < want || calms < want && again(); {
		before, err := stolen()
		if err != nil {
			return nil, d, err
		}
		result, err := measure(len(rounds))
		if err != nil {
			return nil, d, err
		}
		after, err := stolen()
		if err != nil {
			return nil, d, err
		}
		one := round{len(rounds), after.shareSince(before), result}
		if one.share <= calmShare {
			calms++
		}
		rounds = append(rounds, one)
	}
	d.kept, d.measured = want, len(rounds)
	slices.SortFunc(rounds, func(a, b round) int { return cmp.Or(cmp.Compare(a.share, b.share), cmp.Compare(a.number, b.number)) })
	rounds = rounds[:want]
	d.most = rounds[want-1].share
	slices.SortFunc(rounds, func(a, b round) int { return cmp.Compare(a.number, b.number) })
	for _, one := range rounds {
		kept = append(kept, one.result)
	}
	return kept, d, nil
}

// processorTicks is the time of all processors since the machine started, and what others had of it, in the kernel's ticks.
type processorTicks struct{ stolen, all int64 }

// shareSince returns what share of the time since an earlier moment others had.
func (t processorTicks) shareSince(before processorTicks) float64 {
	if t.all == before.all {
		return 0
	}
	return float64(t.stolen-before.stolen) / float64(t.all-before.all)
}

func readProcessorTicks() (processorTicks, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return processorTicks{}, fmt.Errorf("reading the processors' time: %w", err)
	}
	return parseProcessorTicks(string(text))
}

// parseProcessorTicks reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq and steal. What
// guests had, behind those, is in user and nice already.
func parseProcessorTicks(text string) (t processorTicks, err error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return t, fmt.Errorf("reading the processors' time: %q is not the line of all processors", line)
	}
	for _, field := range fields[1:9] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil || ticks < 0 {
			return t, fmt.Errorf("reading the processors' time: %q is not a count of ticks", field)
		}
		t.all += ticks
		t.stolen = ticks // the last of them
	}
	return t, nil
}
