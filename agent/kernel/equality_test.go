package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// lengthsUpTo returns every length up to a limit; with -short only the first ones, and every 97th of the others.
func lengthsUpTo(limit int) (lengths []int) {
	for length := 0; length <= limit; length++ {
		if !testing.Short() || length <= 70 || length%97 == 0 {
			lengths = append(lengths, length)
		}
	}
	return lengths
}

// aroundVectors returns the lengths around all multiples of the widest vector up to two steps of the widest kernel.
func aroundVectors() (lengths []int) {
	for multiple := 0; multiple <= 1088; multiple += 64 {
		for _, length := range []int{multiple - 33, multiple - 32, multiple - 31, multiple - 1, multiple, multiple + 1} {
			if length >= 0 {
				lengths = append(lengths, length)
			}
		}
	}
	return lengths
}

// samplesOf makes samples long enough for all lengths.
func samplesOf(examples []*example, lengths []int) (samples []*sample) {
	for i, e := range examples {
		samples = append(samples, newSample(e, slices.Max(lengths), uint64(i)))
	}
	return samples
}

// checkEqual compares all operations on every path with the right results, for blocks of each length.
func checkEqual(t *testing.T, samples []*sample, lengths []int, outputs, inputs func() placement) {
	t.Helper()
	onEveryPath(t, func(t *testing.T) {
		all := operations()
		for _, s := range samples {
			r := newTrial(t, s, outputs(), inputs())
			for _, o := range all {
				for _, length := range lengths {
					r.check(t, o, 0, length)
				}
			}
			r.checkInputs(t)
		}
	})
}

func onBoundaries() placement { return offsets(0, 0) }

func TestEveryLengthEqualsTheNaiveProduct(t *testing.T) {
	lengths := lengthsUpTo(4096)
	checkEqual(t, samplesOf(fewShapes(), lengths), lengths, onBoundaries, func() placement { return offsets(1, 13) })
}

func TestEveryShapeEqualsTheNaiveProduct(t *testing.T) {
	lengths, examples := aroundVectors(), shapes()
	if testing.Short() {
		few := slices.IndexFunc(examples, func(e *example) bool { return e.outputs == 7 })
		lengths, examples = []int{0, 1, 31, 33, 63, 64, 65, 127, 600}, examples[:few]
	}
	samples := samplesOf(examples, lengths)
	t.Run("outputs aligned", func(t *testing.T) {
		checkEqual(t, samples, lengths, onBoundaries, func() placement { return offsets(5, 7) })
	})
	t.Run("inputs aligned", func(t *testing.T) {
		checkEqual(t, samples, lengths, func() placement { return offsets(5, 7) }, onBoundaries)
	})
}

// TestEveryOffsetEqualsTheNaiveProduct places the outputs, the inputs, and both together at every distance from a
// multiple of 64.
func TestEveryOffsetEqualsTheNaiveProduct(t *testing.T) {
	lengths := []int{1, 31, 63, 64, 65, 127, 200, 511, 512, 700, 1100}
	samples := samplesOf([]*example{full(kinds[5], 1, 3), full(kinds[2], 2, 4), full(kinds[4], 4, 6), full(kinds[0], 6, 5)}, lengths)
	for offset := range 64 {
		if testing.Short() && offset != 1 && offset != 16 && offset != 63 {
			continue
		}
		t.Run(fmt.Sprint(offset), func(t *testing.T) {
			checkEqual(t, samples, lengths, func() placement { return offsets(offset, 0) }, onBoundaries)
			checkEqual(t, samples, lengths, onBoundaries, func() placement { return offsets(offset, 0) })
			checkEqual(t, samples, lengths, func() placement { return offsets(offset, 1) }, func() placement { return offsets(offset, 3) })
		})
	}
}

// TestLongBlocksEqualTheNaiveProduct has blocks of many pieces, up to more than the caches near a core hold.
func TestLongBlocksEqualTheNaiveProduct(t *testing.T) {
	lengths := []int{8 << 10, 8<<10 + 1, 16<<10 - 1, 64<<10 + 17, 300_001}
	if testing.Short() {
		lengths = lengths[:3]
	}
	examples := []*example{full(kinds[4], 3, 4), full(kinds[2], 7, 3), sparse("parts", 4, []int{0, 1}, nil, []int{0, 1}, []int{2}, []int{0})}
	samples := samplesOf(examples, lengths)
	checkEqual(t, samples, lengths, onBoundaries, onBoundaries)
	checkEqual(t, samples, lengths, func() placement { return offsets(9, 5) }, func() placement { return offsets(3, 1) })
	if testing.Short() {
		return
	}
	lengths = []int{1<<20 + 321, 3<<20 + 64, 3<<20 + 77}
	checkEqual(t, samplesOf(examples[:1], lengths), lengths, onBoundaries, onBoundaries)
}

// TestApplyStreamsByItself has more bytes than streamBytes. Of the inputs many are the same block, which is allowed: the
// product is a multiple of it.
func TestApplyStreamsByItself(t *testing.T) {
	const inputs, outputs = 200, 2
	length := streamBytes/(inputs+outputs) + 1 + 77
	if testing.Short() {
		t.Skip("writes and reads more than the caches hold")
	}
	e := full(kinds[5], outputs, inputs)
	var factors [outputs]byte
	for _, term := range e.terms {
		factors[term.Output] ^= term.Coefficient
	}
	block := filled(1, length, 1)[0]
	in := slices.Repeat([][]byte{block}, inputs)
	for _, offset := range []int{0, 8} {
		onEveryPath(t, func(t *testing.T) {
			m := e.compile(t)
			var out [][]byte
			for range outputs {
				out = append(out, Buffer(offset + length)[offset:])
			}
			m.Apply(out, in)
			for i, row := range out {
				for at, b := range block {
					if want := naiveProducts[factors[i]][b]; row[at] != want {
						t.Fatalf("outputs at offset %d: byte %d of row %d is %#02x, want %#02x", offset, at, i, row[at], want)
					}
				}
			}
		})
	}
}

// TestEveryCoefficient multiplies every byte by every coefficient, in whole vectors and in the rest behind them.
func TestEveryCoefficient(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		all := operations()
		for c := range 256 {
			e := &example{name: "one entry", outputs: 1, inputs: 1, terms: []Term{{0, 0, byte(c)}}}
			s := newSample(e, 0, 0)
			for at := range 2 * 256 { // every byte, and in other places again
				s.before[0] = append(s.before[0], byte(at*5))
				s.after[0] = append(s.after[0], byte(at*5^at))
				s.in[0] = append(s.in[0], byte(at))
				s.background[0] = append(s.background[0], byte(at>>1))
				s.product[0] = append(s.product[0], multiplyNaive(byte(c), byte(at)))
				s.sum[0] = append(s.sum[0], s.product[0][at]^s.background[0][at])
			}
			r := newTrial(t, s, onBoundaries(), onBoundaries())
			for _, o := range all {
				r.check(t, o, 0, 512)
				for from := 0; from < 512; from += 31 {
					r.check(t, o, from, min(from+31, 512))
				}
			}
		}
	})
}

// TestMultiplyByEveryCoefficient is for the functions that take one slice and one coefficient.
func TestMultiplyByEveryCoefficient(t *testing.T) {
	in, background, out := make([]byte, 300), make([]byte, 300), make([]byte, 300)
	fill(in, 1)
	fill(background, 2)
	for c := range 256 {
		for _, length := range []int{0, 1, 15, 16, 17, 64, 255, 300} {
			for name, multiply := range map[string]func(byte, []byte, []byte){"Multiply": Multiply, "MultiplyAdd": MultiplyAdd} {
				copy(out, background)
				multiply(byte(c), in[:length], out[:length])
				for at := range out {
					want := background[at]
					if at < length && name == "Multiply" {
						want = 0
					}
					if at < length {
						want ^= multiplyNaive(byte(c), in[at])
					}
					if out[at] != want {
						t.Fatalf("%s(%d) of %d bytes: byte %d is %#02x, want %#02x", name, c, length, at, out[at], want)
					}
				}
			}
		}
	}
}

// TestDrawnMatrixEqualsTheNaiveProduct draws matrices with rapid, which prefers small ones, and evenly.
func TestDrawnMatrixEqualsTheNaiveProduct(t *testing.T) {
	check := func(t rapid.TB, all []operation, draw func(label string, low, high int) int) {
		e := drawExample(draw)
		length := draw("length", 0, 3000)
		outputs := offsets(draw("offset of outputs", 0, 63), draw("step of outputs", 0, 63))
		inputs := offsets(draw("offset of inputs", 0, 63), draw("step of inputs", 0, 63))
		r := newTrial(t, newSample(e, length, uint64(length)), outputs, inputs)
		for _, o := range all {
			r.check(t, o, 0, length)
		}
		r.checkInputs(t)
	}
	evenly := 150
	if testing.Short() {
		evenly = 5
	}
	onEveryPath(t, func(t *testing.T) {
		all := operations()
		rapid.Check(t, func(t *rapid.T) {
			check(t, all, func(label string, low, high int) int { return rapid.IntRange(low, high).Draw(t, label) })
		})
		for seed := range evenly {
			random := rand.New(rand.NewPCG(uint64(seed), 0))
			check(t, all, func(_ string, low, high int) int { return low + random.IntN(high-low+1) })
		}
	})
}

// TestPartsOfBlocks applies a matrix to blocks one run of bytes after the other: the product of the whole is that of
// its runs.
func TestPartsOfBlocks(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		r := newTrial(t, newSample(full(kinds[4], 4, 6), 1000, 1), offsets(1, 1), offsets(0, 3))
		for _, o := range operations() {
			for from := 0; from < 1000; from += 37 {
				for _, to := range []int{from, from + 1, from + 64, from + 333, 1000} {
					r.check(t, o, from, min(to, 1000))
				}
			}
		}
	})
}
