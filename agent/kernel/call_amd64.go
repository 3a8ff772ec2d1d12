package kernel

import "unsafe"

// The assembly finds blocks by their offsets in an array of slices.
var _ [sliceBytes - unsafe.Sizeof([]byte{})]struct{}
var _ [unsafe.Sizeof([]byte{}) - sliceBytes]struct{}

// addTile makes the rows of a tile from one position to another. The calls are spelled out because a call through a
// variable would move its arguments to the heap.
func addTile(p path, out, in *[]byte, t *tile, from, to int, accumulate, stream bool) {
	kind := len(t.rows) * 2
	if t.onesRow {
		kind++
	}
	rows, columns, others := &t.rows[0], &t.columns[0], len(t.columns)-t.ones
	var coefficients *byte
	if len(t.coefficients) > 0 {
		coefficients = &t.coefficients[0]
	}
	switch {
	case stream:
		switch kind {
		case 2:
			dot1AVX512Stream(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 4:
			dot2AVX512Stream(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 5:
			dot2OnesAVX512Stream(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 6:
			dot3AVX512Stream(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 7:
			dot3OnesAVX512Stream(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 8:
			dot4AVX512Stream(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 9:
			dot4OnesAVX512Stream(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 10:
			dot5AVX512Stream(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 11:
			dot5OnesAVX512Stream(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 12:
			dot6AVX512Stream(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 13:
			dot6OnesAVX512Stream(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		}
	case p == avx512:
		switch kind {
		case 2:
			dot1AVX512(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 4:
			dot2AVX512(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 5:
			dot2OnesAVX512(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 6:
			dot3AVX512(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 7:
			dot3OnesAVX512(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 8:
			dot4AVX512(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 9:
			dot4OnesAVX512(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 10:
			dot5AVX512(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 11:
			dot5OnesAVX512(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 12:
			dot6AVX512(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 13:
			dot6OnesAVX512(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		}
	case p == avx2gfni:
		switch kind {
		case 2:
			dot1AVX2GFNI(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 4:
			dot2AVX2GFNI(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 5:
			dot2OnesAVX2GFNI(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 6:
			dot3AVX2GFNI(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 7:
			dot3OnesAVX2GFNI(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 8:
			dot4AVX2GFNI(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 9:
			dot4OnesAVX2GFNI(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 10:
			dot5AVX2GFNI(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 11:
			dot5OnesAVX2GFNI(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 12:
			dot6AVX2GFNI(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 13:
			dot6OnesAVX2GFNI(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		}
	case p == avx2:
		switch kind {
		case 2:
			dot1AVX2(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 4:
			dot2AVX2(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 5:
			dot2OnesAVX2(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 6:
			dot3AVX2(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 7:
			dot3OnesAVX2(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 8:
			dot4AVX2(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		case 9:
			dot4OnesAVX2(out, in, rows, columns, t.ones, others, coefficients, from, to, accumulate)
		}
	}
}

// addColumn adds multiples of in to up to maxColumnRows rows of a column, the first of them at index first, from a position
// of these on.
func addColumn(p path, out *[]byte, c *column, first int, in *byte, from, bytes int) {
	kind, rows, coefficients := c.tile(p, first)
	switch p {
	case avx512:
		switch kind {
		case 2:
			column1AVX512(out, rows, coefficients, in, from, bytes)
		case 3:
			column1OnesAVX512(out, rows, coefficients, in, from, bytes)
		case 4:
			column2AVX512(out, rows, coefficients, in, from, bytes)
		case 5:
			column2OnesAVX512(out, rows, coefficients, in, from, bytes)
		case 6:
			column3AVX512(out, rows, coefficients, in, from, bytes)
		case 7:
			column3OnesAVX512(out, rows, coefficients, in, from, bytes)
		case 8:
			column4AVX512(out, rows, coefficients, in, from, bytes)
		case 9:
			column4OnesAVX512(out, rows, coefficients, in, from, bytes)
		}
	case avx2gfni:
		switch kind {
		case 2:
			column1AVX2GFNI(out, rows, coefficients, in, from, bytes)
		case 3:
			column1OnesAVX2GFNI(out, rows, coefficients, in, from, bytes)
		case 4:
			column2AVX2GFNI(out, rows, coefficients, in, from, bytes)
		case 5:
			column2OnesAVX2GFNI(out, rows, coefficients, in, from, bytes)
		case 6:
			column3AVX2GFNI(out, rows, coefficients, in, from, bytes)
		case 7:
			column3OnesAVX2GFNI(out, rows, coefficients, in, from, bytes)
		case 8:
			column4AVX2GFNI(out, rows, coefficients, in, from, bytes)
		case 9:
			column4OnesAVX2GFNI(out, rows, coefficients, in, from, bytes)
		}
	case avx2:
		switch kind {
		case 2:
			column1AVX2(out, rows, coefficients, in, from, bytes)
		case 3:
			column1OnesAVX2(out, rows, coefficients, in, from, bytes)
		case 4:
			column2AVX2(out, rows, coefficients, in, from, bytes)
		case 5:
			column2OnesAVX2(out, rows, coefficients, in, from, bytes)
		case 6:
			column3AVX2(out, rows, coefficients, in, from, bytes)
		case 7:
			column3OnesAVX2(out, rows, coefficients, in, from, bytes)
		case 8:
			column4AVX2(out, rows, coefficients, in, from, bytes)
		case 9:
			column4OnesAVX2(out, rows, coefficients, in, from, bytes)
		}
	}
}

// addDelta is addColumn for the sum of two inputs.
func addDelta(p path, out *[]byte, c *column, first int, before, after *byte, from, bytes int) {
	kind, rows, coefficients := c.tile(p, first)
	switch p {
	case avx512:
		switch kind {
		case 2:
			delta1AVX512(out, rows, coefficients, before, after, from, bytes)
		case 3:
			delta1OnesAVX512(out, rows, coefficients, before, after, from, bytes)
		case 4:
			delta2AVX512(out, rows, coefficients, before, after, from, bytes)
		case 5:
			delta2OnesAVX512(out, rows, coefficients, before, after, from, bytes)
		case 6:
			delta3AVX512(out, rows, coefficients, before, after, from, bytes)
		case 7:
			delta3OnesAVX512(out, rows, coefficients, before, after, from, bytes)
		case 8:
			delta4AVX512(out, rows, coefficients, before, after, from, bytes)
		case 9:
			delta4OnesAVX512(out, rows, coefficients, before, after, from, bytes)
		}
	case avx2gfni:
		switch kind {
		case 2:
			delta1AVX2GFNI(out, rows, coefficients, before, after, from, bytes)
		case 3:
			delta1OnesAVX2GFNI(out, rows, coefficients, before, after, from, bytes)
		case 4:
			delta2AVX2GFNI(out, rows, coefficients, before, after, from, bytes)
		case 5:
			delta2OnesAVX2GFNI(out, rows, coefficients, before, after, from, bytes)
		case 6:
			delta3AVX2GFNI(out, rows, coefficients, before, after, from, bytes)
		case 7:
			delta3OnesAVX2GFNI(out, rows, coefficients, before, after, from, bytes)
		case 8:
			delta4AVX2GFNI(out, rows, coefficients, before, after, from, bytes)
		case 9:
			delta4OnesAVX2GFNI(out, rows, coefficients, before, after, from, bytes)
		}
	case avx2:
		switch kind {
		case 2:
			delta1AVX2(out, rows, coefficients, before, after, from, bytes)
		case 3:
			delta1OnesAVX2(out, rows, coefficients, before, after, from, bytes)
		case 4:
			delta2AVX2(out, rows, coefficients, before, after, from, bytes)
		case 5:
			delta2OnesAVX2(out, rows, coefficients, before, after, from, bytes)
		case 6:
			delta3AVX2(out, rows, coefficients, before, after, from, bytes)
		case 7:
			delta3OnesAVX2(out, rows, coefficients, before, after, from, bytes)
		case 8:
			delta4AVX2(out, rows, coefficients, before, after, from, bytes)
		case 9:
			delta4OnesAVX2(out, rows, coefficients, before, after, from, bytes)
		}
	}
}

// firstSlice is the offset of the first slice in an array of them.
var firstSlice uint32

// setRow makes the row at an index of a column a multiple of in, which points to one slice, from one position to another.
func setRow(p path, out *[]byte, c *column, row int, in *[]byte, from, to int) {
	ones, others := 0, 1
	if c.factors[row].coefficient == 1 {
		ones, others = 1, 0
	}
	rows, coefficients := &c.rows[row], &c.coefficients[row*p.coefficientBytes()]
	switch p {
	case avx512:
		dot1AVX512(out, in, rows, &firstSlice, ones, others, coefficients, from, to, false)
	case avx2gfni:
		dot1AVX2GFNI(out, in, rows, &firstSlice, ones, others, coefficients, from, to, false)
	case avx2:
		dot1AVX2(out, in, rows, &firstSlice, ones, others, coefficients, from, to, false)
	}
}

// tile returns which function adds a column to the rows from first on, and what it takes.
func (c *column) tile(p path, first int) (kind int, rows *uint32, coefficients *byte) {
	kind = 2 * min(len(c.rows)-first, maxColumnRows)
	if c.factors[first].coefficient == 1 {
		kind++
	}
	return kind, &c.rows[first], &c.coefficients[first*p.coefficientBytes()]
}
