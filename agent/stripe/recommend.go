package stripe

import (
	"fmt"
	"slices"
)

// Recommendation is a ladder that fits a number of nodes, and what it costs.
type Recommendation struct {
	Ladder    Ladder  `json:"ladder"`
	Columns   int     `json:"columns"`
	Rows      int     `json:"rows"`
	Steps     []Step  `json:"steps"`     // one per scheme of the ladder
	NodesUsed int     `json:"nodesUsed"` // columns + parity nodes; at least one node stays spare
	Overhead  float64 `json:"overhead"`  // of the last step: bytes stored per byte of data
	Why       string  `json:"why"`
}

// Step is one scheme of a recommended ladder, with what the plans to and from the next one send.
type Step struct {
	Scheme      Scheme  `json:"scheme"`
	Overhead    float64 `json:"overhead"`
	NetworkDown float64 `json:"networkDown"` // blocks sent per data block to the next step
	NetworkUp   float64 `json:"networkUp"`   // blocks sent per data block from the next step back to this one
}

// RecommendLadders proposes ladders for nodes failure domains that survive the loss of any survive blocks and end at no
// more than overhead bytes stored per byte of data. The first is the divisor chain of the best width, whose steps down
// all send nothing; the others add one step that divides the width, which costs something next to non-dividing
// neighbours. One node is kept spare. The width is the number in (2/3*(nodes-survive-1), nodes-survive-1] with the most
// prime factors, the larger of equals. The error wraps ErrLadder and says what would help.
func RecommendLadders(nodes, survive int, overhead float64) ([]Recommendation, error) {
	if survive < 1 || survive > MaxParity {
		return nil, fmt.Errorf("recommending ladders: %w: %d losses to survive; choose 1 to %d", ErrLadder, survive, MaxParity)
	}
	width := recommendedWidth(nodes - survive - 1)
	if width < 2 {
		return nil, fmt.Errorf("recommending ladders: %w: %d nodes are too few to survive %d losses with one node spare; use at least %d nodes or survive fewer losses",
			ErrLadder, nodes, survive, survive+3)
	}
	chain := divisorChain(width)
	end := slices.IndexFunc(chain, func(k int) bool { return RS(k, survive).Overhead() <= overhead })
	if end < 0 {
		return nil, fmt.Errorf("recommending ladders: %w: %d nodes surviving %d losses reach an overhead of %.2f, not %.2f; allow more overhead, use more nodes or survive fewer losses",
			ErrLadder, nodes, survive, RS(width, survive).Overhead(), overhead)
	}
	chain = chain[:end+1]
	first, err := recommend(chain, survive, width, "Every step down the ladder sends nothing over the network.")
	if err != nil {
		return nil, err
	}
	all := []Recommendation{first}
	for k := 2; k < chain[len(chain)-1]; k++ {
		if width%k != 0 || slices.Contains(chain, k) || len(chain) == MaxSchemes {
			continue
		}
		longer := append(slices.Clone(chain), k)
		slices.Sort(longer)
		more, err := recommend(longer, survive, width,
			fmt.Sprintf("The extra step k = %d costs network where it does not divide its neighbour.", k))
		if err != nil {
			return nil, err
		}
		all = append(all, more)
	}
	return all, nil
}

// recommendedWidth returns the number in (2/3*most, most] with the most prime factors, the larger of equals, at most
// MaxData.
func recommendedWidth(most int) int {
	most = min(most, MaxData)
	best, factors := 0, -1
	for width := most; width > 0 && 3*width > 2*most; width-- {
		if count := len(primeFactors(width)); count > factors {
			best, factors = width, count
		}
	}
	return best
}

// primeFactors returns the prime factors of n, largest first.
func primeFactors(n int) []int {
	var factors []int
	for p := 2; n > 1; p++ {
		for ; n%p == 0; n /= p {
			factors = append(factors, p)
		}
	}
	slices.Reverse(factors)
	return factors
}

// divisorChain returns 1 and the products of the largest prime factors of width, at most MaxSchemes numbers: where there
// are more, the second is left out.
func divisorChain(width int) []int {
	chain := []int{1}
	for _, p := range primeFactors(width) {
		chain = append(chain, chain[len(chain)-1]*p)
	}
	for len(chain) > MaxSchemes {
		chain = slices.Delete(chain, 1, 2)
	}
	return chain
}

func recommend(chain []int, survive, columns int, why string) (Recommendation, error) {
	var ladder Ladder
	for _, k := range chain {
		ladder = append(ladder, RS(k, survive))
	}
	layout, err := NewLayout(ladder, columns, ModeFree)
	if err != nil {
		return Recommendation{}, fmt.Errorf("recommending %s: %w", ladder, err)
	}
	r := Recommendation{
		Ladder: ladder, Columns: columns, Rows: layout.Rows, NodesUsed: columns + survive,
		Overhead: ladder[len(ladder)-1].Overhead(), Why: why,
	}
	for i, scheme := range ladder {
		step := Step{Scheme: scheme, Overhead: scheme.Overhead()}
		if i+1 < len(ladder) {
			down, err := NewPlan(layout, scheme, ladder[i+1], PlannerRestripe, LeastNetwork)
			if err != nil {
				return Recommendation{}, err
			}
			up, err := NewPlan(layout, ladder[i+1], scheme, PlannerRestripe, LeastNetwork)
			if err != nil {
				return Recommendation{}, err
			}
			cells := float64(layout.Cells())
			step.NetworkDown = float64(down.Cost.BlocksSent) / cells
			step.NetworkUp = float64(up.Cost.BlocksSent) / cells
		}
		r.Steps = append(r.Steps, step)
	}
	return r, nil
}
