package stripe

import (
	"cmp"
	"fmt"
	"slices"
)

// WithLadder returns the layout of a group of layout l that comes under another ladder with its data where it is: its rows and columns
// stay, and so does which columns are empty. Its ladder has to first, then what else of the ladder fits the columns and divides the
// cells, and after that schemes of its own that its rows follow from, as rows are not a field of a layout. An error that wraps ErrLayout
// says that to does not fit.
func (l *Layout) WithLadder(ladder Ladder, mode Mode, to Scheme) (*Layout, error) {
	if err := to.Validate(); err != nil {
		return nil, err
	}
	if to.K > l.Columns || l.Cells()%to.K != 0 {
		return nil, fmt.Errorf("%w: stripes of %d cells do not fit a group of %d rows and %d columns", ErrLayout, to.K, l.Rows, l.Columns)
	}
	steps := Ladder{to}
	for _, scheme := range ladder {
		if scheme.K <= l.Columns && l.Cells()%scheme.K == 0 && !steps.Contains(scheme) {
			steps = append(steps, scheme)
		}
	}
	own := slices.SortedFunc(slices.Values(l.Ladder), func(a, b Scheme) int { return cmp.Compare(b.K, a.K) })
	for ; ; steps = steps[:len(steps)-1] {
		if whole := l.completed(steps, own); len(whole) <= MaxSchemes {
			made, err := NewLayout(whole, l.Columns, mode)
			if err != nil {
				return nil, err
			}
			return made.withoutSet(l.empty), nil
		}
		if len(steps) == 1 {
			return nil, fmt.Errorf("%w: ladder %s has no room for %s; its rows follow from every step of it", ErrLayout, l.Ladder, to)
		}
	}
}

// WithColumns returns the layout of a group of layout l that gets further columns, or loses its last ones: as many rows of that many
// columns, each of which is one stripe of scheme to, as each is one of from before. Its ladder has to first, and else is what WithLadder
// has. An error that wraps ErrLayout says that it cannot be had.
func (l *Layout) WithColumns(columns int, ladder Ladder, mode Mode, from, to Scheme) (*Layout, error) {
	other := &Layout{Rows: l.Rows, Columns: columns}
	for _, scheme := range l.Ladder {
		if scheme.K <= columns && other.Cells()%scheme.K == 0 {
			other.Ladder = append(other.Ladder, scheme)
		}
	}
	made, err := other.WithLadder(ladder, mode, to)
	if err != nil {
		return nil, err
	}
	if made.Rows != l.Rows || from.M != to.M || !l.rowsAreStripes(from.K) || !made.rowsAreStripes(to.K) {
		return nil, fmt.Errorf("%w: the rows of %d columns under %s do not become rows of %d columns under %s",
			ErrLayout, l.Columns, from, columns, to)
	}
	return made, nil
}

// Region returns of how few groups of so many columns some get so many more each, and the others, whose columns these are, give all of
// theirs.
func Region(columns, more int) (kept, taken int) {
	common := gcd(columns, more)
	return columns / common, more / common
}

// rowsAreStripes reports whether the i-th row is the i-th stripe of k cells.
func (l *Layout) rowsAreStripes(k int) bool {
	partition := l.partitions[k]
	if partition == nil || k != l.Columns {
		return false
	}
	for cell, stripe := range partition.StripeOf {
		if int(stripe) != cell/l.Columns {
			return false
		}
	}
	return true
}

// completed returns a ladder with as many other schemes, in their order, as make it one of the rows that l has.
func (l *Layout) completed(ladder, others Ladder) Ladder {
	whole, cells := slices.Clone(ladder), l.Columns
	for _, scheme := range ladder {
		cells = lcm(cells, scheme.K)
	}
	for _, scheme := range others {
		if more := lcm(cells, scheme.K); more > cells {
			whole, cells = append(whole, scheme), more
		}
	}
	return whole
}

// SameStripes reports whether the cells of two layouts of equal rows and columns fall into the same stripes of k.
func (l *Layout) SameStripes(other *Layout, k int) bool {
	if l.Whole() == other.Whole() {
		return true
	}
	a, b := l.partitions[k], other.partitions[k]
	return a != nil && b != nil && l.Columns == other.Columns && slices.Equal(a.StripeOf, b.StripeOf)
}
