package kernel

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/restripe/restripe/agent/block"
)

func TestCompileRefuses(t *testing.T) {
	for name, terms := range map[string][]Term{
		"row too large": {{2, 0, 1}}, "row negative": {{-1, 0, 1}}, "column too large": {{0, 3, 1}}, "column negative": {{0, -1, 1}},
		"twice": {{0, 0, 1}, {0, 0, 2}}, "twice, apart": {{0, 0, 1}, {1, 1, 1}, {0, 0, 1}}, "twice, once zero": {{1, 2, 0}, {1, 2, 3}},
		"zero outside": {{0, 3, 0}},
	} {
		onEveryPath(t, func(t *testing.T) {
			if m, err := Compile(2, 3, terms); !errors.Is(err, ErrShape) || m != nil {
				t.Errorf("%s: matrix %v and error %v, want ErrShape", name, m, err)
			}
		})
	}
	for _, shape := range [][2]int{{-1, 1}, {1, -1}, {maxDimension + 1, 1}, {1, maxDimension + 1}} {
		if _, err := Compile(shape[0], shape[1], nil); !errors.Is(err, ErrShape) {
			t.Errorf("%d x %d: %v, want ErrShape", shape[0], shape[1], err)
		}
	}
}

func TestCompileErrorsNameTheEntry(t *testing.T) {
	for _, terms := range [][]Term{{{4, 1, 1}}, {{4, 1, 1}, {4, 1, 2}}} {
		_, err := Compile(3, 2, terms)
		if err == nil || !strings.Contains(err.Error(), "3 x 2") || !strings.Contains(err.Error(), "row 4, column 1") {
			t.Errorf("%v: the error is %q", terms, err)
		}
	}
}

// TestCompileKeepsNoTerms changes the entries after a matrix has been compiled from them.
func TestCompileKeepsNoTerms(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		e := full(kinds[5], 3, 4)
		r := newTrial(t, newSample(e, 300, 1), offsets(0, 0), offsets(0, 0))
		for i := range e.terms {
			e.terms[i] = Term{}
		}
		for _, o := range operations() {
			r.check(t, o, 0, 300)
		}
	})
}

// TestShapesThatDoNotFitPanic also makes sure that nothing has been written before the panic.
func TestShapesThatDoNotFitPanic(t *testing.T) {
	blocks := func(lengths ...int) (list [][]byte) {
		for _, length := range lengths {
			list = append(list, make([]byte, length))
		}
		return list
	}
	onEveryPath(t, func(t *testing.T) {
		m, err := Compile(2, 3, []Term{{0, 0, 1}, {1, 0, 2}, {1, 1, 2}})
		if err != nil {
			t.Fatal(err)
		}
		f := NewFingerprinter(Key{})
		whole := map[string]func(out, in [][]byte){
			"Apply": m.Apply, "Accumulate": m.Accumulate, "Stream": m.Stream,
			"ApplySum": func(out, in [][]byte) { m.ApplySum(out, in, f, make([]block.Fingerprint, 2)) },
		}
		for name, operate := range whole {
			for mistake, slices := range map[string][2][][]byte{
				"too few outputs": {blocks(40), blocks(40, 40, 40)}, "too many outputs": {blocks(40, 40, 40), blocks(40, 40, 40)}, "no outputs": {nil, blocks(40, 40, 40)},
				"too few inputs": {blocks(40, 40), blocks(40, 40)}, "too many inputs": {blocks(40, 40), blocks(40, 40, 40, 40)}, "no inputs": {blocks(40, 40), nil},
				"short output": {blocks(40, 39), blocks(40, 40, 40)}, "long output": {blocks(40, 41), blocks(40, 40, 40)},
				"short input": {blocks(40, 40), blocks(40, 39, 40)}, "long input": {blocks(40, 40), blocks(41, 40, 40)}, "nil input": {blocks(40, 40), blocks(0, 40, 40)},
			} {
				mustPanic(t, name+", "+mistake, slices[0], func() { operate(slices[0], slices[1]) })
			}
			operate(blocks(40, 40), [][]byte{make([]byte, 40), make([]byte, 40), nil}) // no row uses the last input
		}
		mustPanic(t, "ApplySum, too few fingerprints", nil, func() {
			m.ApplySum(blocks(40, 40), blocks(40, 40, 40), f, make([]block.Fingerprint, 1))
		})
		column := map[string]func(out [][]byte, input, bytes int){
			"ApplyColumn":      func(out [][]byte, input, bytes int) { m.ApplyColumn(out, input, make([]byte, bytes)) },
			"AccumulateColumn": func(out [][]byte, input, bytes int) { m.AccumulateColumn(out, input, make([]byte, bytes)) },
			"AccumulateDelta": func(out [][]byte, input, bytes int) {
				m.AccumulateDelta(out, input, make([]byte, bytes), make([]byte, bytes))
			},
		}
		for name, operate := range column {
			mustPanic(t, name+", too few outputs", nil, func() { operate(blocks(40), 0, 40) })
			mustPanic(t, name+", too many outputs", nil, func() { operate(blocks(40, 40, 40), 0, 40) })
			mustPanic(t, name+", short output", nil, func() { operate(blocks(40, 39), 0, 40) })
			mustPanic(t, name+", long output", nil, func() { operate(blocks(41, 40), 0, 40) })
			mustPanic(t, name+", nil output", nil, func() { operate(blocks(40, 0), 1, 40) })
			mustPanic(t, name+", no such column", nil, func() { operate(blocks(40, 40), 3, 40) })
			mustPanic(t, name+", negative column", nil, func() { operate(blocks(40, 40), -1, 40) })
			operate([][]byte{nil, make([]byte, 40)}, 1, 40)
		}
		mustPanic(t, "AccumulateDelta, two lengths", nil, func() { m.AccumulateDelta(blocks(40, 40), 0, make([]byte, 40), make([]byte, 39)) })
	})
}

func mustPanic(t *testing.T, name string, out [][]byte, call func()) {
	t.Helper()
	for i := range out {
		fill(out[i], uint64(i))
	}
	defer func() {
		t.Helper()
		if recover() == nil {
			t.Errorf("%s: no panic", name)
		}
		for i := range out {
			unchanged := make([]byte, len(out[i]))
			fill(unchanged, uint64(i))
			if !bytes.Equal(out[i], unchanged) {
				t.Errorf("%s: wrote to row %d before it panicked", name, i)
			}
		}
	}()
	call()
}

// TestOneMatrixForMany applies one matrix from many goroutines to blocks of their own.
func TestOneMatrixForMany(t *testing.T) {
	s := newSample(full(kinds[4], 7, 6), 3000, 1)
	onEveryPath(t, func(t *testing.T) {
		all := operations()
		var group sync.WaitGroup
		for i := range 8 {
			r := newTrial(t, s, offsets(i, 1), offsets(0, i))
			group.Go(func() {
				for round := range 20 {
					for _, o := range all {
						r.check(concurrently{t}, o, round, 3000)
					}
				}
			})
		}
		group.Wait()
	})
}

// concurrently is a test whose failures may come from any goroutine: they do not stop it.
type concurrently struct{ *testing.T }

func (c concurrently) Fatalf(format string, values ...any) { c.Errorf(format, values...) }
