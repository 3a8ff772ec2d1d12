package main

import (
	"fmt"

	"github.com/klauspost/reedsolomon"
)

// encoder is an encoder of klauspost/reedsolomon under a name.
type encoder struct {
	reedsolomon.Encoder
	name       string
	rows       matrix
	goroutines bool
}

// newEncoder makes an encoder that does not start goroutines.
func newEncoder(name string, k, m int, choices ...reedsolomon.Option) (*encoder, error) {
	return makeEncoder(name, k, m, append([]reedsolomon.Option{reedsolomon.WithMaxGoroutines(1)}, choices...)...)
}

// newParallelEncoder makes an encoder that takes its parallel path for blocks of the size given, and hands all of a
// block to one goroutine: above 10 inputs that is the only path of reedsolomon that has GFNI.
func newParallelEncoder(k, m, blockBytes int, rows matrix) (*encoder, error) {
	e, err := makeEncoder("U, parallel path", k, m, reedsolomon.WithCustomMatrix(rows),
		reedsolomon.WithMaxGoroutines(2), reedsolomon.WithMinSplitSize(blockBytes-1))
	if e != nil {
		e.goroutines = true
	}
	return e, err
}

func makeEncoder(name string, k, m int, choices ...reedsolomon.Option) (*encoder, error) {
	made, err := reedsolomon.New(k, m, choices...)
	if err != nil {
		return nil, fmt.Errorf("making the encoder of klauspost/reedsolomon for (%d,%d), %s: %w", k, m, name, err)
	}
	e := &encoder{Encoder: made, name: name}
	e.rows, err = coefficientsOf(made, k, m)
	return e, err
}

// coefficientsOf reads the matrix of an encoder off the parities of unit vectors.
func coefficientsOf(e reedsolomon.Encoder, k, m int) (matrix, error) {
	rows := newMatrix(m, k, func(int, int) byte { return 0 })
	for column := range k {
		shards := make([][]byte, k+m)
		for i := range shards {
			shards[i] = make([]byte, 1)
		}
		shards[column][0] = 1
		if err := e.Encode(shards); err != nil {
			return nil, fmt.Errorf("reading the matrix of an encoder: %w", err)
		}
		for row := range rows {
			rows[row][column] = shards[k+row][0]
		}
	}
	return rows, nil
}

// encoders makes the encoders worth comparing for a code: with its own matrices, with the rows given, and where its
// parallel path has better instructions, through that.
func encoders(k, m, blockBytes int, rows matrix) ([]*encoder, error) {
	var all []*encoder
	for _, choice := range []struct {
		name    string
		options []reedsolomon.Option
	}{
		{"New", nil},
		{"Cauchy", []reedsolomon.Option{reedsolomon.WithCauchyMatrix()}},
		{"U", []reedsolomon.Option{reedsolomon.WithCustomMatrix(rows)}},
	} {
		e, err := newEncoder(choice.name, k, m, choice.options...)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	if k > 10 || m > 10 {
		e, err := newParallelEncoder(k, m, blockBytes, rows)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// must is for calls whose arguments this program made: an error is its mistake.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("measuring: %v", err))
	}
}
