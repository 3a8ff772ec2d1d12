package kernel

import (
	"encoding/binary"
	"math/bits"

	"github.com/restripe/restripe/agent/block"
)

// Key is the secret that picks the modulus of fingerprints. Any 16 bytes are a key.
type Key [16]byte

// vectorBytes is how many bytes of data the tables take in at a time.
const vectorBytes = 16

// lanes is how many interleaved chains hide the latency of the table look-ups.
const lanes = 4

// Fingerprinter computes linear fingerprints under one key. Immutable and safe for concurrent use; it holds 130 KiB of
// tables, so share it.
//
// Data is read as a polynomial in w over GF(2^8) whose first byte is the coefficient of the highest degree. Its
// fingerprint is the remainder modulo a secret irreducible polynomial of degree 16: 16 bytes, the first again of the
// highest degree. That is linear over GF(2^8), so that F(a*X + b*Y) = a*F(X) + b*F(Y) for data of one length, which is
// what lets parity be audited against data without moving either.
//
// What it can miss: two different contents of one length have equal fingerprints exactly if the modulus divides their
// difference, a polynomial of degree less than their n bytes, which at most n/16 of the 2^128/16 moduli do. For a random
// key that neither content depends on this has a probability of at most 2n/2^128 (2, since a few keys are remapped);
// for 16 MiB that is 2^-103. Contents that differ only in zeros in front have equal fingerprints; lengths are compared by
// whoever compares fingerprints. It is no signature: who knows the key can make contents with any fingerprint.
//
// Sources: fingerprinting by random polynomials (Rabin 1981), used linearly as in homomorphic fingerprinting of erasure
// codes (Hendricks, Ganger, Reiter, PODC 2007). The modulus divides a polynomial of degree 128 over GF(2), its product
// with its conjugates. Modulo that, the eight bit planes of the data can be folded apart with carry-less products, as for
// cyclic redundancy checks (Gopal et al., Intel 2009), and only what is left goes through tables.
type Fingerprinter struct {
	modulus modulus
	powers  [48]remainder               // w^(2^i)
	step    [vectorBytes][256]remainder // step[i][v] = v*w^(15-i)*w^16
	leap    [vectorBytes][256]remainder // leap[i][v] = v*w^(15-i)*w^(16*lanes)
	fold    [foldEntries]foldConstant

	reduction [2]foldConstant
}

// NewFingerprinter prepares the tables of a key. A key that is an element of a proper subfield is replaced by its sum with
// z, which is in none; the same key always gives the same fingerprints.
func NewFingerprinter(key Key) *Fingerprinter {
	root := elementOf((*[16]byte)(&key))
	if root.inHalfField() {
		root = root.add(element{low: 1 << 8})
	}
	f := &Fingerprinter{modulus: newModulus(minimal(root))}
	f.powers[0] = f.modulus.timesW(one)
	for i := 1; i < len(f.powers); i++ {
		f.powers[i] = f.modulus.times(f.powers[i-1], f.powers[i-1])
	}
	f.fillTable(&f.step, f.power(vectorBytes))
	f.fillTable(&f.leap, f.power(vectorBytes*lanes))
	binary := binaryModulus(f.modulus.tail)
	f.fold, f.reduction = foldConstants(binary), reductionConstants(binary)
	return f
}

// fillTable makes the table that multiplies a vector by a constant.
func (f *Fingerprinter) fillTable(table *[vectorBytes][256]remainder, constant remainder) {
	for i := vectorBytes - 1; i >= 0; i-- {
		for v := range 256 {
			table[i][v] = constant.scale(byte(v))
		}
		constant = f.modulus.timesW(constant)
	}
}

// power returns w^exponent.
func (f *Fingerprinter) power(exponent int) remainder {
	result := one
	for rest := uint64(exponent); rest > 0; rest &= rest - 1 {
		if factor := f.powers[bits.TrailingZeros64(rest)]; result == one {
			result = factor
		} else {
			result = f.modulus.times(result, factor)
		}
	}
	return result
}

// Sum returns the fingerprint of data of any length; that of no data is zero.
func (f *Fingerprinter) Sum(data []byte) block.Fingerprint {
	if chosen == avx512 && len(data) >= minFoldBytes {
		var state foldState
		state.add(f, data[:len(data)&^(foldBlockBytes-1)])
		return state.sum(f, data[len(data)&^(foldBlockBytes-1):])
	}
	return f.sumByTables(data)
}

// sumByTables is Horner's rule for vectors, of which several chains hide the latency.
func (f *Fingerprinter) sumByTables(data []byte) block.Fingerprint {
	// The first vectors are short, as if the data began with zeros, which change nothing.
	var state [lanes]remainder
	if first := len(data) % (lanes * vectorBytes); first > 0 {
		var head [lanes * vectorBytes]byte
		copy(head[len(head)-first:], data)
		for i := range state {
			state[i] = remainderOf((*[16]byte)(head[i*vectorBytes:]))
		}
		data = data[first:]
	}
	for ; len(data) >= lanes*vectorBytes; data = data[lanes*vectorBytes:] {
		vectors := (*[lanes * vectorBytes]byte)(data)
		for i := range state {
			state[i] = look(&f.leap, state[i]).add(remainder{
				binary.LittleEndian.Uint64(vectors[i*vectorBytes:]),
				binary.LittleEndian.Uint64(vectors[i*vectorBytes+8:]),
			})
		}
	}
	sum := state[0]
	for _, lane := range state[1:] {
		sum = look(&f.step, sum).add(lane)
	}
	return sum.bytes()
}

// look multiplies a vector by the constant of a table. It is written out because the compiler does not unroll loops,
// which halves the speed.
func look(table *[vectorBytes][256]remainder, a remainder) remainder {
	e0 := &table[0][byte(a.low)]
	e1 := &table[1][byte(a.low>>8)]
	e2 := &table[2][byte(a.low>>16)]
	e3 := &table[3][byte(a.low>>24)]
	e4 := &table[4][byte(a.low>>32)]
	e5 := &table[5][byte(a.low>>40)]
	e6 := &table[6][byte(a.low>>48)]
	e7 := &table[7][byte(a.low>>56)]
	e8 := &table[8][byte(a.high)]
	e9 := &table[9][byte(a.high>>8)]
	e10 := &table[10][byte(a.high>>16)]
	e11 := &table[11][byte(a.high>>24)]
	e12 := &table[12][byte(a.high>>32)]
	e13 := &table[13][byte(a.high>>40)]
	e14 := &table[14][byte(a.high>>48)]
	e15 := &table[15][byte(a.high>>56)]
	return remainder{
		e0.low ^ e1.low ^ e2.low ^ e3.low ^ e4.low ^ e5.low ^ e6.low ^ e7.low ^
			e8.low ^ e9.low ^ e10.low ^ e11.low ^ e12.low ^ e13.low ^ e14.low ^ e15.low,
		e0.high ^ e1.high ^ e2.high ^ e3.high ^ e4.high ^ e5.high ^ e6.high ^ e7.high ^
			e8.high ^ e9.high ^ e10.high ^ e11.high ^ e12.high ^ e13.high ^ e14.high ^ e15.high,
	}
}

// Join returns the fingerprint of two runs of data one after the other, from that of each and the length of the second
// in bytes.
func (f *Fingerprinter) Join(first, second block.Fingerprint, secondBytes int) block.Fingerprint {
	moved := f.Extend(first, 0, secondBytes)
	return remainderOf((*[16]byte)(&moved)).add(remainderOf((*[16]byte)(&second))).bytes()
}

// JoinUnits returns the fingerprint of units of equal length one after the other.
func (f *Fingerprinter) JoinUnits(prints []block.Fingerprint, unitBytes int) block.Fingerprint {
	shift := f.power(unitBytes)
	var sum remainder
	for i := range prints {
		if sum != (remainder{}) {
			sum = f.modulus.times(sum, shift)
		}
		sum = sum.add(remainderOf((*[16]byte)(&prints[i])))
	}
	return sum.bytes()
}

// Extend returns the fingerprint of data with zeros appended up to fullBytes, from that of the data and its length,
// which is at most fullBytes. It takes a time logarithmic in the number of zeros.
func (f *Fingerprinter) Extend(print block.Fingerprint, dataBytes, fullBytes int) block.Fingerprint {
	if dataBytes == fullBytes || print == (block.Fingerprint{}) {
		return print
	}
	return f.modulus.times(remainderOf((*[16]byte)(&print)), f.power(fullBytes-dataBytes)).bytes()
}

// Combine returns the sum of coefficients[i]*prints[i]: the fingerprint of the same combination of the data. Both
// slices have one length.
func Combine(coefficients []byte, prints []block.Fingerprint) block.Fingerprint {
	var sum remainder
	for i := range prints {
		sum = sum.add(remainderOf((*[16]byte)(&prints[i])).scale(coefficients[i]))
	}
	return sum.bytes()
}
