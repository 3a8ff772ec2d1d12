package stripe

import (
	"cmp"
	"slices"
)

// cut is a partition under construction: stripes of k cells in any order.
type cut struct {
	k       int
	stripes [][]int32
	of      []int32 // stripe of each cell
}

// newCut labels the cells of stripes, which together hold every cell once.
func newCut(k, cells int, stripes [][]int32) *cut {
	c := &cut{k: k, stripes: stripes, of: make([]int32, cells)}
	for index, stripe := range stripes {
		for _, cell := range stripe {
			c.of[cell] = int32(index)
		}
	}
	return c
}

// runs cuts the cells, in row-major order, into runs of k. k consecutive cells have distinct columns as k <= columns.
func runs(cells, k int) *cut {
	all := make([]int32, cells)
	stripes := make([][]int32, 0, cells/k)
	for cell := range all {
		all[cell] = int32(cell)
	}
	for first := 0; first < cells; first += k {
		stripes = append(stripes, all[first:first+k:first+k])
	}
	return newCut(k, cells, stripes)
}

// partition returns c in canonical order.
func (c *cut) partition(cells int) *Partition {
	stripes := make([][]int32, len(c.stripes))
	backing := make([]int32, 0, cells)
	for index, stripe := range c.stripes {
		start := len(backing)
		backing = append(backing, stripe...)
		stripes[index] = backing[start:len(backing):len(backing)]
		slices.Sort(stripes[index])
	}
	slices.SortFunc(stripes, func(a, b []int32) int { return cmp.Compare(a[0], b[0]) })
	return &Partition{K: c.k, Stripes: stripes, StripeOf: newCut(c.k, cells, stripes).of}
}

// pairCut is the ERS-aware placement for RS(k,m) in rows of w > k columns (ERS Section 3.3, Algorithm 3) in closed form.
// With r = w mod k, each row keeps floor(w/k) whole stripes; the rests of the first beta rows are completed from the
// rests of the others. The start of a row's first stripe is chosen so that cross-row stripes run over consecutive
// columns; walking the holes as Algorithm 3 is commonly read repeats a column for 18 of the pairs with w <= 20.
func pairCut(k, w int) *cut {
	cells := lcm(k, w)
	rows, rest, whole := cells/w, w%k, w/k
	alpha := whole * rows
	beta := cells/k - alpha
	stripes := make([][]int32, 0, cells/k)
	at := func(row, column int) int32 { return int32(row*w + (column%w+w)%w) }
	for row := range rows {
		start := row * (k - rest)
		if row >= beta {
			start = (row - beta + 1) * rest
		}
		for j := range whole {
			stripe := make([]int32, k)
			for c := range stripe {
				stripe[c] = at(row, start+j*k+c)
			}
			stripes = append(stripes, stripe)
		}
	}
	for i := range beta {
		stripe := make([]int32, k)
		for c := range stripe {
			row := i
			if c >= rest {
				row = beta + (i*(k-rest)+c-rest)/rest
			}
			stripe[c] = at(row, i*(k-rest)-rest+c)
		}
		stripes = append(stripes, stripe)
	}
	return newCut(k, cells, stripes)
}
