package reliability

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/restripe/restripe/operator/words"
)

// Explain says in sentences why a ladder was chosen, what it gives and what the figures leave out.
func Explain(c Choice) []string {
	t, steps := c.Target, c.Steps
	hot, cold := steps[0], steps[len(steps)-1]
	whole := fmt.Sprintf("%s under %s", timeText(hot.RepairSeconds), hot.Scheme)
	if len(steps) > 1 {
		whole += fmt.Sprintf(" and after %s under %s, as a lost byte takes k bytes to rebuild", timeText(cold.RepairSeconds), cold.Scheme)
	}
	lines := []string{fmt.Sprintf("With %s of a hundred nodes failing a year, %s on each and repair at %s, a lost node is whole again after %s.",
		numberText(t.FailurePercent), words.Bytes(int64(t.NodeBytes)), words.Rate(int64(t.RepairBandwidth)), whole)}
	lines = append(lines, t.whyParity(cold.Scheme.M)...)
	weakest := slices.MinFunc(steps, func(a, b Step) int { return cmp.Compare(a.Group.Nines, b.Group.Nines) })
	lines = append(lines, fmt.Sprintf("The weakest step is %s: a group, on %d nodes, loses data once in %s years (%s nines); of all groups on %d nodes together something is lost once in %s years (%s nines).",
		weakest.Scheme, c.NodesUsed, yearsText(weakest.Group.MeanYearsToLoss), NinesText(weakest.Group.Nines),
		t.Nodes, yearsText(weakest.Cluster.MeanYearsToLoss), NinesText(weakest.Cluster.Nines)))
	if len(steps) > 1 {
		lines = append(lines, fmt.Sprintf("All steps survive any %s, so every step down the ladder sends nothing over the network.", words.Count(int64(cold.Scheme.M), "loss")))
	} else {
		lines = append(lines, fmt.Sprintf("%s alone is within %.2f bytes stored per byte, so the ladder ends there; allow fewer bytes to get colder steps.", hot.Scheme, t.MaxOverhead))
	}
	if c.Lean != nil {
		lines = append(lines, fmt.Sprintf("The ladder %s is safe enough too: it stores hot data %.2f times instead of %.2f times, but cooling it sends %.2f blocks per data block. Declare it where much stays hot.",
			c.Lean.Ladder, c.Lean.Overhead, hot.Overhead, c.Lean.NetworkDown))
	}
	return append(lines, "The models know independent failures of nodes and one repair at a time; what fails together, mistakes and lost racks are not in them.")
}

// whyParity says what one parity block less would reach.
func (t Target) whyParity(m int) []string {
	if m == 1 {
		return nil
	}
	fewer := t.narrowest(m - 1)
	nines, err := t.ninesOf(fewer)
	if err != nil {
		return nil // cannot be said, and is not needed
	}
	return []string{fmt.Sprintf("%d parity blocks a stripe are the fewest that give %s nines within %.2f bytes stored per byte: with %d, %s reaches %s.",
		m, NinesText(t.Nines), t.MaxOverhead, m-1, fewer[len(fewer)-1], NinesText(nines))}
}

// NinesText shows nines with a decimal, rounded down, so that no target seems reached that is not.
func NinesText(nines float64) string {
	return strconv.FormatFloat(math.Floor(nines*10+1e-9)/10, 'f', -1, 64)
}

func numberText(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// yearsText has two digits that count, as the inputs do.
func yearsText(years float64) string {
	for _, unit := range []struct {
		years float64
		name  string
	}{{1e15, ""}, {1e12, " trillion"}, {1e9, " billion"}, {1e6, " million"}, {1, ""}} {
		switch {
		case years >= 1e15:
			return strings.Replace(strconv.FormatFloat(years, 'e', 1, 64), "e+", "e", 1)
		case years >= unit.years && years >= 10*unit.years:
			digits := math.Pow(10, math.Floor(math.Log10(years))-1)
			return words.Number(int64(math.Round(years/digits)*digits/unit.years)) + unit.name
		case years >= unit.years:
			return strconv.FormatFloat(years/unit.years, 'f', 1, 64) + unit.name
		}
	}
	return strconv.FormatFloat(years, 'g', 2, 64)
}

func timeText(seconds float64) string { return words.About(words.Seconds(seconds)) }
