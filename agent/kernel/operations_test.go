package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/block"
)

// withPath calls do with a path chosen.
func withPath(p path, do func()) {
	before := chosen
	defer func() { chosen = before }()
	chosen = p
	do()
}

// onEveryPath runs a test once for each path of the machine, with that path chosen.
func onEveryPath(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	for _, p := range machinePaths() {
		t.Run(p.String(), func(t *testing.T) { withPath(p, func() { test(t) }) })
	}
}

// multiplyNaive is the product of GF(2^8)/0x11d by the definition.
func multiplyNaive(a, b byte) (product byte) {
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			product ^= a
		}
		carry := a&0x80 != 0
		a <<= 1
		if carry {
			a ^= 0x1d
		}
	}
	return product
}

// naiveProducts[a][b] is multiplyNaive(a, b): what the package computes is compared with tables it has no part in.
var naiveProducts = func() (table [256][256]byte) {
	for a := range table {
		for b := range table[a] {
			table[a][b] = multiplyNaive(byte(a), byte(b))
		}
	}
	return table
}()

// fill writes bytes that follow from the seed.
func fill(block []byte, seed uint64) {
	random := rand.NewPCG(seed, 1)
	for len(block) >= 8 {
		binary.LittleEndian.PutUint64(block, random.Uint64())
		block = block[8:]
	}
	for i := range block {
		block[i] = byte(random.Uint64())
	}
}

func filled(count, length int, seed uint64) [][]byte {
	blocks := make([][]byte, count)
	for i := range blocks {
		blocks[i] = make([]byte, length)
		fill(blocks[i], seed<<16|uint64(i))
	}
	return blocks
}

func summed(a, b [][]byte) [][]byte {
	sums := make([][]byte, len(a))
	for i := range a {
		sums[i] = bytes.Clone(a[i])
		for at := range sums[i] {
			sums[i][at] ^= b[i][at]
		}
	}
	return sums
}

// example is a matrix by its entries.
type example struct {
	name            string
	outputs, inputs int
	terms           []Term
}

func (e *example) String() string {
	if len(e.terms) > 40 {
		return fmt.Sprintf("%s (%d x %d, %d entries)", e.name, e.outputs, e.inputs, len(e.terms))
	}
	return fmt.Sprintf("%s (%d x %d, entries %v)", e.name, e.outputs, e.inputs, e.terms)
}

func (e *example) compile(t rapid.TB) *Matrix {
	t.Helper()
	m, err := Compile(e.outputs, e.inputs, e.terms)
	if err != nil {
		t.Fatalf("%v: %v", e, err)
	}
	return m
}

// sample is an example with inputs and the right results for them.
type sample struct {
	*example
	in, before, after [][]byte // before + after = in
	background        [][]byte // what is in the outputs at first
	product           [][]byte // of the matrix and in
	sum               [][]byte // background + product
	users             [][]int  // by input: the rows with an entry in its column
}

func newSample(e *example, length int, seed uint64) *sample {
	s := &sample{example: e, in: filled(e.inputs, length, seed), before: filled(e.inputs, length, seed+1)}
	s.after = summed(s.in, s.before)
	s.background = filled(e.outputs, length, seed+2)
	s.product = make([][]byte, e.outputs)
	for i := range s.product {
		s.product[i] = make([]byte, length)
	}
	s.users = make([][]int, e.inputs)
	for _, term := range e.terms {
		if term.Coefficient == 0 {
			continue
		}
		s.users[term.Input] = append(s.users[term.Input], term.Output)
		multiples := &naiveProducts[term.Coefficient]
		row := s.product[term.Output]
		for at, b := range s.in[term.Input] {
			row[at] ^= multiples[b]
		}
	}
	s.sum = summed(s.background, s.product)
	return s
}

// call is what an operation works on.
type call struct {
	matrix                 *Matrix
	out, in, before, after [][]byte
	users                  [][]int
	rows                   [][]byte // all nil between uses
	begun                  []bool   // by row
	prints                 []block.Fingerprint
}

// operation is a way to compute the product of a matrix and blocks.
type operation struct {
	name string
	adds bool // to what the outputs hold, else overwrites it
	run  func(t rapid.TB, c *call)
}

// operations returns all of them, for the chosen path.
func operations() []operation {
	f := NewFingerprinter(Key{1, 2, 3, 4})
	return []operation{
		{"Apply", false, func(_ rapid.TB, c *call) { c.matrix.Apply(c.out, c.in) }},
		{"Stream", false, func(_ rapid.TB, c *call) { c.matrix.Stream(c.out, c.in) }},
		{"ApplySum", false, func(t rapid.TB, c *call) { c.applySum(t, f) }},
		{"Accumulate", true, func(_ rapid.TB, c *call) { c.matrix.Accumulate(c.out, c.in) }},
		{"ApplyColumn", false, func(_ rapid.TB, c *call) { c.applyColumns() }},
		{"AccumulateColumn", true, func(_ rapid.TB, c *call) {
			c.forEveryInput(func(i int, rows [][]byte) { c.matrix.AccumulateColumn(rows, i, c.in[i]) })
		}},
		{"AccumulateDelta", true, func(_ rapid.TB, c *call) {
			c.forEveryInput(func(i int, rows [][]byte) { c.matrix.AccumulateDelta(rows, i, c.before[i], c.after[i]) })
		}},
	}
}

// applySum also compares the fingerprints with those of the finished outputs.
func (c *call) applySum(t rapid.TB, f *Fingerprinter) {
	for i := range c.prints {
		c.prints[i] = block.Fingerprint{0xff}
	}
	c.matrix.ApplySum(c.out, c.in, f, c.prints)
	for i, print := range c.prints {
		if want := f.Sum(c.out[i]); print != want {
			t.Fatalf("ApplySum of %d bytes: the fingerprint of row %d is %x, want %x", len(c.out[i]), i, print, want)
		}
	}
}

// applyColumns overwrites the rows of an input where nothing was added to any of them yet, else adds to them.
func (c *call) applyColumns() {
	clear(c.begun)
	for input, users := range c.users {
		fresh := true
		for _, row := range users {
			fresh = fresh && !c.begun[row]
		}
		for _, row := range users {
			if !fresh && !c.begun[row] {
				clear(c.out[row])
			}
			c.begun[row] = true
			c.rows[row] = c.out[row]
		}
		if fresh {
			c.matrix.ApplyColumn(c.rows, input, c.in[input])
		} else {
			c.matrix.AccumulateColumn(c.rows, input, c.in[input])
		}
		for _, row := range users {
			c.rows[row] = nil
		}
	}
	for row, begun := range c.begun {
		if !begun {
			clear(c.out[row])
		}
	}
}

// forEveryInput gives only the rows with an entry in the column of the input: the others may be anything.
func (c *call) forEveryInput(add func(input int, rows [][]byte)) {
	for input, users := range c.users {
		for _, row := range users {
			c.rows[row] = c.out[row]
		}
		add(input, c.rows)
		for _, row := range users {
			c.rows[row] = nil
		}
	}
}

// blocks are equally long runs of bytes, each somewhere in a buffer of its own.
type blocks struct {
	buffers [][]byte
	starts  []int
}

// slice is part of a block, without capacity beyond its end.
func (b *blocks) slice(i, from, to int) []byte {
	at := b.starts[i]
	return b.buffers[i][at+from : at+to : at+to]
}

// placement says where a block lies: in which buffer, and at which position of it.
type placement func(length int) (buffer []byte, start int)

func place(contents [][]byte, where placement) *blocks {
	b := &blocks{}
	for i, content := range contents {
		buffer, start := where(len(content))
		fill(buffer, uint64(i))
		copy(buffer[start:], content)
		b.buffers = append(b.buffers, buffer)
		b.starts = append(b.starts, start)
	}
	return b
}

// band is how many bytes around the outputs are watched.
const band = 128

// trial checks operations on parts of blocks that have been placed.
type trial struct {
	*sample
	placed, placedIn, placedBefore, placedAfter *blocks

	canvas [][]byte // what the buffers of the outputs hold before each call
	call   call
}

func newTrial(t rapid.TB, s *sample, outputs, inputs placement) *trial {
	t.Helper()
	r := &trial{sample: s, placed: place(s.background, outputs), placedIn: place(s.in, inputs)}
	r.placedBefore, r.placedAfter = place(s.before, inputs), place(s.after, inputs)
	for _, buffer := range r.placed.buffers {
		r.canvas = append(r.canvas, bytes.Clone(buffer))
	}
	r.call = call{
		matrix: s.compile(t), users: s.users, rows: make([][]byte, s.outputs), begun: make([]bool, s.outputs), prints: make([]block.Fingerprint, s.outputs),
		out: make([][]byte, s.outputs), in: make([][]byte, s.inputs), before: make([][]byte, s.inputs), after: make([][]byte, s.inputs),
	}
	return r
}

// check runs an operation on the positions of every block from one to another, and compares the outputs with the right
// ones and what surrounds them with what was there. Inputs that no row uses are nil.
func (r *trial) check(t rapid.TB, o operation, from, to int) {
	for i, users := range r.users {
		if len(users) > 0 {
			r.call.in[i] = r.placedIn.slice(i, from, to)
			r.call.before[i] = r.placedBefore.slice(i, from, to)
			r.call.after[i] = r.placedAfter.slice(i, from, to)
		}
	}
	for i := range r.call.out {
		r.call.out[i] = r.placed.slice(i, from, to)
		low, high := r.surroundings(i, from, to)
		copy(r.placed.buffers[i][low:high], r.canvas[i][low:high])
	}
	o.run(t, &r.call)
	want := r.product
	if o.adds {
		want = r.sum
	}
	for i := range r.call.out {
		start, end := r.placed.starts[i]+from, r.placed.starts[i]+to
		low, high := r.surroundings(i, from, to)
		got, canvas := r.placed.buffers[i], r.canvas[i]
		if !bytes.Equal(got[start:end], want[i][from:to]) {
			at := firstDifference(got[start:end], want[i][from:to])
			t.Fatalf("%s of %v, blocks of %d bytes: byte %d of row %d is %#02x, want %#02x", o.name, r.example, to-from, at, i, got[start+at], want[i][from+at])
		}
		if !bytes.Equal(got[low:start], canvas[low:start]) {
			at := firstDifference(got[low:start], canvas[low:start])
			t.Fatalf("%s of %v, blocks of %d bytes: wrote %d bytes before row %d", o.name, r.example, to-from, start-low-at, i)
		}
		if !bytes.Equal(got[end:high], canvas[end:high]) {
			t.Fatalf("%s of %v, blocks of %d bytes: wrote %d bytes behind row %d", o.name, r.example, to-from, firstDifference(got[end:high], canvas[end:high]), i)
		}
	}
}

func (r *trial) surroundings(i, from, to int) (low, high int) {
	start := r.placed.starts[i]
	return max(start+from-band, 0), min(start+to+band, len(r.canvas[i]))
}

// checkInputs fails if a call has changed an input.
func (r *trial) checkInputs(t rapid.TB) {
	t.Helper()
	for what, pair := range map[string][2][][]byte{
		"input": {r.placedIn.all(r.in), r.in}, "before": {r.placedBefore.all(r.before), r.before}, "after": {r.placedAfter.all(r.after), r.after},
	} {
		for i := range pair[0] {
			if !bytes.Equal(pair[0][i], pair[1][i]) {
				t.Fatalf("%v: %s %d was written to", r.example, what, i)
			}
		}
	}
}

func (b *blocks) all(contents [][]byte) (whole [][]byte) {
	for i := range b.buffers {
		whole = append(whole, b.slice(i, 0, len(contents[i])))
	}
	return whole
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// offsets places blocks in memory, the first one at an address that is so many bytes from a multiple of 64, and each
// further one step bytes farther from it.
func offsets(first, step int) placement {
	next := first
	return func(length int) ([]byte, int) {
		start := band + next%lineBytes
		next += step
		return Buffer(start + length + band), start
	}
}
