package kernel

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/reedsolomon"
	"pgregory.net/rapid"
)

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
	onEveryPath(t, func(t *testing.T) {
		m, err := Compile(parity, data, terms)
		if err != nil {
			t.Fatal(err)
		}
		m.Apply(out, blocks[:data])
		for i := range out {
			if !bytes.Equal(out[i], blocks[data+i]) {
				t.Errorf("parity %d differs from the encoder's", i)
			}
		}
	})
}

// TestMatrixEqualsTheEncoderOfAnyMatrix compares with klauspost/reedsolomon's encoder on drawn matrices, of which it
// takes the rows of the parities.
func TestMatrixEqualsTheEncoderOfAnyMatrix(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			e := drawExample(func(label string, low, high int) int { return rapid.IntRange(low, high).Draw(t, label) })
			if e.outputs == 0 || e.inputs == 0 {
				return // the encoder has at least one data block and one parity
			}
			checkEncoder(t, e, rapid.IntRange(1, 3000).Draw(t, "length"))
		})
		for seed := range 30 {
			random := rand.New(rand.NewPCG(uint64(seed), 2))
			e := drawExample(func(_ string, low, high int) int { return max(low, 1) + random.IntN(high-max(low, 1)+1) })
			checkEncoder(t, e, 1+random.IntN(9000))
		}
	})
}

func checkEncoder(t rapid.TB, e *example, length int) {
	rows := make([][]byte, e.outputs)
	for i := range rows {
		rows[i] = make([]byte, e.inputs)
	}
	for _, term := range e.terms {
		rows[term.Output][term.Input] = term.Coefficient
	}
	encoder, err := reedsolomon.New(e.inputs, e.outputs, reedsolomon.WithCustomMatrix(rows))
	if err != nil {
		t.Fatalf("%v: %v", e, err)
	}
	blocks := filled(e.inputs+e.outputs, length, 1)
	out := filled(e.outputs, length, 2)
	e.compile(t).Apply(out, blocks[:e.inputs])
	if err := encoder.Encode(blocks); err != nil {
		t.Fatalf("%v: %v", e, err)
	}
	for i := range out {
		if !bytes.Equal(out[i], blocks[e.inputs+i]) {
			t.Fatalf("%v, %d bytes: row %d differs from the encoder's", e, length, i)
		}
	}
}
