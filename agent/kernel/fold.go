package kernel

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/restripe/restripe/agent/block"
)

const (
	// foldBlockBytes is what the fold takes at a time.
	foldBlockBytes = 128
	// foldBlocks is after how many blocks the fold begins with the constants anew.
	foldBlocks = 64
	// foldEntries is how many constants the fold needs: two of them are for the state.
	foldEntries = foldBlocks + 2
	// minFoldBytes is from how many bytes on the fold is faster than tables alone.
	minFoldBytes = 256
)

// foldConstant is a factor as the assembly of the fold takes it.
type foldConstant struct {
	factor binaryPolynomial
	sums   [2]uint64 // of the two halves of the factor, twice
}

func newFoldConstant(factor binaryPolynomial) foldConstant {
	sum := factor.low ^ factor.high
	return foldConstant{factor, [2]uint64{sum, sum}}
}

// foldConstants returns w^(128*i) modulo m.
func foldConstants(m binaryPolynomial) (constants [foldEntries]foldConstant) {
	power := binaryPolynomial{low: 1}
	for i := range constants {
		constants[i] = newFoldConstant(power)
		for range foldBlockBytes {
			power = power.timesW(m)
		}
	}
	return constants
}

// reductionConstants returns what Barrett's reduction modulo m needs: the quotient of w^256 by m, and m.
func reductionConstants(m binaryPolynomial) [2]foldConstant {
	var quotient binaryPolynomial
	rest := m // of w^256 after the leading term of the quotient, without factors of w
	for range 128 {
		quotient = binaryPolynomial{quotient.low<<1 | rest.high>>63, quotient.high<<1 | quotient.low>>63}
		rest = rest.timesW(m)
	}
	return [2]foldConstant{newFoldConstant(quotient), newFoldConstant(m)}
}

// foldState is a polynomial of 256 bytes with the fingerprint of the data seen so far, by bit planes. The zero state has
// seen nothing.
type foldState [256]byte

// add takes in data whose length is a multiple of foldBlockBytes.
func (s *foldState) add(f *Fingerprinter, data []byte) {
	for len(data) > 0 {
		now := data[:min(len(data), maxCallBytes)]
		foldAVX512((*[256]byte)(s), (*byte)(unsafe.Pointer(&f.fold[0])), &now[0], len(now)/foldBlockBytes)
		data = data[len(now):]
	}
}

// sum returns the fingerprint of the data seen, followed by less than foldBlockBytes of it.
func (s *foldState) sum(f *Fingerprinter, tail []byte) block.Fingerprint {
	var rest [2 * foldBlockBytes]byte
	unfoldAVX512((*[256]byte)(s), (*byte)(unsafe.Pointer(&f.reduction[0])), (*[foldBlockBytes]byte)(rest[:]))
	return f.sumByTables(rest[:foldBlockBytes+copy(rest[foldBlockBytes:], tail)])
}

// sumPieceBytes is how much of each output is made before it is taken into its fingerprint, still in the cache.
const sumPieceBytes = 8 << 10

var foldStates = sync.Pool{New: func() any { return new([]foldState) }}

// ApplySum is Apply that also returns, in prints, the fingerprint of every output. Long outputs are read for it while
// they are in the first-level cache. Panics if the shapes do not fit, as Apply does.
func (m *Matrix) ApplySum(out, in [][]byte, f *Fingerprinter, prints []block.Fingerprint) {
	length := m.check(out, in)
	if len(prints) != len(out) {
		panic(fmt.Sprintf("kernel: %d fingerprints for %d outputs", len(prints), len(out)))
	}
	if m.path != avx512 || length < minFoldBytes {
		m.apply(out, in, 0, length, overwrite)
		for i := range out {
			prints[i] = f.Sum(out[i])
		}
		return
	}
	kept := foldStates.Get().(*[]foldState)
	defer foldStates.Put(kept)
	if len(*kept) < len(out) {
		*kept = make([]foldState, len(out))
	}
	states := (*kept)[:len(out)]
	clear(states)
	whole := length &^ (foldBlockBytes - 1)
	for from := 0; from < whole; from += sumPieceBytes {
		to := min(from+sumPieceBytes, whole)
		m.apply(out, in, from, to, overwrite)
		for i := range states {
			states[i].add(f, out[i][from:to])
		}
	}
	m.apply(out, in, whole, length, overwrite)
	for i := range states {
		prints[i] = states[i].sum(f, out[i][whole:])
	}
}
