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
	empty   []int      // rows without entries
	used    []bool     // by input: it has entries
	path    path
	parts   []part   // of the rows with entries; empty on the generic path
	columns []column // by input
}

type factor struct {
	index       int32
	coefficient byte
}

const maxDimension = 1 << 24

// Compile makes a matrix of the given shape from its entries, in any order. Entries with coefficient 0 are dropped;
// a row without entries is a row of zeros. An entry outside the shape, or a place named twice, is ErrShape. The latest
// matrices are kept: compiling one again that was made before costs little more than reading its entries.
func Compile(outputs, inputs int, terms []Term) (*Matrix, error) {
	if outputs < 0 || inputs < 0 || outputs > maxDimension || inputs > maxDimension {
		return nil, fmt.Errorf("compiling a %d x %d matrix: %w: dimensions are 0 to %d", outputs, inputs, ErrShape, maxDimension)
	}
	return compiled.get(shape{outputs, inputs, chosen}, terms, compile)
}

func compile(shape shape, terms []Term) (*Matrix, error) {
	sorted := slices.Clone(terms)
	slices.SortFunc(sorted, func(a, b Term) int {
		return cmp.Or(cmp.Compare(a.Output, b.Output), cmp.Compare(a.Input, b.Input))
	})
	m := &Matrix{rows: make([][]factor, shape.outputs), used: make([]bool, shape.inputs), path: shape.path}
	factors := make([]factor, 0, len(terms))
	byColumn := make([][]factor, shape.inputs)
	for i, term := range sorted {
		if term.Output < 0 || term.Output >= shape.outputs || term.Input < 0 || term.Input >= shape.inputs {
			return nil, fmt.Errorf("compiling a %d x %d matrix: %w: entry at row %d, column %d", shape.outputs, shape.inputs, ErrShape, term.Output, term.Input)
		}
		if i > 0 && sorted[i-1].Output == term.Output && sorted[i-1].Input == term.Input {
			return nil, fmt.Errorf("compiling a %d x %d matrix: %w: two entries at row %d, column %d", shape.outputs, shape.inputs, ErrShape, term.Output, term.Input)
		}
		if term.Coefficient == 0 {
			continue
		}
		factors = append(factors, factor{int32(term.Input), term.Coefficient})
		row := m.rows[term.Output]
		m.rows[term.Output] = factors[len(factors)-1-len(row):]
		byColumn[term.Input] = append(byColumn[term.Input], factor{int32(term.Output), term.Coefficient})
		m.used[term.Input] = true
	}
	for i, row := range m.rows {
		if len(row) == 0 {
			m.empty = append(m.empty, i)
		}
	}
	m.columns = arrangeColumns(byColumn, m.path)
	if m.path != generic {
		m.parts = arrange(m.rows, m.path)
	}
	return m, nil
}
