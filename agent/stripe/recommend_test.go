package stripe

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// The table of widths by node count, for 2, 3 and 4 losses; nil where there is none.
func TestRecommendedLaddersByNodes(t *testing.T) {
	one3, one2, six := []int{1, 3}, []int{1, 2}, []int{1, 3, 6}
	four, eight, twelve := []int{1, 2, 4}, []int{1, 2, 4, 8}, []int{1, 3, 6, 12}
	sixteen, twentyFour := []int{1, 2, 4, 8, 16}, []int{1, 3, 6, 12, 24}
	for _, c := range []struct {
		first, last int // nodes
		chains      [3][]int
	}{
		{6, 6, [3][]int{one3, one2, nil}}, {7, 7, [3][]int{four, one3, one2}}, {8, 8, [3][]int{four, four, one3}},
		{9, 9, [3][]int{six, four, four}}, {10, 10, [3][]int{six, six, four}}, {11, 11, [3][]int{eight, six, six}},
		{12, 12, [3][]int{eight, eight, six}}, {13, 14, [3][]int{eight, eight, eight}}, {15, 15, [3][]int{twelve, eight, eight}},
		{16, 16, [3][]int{twelve, twelve, eight}}, {17, 18, [3][]int{twelve, twelve, twelve}},
		{19, 19, [3][]int{sixteen, twelve, twelve}}, {20, 20, [3][]int{sixteen, sixteen, twelve}},
		{21, 26, [3][]int{sixteen, sixteen, sixteen}}, {27, 27, [3][]int{twentyFour, sixteen, sixteen}},
		{28, 28, [3][]int{twentyFour, twentyFour, sixteen}}, {29, 32, [3][]int{twentyFour, twentyFour, twentyFour}},
	} {
		for nodes := c.first; nodes <= c.last; nodes++ {
			for i, chain := range c.chains {
				survive := i + 2
				if chain == nil {
					if _, err := RecommendLadders(nodes, survive, 9); !errors.Is(err, ErrLadder) {
						t.Errorf("%d nodes, %d losses: %v", nodes, survive, err)
					}
					continue
				}
				width := chain[len(chain)-1]
				recommended, err := RecommendLadders(nodes, survive, RS(width, survive).Overhead())
				if err != nil {
					t.Errorf("%d nodes, %d losses: %v", nodes, survive, err)
					continue
				}
				first := recommended[0]
				if !slices.Equal(first.Ladder.widths(), chain) || first.Columns != width || first.Rows != 1 || first.NodesUsed >= nodes {
					t.Errorf("%d nodes, %d losses: %+v, want %v", nodes, survive, first, chain)
				}
			}
		}
	}
}

func TestRecommendationCosts(t *testing.T) {
	recommended, err := RecommendLadders(15, 2, 1.2)
	if err != nil {
		t.Fatal(err)
	}
	first := recommended[0]
	if got := first.Ladder.String(); got != "rep(3),rs(3,2),rs(6,2),rs(12,2)" {
		t.Fatal(got)
	}
	for i, up := range []float64{1.33, 0.67, 0.58, 0} {
		step := first.Steps[i]
		if step.NetworkDown != 0 || math.Abs(step.NetworkUp-up) > 0.005 {
			t.Errorf("%+v, want %.2f up", step, up)
		}
	}
	for _, more := range recommended[1:] {
		if more.Rows != 1 || more.Columns != 12 || len(more.Ladder) != 5 {
			t.Errorf("%+v", more)
		}
	}
	if cut, err := RecommendLadders(15, 2, 1.4); err != nil || cut[0].Ladder.String() != "rep(3),rs(3,2),rs(6,2)" || cut[0].Columns != 12 {
		t.Errorf("%+v, %v", cut, err)
	}
	for _, c := range []struct {
		nodes, survive int
		overhead       float64
	}{{15, 2, 1.1}, {15, 0, 2}, {15, 9, 2}, {0, 2, 2}, {-5, 2, 2}} {
		if _, err := RecommendLadders(c.nodes, c.survive, c.overhead); !errors.Is(err, ErrLadder) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if wide, err := RecommendLadders(1000, 2, 1.05); err != nil || wide[0].Columns != 64 || len(wide[0].Ladder) > MaxSchemes {
		t.Errorf("%+v, %v", wide, err)
	}
}
