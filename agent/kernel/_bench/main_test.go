package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/kernel"
)

// TestContendersAgree runs the check of every contender on blocks that are no multiple of a vector.
func TestContendersAgree(t *testing.T) {
	for _, blockBytes := range []int{1000, 4096, 70_001} {
		for _, c := range codes {
			encoding, err := encodeContenders(c, blockBytes, func(blocks int) *stripes { return oneStripe(blocks, blockBytes) })
			if err != nil {
				t.Fatal(err)
			}
			decoding, err := decodeContenders(newLoss(c, c.m), blockBytes)
			if err != nil {
				t.Fatal(err)
			}
			deltas, err := deltaContenders(c.m, blockBytes)
			if err != nil {
				t.Fatal(err)
			}
			batches, err := batchContenders(dense(c.k, c.m), blockBytes)
			if err != nil {
				t.Fatal(err)
			}
			sums := applySumContenders(c, oneStripe(c.k+c.m, blockBytes))
			crossing := crossoverContenders(c, oneStripe(c.k+c.m, blockBytes))
			for _, list := range [][]contender{encoding, decoding, deltas, batches, sums, crossing} {
				for _, one := range list {
					if one.check == nil {
						if one.name != copying {
							t.Errorf("%s of %s: nothing checks it", one.name, c)
						}
						continue
					}
					if err := one.check(); err != nil {
						t.Errorf("%s of %s, %d bytes: %v", one.name, c, blockBytes, err)
					}
				}
			}
		}
	}
}

// TestPatternsAgree decodes patterns with columns from anywhere, and sees that none comes twice.
func TestPatternsAgree(t *testing.T) {
	for _, c := range codes {
		patterns := newPatterns(c, c.m)
		seen := map[string]bool{}
		for i, p := range patterns {
			if i < 100 {
				if err := p.verify(); err != nil {
					t.Errorf("%s: %v", c, err)
				}
			}
			seen[fmt.Sprint(p.columns)] = true
		}
		if len(seen) != patternCount {
			t.Errorf("%s: %d patterns of %d differ", c, len(seen), patternCount)
		}
		for _, one := range patternContenders(patterns) {
			if err := one.check(); err != nil {
				t.Errorf("%s of %s: %v", one.name, c, err)
			}
			one.run(0, 10)
		}
	}
}

// TestReadersReadEverything also sees that one bit left out would be noticed.
func TestReadersReadEverything(t *testing.T) {
	c := code{6, 3}
	s := oneStripe(c.k+c.m, 16<<10)
	all := readers(c, s)
	if len(all) == 0 {
		t.Skip("this machine has no loads of 64 bytes")
	}
	for _, one := range all {
		if err := one.check(); err != nil {
			t.Errorf("%s: %v", one.name, err)
		}
	}
	if checkReading([][]byte{make([]byte, 64)}, 1) == nil {
		t.Error("a wrong sum goes unseen")
	}
}

// TestApplyStreamsFrom compares what the document says with the kernel, which keeps the number to itself.
func TestApplyStreamsFrom(t *testing.T) {
	parsed, err := parser.ParseFile(token.NewFileSet(), "../apply.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constant := parsed.Scope.Lookup("streamBytes")
	if constant == nil {
		t.Fatal("package kernel has no constant streamBytes")
	}
	expression := types.ExprString(constant.Decl.(*ast.ValueSpec).Values[0])
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expression)
	if err != nil {
		t.Fatal(err)
	}
	if got := value.Value.ExactString(); got != fmt.Sprint(applyStreamsFrom) {
		t.Errorf("Apply streams from %s bytes on, not %d", got, applyStreamsFrom)
	}
}

func TestReadBound(t *testing.T) {
	var bound readBound
	if bound.notes() != nil {
		t.Error("a note about no rows")
	}
	bound.add(1.5, 0.75, 0.5)
	bound.add(1.25, 1, 0.8)
	bound.add(1.2, 0.72, 0.6)
	want := "1.40 times klauspost is 0.70 to 1.12 of what one core can read at all, and Stream reaches 0.72 to 1.00; " +
		"in the 2 rows that miss the aim it is 0.84 to 1.12 (median rounds)"
	if got := bound.notes(); len(got) != 1 || got[0] != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestSize(t *testing.T) {
	for bytes, want := range map[int]string{4 << 10: "4 KiB", 1536 << 10: "1536 KiB", 96 << 20: "96 MiB"} {
		if got := size(bytes); got != want {
			t.Errorf("%d bytes are %s, want %s", bytes, got, want)
		}
	}
}

func TestVerifySeesOneWrongByte(t *testing.T) {
	rows, s := dense(4, 2), oneStripe(6, 100_000)
	in, out := s.of(0, 0, 4), s.of(0, 4, 6)
	rows.compile().Apply(out, in)
	if err := rows.verify(out, in); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 40_000, 99_999} {
		out[1][at] ^= 1
		if rows.verify(out, in) == nil {
			t.Errorf("a wrong byte at %d goes unseen", at)
		}
		out[1][at] ^= 1
	}
}

func TestChecksSeeWrongResults(t *testing.T) {
	c := code{4, 2}
	s := oneStripe(c.k+c.m, 4096)
	other := encodeOurs("other", dense(c.k, c.m), s, func(_ *kernel.Matrix, out, in [][]byte) { universal(c.k, c.m).compile().Apply(out, in) })
	if other.check() == nil {
		t.Error("another matrix goes unseen")
	}
	nothing := encodeOurs("nothing", universal(c.k, c.m), s, func(*kernel.Matrix, [][]byte, [][]byte) {})
	if nothing.check() == nil {
		t.Error("doing nothing goes unseen")
	}
	data := bytes.Repeat([]byte{1, 2, 3, 4}, 4096)
	if err := checkSum(kernel.NewFingerprinter(fingerprintKey), data); err != nil {
		t.Error(err)
	}
	if checkSum(kernel.NewFingerprinter(kernel.Key{1, 2, 3}), data) == nil {
		t.Error("a fingerprint under another key goes unseen")
	}
}

func TestMatricesAreWhatTheyAreCalled(t *testing.T) {
	for _, c := range codes {
		if got := dense(c.k, c.m).products(); got != c.k*c.m {
			t.Errorf("the dense matrix of %s has %d products", c, got)
		}
		if got, most := universal(c.k, c.m).products(), (c.k-1)*(c.m-1); got != most {
			t.Errorf("the project's matrix of %s has %d products, want %d", c, got, most)
		}
	}
	rows := sparseMatrix()
	entries, ones := rows.entries(), rows.entries()-rows.products()
	if places := sparseOutputs * sparseInputs; entries < places/5 || entries > places*3/10 {
		t.Errorf("%d entries of %d are not about a quarter", entries, places)
	}
	if ones < entries*4/10 || ones > entries*6/10 {
		t.Errorf("%d ones of %d entries are not about half", ones, entries)
	}
}

func TestAim(t *testing.T) {
	a := newAim(1.5, "at least 1.50")
	a.add("fast", sample{2, 3, 4})
	a.add("mixed", sample{1, 2, 2})
	a.add("slow", sample{1, 1, 9})
	a.add("absent", nil)
	want := "at least 1.50: 2 of 3 hold by the median round, 1 by the worst; missed by slow with 1.00"
	if got := fmt.Sprint(a); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMedian(t *testing.T) {
	for _, one := range []struct {
		values sample
		want   float64
	}{{sample{3}, 3}, {sample{5, 1}, 3}, {sample{9, 1, 4}, 4}} {
		if got := one.values.median(); got != one.want {
			t.Errorf("the median of %v is %v, want %v", []float64(one.values), got, one.want)
		}
	}
}

func TestOptionsRefuse(t *testing.T) {
	for _, arguments := range []string{"-rounds 14", "-only (", "-only nothing", "-write -quick", "-write -only encode"} {
		if _, err := parseOptions(strings.Fields(arguments)); err == nil {
			t.Errorf("%s is taken", arguments)
		}
	}
}

func TestLayout(t *testing.T) {
	s := layStripes(kernel.Buffer(10*strideOf(5000)), 3, 5000)
	if s.count() != 3 || s.stride != 8192+512 {
		t.Fatalf("%d stripes of stride %d", s.count(), s.stride)
	}
	if len(s.of(4, 0, 3)[2]) != 5000 || &s.of(4, 0, 3)[2][0] != &s.memory[5*s.stride] {
		t.Error("call 4 does not take block 2 of stripe 1")
	}
}
