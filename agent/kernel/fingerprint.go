package kernel

import (
	"encoding/binary"

	"github.com/restripe/restripe/agent/block"
)

// Key is the secret point at which fingerprints are evaluated. Any 16 bytes are a key.
type Key [16]byte

// vectorBytes is how many bytes of data a fingerprint takes in at a time.
const vectorBytes = 16

// lanes is how many interleaved chains hide the latency of the table look-ups.
const lanes = 4

// Fingerprinter computes linear fingerprints under one key. Immutable and safe for concurrent use; it holds 64 KiB of
// tables, so share it.
//
// The data is cut into vectors Y_0 .. Y_n-1 of 16 bytes, the last one padded with zeros, each read as an element of
// GF((2^8)^16). The fingerprint is the polynomial hash
//
//	F = sum over j of Y_j * beta^(n-1-j)
//
// with beta the key: linear over GF(2^8), so that F(a*X + b*Y) = a*F(X) + b*F(Y) for data of one length, which is what
// lets parity be audited against data without moving either.
//
// What it can miss: two different contents of one length have equal fingerprints exactly if beta is a root of their
// difference, a polynomial of degree at most n-1. For a random key that neither content depends on this has a
// probability of at most 2*(n-1)/2^128 (2, since a few keys are remapped); for 16 MiB that is 2^-107. Contents that
// differ only in their number of trailing zeros within the last vector have equal fingerprints; lengths are compared
// by whoever compares fingerprints. It is no signature: who knows the key can make contents with any fingerprint.
//
// Source: polynomial hashing over an extension field (Carter and Wegman 1981; den Boer 1993), used linearly as in
// homomorphic fingerprinting of erasure codes (Hendricks, Ganger, Reiter, PODC 2007).
type Fingerprinter struct {
	beta  element
	leap  element                   // beta^lanes
	steps [vectorBytes][256]element // steps[i][v] = v*z^i*leap
}

// NewFingerprinter prepares the tables of a key. A key that is zero or lies in a proper subfield, where the hash would
// be weaker, is replaced by its sum with z, which lies in none; the same key always gives the same fingerprints.
func NewFingerprinter(key Key) *Fingerprinter {
	beta := elementOf((*[16]byte)(&key))
	if beta.inHalfField() {
		beta = beta.add(element{low: 1 << 8})
	}
	f := &Fingerprinter{beta: beta, leap: beta.power(lanes)}
	base := f.leap
	for i := range f.steps {
		for v := 1; v < 256; v++ {
			f.steps[i][v] = base.scale(byte(v))
		}
		base = base.timesZ()
	}
	return f
}

// Sum returns the fingerprint of data of any length; that of no data is zero.
func (f *Fingerprinter) Sum(data []byte) block.Fingerprint {
	// The first chunk is short, as if the data began with zero vectors, which change nothing.
	vectors := (len(data) + vectorBytes - 1) / vectorBytes
	var state [lanes]element
	var head [lanes * vectorBytes]byte
	first := vectors % lanes * vectorBytes
	if first > 0 {
		copy(head[len(head)-first:], data[:min(first, len(data))])
		for i := range state {
			state[i] = elementOf((*[16]byte)(head[i*vectorBytes:]))
		}
		data = data[min(first, len(data)):]
	}
	for len(data) >= lanes*vectorBytes {
		f.leapAll(&state, data)
		data = data[lanes*vectorBytes:]
	}
	if len(data) > 0 {
		var tail [lanes * vectorBytes]byte
		copy(tail[:], data)
		f.leapAll(&state, tail[:])
	}
	sum := state[0]
	for _, lane := range state[1:] {
		sum = sum.times(f.beta).add(lane)
	}
	return sum.bytes()
}

// leapAll takes every chain one step on: state = state*beta^lanes + data.
func (f *Fingerprinter) leapAll(state *[lanes]element, data []byte) {
	data = data[:lanes*vectorBytes]
	for i := range state {
		product := f.leapOne(state[i])
		state[i] = element{
			product.low ^ binary.LittleEndian.Uint64(data[i*vectorBytes:]),
			product.high ^ binary.LittleEndian.Uint64(data[i*vectorBytes+8:]),
		}
	}
}

// leapOne returns a*beta^lanes. It is written out because the compiler does not unroll loops, which halves the speed.
func (f *Fingerprinter) leapOne(a element) element {
	e0 := &f.steps[0][byte(a.low)]
	e1 := &f.steps[1][byte(a.low>>8)]
	e2 := &f.steps[2][byte(a.low>>16)]
	e3 := &f.steps[3][byte(a.low>>24)]
	e4 := &f.steps[4][byte(a.low>>32)]
	e5 := &f.steps[5][byte(a.low>>40)]
	e6 := &f.steps[6][byte(a.low>>48)]
	e7 := &f.steps[7][byte(a.low>>56)]
	e8 := &f.steps[8][byte(a.high)]
	e9 := &f.steps[9][byte(a.high>>8)]
	e10 := &f.steps[10][byte(a.high>>16)]
	e11 := &f.steps[11][byte(a.high>>24)]
	e12 := &f.steps[12][byte(a.high>>32)]
	e13 := &f.steps[13][byte(a.high>>40)]
	e14 := &f.steps[14][byte(a.high>>48)]
	e15 := &f.steps[15][byte(a.high>>56)]
	return element{
		e0.low ^ e1.low ^ e2.low ^ e3.low ^ e4.low ^ e5.low ^ e6.low ^ e7.low ^
			e8.low ^ e9.low ^ e10.low ^ e11.low ^ e12.low ^ e13.low ^ e14.low ^ e15.low,
		e0.high ^ e1.high ^ e2.high ^ e3.high ^ e4.high ^ e5.high ^ e6.high ^ e7.high ^
			e8.high ^ e9.high ^ e10.high ^ e11.high ^ e12.high ^ e13.high ^ e14.high ^ e15.high,
	}
}

// Join returns the fingerprint of two runs of data one after the other, from that of each and the length of the second
// in bytes. The first must be a multiple of 16 bytes long.
func (f *Fingerprinter) Join(first, second block.Fingerprint, secondBytes int) block.Fingerprint {
	moved := elementOf((*[16]byte)(&first)).times(f.shift(secondBytes))
	return moved.add(elementOf((*[16]byte)(&second))).bytes()
}

// JoinUnits returns the fingerprint of units of equal length one after the other, each padded with zeros to a multiple
// of 16 bytes: the Sum of their bytes as one run if unitBytes is such a multiple.
func (f *Fingerprinter) JoinUnits(prints []block.Fingerprint, unitBytes int) block.Fingerprint {
	shift := f.shift(unitBytes)
	var sum element
	for i := range prints {
		sum = sum.times(shift).add(elementOf((*[16]byte)(&prints[i])))
	}
	return sum.bytes()
}

// Extend returns the fingerprint of data with zeros appended up to fullBytes, from that of the data and its length,
// which is at most fullBytes. It takes a time logarithmic in the number of zeros.
func (f *Fingerprinter) Extend(print block.Fingerprint, dataBytes, fullBytes int) block.Fingerprint {
	vectors := (fullBytes+vectorBytes-1)/vectorBytes - (dataBytes+vectorBytes-1)/vectorBytes
	if vectors == 0 || print == (block.Fingerprint{}) {
		return print
	}
	return elementOf((*[16]byte)(&print)).times(f.beta.power(uint64(vectors))).bytes()
}

// shift is what data moves by when that many bytes follow it.
func (f *Fingerprinter) shift(bytes int) element {
	return f.beta.power(uint64(bytes+vectorBytes-1) / vectorBytes)
}

// Combine returns the sum of coefficients[i]*prints[i]: the fingerprint of the same combination of the data. Both
// slices have one length.
func Combine(coefficients []byte, prints []block.Fingerprint) (sum block.Fingerprint) {
	for i, print := range prints {
		MultiplyAdd(coefficients[i], print[:], sum[:])
	}
	return sum
}
