package stripe

import (
	"fmt"
	"slices"
)

// Part is one block of a combination that yields another block of the same stripe.
type Part struct {
	Parity      bool // a parity row, else a data column
	Index       int  // the row or column
	Coefficient byte // never zero
}

// Decode returns how to compute the cell in column wanted of a stripe from blocks that are at hand: the cell is the sum
// of Coefficient times block over the parts. columns are the distinct columns of the stripe's cells, data the columns
// and parities the rows at hand, the preferred first; columns of other stripes are ignored. A wanted cell that is at
// hand is its own single part. Data is used before parity, and no more than k blocks in all. The error wraps ErrLost if
// fewer than k blocks are at hand, and ErrPlan if the stripe or what is wanted of it cannot be. Answers are kept by
// erasure pattern, and shared: the caller must not change the parts.
func Decode(scheme Scheme, columns []int, wanted int, data, parities []int) ([]Part, error) {
	var buffer [256]byte
	question := appendQuestion(buffer[:0], scheme, columns, wanted, data, parities)
	if parts, known := decodings.get(question); known {
		return parts, nil
	}
	parts, err := decode(scheme, columns, wanted, data, parities)
	if err != nil {
		return nil, err
	}
	decodings.put(question, parts)
	return parts, nil
}

func decode(scheme Scheme, columns []int, wanted int, data, parities []int) ([]Part, error) {
	if err := scheme.Validate(); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	if len(columns) != scheme.K || !distinctWithin(columns, MaxData) {
		return nil, fmt.Errorf("decoding %s: %w: a stripe has %d distinct columns, not %v", scheme, ErrPlan, scheme.K, columns)
	}
	at := slices.Index(columns, wanted)
	if at < 0 {
		return nil, fmt.Errorf("decoding %s: %w: column %d is not of the stripe %v", scheme, ErrPlan, wanted, columns)
	}
	if slices.Contains(data, wanted) {
		return []Part{{Index: wanted, Coefficient: 1}}, nil
	}
	var usable []int
	for _, column := range data {
		if slices.Contains(columns, column) && !slices.Contains(usable, column) {
			usable = append(usable, column)
		}
	}
	var rows []int
	for _, row := range parities {
		if row < 0 || row >= scheme.M {
			return nil, fmt.Errorf("decoding %s: %w: there is no parity row %d", scheme, ErrPlan, row)
		}
		if !slices.Contains(rows, row) && len(usable)+len(rows) < scheme.K {
			rows = append(rows, row)
		}
	}
	if len(usable)+len(rows) < scheme.K {
		return nil, fmt.Errorf("decoding %s: %w: %d blocks of the stripe are at hand and %d are needed",
			scheme, ErrLost, len(usable)+len(rows), scheme.K)
	}
	functional := make([]byte, scheme.K)
	functional[at] = 1
	return express(columns, functional, usable, rows)
}

func distinctWithin(values []int, end int) bool {
	seen := make([]bool, end)
	for _, value := range values {
		if value < 0 || value >= end || seen[value] {
			return false
		}
		seen[value] = true
	}
	return true
}

// express writes a combination of a stripe's cells, functional[i] times the cell in columns[i], in terms of the cells in
// the data columns and of parity rows, together as many as the stripe has cells.
func express(columns []int, functional []byte, data, rows []int) ([]Part, error) {
	var missing []int // indices into columns
	for i, column := range columns {
		if !slices.Contains(data, column) {
			missing = append(missing, i)
		}
	}
	matrix := make([][]byte, len(rows))
	for i, row := range rows {
		for _, at := range missing {
			matrix[i] = append(matrix[i], Coefficient(row, columns[at]))
		}
	}
	if len(missing) != len(rows) || !invertMatrix(matrix) {
		return nil, fmt.Errorf("%w: parity rows %v do not determine %d missing cells", ErrLost, rows, len(missing))
	}
	// factors[q] multiplies parity rows[q] with the data at hand removed: the missing cells are matrix times those.
	factors := make([]byte, len(rows))
	for i, at := range missing {
		addScaledRow(factors, matrix[i], functional[at])
	}
	var parts []Part
	for i, column := range columns {
		if slices.Contains(missing, i) {
			continue
		}
		coefficient := functional[i]
		for q, row := range rows {
			coefficient ^= Multiply(factors[q], Coefficient(row, column))
		}
		if coefficient != 0 {
			parts = append(parts, Part{Index: column, Coefficient: coefficient})
		}
	}
	for q, row := range rows {
		if factors[q] != 0 {
			parts = append(parts, Part{Parity: true, Index: row, Coefficient: factors[q]})
		}
	}
	return parts, nil
}
