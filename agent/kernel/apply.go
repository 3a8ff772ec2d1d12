package kernel

import (
	"fmt"
	"unsafe"
)

// Apply computes out = M*in and overwrites out. There is one slice per row and per column, all of one length; a slice
// for a column without entries may be nil. No output may overlap an input or another output. Allocates nothing.
// Panics if the shapes do not fit: that is a mistake of the program, not of its input.
func (m *Matrix) Apply(out, in [][]byte) {
	length := m.check(out, in)
	how := overwrite
	if (len(out)+len(in))*length >= streamBytes {
		how = stream
	}
	m.apply(out, in, 0, length, how)
}

// streamBytes is from how much on, inputs and outputs together, Apply streams by itself: so much leaves the caches
// before anyone could read it, wherever it was before. Below, only the caller can know what is in the cache and whether
// the outputs are read soon; docs/benchmarks/kernel.md shows where the one overtakes the other.
const streamBytes = 96 << 20

// Stream is Apply with stores that bypass the cache, for blocks that are not in the cache and outputs that nobody reads
// soon: it saves reading the outputs before they are written. Blocks that Buffer and Pool make are aligned as that needs;
// for others, and where the path has no such stores, it is Apply.
func (m *Matrix) Stream(out, in [][]byte) {
	length := m.check(out, in)
	m.apply(out, in, 0, length, stream)
}

// Accumulate computes out += M*in; otherwise as Apply.
func (m *Matrix) Accumulate(out, in [][]byte) {
	length := m.check(out, in)
	m.apply(out, in, 0, length, accumulate)
}

// ApplyColumn is AccumulateColumn for rows that hold anything: it overwrites those that use the input.
func (m *Matrix) ApplyColumn(out [][]byte, input int, in []byte) {
	c := m.checkColumn(out, input, len(in))
	whole := m.path.whole(len(in))
	step := maxCallBytes
	if len(c.rows) > 1 {
		step = columnPieceBytes
	}
	one := [1][]byte{in}
	for at := 0; at < whole; at += step {
		for row := range c.rows {
			setRow(m.path, &out[0], c, row, &one[0], at, min(at+step, whole))
		}
	}
	for _, f := range c.factors {
		Multiply(f.coefficient, in[whole:], out[f.index][whole:])
	}
}

// AccumulateColumn adds column input times in to the rows of out that use it; out has one slice per row, and the slices
// of other rows are not looked at. Panics if the shapes do not fit. Allocates nothing.
func (m *Matrix) AccumulateColumn(out [][]byte, input int, in []byte) {
	c := m.checkColumn(out, input, len(in))
	whole := m.path.whole(len(in))
	step := c.pieceBytes()
	for at := 0; at < whole; at += step {
		for first := 0; first < len(c.rows); first += maxColumnRows {
			addColumn(m.path, &out[0], c, first, &in[at], at, min(step, whole-at))
		}
	}
	if whole < len(in) {
		c.addGeneric(out, in, whole)
	}
}

// AccumulateDelta adds column input times the sum of before and after to the rows of out that use it: it is
// AccumulateColumn for what changes when a block that was before becomes after.
func (m *Matrix) AccumulateDelta(out [][]byte, input int, before, after []byte) {
	c := m.checkColumn(out, input, len(before))
	checkLength("input", input, after, len(before))
	whole := m.path.whole(len(before))
	step := c.pieceBytes()
	for at := 0; at < whole; at += step {
		for first := 0; first < len(c.rows); first += maxColumnRows {
			addDelta(m.path, &out[0], c, first, &before[at], &after[at], at, min(step, whole-at))
		}
	}
	if whole < len(before) {
		c.addGeneric(out, before, whole)
		c.addGeneric(out, after, whole)
	}
}

// mode is what is done with what outputs hold.
type mode uint8

const (
	overwrite mode = iota
	accumulate
	stream // overwrite, past the cache
)

func (m *Matrix) apply(out, in [][]byte, from, to int, how mode) {
	if from == to {
		return
	}
	if how == stream && (m.path != avx512 || !streamable(out, from)) {
		how = overwrite
	}
	if how != accumulate {
		for _, i := range m.empty {
			clear(out[i][from:to])
		}
	}
	if m.path == generic {
		m.applyGeneric(out, in, from, to, how == accumulate)
		return
	}
	whole := from + m.path.whole(to-from)
	for i := range m.parts {
		p := &m.parts[i]
		for at := from; at < whole; at += p.pieceBytes {
			for t := range p.tiles {
				addTile(m.path, &out[0], &in[0], &p.tiles[t], at, min(at+p.pieceBytes, whole), how == accumulate, how == stream)
			}
		}
	}
	if whole < to {
		m.applyGeneric(out, in, whole, to, how == accumulate)
	}
}

// streamable reports whether all outputs are aligned for streaming stores at a position.
func streamable(out [][]byte, at int) bool {
	for i := range out {
		if uintptr(unsafe.Pointer(&out[i][at]))%lineBytes != 0 {
			return false
		}
	}
	return true
}

// check returns the common length of all slices; it panics on a mistake of the caller.
func (m *Matrix) check(out, in [][]byte) int {
	if len(out) != len(m.rows) || len(in) != len(m.used) {
		panic(fmt.Sprintf("kernel: %d outputs and %d inputs for a matrix of %d x %d", len(out), len(in), len(m.rows), len(m.used)))
	}
	if len(out) == 0 {
		return 0
	}
	length := len(out[0])
	for i := range out {
		if len(out[i]) != length {
			checkLength("output", i, out[i], length)
		}
	}
	for i, used := range m.used {
		if used && len(in[i]) != length {
			checkLength("input", i, in[i], length)
		}
	}
	return length
}

// checkColumn returns the entries of an input; it panics on a mistake of the caller.
func (m *Matrix) checkColumn(out [][]byte, input, length int) *column {
	if len(out) != len(m.rows) {
		panic(fmt.Sprintf("kernel: %d outputs for a matrix of %d rows", len(out), len(m.rows)))
	}
	c := &m.columns[input]
	for _, f := range c.factors {
		if len(out[f.index]) != length {
			checkLength("output", int(f.index), out[f.index], length)
		}
	}
	return c
}

// checkLength panics on a mistake of the caller: the slices of one call have one length.
func checkLength(what string, i int, data []byte, want int) {
	if len(data) != want {
		panic(fmt.Sprintf("kernel: %s %d has %d bytes, others have %d", what, i, len(data), want))
	}
}
