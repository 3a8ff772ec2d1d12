package kernel

import (
	"fmt"
	"testing"

	"github.com/klauspost/reedsolomon"
)

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

func BenchmarkFingerprint(b *testing.B) {
	f := NewFingerprinter(Key{1, 2, 3, 4, 5, 6, 7, 8, 9})
	data := Buffer(1 << 20)
	for i := range data {
		data[i] = byte(i * 7)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		f.Sum(data)
	}
}

func BenchmarkExtend(b *testing.B) {
	f := NewFingerprinter(Key{1, 2, 3, 4, 5, 6, 7, 8, 9})
	print := f.Sum([]byte("data"))
	for b.Loop() {
		f.Extend(print, 4, 1<<20)
	}
}
