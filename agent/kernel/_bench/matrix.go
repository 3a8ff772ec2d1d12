package main

import (
	"bytes"
	"fmt"

	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/stripe"
)

// matrix is the coefficients of a code: a row per output, a column per input.
type matrix [][]byte

func newMatrix(rows, columns int, coefficient func(row, column int) byte) matrix {
	m := make(matrix, rows)
	for row := range m {
		m[row] = make([]byte, columns)
		for column := range m[row] {
			m[row][column] = coefficient(row, column)
		}
	}
	return m
}

// universal is the project's matrix: row 0 and column 0 are ones.
func universal(k, m int) matrix { return newMatrix(m, k, stripe.Coefficient) }

// dense is a matrix without zeros and ones.
func dense(k, m int) matrix {
	return newMatrix(m, k, func(row, column int) byte { return byte(2 + (row*37+column*11+5)%254) })
}

// products counts the entries that need a multiplication.
func (m matrix) products() (count int) {
	for _, row := range m {
		for _, coefficient := range row {
			if coefficient > 1 {
				count++
			}
		}
	}
	return count
}

// entries counts the entries that are not zero.
func (m matrix) entries() (count int) {
	for _, row := range m {
		count += len(row) - bytes.Count(row, []byte{0})
	}
	return count
}

func (m matrix) terms() (terms []kernel.Term) {
	for row := range m {
		for column, coefficient := range m[row] {
			terms = append(terms, kernel.Term{Output: row, Input: column, Coefficient: coefficient})
		}
	}
	return terms
}

// compile panics on malformed terms, a mistake of this program.
func (m matrix) compile() *kernel.Matrix {
	compiled, err := kernel.Compile(len(m), len(m[0]), m.terms())
	if err != nil {
		panic(fmt.Sprintf("compiling a matrix: %v", err))
	}
	return compiled
}

// verify reports whether out is the matrix times in: every byte against the kernel, and the kernel against the
// definition in the first, middle and last windows of the blocks.
func (m matrix) verify(out, in [][]byte) error {
	want := make([][]byte, len(m))
	for i := range want {
		want[i] = kernel.Buffer(len(out[i]))
	}
	m.compile().Apply(want, in)
	for row := range m {
		if !bytes.Equal(out[row], want[row]) {
			return fmt.Errorf("output %d differs from the kernel's", row)
		}
		if err := m.verifyRow(row, want[row], in); err != nil {
			return err
		}
	}
	return nil
}

const windowBytes = 16 << 10

func (m matrix) verifyRow(row int, out []byte, in [][]byte) error {
	for _, from := range []int{0, len(out) / 2, len(out) - windowBytes} {
		from = max(from, 0)
		to := min(from+windowBytes, len(out))
		sum := make([]byte, to-from)
		for column, coefficient := range m[row] {
			if coefficient != 0 {
				addProduct(sum, coefficient, in[column][from:to])
			}
		}
		if !bytes.Equal(sum, out[from:to]) {
			return fmt.Errorf("output %d of the kernel differs from the definition between bytes %d and %d", row, from, to)
		}
	}
	return nil
}

// addProduct is the definition: sum += coefficient*in, byte by byte.
func addProduct(sum []byte, coefficient byte, in []byte) {
	var table [256]byte
	for value := range table {
		table[value] = stripe.Multiply(coefficient, byte(value))
	}
	for i, value := range in {
		sum[i] ^= table[value]
	}
}
