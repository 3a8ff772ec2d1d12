package kernel

import (
	"crypto/subtle"

	"github.com/klauspost/reedsolomon"
)

// genericPieceBytes is how much of each block is worked on at a time: a piece of every input of a wide stripe stays in
// the second-level cache while the outputs pass over it, and a destination piece stays in the first.
const genericPieceBytes = 8 << 10

var field reedsolomon.LowLevel

// applyGeneric computes a range of the rows that have entries, product by product.
func (m *Matrix) applyGeneric(out, in [][]byte, from, to int, accumulate bool) {
	for ; from < to; from += genericPieceBytes {
		end := min(from+genericPieceBytes, to)
		for i, row := range m.rows {
			if len(row) == 0 {
				continue
			}
			destination := out[i][from:end]
			if !accumulate {
				Multiply(row[0].coefficient, in[row[0].index][from:end], destination)
				row = row[1:]
			}
			for _, f := range row {
				MultiplyAdd(f.coefficient, in[f.index][from:end], destination)
			}
		}
	}
}

// addGeneric adds the column times in[from:].
func (c *column) addGeneric(out [][]byte, in []byte, from int) {
	for ; from < len(in); from += genericPieceBytes {
		to := min(from+genericPieceBytes, len(in))
		for _, f := range c.factors {
			MultiplyAdd(f.coefficient, in[from:to], out[f.index][from:to])
		}
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
