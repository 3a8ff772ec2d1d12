package reliability

import (
	"fmt"
	"math"
	"strings"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/words"
)

// outOfReach says why no ladder reaches the target, how near the best one comes, and what would help, each by itself.
func (t Target) outOfReach() error {
	var text strings.Builder
	best, nines := t.bestLadder()
	if best == nil {
		fmt.Fprintf(&text, "%s are too few for a code that stores at most %.2f bytes per byte with one node spare", words.Count(int64(t.Nodes), "node"), t.MaxOverhead)
	} else {
		fmt.Fprintf(&text, "the best ladder for %s at %.2f bytes stored per byte, %s, reaches %s nines, not %s",
			words.Count(int64(t.Nodes), "node"), t.MaxOverhead, best, NinesText(nines), NinesText(t.Nines))
	}
	help := t.whatHelps()
	if reached := math.Floor(nines); reached >= 1 {
		help = append(help, fmt.Sprintf("ask for %s nines", NinesText(reached)))
	}
	if len(help) == 0 {
		help = []string{"ask for fewer nines"}
	}
	text.WriteString("; " + joinOr(help))
	return fmt.Errorf("%w: %s", ErrTarget, text.String())
}

// bestLadder returns the safest ladder within the overhead and the nodes, and its nines; nil where there is none.
func (t Target) bestLadder() (stripe.Ladder, float64) {
	var best stripe.Ladder
	var most float64
	for m := 1; m <= stripe.MaxParity; m++ {
		ladder := t.narrowest(m)
		if ladder == nil || ladder.Width()+m+1 > t.Nodes {
			continue
		}
		if nines, err := t.ninesOf(ladder); err == nil && (best == nil || nines > most) {
			best, most = ladder, nines
		}
	}
	return best, most
}

// reachable reports whether some ladder reaches the target. Of the ladders with as many parity blocks the narrowest is
// the safest, so only these are looked at.
func (t Target) reachable() bool {
	best, nines := t.bestLadder()
	return best != nil && nines >= t.Nines
}

// whatHelps lists the smallest changes of one thing each that bring the target within reach.
func (t Target) whatHelps() []string {
	var help []string
	if nodes, found := t.leastNodes(); found {
		help = append(help, "have "+words.Count(int64(nodes), "node"))
	}
	for twentieths := math.Floor(t.MaxOverhead*20 + 1); twentieths <= 20*(1+stripe.MaxParity); twentieths++ {
		overhead := twentieths / 20
		if t.withOverhead(overhead).reachable() {
			help = append(help, fmt.Sprintf("allow %.2f bytes stored per byte", overhead))
			break
		}
	}
	for times := 2.0; times <= 1024; times *= 2 {
		faster := t
		faster.RepairBandwidth *= times
		if faster.reachable() {
			help = append(help, "repair at "+words.Rate(int64(faster.RepairBandwidth)))
			break
		}
	}
	return help
}

func (t Target) withOverhead(overhead float64) Target {
	t.MaxOverhead = overhead
	return t
}

// leastNodes returns the fewest nodes with which the target is reachable.
func (t Target) leastNodes() (int, bool) {
	for nodes := t.Nodes + 1; nodes <= stripe.MaxData+stripe.MaxParity+1; nodes++ {
		more := t
		more.Nodes = nodes
		if more.reachable() {
			return nodes, true
		}
	}
	return 0, false
}

func joinOr(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " or " + parts[len(parts)-1]
}
