package main

import (
	"fmt"

	"github.com/klauspost/reedsolomon"
)

const (
	oursPass      = "ours, one pass"
	oursSources   = "ours, by source"
	klauspostEach = klauspost + ", EncodeIdx by source"
	intelEach     = intel + ", update by source"
)

func (b *bench) batch() (*section, error) {
	const blockBytes = 64 << 10
	t := newTable("deltas", "matrix", "one pass GB/s", "by source GB/s", "EncodeIdx GB/s", "ISA-L GB/s", "/ by source", "/ EncodeIdx", "/ ISA-L")
	bySource := newAim(2.5, "one pass at least 2.50 times as fast as ours source by source")
	byIndex := newAim(2.5, "one pass at least 2.50 times as fast as klauspost's EncodeIdx source by source")
	for _, c := range []code{{4, 2}, {8, 4}} {
		// The columns of U without the first, the ones of which a batch has rarely.
		u := newMatrix(c.m, c.k, func(row, column int) byte { return universal(c.k+1, c.m)[row][column+1] })
		for _, kind := range []struct {
			name string
			rows matrix
		}{{"U", u}, {"dense", dense(c.k, c.m)}} {
			name := fmt.Sprintf("%d x %d", c.k, c.m)
			contenders, err := batchContenders(kind.rows, blockBytes)
			if err != nil {
				return nil, err
			}
			r, err := b.measure(name+" "+kind.name, contenders...)
			if err != nil {
				return nil, err
			}
			cells := []string{name, kind.name}
			for _, one := range []string{oursPass, oursSources, klauspostEach, intelEach} {
				cells = append(cells, rate(c.k*blockBytes, r.nanoseconds[one]))
			}
			for _, other := range []string{oursSources, klauspostEach, intelEach} {
				cells = append(cells, r.faster(oursPass, other).String())
			}
			t.add(cells...)
			bySource.add(name+" "+kind.name, r.faster(oursPass, oursSources))
			byIndex.add(name+" "+kind.name, r.faster(oursPass, klauspostEach))
		}
	}
	return &section{
		title: "Batched deltas in cache",
		table: t,
		aims:  []*aim{bySource, byIndex},
		text: "Differences of so many sources are added to so many parities of 64 KiB: GB/s of sources. One pass is Accumulate; by source is AccumulateColumn " +
			"for each source over whole blocks. U: the project's matrix without its column of ones. Ratios: median and worst round.",
	}, nil
}

func batchContenders(rows matrix, blockBytes int) ([]contender, error) {
	k, m := len(rows[0]), len(rows)
	e, err := newEncoder("U", k, m, reedsolomon.WithCustomMatrix(rows))
	if err != nil {
		return nil, err
	}
	s := oneStripe(k+m, blockBytes)
	in, out := s.of(0, 0, k), s.of(0, k, k+m)
	compiled := rows.compile()
	contenders := []contender{
		{name: oursPass, run: func(_, calls int) {
			for range calls {
				compiled.Accumulate(out, in)
			}
		}},
		{name: oursSources, run: func(_, calls int) {
			for range calls {
				for column := range in {
					compiled.AccumulateColumn(out, column, in[column])
				}
			}
		}},
		{name: klauspostEach, peer: klauspost, run: func(_, calls int) {
			for range calls {
				for column := range in {
					must(e.EncodeIdx(in[column], column, out))
				}
			}
		}},
		{name: intelEach, peer: intel, run: newISAL(rows).update(s, indices(0, k), indices(0, k), indices(k, k+m))},
	}
	for i, c := range contenders {
		contenders[i].check = func() error { return checkAdded(rows, out, in, c.run) }
	}
	return contenders, nil
}
