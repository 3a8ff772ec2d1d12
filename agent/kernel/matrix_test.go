package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/klauspost/reedsolomon"
	"pgregory.net/rapid"
)

func drawBlocks(t *rapid.T, label string, count, length int) [][]byte {
	blocks := make([][]byte, count)
	for i := range blocks {
		// Random bytes from a drawn seed: drawing every byte makes long blocks slow.
		state := rapid.Uint64().Draw(t, label)
		blocks[i] = make([]byte, length)
		for j := range blocks[i] {
			state = state*6364136223846793005 + 1442695040888963407
			blocks[i][j] = byte(state >> 56)
		}
	}
	return blocks
}

func cloneBlocks(blocks [][]byte) [][]byte {
	clones := make([][]byte, len(blocks))
	for i := range blocks {
		clones[i] = bytes.Clone(blocks[i])
	}
	return clones
}

func TestMatrixEqualsTheNaiveProduct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		outputs, inputs := rapid.IntRange(0, 5).Draw(t, "outputs"), rapid.IntRange(0, 7).Draw(t, "inputs")
		length := rapid.SampledFrom([]int{0, 1, 31, 63, 64, 100, pieceBytes - 1, pieceBytes, pieceBytes + 1, 2*pieceBytes + 33}).Draw(t, "length")
		coefficients := map[[2]int]byte{}
		var terms []Term
		for output := range outputs {
			for input := range inputs {
				if c := rapid.SampledFrom([]byte{0, 0, 1, 1, 2, 0x1d, 0x8e, 0xff}).Draw(t, "coefficient"); c != 0 || rapid.Bool().Draw(t, "named") {
					coefficients[[2]int{output, input}] = c
					terms = append(terms, Term{output, input, c})
				}
			}
		}
		m, err := Compile(outputs, inputs, rapid.Permutation(terms).Draw(t, "order"))
		if err != nil {
			t.Fatal(err)
		}
		in, before := drawBlocks(t, "in", inputs, length), drawBlocks(t, "out", outputs, length)
		product := make([][]byte, outputs)
		for output := range outputs {
			product[output] = make([]byte, length)
			for input := range inputs {
				for i := range length {
					product[output][i] ^= multiplyNaive(coefficients[[2]int{output, input}], in[input][i])
				}
			}
		}
		applied, accumulated, byColumn := cloneBlocks(before), cloneBlocks(before), cloneBlocks(before)
		m.Apply(applied, in)
		m.Accumulate(accumulated, in)
		for input := range inputs {
			m.AccumulateColumn(byColumn, input, in[input])
		}
		for output := range outputs {
			sum := bytes.Clone(before[output])
			for i := range sum {
				sum[i] ^= product[output][i]
			}
			if !bytes.Equal(applied[output], product[output]) {
				t.Fatalf("Apply: row %d differs", output)
			}
			if !bytes.Equal(accumulated[output], sum) || !bytes.Equal(byColumn[output], sum) {
				t.Fatalf("Accumulate or AccumulateColumn: row %d differs", output)
			}
		}
	})
}

// TestMatrixEqualsTheEncoder compares with klauspost/reedsolomon's own encoder on a Cauchy matrix.
func TestMatrixEqualsTheEncoder(t *testing.T) {
	const data, parity, length = 6, 3, 20000
	encoder, err := reedsolomon.New(data, parity, reedsolomon.WithCauchyMatrix())
	if err != nil {
		t.Fatal(err)
	}
	var terms []Term
	for column := range data { // the columns of the generator are the parities of unit vectors
		unit := make([][]byte, data+parity)
		for i := range unit {
			unit[i] = make([]byte, 1)
		}
		unit[column][0] = 1
		if err := encoder.Encode(unit); err != nil {
			t.Fatal(err)
		}
		for row := range parity {
			terms = append(terms, Term{row, column, unit[data+row][0]})
		}
	}
	m, err := Compile(parity, data, terms)
	if err != nil {
		t.Fatal(err)
	}
	blocks := make([][]byte, data+parity)
	for i := range blocks {
		blocks[i] = Buffer(length)
		for j := range blocks[i] {
			blocks[i][j] = byte(i*31 + j*7 + j>>8)
		}
	}
	if err := encoder.Encode(blocks); err != nil {
		t.Fatal(err)
	}
	out := make([][]byte, parity)
	for i := range out {
		out[i] = Buffer(length)
	}
	m.Apply(out, blocks[:data])
	for i := range out {
		if !bytes.Equal(out[i], blocks[data+i]) {
			t.Errorf("parity %d differs from the encoder's", i)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for name, terms := range map[string][]Term{
		"row too large": {{2, 0, 1}}, "row negative": {{-1, 0, 1}}, "column too large": {{0, 3, 1}}, "column negative": {{0, -1, 1}}, "twice": {{0, 0, 1}, {0, 0, 2}},
	} {
		if _, err := Compile(2, 3, terms); !errors.Is(err, ErrShape) {
			t.Errorf("%s: %v, want ErrShape", name, err)
		}
	}
}

func TestShapesThatDoNotFitPanic(t *testing.T) {
	m, err := Compile(1, 2, []Term{{0, 0, 1}, {0, 1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(){
		"too few inputs": func() { m.Apply([][]byte{make([]byte, 4)}, [][]byte{make([]byte, 4)}) },
		"short input":    func() { m.Apply([][]byte{make([]byte, 4)}, [][]byte{make([]byte, 4), make([]byte, 3)}) },
		"short output":   func() { m.AccumulateColumn([][]byte{make([]byte, 3)}, 0, make([]byte, 4)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

func encode(t testing.TB, data, parity, length int) (m *Matrix, in, out [][]byte) {
	t.Helper()
	var terms []Term
	for row := range parity {
		for column := range data {
			c := byte(1)
			if row > 0 {
				c = byte(row*37 + column*11 + 2)
			}
			terms = append(terms, Term{row, column, c})
		}
	}
	m, err := Compile(parity, data, terms)
	if err != nil {
		t.Fatal(err)
	}
	var pool Pool
	for range data {
		in = append(in, pool.Get(length))
	}
	for range parity {
		out = append(out, pool.Get(length))
	}
	return m, in, out
}

func TestPool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var pool Pool
		var taken [][]byte
		seen := map[*byte]bool{}
		for _, size := range rapid.SliceOfN(rapid.IntRange(0, 300_000), 1, 20).Draw(t, "sizes") {
			buffer := pool.Get(size)
			start := unsafe.SliceData(buffer[:cap(buffer)])
			if len(buffer) != size || uintptr(unsafe.Pointer(start))%64 != 0 {
				t.Fatalf("Get(%d): %d bytes at %p", size, len(buffer), start)
			}
			if seen[start] {
				t.Fatalf("Get(%d) gives out a buffer that is in use", size)
			}
			if waste := cap(buffer) - size; waste > size/8+pageBytes+staggerBytes {
				t.Fatalf("Get(%d) wastes %d bytes", size, waste)
			}
			seen[start] = true
			if taken = append(taken, buffer); rapid.Bool().Draw(t, "put") {
				delete(seen, start)
				pool.Put(buffer)
				taken = taken[:len(taken)-1]
			}
		}
	})
	var pool Pool
	pool.Put(nil)
	pool.Put(make([]byte, 1000))
	pool.Put(pool.Get(5000)[1:])
	if pool.bytes != 0 {
		t.Errorf("the pool took %d bytes that are not whole buffers of its own", pool.bytes)
	}
	for range 100 {
		pool.Put(Buffer(capacityClass(1 << 20)))
	}
	if pool.bytes > maxPooledBytes {
		t.Errorf("the pool holds %d bytes", pool.bytes)
	}
}

func BenchmarkApply(b *testing.B) {
	for _, shape := range [][3]int{{4, 2, 64 << 10}, {12, 4, 64 << 10}, {12, 4, 1 << 20}, {3, 1, 1 << 20}} {
		b.Run(fmt.Sprintf("%dx%d/%dKiB", shape[1], shape[0], shape[2]>>10), func(b *testing.B) {
			m, in, out := encode(b, shape[0], shape[1], shape[2])
			b.SetBytes(int64(shape[0] * shape[2]))
			for b.Loop() {
				m.Apply(out, in)
			}
		})
		b.Run(fmt.Sprintf("%dx%d/%dKiB/reedsolomon", shape[1], shape[0], shape[2]>>10), func(b *testing.B) {
			encoder, err := reedsolomon.New(shape[0], shape[1], reedsolomon.WithCauchyMatrix(), reedsolomon.WithMaxGoroutines(1))
			if err != nil {
				b.Fatal(err)
			}
			_, in, out := encode(b, shape[0], shape[1], shape[2])
			blocks := append(in, out...)
			b.SetBytes(int64(shape[0] * shape[2]))
			for b.Loop() {
				if err := encoder.Encode(blocks); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
