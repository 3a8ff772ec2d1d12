package reliability

import (
	"fmt"
	"math/bits"

	"github.com/restripe/restripe/agent/stripe"
)

// enumerable is the largest number of columns whose subsets are enumerated where stripes overlap.
const enumerable = 20

// survivable returns, for i = 0, 1, ..., the share of the sets of i nodes out of columns + M whose loss a group
// survives, up to the last i for which there is one. The first M+1 are 1.
//
// Stripes lie as in Ring, Section 3.3: the l = lcm(K, columns) cells go to the columns in runs of l/columns, and cell t
// of each of K equal parts belongs to stripe t. Where K divides columns the stripes share no column, and which ones they
// have does not matter.
func survivable(scheme stripe.Scheme, columns int) ([]float64, error) {
	var worst [][]float64 // worst[t][j]: sets of j columns that take at most t cells of any stripe
	switch {
	case columns%scheme.K == 0:
		worst = disjointSets(scheme, columns/scheme.K)
	case columns <= enumerable:
		worst = overlappingSets(scheme, columns)
	default:
		return nil, fmt.Errorf("%w: %s stretched over %d columns, which %d does not divide; use at most %d columns or a multiple of %d",
			ErrModel, scheme, columns, scheme.K, enumerable, scheme.K)
	}
	var shares []float64
	for i := 0; i <= columns+scheme.M; i++ {
		var good float64
		for parity := 0; parity <= min(i, scheme.M); parity++ {
			sets := worst[scheme.M-parity]
			if data := i - parity; data < len(sets) {
				good += choose(scheme.M, parity) * sets[data]
			}
		}
		if good == 0 {
			break
		}
		share := good / choose(columns+scheme.M, i)
		if i <= scheme.M {
			share = 1 // exactly, where the quotient has rounded
		}
		shares = append(shares, share)
	}
	return shares, nil
}

// disjointSets counts the sets of columns that take at most t of each of so many disjoint stripes: the coefficients of
// (sum over a <= t of C(K,a) x^a)^stripes.
func disjointSets(scheme stripe.Scheme, stripes int) [][]float64 {
	worst := make([][]float64, scheme.M+1)
	for t := range worst {
		one := make([]float64, min(t, scheme.K)+1)
		for a := range one {
			one[a] = choose(scheme.K, a)
		}
		all := []float64{1}
		for range stripes {
			product := make([]float64, len(all)+len(one)-1)
			for i, x := range all {
				for j, y := range one {
					product[i+j] += x * y
				}
			}
			all = product
		}
		worst[t] = all
	}
	return worst
}

// overlappingSets counts the same by looking at every set of columns.
func overlappingSets(scheme stripe.Scheme, columns int) [][]float64 {
	stripes := stretchedStripes(scheme.K, columns)
	worst := make([][]float64, scheme.M+1)
	for t := range worst {
		worst[t] = make([]float64, columns+1)
	}
	for set := range uint32(1) << columns {
		most := 0
		for _, stripe := range stripes {
			most = max(most, bits.OnesCount32(set&stripe))
		}
		for t := most; t <= scheme.M; t++ {
			worst[t][bits.OnesCount32(set)]++
		}
	}
	return worst
}

// stretchedStripes returns the columns of each stripe of rs(k,m) stretched over columns, as bits.
func stretchedStripes(k, columns int) []uint32 {
	l := k * columns / gcd(k, columns)
	stripes := make([]uint32, l/k)
	for cell := range l {
		stripes[cell%(l/k)] |= 1 << (cell / (l / columns))
	}
	return stripes
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// choose returns the binomial coefficient of n over i.
func choose(n, i int) float64 {
	if i < 0 || i > n {
		return 0
	}
	product := 1.0
	for j := range min(i, n-i) {
		product = product * float64(n-j) / float64(j+1)
	}
	return product
}
