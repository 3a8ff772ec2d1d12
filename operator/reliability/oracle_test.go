package reliability

import (
	"math/big"
	"math/bits"

	"github.com/restripe/restripe/agent/stripe"
)

// precision of the oracle, in bits: a loss of 1e-60 keeps its digits beside probabilities of 1.
const precision = 600

func exact(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }

// generator is the matrix of a Markov chain, written down without the code under test: rates[i][j] from state i to j,
// the last state is the loss of data.
type generator [][]float64

func newGenerator(states int) generator {
	g := make(generator, states+1)
	for i := range g {
		g[i] = make([]float64, states+1)
	}
	return g
}

// subsets is the exact chain of a group: a state for every set of failed nodes that is survived. Data nodes come first,
// each in some of the stripes, then the parity nodes, in all of them. One of the failed nodes, any with equal
// probability, is being repaired, at its own rate.
func subsets(columns, parity int, stripes []uint32, rates Rates) generator {
	nodes := columns + parity
	survived := func(set uint32) bool {
		lost := bits.OnesCount32(set >> columns)
		for _, stripe := range stripes {
			if hit := bits.OnesCount32(set & stripe); hit > 0 && hit+lost > parity {
				return false
			}
		}
		return true
	}
	index := map[uint32]int{}
	for set := range uint32(1) << nodes {
		if survived(set) {
			index[set] = len(index)
		}
	}
	g := newGenerator(len(index))
	for set, from := range index {
		for node := range nodes {
			other := set ^ 1<<node
			switch to, whole := index[other]; {
			case set>>node&1 == 1 && node < columns:
				g[from][to] += rates.DataRepair / float64(bits.OnesCount32(set))
			case set>>node&1 == 1:
				g[from][to] += rates.ParityRepair / float64(bits.OnesCount32(set))
			case whole:
				g[from][to] += rates.Failure
			default:
				g[from][len(index)] += rates.Failure
			}
		}
	}
	return g
}

// generatorOf writes a chain down as a matrix.
func generatorOf(c chain) generator {
	states := len(c.fail)
	g := newGenerator(states)
	for i := range states {
		g[i][states] = c.lose[i]
		if i > 0 {
			g[i][i-1] = c.repair[i]
		}
		if i+1 < states {
			g[i][i+1] = c.fail[i]
		}
	}
	return g
}

// diagonal is what leaves a state.
func (g generator) diagonal(i int) *big.Float {
	sum := exact(0)
	for _, rate := range g[i] {
		sum.Add(sum, exact(rate))
	}
	return sum
}

// meanTime solves the equations of the mean times to loss by Gaussian elimination.
func (g generator) meanTime() float64 {
	n := len(g) - 1
	rows := make([][]*big.Float, n)
	for i := range rows {
		rows[i] = make([]*big.Float, n+1)
		for j := range n {
			rows[i][j] = exact(-g[i][j])
		}
		rows[i][i] = g.diagonal(i)
		rows[i][n] = exact(1)
	}
	for pivot := n - 1; pivot >= 0; pivot-- {
		for i := range pivot {
			if rows[i][pivot].Sign() == 0 {
				continue
			}
			factor := exact(0).Quo(rows[i][pivot], rows[pivot][pivot])
			for j := range n + 1 {
				if rows[pivot][j].Sign() != 0 {
					rows[i][j].Sub(rows[i][j], exact(0).Mul(factor, rows[pivot][j]))
				}
			}
		}
	}
	time, _ := exact(0).Quo(rows[0][n], rows[0][0]).Float64()
	return time
}

type bigMatrix [][]*big.Float

func newBigMatrix(n int) bigMatrix {
	m := make(bigMatrix, n)
	for i := range m {
		m[i] = make([]*big.Float, n)
		for j := range m[i] {
			m[i][j] = exact(0)
		}
	}
	return m
}

func (a bigMatrix) times(b bigMatrix) bigMatrix {
	c := newBigMatrix(len(a))
	product := exact(0)
	for i := range a {
		for j := range a {
			if a[i][j].Sign() == 0 {
				continue
			}
			for k := range a {
				c[i][k].Add(c[i][k], product.Mul(a[i][j], b[j][k]))
			}
		}
	}
	return c
}

// loss is the probability of the loss within some years: the matrix exponential, a Taylor series of a small part of the
// time and squarings.
func (g generator) loss(years float64) float64 {
	n := len(g)
	doublings := 0
	most := exact(0)
	for i := range n {
		if d := g.diagonal(i); d.Cmp(most) > 0 {
			most = d
		}
	}
	rate, _ := most.Float64()
	for rate*years > 0.25 {
		years /= 2
		doublings++
	}
	step := newBigMatrix(n)
	for i := range n {
		for j := range n {
			step[i][j] = exact(0).Mul(exact(g[i][j]), exact(years))
		}
		step[i][i] = exact(0).Neg(exact(0).Mul(g.diagonal(i), exact(years)))
	}
	sum, term := newBigMatrix(n), newBigMatrix(n)
	for i := range n {
		sum[i][i], term[i][i] = exact(1), exact(1)
	}
	for k := 1; k <= 60; k++ {
		term = term.times(step)
		for i := range n {
			for j := range n {
				term[i][j].Quo(term[i][j], exact(float64(k)))
				sum[i][j].Add(sum[i][j], term[i][j])
			}
		}
	}
	for range doublings {
		sum = sum.times(sum)
	}
	lost, _ := sum[0][n-1].Float64()
	return lost
}

// wholeStripe is the one stripe of rs(k,m).
func wholeStripe(k int) []uint32 { return []uint32{1<<k - 1} }

// decodable reports by the rank of the generator matrix whether a group survives the loss of a set of nodes: for every
// stripe, what is left of its K + M blocks must span its cells.
func decodable(scheme stripe.Scheme, columns int, lost uint32) bool {
	for _, members := range stretchedStripes(scheme.K, columns) {
		var rows [][]byte
		var cells []int
		for column := range columns {
			if members>>column&1 == 1 {
				cells = append(cells, column)
			}
		}
		for i, column := range cells {
			if lost>>column&1 == 0 {
				row := make([]byte, scheme.K)
				row[i] = 1
				rows = append(rows, row)
			}
		}
		for parity := range scheme.M {
			if lost>>(columns+parity)&1 == 0 {
				row := make([]byte, scheme.K)
				for i, column := range cells {
					row[i] = stripe.Coefficient(parity, column)
				}
				rows = append(rows, row)
			}
		}
		if rank(rows) < scheme.K && len(cells) > 0 && touches(cells, lost) {
			return false
		}
	}
	return true
}

func touches(cells []int, lost uint32) bool {
	for _, column := range cells {
		if lost>>column&1 == 1 {
			return true
		}
	}
	return false
}

func rank(rows [][]byte) int {
	rank := 0
	for column := 0; len(rows) > 0 && column < len(rows[0]); column++ {
		pivot := -1
		for i := rank; i < len(rows); i++ {
			if rows[i][column] != 0 {
				pivot = i
				break
			}
		}
		if pivot < 0 {
			continue
		}
		rows[rank], rows[pivot] = rows[pivot], rows[rank]
		inverse := stripe.Inverse(rows[rank][column])
		for i := rank + 1; i < len(rows); i++ {
			factor := stripe.Multiply(rows[i][column], inverse)
			for j := range rows[i] {
				rows[i][j] ^= stripe.Multiply(factor, rows[rank][j])
			}
		}
		rank++
	}
	return rank
}
