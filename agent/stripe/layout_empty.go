package stripe

import "math/bits"

// columnSet is a set of columns, by the bits of their numbers.
type columnSet uint64

// Without returns the layout of a group in some columns of which nothing is stored: all their cells are zeros. Plans of it neither
// read nor send them, and name nothing at their positions; stripes and parities are those of the whole layout.
func (l *Layout) Without(columns []int) *Layout {
	set := l.empty
	for _, column := range columns {
		set |= 1 << column
	}
	return l.withoutSet(set)
}

// withoutSet returns the layout where these columns are empty.
func (l *Layout) withoutSet(set columnSet) *Layout {
	if set == l.empty {
		return l
	}
	made := *l
	made.whole, made.empty = l.Whole(), set
	return &made
}

// Whole returns the layout with all of its columns.
func (l *Layout) Whole() *Layout {
	if l.whole != nil {
		return l.whole
	}
	return l
}

// IsEmpty reports whether a slot is a column of which nothing is stored.
func (l *Layout) IsEmpty(slot int) bool { return slot < l.Columns && l.empty>>slot&1 == 1 }

// Filled is the number of columns that are stored.
func (l *Layout) Filled() int { return l.Columns - bits.OnesCount64(uint64(l.empty)) }

// isZero reports whether nothing is stored of any of these cells.
func (l *Layout) isZero(cells []int32) bool {
	if l.empty == 0 {
		return false
	}
	for _, cell := range cells {
		if !l.IsEmpty(int(cell) % l.Columns) {
			return false
		}
	}
	return true
}
