package kernel

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/block"
)

// naiveRemainder takes the remainder of data modulo w^16 + tail, byte by byte; tail has the coefficient of w^15 first.
type naiveRemainder struct{ sum, tail [16]byte }

func newNaiveRemainder(f *Fingerprinter) *naiveRemainder {
	return &naiveRemainder{tail: f.modulus.tail.bytes()}
}

func (r *naiveRemainder) add(data ...byte) *naiveRemainder {
	for _, next := range data {
		multiples := &naiveProducts[r.sum[0]]
		copy(r.sum[:], r.sum[1:])
		r.sum[15] = next
		for i, c := range r.tail {
			r.sum[i] ^= multiples[c]
		}
	}
	return r
}

func drawKey(t *rapid.T) (key Key) {
	copy(key[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "key"))
	return key
}

// drawData draws a length and a seed: to draw every byte makes long data slow.
func drawData(t *rapid.T, longest int) []byte {
	length := rapid.OneOf(rapid.IntRange(0, min(300, longest)), rapid.IntRange(0, longest)).Draw(t, "length")
	return filled(1, length, uint64(rapid.Uint32().Draw(t, "seed")))[0]
}

func TestFingerprintEqualsTheRemainder(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			f := NewFingerprinter(drawKey(t))
			data := drawData(t, 60_000)
			if got, want := f.Sum(data), newNaiveRemainder(f).add(data...).sum; got != want {
				t.Fatalf("Sum of %d bytes is %x, the remainder is %x", len(data), got, want)
			}
		})
	})
}

// TestFingerprintOfEveryLength sums every beginning of data, and every beginning after a few bytes so that the data is
// not aligned.
func TestFingerprintOfEveryLength(t *testing.T) {
	const every = 4096
	longest := 30_000 // beyond every: around multiples of what is folded at a time
	if testing.Short() {
		longest = 9_000
	}
	onEveryPath(t, func(t *testing.T) {
		for _, key := range []Key{{}, {1, 2, 3}, {0xff, 0xee, 15: 0x80}} {
			f := NewFingerprinter(key)
			for _, offset := range []int{0, 1, 37} {
				data := Buffer(offset + longest)[offset:]
				fill(data, uint64(offset))
				reference := newNaiveRemainder(f)
				for length := range longest {
					if length <= every && (!testing.Short() || length%11 == 0) || (length+1)%128 <= 2 && length%7 == 0 {
						if got := f.Sum(data[:length]); got != reference.sum {
							t.Fatalf("key %x: Sum of %d bytes is %x, the remainder is %x", key, length, got, reference.sum)
						}
					}
					reference.add(data[length])
				}
			}
		}
	})
}

func TestFingerprintAtEveryOffset(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		f := NewFingerprinter(Key{1, 6, 1, 8})
		buffer := Buffer(3000 + 64)
		for _, length := range []int{1, 16, 100, 511, 512, 640, 1023, 3000} {
			want := block.Fingerprint(newNaiveRemainder(f).add(filled(1, length, 5)[0]...).sum)
			for offset := range 64 {
				copy(buffer[offset:], filled(1, length, 5)[0])
				if got := f.Sum(buffer[offset : offset+length]); got != want {
					t.Fatalf("Sum of %d bytes at offset %d is %x, the remainder is %x", length, offset, got, want)
				}
			}
		}
	})
}

// TestFingerprintSeesEveryByte takes the fingerprints of data with one byte only: they are all different, and none is
// zero.
func TestFingerprintSeesEveryByte(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		f := NewFingerprinter(Key{9})
		data := make([]byte, 3000)
		seen := map[block.Fingerprint]int{f.Sum(data): -1}
		for i := range data {
			data[i] = 0x80
			print := f.Sum(data)
			if before, known := seen[print]; known {
				t.Fatalf("data with byte %d only has the fingerprint of data with byte %d only (-1: without any)", i, before)
			}
			seen[print] = i
			data[i] = 0
		}
	})
}

func TestFingerprintIsLinearForAllCoefficients(t *testing.T) {
	mix := func(mixed, x, y []byte, a, b int) {
		multiplesOfA, multiplesOfB := &naiveProducts[a], &naiveProducts[b]
		for i := range mixed {
			mixed[i] = multiplesOfA[x[i]] ^ multiplesOfB[y[i]]
		}
	}
	onEveryPath(t, func(t *testing.T) {
		f := NewFingerprinter(Key{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3})
		check := func(t rapid.TB, x, y, mixed []byte, from, to int) {
			prints := []block.Fingerprint{f.Sum(x), f.Sum(y)}
			for a := range 256 {
				for b := from; b < to; b++ {
					mix(mixed, x, y, a, b)
					if got, want := Combine([]byte{byte(a), byte(b)}, prints), f.Sum(mixed); got != want {
						t.Fatalf("%d bytes: %d*F(X) + %d*F(Y) = %x, F(%d*X + %d*Y) = %x", len(x), a, b, got, a, b, want)
					}
				}
			}
		}
		lengths := []int{37, 700}
		if testing.Short() {
			lengths = nil
		}
		for _, length := range lengths {
			blocks := filled(3, length, uint64(length))
			check(t, blocks[0], blocks[1], blocks[2], 0, 256)
		}
		rapid.Check(t, func(t *rapid.T) {
			x := drawData(t, 3000)
			y := filled(2, len(x), uint64(rapid.Uint32().Draw(t, "seed of y")))
			b := rapid.IntRange(0, 255).Draw(t, "b")
			check(t, x, y[0], y[1], b, b+1)
		})
	})
}

// TestFingerprintOfAProduct: the fingerprints of outputs are the product of the matrix and the fingerprints of inputs.
func TestFingerprintOfAProduct(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		f := NewFingerprinter(Key{2, 3, 5, 7, 11, 13})
		for _, e := range fewShapes() {
			s := newSample(e, 1500, 7)
			prints, out := make([]block.Fingerprint, e.outputs), filled(e.outputs, 1500, 8)
			e.compile(t).ApplySum(out, s.in, f, prints)
			want := make([]block.Fingerprint, e.outputs)
			for _, term := range e.terms {
				want[term.Output] = Combine([]byte{1, term.Coefficient}, []block.Fingerprint{want[term.Output], f.Sum(s.in[term.Input])})
			}
			for i := range want {
				if prints[i] != want[i] {
					t.Errorf("%v: fingerprint of row %d is %x, the row of fingerprints gives %x", e, i, prints[i], want[i])
				}
			}
		}
	})
}

func TestFingerprintJoin(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			f := NewFingerprinter(drawKey(t))
			data := drawData(t, 3000)
			split := rapid.IntRange(0, len(data)).Draw(t, "split")
			got := f.Join(f.Sum(data[:split]), f.Sum(data[split:]), len(data)-split)
			if want := f.Sum(data); got != want {
				t.Fatalf("Join(%d bytes, %d bytes) is %x, Sum is %x", split, len(data)-split, got, want)
			}
		})
	})
}

func TestFingerprintJoinUnits(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			f := NewFingerprinter(drawKey(t))
			unit, count := rapid.IntRange(0, 1200).Draw(t, "bytes of a unit"), rapid.IntRange(0, 9).Draw(t, "units")
			data := filled(1, unit*count, uint64(rapid.Uint32().Draw(t, "seed")))[0]
			zero := rapid.IntRange(0, 9).Draw(t, "units of zeros in front")
			clear(data[:min(zero, count)*unit])
			var prints []block.Fingerprint
			for i := range count {
				prints = append(prints, f.Sum(data[i*unit:(i+1)*unit]))
			}
			if got, want := f.JoinUnits(prints, unit), f.Sum(data); got != want {
				t.Fatalf("JoinUnits of %d units of %d bytes is %x, Sum is %x", count, unit, got, want)
			}
		})
	})
}

func TestFingerprintExtend(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			f := NewFingerprinter(drawKey(t))
			data := drawData(t, 1000)
			full := make([]byte, len(data)+rapid.IntRange(0, 5000).Draw(t, "zeros"))
			copy(full, data)
			if got, want := f.Extend(f.Sum(data), len(data), len(full)), f.Sum(full); got != want {
				t.Fatalf("Extend from %d to %d bytes is %x, Sum is %x", len(data), len(full), got, want)
			}
		})
	})
}

// TestExtendByVeryMuch extends by more than anybody would sum: in one step and in two that make the same.
func TestExtendByVeryMuch(t *testing.T) {
	f := NewFingerprinter(Key{4})
	print := f.Sum([]byte("data"))
	for _, zeros := range []int{1<<20 + 3, math.MaxInt32 - 10, math.MaxInt >> 23, math.MaxInt >> 17} {
		half := 4 + zeros/3
		if got, want := f.Extend(f.Extend(print, 4, half), half, 4+zeros), f.Extend(print, 4, 4+zeros); got != want {
			t.Errorf("by %d zeros in two steps: %x, in one: %x", zeros, got, want)
		}
	}
}

func TestFingerprintsDependOnThePathInNothing(t *testing.T) {
	data := filled(1, 100_003, 1)[0]
	prints := map[block.Fingerprint][]path{}
	for _, p := range machinePaths() {
		withPath(p, func() {
			print := NewFingerprinter(Key{5}).Sum(data)
			prints[print] = append(prints[print], p)
		})
	}
	if len(prints) != 1 {
		t.Errorf("fingerprints of one content: %v", fmt.Sprint(prints))
	}
}

// TestWeakKeys has keys in proper subfields, under which contents of a few bytes would have equal fingerprints.
func TestWeakKeys(t *testing.T) {
	for name, key := range map[string]Key{"zero": {}, "one": {1}, "of GF(2^8)": {0x57}, "of GF(2^64)": subfield([16]byte{1, 2, 3})} {
		f := NewFingerprinter(key)
		if again := NewFingerprinter(key); again.Sum([]byte("data")) != f.Sum([]byte("data")) {
			t.Errorf("key %s: two fingerprinters of one key differ", name)
		}
		for content := range 1 << 16 {
			data := append(make([]byte, 16), byte(content), byte(content>>8))
			if data[0] = 1; f.Sum(data) == (block.Fingerprint{}) {
				t.Fatalf("key %s: the fingerprint of % x is zero", name, data)
			}
		}
	}
}
