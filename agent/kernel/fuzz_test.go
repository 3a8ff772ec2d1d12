package kernel

import (
	"errors"
	"testing"

	"github.com/restripe/restripe/agent/block"
)

// operationsByPath prepares the operations of every path once for all inputs of a fuzz target.
func operationsByPath() map[path][]operation {
	all := map[path][]operation{}
	for _, p := range machinePaths() {
		withPath(p, func() { all[p] = operations() })
	}
	return all
}

// FuzzApply makes a matrix of a shape whose coefficients repeat those given, and blocks of a length at given offsets.
func FuzzApply(f *testing.F) {
	f.Add(uint8(1), uint8(1), []byte{7}, uint16(1), uint8(0), uint8(0), uint8(0), uint8(0))
	f.Add(uint8(4), uint8(12), []byte{1, 2, 3, 4, 5}, uint16(4096-64), uint8(0), uint8(0), uint8(0), uint8(0))
	f.Add(uint8(6), uint8(5), []byte{2, 3}, uint16(511), uint8(1), uint8(0), uint8(63), uint8(3))
	f.Add(uint8(9), uint8(7), []byte{0, 1, 1, 0, 200}, uint16(1025), uint8(32), uint8(32), uint8(16), uint8(0))
	f.Add(uint8(3), uint8(8), []byte{1, 1, 1, 1, 1, 1, 1, 1, 9, 1}, uint16(640), uint8(0), uint8(64), uint8(0), uint8(64))
	f.Add(uint8(14), uint8(3), []byte{}, uint16(100), uint8(0), uint8(0), uint8(0), uint8(0))
	f.Add(uint8(0), uint8(3), []byte{1}, uint16(100), uint8(0), uint8(0), uint8(0), uint8(0))
	all := operationsByPath()
	f.Fuzz(func(t *testing.T, outputs, inputs uint8, coefficients []byte, length uint16, outputOffset, outputStep, inputOffset, inputStep uint8) {
		e := &example{name: "fuzzed", outputs: int(outputs) % 15, inputs: int(inputs) % 24}
		for i := 0; i < e.outputs*e.inputs && len(coefficients) > 0; i++ {
			if c := coefficients[i%len(coefficients)]; c != 0 {
				e.terms = append(e.terms, Term{i / e.inputs, i % e.inputs, c})
			}
		}
		s := newSample(e, int(length)%5000, uint64(length))
		for p, operations := range all {
			withPath(p, func() {
				r := newTrial(t, s, offsets(int(outputOffset), int(outputStep)), offsets(int(inputOffset), int(inputStep)))
				for _, o := range operations {
					r.check(t, o, 0, int(length)%5000)
				}
				r.checkInputs(t)
			})
		}
	})
}

// FuzzCompile has entries that fit or do not: the matrix is refused, or it is the one that the entries say.
func FuzzCompile(f *testing.F) {
	f.Add(int8(2), int8(2), []byte{0, 0, 1, 0, 1, 2, 1, 0, 3, 1, 1, 4})
	f.Add(int8(2), int8(2), []byte{0, 0, 1, 0, 0, 1})
	f.Add(int8(2), int8(3), []byte{2, 0, 1})
	f.Add(int8(2), int8(3), []byte{0, 3, 0})
	f.Add(int8(2), int8(3), []byte{0xff, 0, 1})
	f.Add(int8(-1), int8(3), []byte{})
	f.Add(int8(0), int8(0), []byte{})
	f.Add(int8(5), int8(5), []byte{4, 0, 1, 4, 1, 1, 4, 4, 2, 0, 0, 1, 0, 1, 7, 0, 4, 1, 3, 3, 0})
	all := operationsByPath()
	f.Fuzz(func(t *testing.T, outputs, inputs int8, entries []byte) {
		e := &example{name: "fuzzed", outputs: int(outputs), inputs: int(inputs)}
		refused := outputs < 0 || inputs < 0
		named := map[[2]int]bool{}
		for ; len(entries) >= 3; entries = entries[3:] {
			term := Term{int(int8(entries[0])), int(int8(entries[1])), entries[2]}
			place := [2]int{term.Output, term.Input}
			outside := term.Output < 0 || term.Output >= e.outputs || term.Input < 0 || term.Input >= e.inputs
			refused = refused || outside || named[place]
			named[place] = true
			e.terms = append(e.terms, term)
		}
		if refused {
			for p := range all {
				withPath(p, func() {
					if m, err := Compile(e.outputs, e.inputs, e.terms); !errors.Is(err, ErrShape) || m != nil {
						t.Fatalf("%v: matrix %v and error %v, want ErrShape", e, m, err)
					}
				})
			}
			return
		}
		s := newSample(e, 100, 1)
		for p, operations := range all {
			withPath(p, func() {
				r := newTrial(t, s, offsets(0, 0), offsets(1, 1))
				for _, o := range operations {
					r.check(t, o, 0, 100)
				}
			})
		}
	})
}

// FuzzFingerprint splits data in ways whose parts, put together, have the fingerprint of the whole.
func FuzzFingerprint(f *testing.F) {
	f.Add([]byte{}, []byte{}, uint16(0), uint16(0), uint16(0), uint16(0))
	f.Add([]byte{1}, []byte("data that is longer than a vector"), uint16(3), uint16(5), uint16(16), uint16(0))
	f.Add([]byte("a key of 16 bytes"), []byte{0, 0, 0, 1}, uint16(4096), uint16(100), uint16(512), uint16(128))
	f.Add([]byte("another"), []byte{0xff}, uint16(20_000), uint16(8192), uint16(1000), uint16(1))
	f.Fuzz(func(t *testing.T, secret, pattern []byte, length, split, unit, zeros uint16) {
		var key Key
		copy(key[:], secret)
		data := make([]byte, int(length)%30_000)
		for i := range data {
			if len(pattern) > 0 {
				data[i] = pattern[i%len(pattern)] ^ byte(i/len(pattern))
			}
		}
		for _, p := range machinePaths() {
			withPath(p, func() { checkFingerprint(t, NewFingerprinter(key), data, int(split), int(unit), int(zeros)) })
		}
	})
}

func checkFingerprint(t *testing.T, f *Fingerprinter, data []byte, split, unit, zeros int) {
	t.Helper()
	reference := newNaiveRemainder(f)
	want := block.Fingerprint(reference.add(data...).sum)
	if got := f.Sum(data); got != want {
		t.Fatalf("on %v Sum of %d bytes is %x, the remainder is %x", chosen, len(data), got, want)
	}
	split %= len(data) + 1
	if got := f.Join(f.Sum(data[:split]), f.Sum(data[split:]), len(data)-split); got != want {
		t.Fatalf("on %v Join at %d of %d is %x, want %x", chosen, split, len(data), got, want)
	}
	if unit > 0 {
		whole := len(data) / unit * unit
		var prints []block.Fingerprint
		for at := 0; at < whole; at += unit {
			prints = append(prints, f.Sum(data[at:at+unit]))
		}
		if got := f.Join(f.JoinUnits(prints, unit), f.Sum(data[whole:]), len(data)-whole); got != want {
			t.Fatalf("on %v %d units of %d bytes and the rest of %d have %x, want %x", chosen, len(prints), unit, len(data), got, want)
		}
	}
	extended := block.Fingerprint(reference.add(make([]byte, zeros)...).sum)
	if got := f.Extend(want, len(data), len(data)+zeros); got != extended {
		t.Fatalf("on %v Extend from %d bytes by %d zeros is %x, want %x", chosen, len(data), zeros, got, extended)
	}
}
