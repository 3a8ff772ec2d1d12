package kernel

import (
	"crypto/subtle"
	"fmt"

	"github.com/klauspost/reedsolomon"
)

// pieceBytes is how much of each block is worked on at a time: a piece of every input of a wide stripe stays in the
// second-level cache while the outputs pass over it, and a destination piece stays in the first.
const pieceBytes = 8 << 10

var field reedsolomon.LowLevel

// Apply computes out = M*in and overwrites out. There is one slice per row and per column, all of one length; a slice
// for a column without entries may be nil. No output may overlap an input or another output. Allocates nothing.
// Panics if the shapes do not fit: that is a mistake of the program, not of its input.
func (m *Matrix) Apply(out, in [][]byte) { m.apply(out, in, true) }

// Accumulate computes out += M*in; otherwise as Apply.
func (m *Matrix) Accumulate(out, in [][]byte) { m.apply(out, in, false) }

// AccumulateColumn adds column input times in to the rows of out that use it; out has one slice per row, and the slices
// of other rows are not looked at. Panics if the shapes do not fit. Allocates nothing.
func (m *Matrix) AccumulateColumn(out [][]byte, input int, in []byte) {
	if len(out) != len(m.rows) {
		panic(fmt.Sprintf("kernel: %d outputs for a matrix of %d rows", len(out), len(m.rows)))
	}
	column := m.columns[input]
	for _, f := range column {
		checkLength("output", int(f.index), out[f.index], len(in))
	}
	for from := 0; from < len(in); from += pieceBytes {
		to := min(from+pieceBytes, len(in))
		for _, f := range column {
			MultiplyAdd(f.coefficient, in[from:to], out[f.index][from:to])
		}
	}
}

func (m *Matrix) apply(out, in [][]byte, overwrite bool) {
	length := m.check(out, in)
	for from := 0; from < length; from += pieceBytes {
		to := min(from+pieceBytes, length)
		for i, row := range m.rows {
			destination := out[i][from:to]
			if overwrite {
				if len(row) == 0 {
					clear(destination)
					continue
				}
				Multiply(row[0].coefficient, in[row[0].index][from:to], destination)
				row = row[1:]
			}
			for _, f := range row {
				MultiplyAdd(f.coefficient, in[f.index][from:to], destination)
			}
		}
	}
}

// check returns the common length of all slices; it panics on a mistake of the caller.
func (m *Matrix) check(out, in [][]byte) int {
	if len(out) != len(m.rows) || len(in) != len(m.columns) {
		panic(fmt.Sprintf("kernel: %d outputs and %d inputs for a matrix of %d x %d", len(out), len(in), len(m.rows), len(m.columns)))
	}
	if len(out) == 0 {
		return 0
	}
	length := len(out[0])
	for i := range out {
		checkLength("output", i, out[i], length)
	}
	for i := range in {
		if len(m.columns[i]) > 0 {
			checkLength("input", i, in[i], length)
		}
	}
	return length
}

// checkLength panics on a mistake of the caller: the slices of one call have one length.
func checkLength(what string, i int, data []byte, want int) {
	if len(data) != want {
		panic(fmt.Sprintf("kernel: %s %d has %d bytes, others have %d", what, i, len(data), want))
	}
}

// Multiply computes out = coefficient*in. The slices have one length and do not overlap.
func Multiply(coefficient byte, in, out []byte) {
	switch coefficient {
	case 0:
		clear(out[:len(in)])
	case 1:
		copy(out[:len(in)], in)
	default:
		field.GalMulSlice(coefficient, in, out)
	}
}

// MultiplyAdd computes out += coefficient*in. The slices have one length and do not overlap.
func MultiplyAdd(coefficient byte, in, out []byte) {
	switch coefficient {
	case 0:
	case 1:
		subtle.XORBytes(out[:len(in)], out[:len(in)], in)
	default:
		field.GalMulSliceXor(coefficient, in, out)
	}
}
