package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/stripe"
)

const (
	findPattern    = "find"
	compilePattern = "compile"
	// patternCount is so many that what the caches knew of a pattern is forgotten before it comes again.
	patternCount = 1 << 15
)

// pattern is what a reader knows of a stripe that has lost cells: the question to package stripe.
type pattern struct {
	code
	columns, lost, data, parities []int
	positions                     [stripe.MaxData]uint8 // among the survivors, by column
}

func newPattern(c code, columns, lost, parities []int) *pattern {
	p := &pattern{code: c, columns: columns, lost: lost, parities: parities}
	for _, column := range columns {
		if !slices.Contains(lost, column) {
			p.positions[column] = uint8(len(p.data))
			p.data = append(p.data, column)
		}
	}
	return p
}

// terms asks for every lost cell and appends the answers.
func (p *pattern) terms(answers []kernel.Term) ([]kernel.Term, error) {
	for i, column := range p.lost {
		parts, err := stripe.Decode(stripe.RS(p.k, p.m), p.columns, column, p.data, p.parities)
		if err != nil {
			return nil, fmt.Errorf("decoding %v of %s: %w", p.lost, p.code, err)
		}
		for _, part := range parts {
			input := len(p.data) + slices.Index(p.parities, part.Index)
			if !part.Parity {
				input = int(p.positions[part.Index])
			}
			answers = append(answers, kernel.Term{Output: i, Input: input, Coefficient: part.Coefficient})
		}
	}
	return answers, nil
}

// compile returns the matrix that computes the lost cells from the survivors; buffer is for its terms.
func (p *pattern) compile(buffer []kernel.Term) (*kernel.Matrix, error) {
	terms, err := p.terms(buffer[:0])
	if err != nil {
		return nil, err
	}
	return kernel.Compile(len(p.lost), p.k, terms)
}

// verify decodes blocks that are the sums of the definition.
func (p *pattern) verify() error {
	const blockBytes = 1000
	s := oneStripe(p.k+len(p.lost), blockBytes)
	cells := map[int][]byte{}
	for i, column := range p.columns {
		cells[column] = s.views[0][i]
	}
	var in [][]byte
	for _, column := range p.data {
		in = append(in, cells[column])
	}
	for _, row := range p.parities {
		parity := make([]byte, blockBytes)
		for column, cell := range cells {
			addProduct(parity, stripe.Coefficient(row, column), cell)
		}
		in = append(in, parity)
	}
	compiled, err := p.compile(nil)
	if err != nil {
		return err
	}
	out := s.of(0, p.k, s.blocks)
	compiled.Apply(out, in)
	for i, column := range p.lost {
		if !bytes.Equal(out[i], cells[column]) {
			return fmt.Errorf("column %d of %v is not what was lost", column, p.columns)
		}
	}
	return nil
}

func (b *bench) patterns() (*section, error) {
	t := newTable("code", "lost", "stripe.Decode ns", "kernel.Compile ns", "both ns")
	for _, c := range codes {
		for _, erasures := range slices.Compact([]int{1, 2, c.m}) {
			r, err := b.measure(fmt.Sprintf("%s less %d", c, erasures), patternContenders(newPatterns(c, erasures))...)
			if err != nil {
				return nil, err
			}
			found, both := r.nanoseconds[findPattern], r.nanoseconds[compilePattern]
			t.add(c.String(), fmt.Sprint(erasures), duration(found), duration(sample{both.median() - found.median()}), duration(both))
		}
	}
	return &section{
		title: "Erasure patterns for the first time",
		table: t,
		text: fmt.Sprintf("What a decoding costs before its first byte, where nothing is known of it: every call has another one of %d patterns, of columns drawn from %d and the last parities. "+
			"kernel.Compile is the difference of both and stripe.Decode, which is asked once for every lost block.", patternCount, stripe.MaxData),
	}, nil
}

// newPatterns draws patterns that differ, with a seed so that they are the same in every run.
func newPatterns(c code, erasures int) []*pattern {
	random := rand.New(rand.NewPCG(uint64(c.k), uint64(erasures)))
	parities := indices(c.m-erasures, c.m)
	seen := map[string]bool{}
	var all []*pattern
	for len(all) < patternCount {
		columns := random.Perm(stripe.MaxData)[:c.k]
		if key := fmt.Sprint(columns); !seen[key] {
			seen[key] = true
			all = append(all, newPattern(c, columns, columns[:erasures], parities))
		}
	}
	return all
}

// patternContenders take the patterns in turn, all from the same row, so that none follows another one's answers.
func patternContenders(patterns []*pattern) []contender {
	next, terms := 0, make([]kernel.Term, 0, len(patterns[0].lost)*patterns[0].k)
	visit := func(name string, use func(p *pattern) error) contender {
		return contender{name: name, run: func(_, calls int) {
			for range calls {
				must(use(patterns[next%len(patterns)]))
				next++
			}
		}, check: patterns[0].verify}
	}
	return []contender{
		visit(findPattern, func(p *pattern) error { _, err := p.terms(terms); return err }),
		visit(compilePattern, func(p *pattern) error { _, err := p.compile(terms); return err }),
	}
}
