package reliability

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/restripe/restripe/agent/stripe"
)

// DefaultOverhead is the most bytes stored per byte on the coldest step unless a target says otherwise.
const DefaultOverhead = 1.5

// Target is how safe data shall be, and with what.
type Target struct {
	// Nines is the least durability of a group over a year, on every step of the ladder.
	Nines float64 `json:"nines"`
	// Nodes is how many nodes there are, or failure domains if they are fewer. One of them is kept spare.
	Nodes int `json:"nodes"`
	// MaxOverhead is the most bytes stored per byte on the coldest step.
	MaxOverhead float64 `json:"maxOverhead"`
	Environment
}

// Limits of a Target. Beyond mostNines correlated failures decide, of which the models know nothing.
const (
	mostNines = 15
	mostNodes = 1 << 16
)

// Validate reports what is wrong with t, wrapping ErrTarget or ErrModel.
func (t Target) Validate() error {
	switch {
	case !(t.Nines > 0 && t.Nines <= mostNines):
		return fmt.Errorf("%w: %v nines; ask for more than 0 and at most %d", ErrTarget, t.Nines, mostNines)
	case t.Nodes < 1 || t.Nodes > mostNodes:
		return fmt.Errorf("%w: %d nodes; give a number from 1 to %d", ErrTarget, t.Nodes, mostNodes)
	case !(t.MaxOverhead > 1) || math.IsInf(t.MaxOverhead, 1):
		return fmt.Errorf("%w: %v bytes stored per byte; redundancy takes more than 1", ErrTarget, t.MaxOverhead)
	}
	return t.Environment.Validate()
}

// Choice is a ladder for a target.
type Choice struct {
	Target Target        `json:"target"`
	Ladder stripe.Ladder `json:"ladder"` // hottest first; all steps survive the same number of losses
	Steps  []Step        `json:"steps"`  // one per scheme of the ladder
	// NodesUsed is how many nodes a group lies on.
	NodesUsed int `json:"nodesUsed"`
	// Lean is the same ladder with fewer copies on the hottest step, where that reaches the target too.
	Lean *Lean `json:"lean,omitempty"`
}

// Step is one scheme of a chosen ladder.
type Step struct {
	Temperature string        `json:"temperature"` // hot, warm or cold
	Scheme      stripe.Scheme `json:"scheme"`
	Overhead    float64       `json:"overhead"`
	// RepairSeconds is how long the rebuild of a lost node takes.
	RepairSeconds float64 `json:"repairSeconds"`
	// Group are the figures of a group, Cluster those of all groups on all nodes together.
	Group   Figures `json:"group"`
	Cluster Figures `json:"cluster"`
}

// Lean is a ladder that stores less hot data and sends some on cooling.
type Lean struct {
	Ladder      stripe.Ladder `json:"ladder"`
	Overhead    float64       `json:"overhead"`    // of its hottest step
	NetworkDown float64       `json:"networkDown"` // blocks sent per data block from there to the next step
}

// Choose picks the ladder for a target: the fewest parity blocks with which some ladder's groups reach the nines on every
// step and its coldest step is within the overhead. Of those ladders it takes the first that stripe.RecommendLadders has
// for the nodes, then for fewer, and where none of these is safe enough one with as narrow a coldest step as the overhead
// allows. All steps survive the same number of losses, so cooling sends nothing.
//
// An error wraps ErrTarget and says what would help, or ErrModel.
func Choose(t Target) (Choice, error) {
	if err := t.Validate(); err != nil {
		return Choice{}, fmt.Errorf("choosing a ladder: %w", err)
	}
	for m := 1; m <= stripe.MaxParity; m++ {
		ladder, err := t.ladderWith(m)
		if err != nil {
			return Choice{}, fmt.Errorf("choosing a ladder: %w", err)
		}
		if ladder != nil {
			return t.choice(ladder)
		}
	}
	return Choice{}, fmt.Errorf("choosing a ladder: %w", t.outOfReach())
}

// ladderWith returns a ladder with m parity blocks that reaches the target, or nil.
func (t Target) ladderWith(m int) (stripe.Ladder, error) {
	narrow := t.narrowest(m)
	if narrow == nil || narrow.Width()+m+1 > t.Nodes {
		return nil, nil
	}
	if good, err := t.reachedBy(narrow); err != nil || !good {
		return nil, err
	}
	most := min(t.Nodes, stripe.MaxData+m+1)
	for nodes := most; nodes >= narrow.Width()+m+1; nodes-- {
		recommended, err := stripe.RecommendLadders(nodes, m, t.MaxOverhead)
		if errors.Is(err, stripe.ErrLadder) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("choosing among recommended ladders: %w", err)
		}
		if good, err := t.reachedBy(recommended[0].Ladder); err != nil || good {
			return recommended[0].Ladder, err
		}
	}
	return narrow, nil
}

// narrowest returns the ladder with m parity blocks whose coldest step is the narrowest within the overhead, and so the
// safest; nil where there is none.
func (t Target) narrowest(m int) stripe.Ladder {
	k := 1
	for ; k <= stripe.MaxData && stripe.RS(k, m).Overhead() > t.MaxOverhead; k++ {
	}
	if k > stripe.MaxData {
		return nil
	}
	var ladder stripe.Ladder
	for _, step := range slices.Compact([]int{1, middleDivisor(k), k}) {
		ladder = append(ladder, stripe.RS(step, m))
	}
	return ladder
}

// middleDivisor returns the largest divisor of k up to its root.
func middleDivisor(k int) int {
	middle := 1
	for d := 2; d*d <= k; d++ {
		if k%d == 0 {
			middle = d
		}
	}
	return middle
}

// reachedBy reports whether groups of a ladder reach the nines on every step.
func (t Target) reachedBy(ladder stripe.Ladder) (bool, error) {
	nines, err := t.ninesOf(ladder)
	return nines >= t.Nines, err
}

// ninesOf returns the nines of a ladder's weakest step.
func (t Target) ninesOf(ladder stripe.Ladder) (float64, error) {
	least := math.Inf(1)
	for _, scheme := range ladder {
		figures, err := SRS(scheme, ladder.Width(), t.Rates(scheme.K))
		if err != nil {
			return 0, err
		}
		least = min(least, figures.Nines)
	}
	return least, nil
}

// choice fills in what there is to say of a ladder.
func (t Target) choice(ladder stripe.Ladder) (Choice, error) {
	c := Choice{Target: t, Ladder: ladder, NodesUsed: ladder.Width() + ladder.MaxParity()}
	for i, scheme := range ladder {
		rates := t.Rates(scheme.K)
		group, err := SRS(scheme, ladder.Width(), rates)
		if err != nil {
			return Choice{}, err
		}
		cluster, err := Cluster(scheme, t.Nodes, rates)
		if err != nil {
			return Choice{}, err
		}
		c.Steps = append(c.Steps, Step{
			Temperature: temperature(i, len(ladder)), Scheme: scheme, Overhead: scheme.Overhead(),
			RepairSeconds: t.RepairSeconds(scheme.K), Group: group, Cluster: cluster,
		})
	}
	lean, err := t.lean(ladder)
	if err != nil {
		return Choice{}, err
	}
	c.Lean = lean
	return c, nil
}

func temperature(step, steps int) string {
	switch step {
	case 0:
		return "hot"
	case steps - 1:
		return "cold"
	}
	return "warm"
}

// lean returns the ladder with as few copies on the hottest step as reach the target, without the steps that then store
// no less; nil where it takes as many copies as the ladder has.
func (t Target) lean(ladder stripe.Ladder) (*Lean, error) {
	for copies := 2; copies <= ladder[0].M; copies++ {
		hot := stripe.Replicas(copies)
		leaner := stripe.Ladder{hot}
		for _, scheme := range ladder[1:] {
			if scheme.Overhead() < hot.Overhead() {
				leaner = append(leaner, scheme)
			}
		}
		good, err := t.reachedBy(leaner)
		if err != nil {
			return nil, err
		}
		if !good || len(leaner) == 1 {
			continue
		}
		layout, err := stripe.NewLayout(leaner, 0, stripe.ModeFree)
		if err != nil {
			return nil, fmt.Errorf("laying out %s: %w", leaner, err)
		}
		plan, err := stripe.NewPlan(layout, hot, leaner[1], stripe.PlannerRestripe, stripe.LeastNetwork)
		if err != nil {
			return nil, fmt.Errorf("planning %s to %s: %w", hot, leaner[1], err)
		}
		return &Lean{Ladder: leaner, Overhead: hot.Overhead(), NetworkDown: float64(plan.Cost.BlocksSent) / float64(layout.Cells())}, nil
	}
	return nil, nil
}
