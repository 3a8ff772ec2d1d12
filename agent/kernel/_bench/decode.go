package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/kernel"
)

const oursLookedUp = "ours, looked up"

// loss is which data blocks of a stripe are lost and what they are computed from.
type loss struct {
	code
	lost      []int // columns
	survivors []int // k blocks of the stripe, data first
}

// newLoss loses columns behind the first, which has coefficients simpler than others, and takes the first parities.
func newLoss(c code, erasures int) loss {
	l := loss{code: c, lost: indices(1, 1+erasures)}
	for i := range c.k + erasures {
		if !slices.Contains(l.lost, i) {
			l.survivors = append(l.survivors, i)
		}
	}
	return l
}

// rows is the matrix that computes the lost blocks from the survivors, as package stripe has it.
func (l loss) rows() (matrix, error) {
	rows := newMatrix(len(l.lost), l.k, func(int, int) byte { return 0 })
	terms, err := l.pattern().terms(nil)
	for _, term := range terms {
		rows[term.Output][term.Input] = term.Coefficient
	}
	return rows, err
}

func (l loss) pattern() *pattern {
	return newPattern(l.code, indices(0, l.k), l.lost, indices(0, len(l.lost)))
}

func (b *bench) decode() (*section, error) {
	t := newTable("code", "lost", "block", "ours GB/s", "looked up GB/s", "klauspost GB/s", "ISA-L GB/s", "ours / best peer", "looked up / klauspost")
	best := newAim(1, "decoding at least 1.00 times as fast as the best peer")
	lookedUp := newAim(1, "looked up in every call at least 1.00 times as fast as klauspost, which looks its inversion up")
	for _, blockBytes := range []int{4 << 10, 64 << 10} {
		for _, c := range codes {
			for _, erasures := range slices.Compact([]int{1, 2, c.m}) {
				l := newLoss(c, erasures)
				name := fmt.Sprintf("%s less %d, %s", c, erasures, size(blockBytes))
				contenders, err := decodeContenders(l, blockBytes)
				if err != nil {
					return nil, err
				}
				r, err := b.measure(name, contenders...)
				if err != nil {
					return nil, err
				}
				bytes := c.k * blockBytes
				ratio, lookedUpRatio := r.faster(ours, r.best()), r.faster(oursLookedUp, r.best(klauspost))
				t.add(c.String(), fmt.Sprint(erasures), size(blockBytes), rate(bytes, r.nanoseconds[ours]), rate(bytes, r.nanoseconds[oursLookedUp]),
					r.bestRate(klauspost, bytes), r.bestRate(intel, bytes), ratio.String(), lookedUpRatio.String())
				best.add(name, ratio)
				lookedUp.add(name, lookedUpRatio)
			}
		}
	}
	return &section{
		title: "Decoding in cache",
		table: t,
		aims:  []*aim{best, lookedUp},
		text: "Data blocks are lost; they are computed from the other data and the first parities: GB/s of the k blocks read. Ours: the matrix compiled before. " +
			"Looked up: stripe.Decode and kernel.Compile in every call, which keep what they found before; klauspost's ReconstructData does the same with its inversions. " +
			"ISA-L: with the tables of the same matrix made before. " +
			"Ratios: median and worst round.",
	}, nil
}

// decodeContenders lay data, parities and room for what ISA-L and ours compute in one stripe; reedsolomon writes the lost
// blocks where they were.
func decodeContenders(l loss, blockBytes int) ([]contender, error) {
	rows, err := l.rows()
	if err != nil {
		return nil, err
	}
	s := oneStripe(l.k+l.m+len(l.lost), blockBytes)
	universal(l.k, l.m).compile().Apply(s.of(0, l.k, l.k+l.m), s.of(0, 0, l.k))
	var in [][]byte
	for _, i := range l.survivors {
		in = append(in, s.views[0][i])
	}
	out := s.of(0, l.k+l.m, s.blocks)
	compiled, p, terms := rows.compile(), l.pattern(), make([]kernel.Term, 0, len(l.lost)*l.k)
	contenders := []contender{
		{name: ours, run: func(_, calls int) {
			for range calls {
				compiled.Apply(out, in)
			}
		}},
		{name: oursLookedUp, run: func(_, calls int) {
			for range calls {
				found, err := p.compile(terms)
				must(err)
				found.Apply(out, in)
			}
		}},
		{name: intel + ", U", peer: intel, run: newISAL(rows).apply(s, l.survivors, indices(l.k+l.m, s.blocks))},
	}
	for i, c := range contenders {
		contenders[i].check = func() error {
			spoil(out)
			c.run(0, 1)
			return errors.Join(rows.verify(out, in), equal(out, s.of(0, l.lost[0], l.lost[0]+len(l.lost))))
		}
	}
	peers, err := decodeKlauspost(l, blockBytes)
	return append(contenders, peers...), err
}

func decodeKlauspost(l loss, blockBytes int) ([]contender, error) {
	all, err := encoders(l.k, l.m, blockBytes, universal(l.k, l.m))
	if err != nil {
		return nil, err
	}
	var contenders []contender
	for _, e := range all {
		c, err := reconstruct(e, l, blockBytes)
		if err != nil {
			return nil, err
		}
		contenders = append(contenders, c)
	}
	return contenders, nil
}

// reconstruct is reedsolomon's ReconstructData, on a stripe of the encoder's own, as its matrix may be another.
func reconstruct(e *encoder, l loss, blockBytes int) (contender, error) {
	blocks := oneStripe(l.k+l.m, blockBytes).views[0]
	if err := e.Encode(blocks); err != nil {
		return contender{}, fmt.Errorf("encoding %s to decode it: %w", l.code, err)
	}
	shards := slices.Clone(blocks)
	run := func(_, calls int) {
		for range calls {
			for _, column := range l.lost {
				shards[column] = shards[column][:0]
			}
			for i := len(l.lost); i < l.m; i++ { // what is not needed is not there
				shards[l.k+i] = nil
			}
			must(e.ReconstructData(shards))
		}
	}
	lost := blocks[l.lost[0] : l.lost[0]+len(l.lost)]
	return contender{name: klauspost + ", " + e.name, peer: klauspost, run: run, goroutines: e.goroutines, check: func() error {
		want := make([][]byte, len(lost))
		for i := range lost {
			want[i] = bytes.Clone(lost[i])
		}
		spoil(lost)
		run(0, 1)
		return equal(lost, want)
	}}, nil
}

// equal compares blocks.
func equal(got, want [][]byte) error {
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			return fmt.Errorf("block %d is not what was lost", i)
		}
	}
	return nil
}
