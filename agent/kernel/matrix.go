package kernel

import (
	"cmp"
	"fmt"
	"slices"
)

// Term is one entry of a matrix: Coefficient in row Output and column Input.
type Term struct {
	Output, Input int
	Coefficient   byte
}

// Matrix is a sparse matrix over GF(2^8)/0x11d, immutable and safe for concurrent use. Create it with Compile.
type Matrix struct {
	rows    [][]factor // by output; index is the input
	columns [][]factor // by input; index is the output
}

type factor struct {
	index       int32
	coefficient byte
}

const maxDimension = 1 << 24

// Compile makes a matrix of the given shape from its entries, in any order. Entries with coefficient 0 are dropped;
// a row without entries is a row of zeros. An entry outside the shape, or a place named twice, is ErrShape.
func Compile(outputs, inputs int, terms []Term) (*Matrix, error) {
	if outputs < 0 || inputs < 0 || outputs > maxDimension || inputs > maxDimension {
		return nil, fmt.Errorf("compiling a %d x %d matrix: %w: dimensions are 0 to %d", outputs, inputs, ErrShape, maxDimension)
	}
	sorted := slices.Clone(terms)
	slices.SortFunc(sorted, func(a, b Term) int {
		return cmp.Or(cmp.Compare(a.Output, b.Output), cmp.Compare(a.Input, b.Input))
	})
	m := &Matrix{rows: make([][]factor, outputs), columns: make([][]factor, inputs)}
	for i, term := range sorted {
		if term.Output < 0 || term.Output >= outputs || term.Input < 0 || term.Input >= inputs {
			return nil, fmt.Errorf("compiling a %d x %d matrix: %w: entry at row %d, column %d", outputs, inputs, ErrShape, term.Output, term.Input)
		}
		if i > 0 && sorted[i-1].Output == term.Output && sorted[i-1].Input == term.Input {
			return nil, fmt.Errorf("compiling a %d x %d matrix: %w: two entries at row %d, column %d", outputs, inputs, ErrShape, term.Output, term.Input)
		}
		if term.Coefficient == 0 {
			continue
		}
		m.rows[term.Output] = append(m.rows[term.Output], factor{int32(term.Input), term.Coefficient})
		m.columns[term.Input] = append(m.columns[term.Input], factor{int32(term.Output), term.Coefficient})
	}
	return m, nil
}
