package main

import (
	"crypto/subtle"
	"fmt"

	"github.com/klauspost/reedsolomon"
)

// Blocks of a stripe in the table of deltas: one data block before and after, their sum, and the parities.
const (
	blockBefore = iota
	blockAfter
	blockDifference
	firstParity
)

const (
	deltaColumns = 10 // data blocks of the code
	deltaColumn  = 3  // the one that changes
)

const (
	oursDelta       = "ours, delta"
	klauspostDelta  = klauspost + ", EncodeIdx"
	klauspostSum    = klauspost + ", EncodeIdx with sum"
	klauspostUpdate = klauspost + ", Update"
	intelDelta      = intel + ", update"
	intelSum        = intel + ", update with sum"
)

func (b *bench) delta() (*section, error) {
	const blockBytes = 4 << 10
	t := newTable("parities", "ours ns", "EncodeIdx ns", "with sum ns", "Update ns", "ISA-L ns", "with sum ns",
		"/ EncodeIdx", "/ with sum", "/ Update", "/ ISA-L", "/ with sum")
	withSum := newAim(3, "deltas at least 3.00 times as fast as klauspost's EncodeIdx and the sum it needs")
	var given sample
	for m := 1; m <= 4; m++ {
		name := fmt.Sprintf("m = %d", m)
		contenders, err := deltaContenders(m, blockBytes)
		if err != nil {
			return nil, err
		}
		r, err := b.measure(name, contenders...)
		if err != nil {
			return nil, err
		}
		cells := []string{name}
		peers := []string{klauspostDelta, klauspostSum, klauspostUpdate, intelDelta, intelSum}
		for _, one := range append([]string{oursDelta}, peers...) {
			cells = append(cells, duration(r.nanoseconds[one]))
		}
		for _, peer := range peers {
			cells = append(cells, r.faster(oursDelta, peer).String())
		}
		t.add(cells...)
		withSum.add(name, r.faster(oursDelta, klauspostSum))
		given = append(given, r.faster(oursDelta, klauspostDelta).median())
	}
	return &section{
		title: "Deltas in cache",
		table: t,
		aims:  []*aim{withSum},
		notes: []string{given.spread() + " times as fast as klauspost's EncodeIdx with the difference given, which ours still has to make (median rounds)"},
		text: fmt.Sprintf("One data block of 4 KiB of a code with %d changes, and m parities follow: nanoseconds a call. EncodeIdx and ISA-L take the difference of the "+
			"block; \"with sum\" also makes it, as ours does. Ratios: how many times as fast ours is, median and worst round.", deltaColumns),
	}, nil
}

func deltaContenders(m, blockBytes int) ([]contender, error) {
	rows := universal(deltaColumns, m)
	e, err := newEncoder("U", deltaColumns, m, reedsolomon.WithCustomMatrix(rows))
	if err != nil {
		return nil, err
	}
	s := oneStripe(firstParity+m, blockBytes)
	blocks := s.of(0, 0, s.blocks)
	before, after, difference, parities := blocks[blockBefore], blocks[blockAfter], blocks[blockDifference], blocks[firstParity:]
	subtle.XORBytes(difference, before, after)
	compiled, prepared, updated := rows.compile(), newISAL(rows), indices(firstParity, s.blocks)
	contenders := []contender{
		{name: oursDelta, run: func(_, calls int) {
			for range calls {
				compiled.AccumulateDelta(parities, deltaColumn, before, after)
			}
		}},
		{name: klauspostDelta, peer: klauspost, run: func(_, calls int) {
			for range calls {
				must(e.EncodeIdx(difference, deltaColumn, parities))
			}
		}},
		{name: klauspostSum, peer: klauspost, run: func(_, calls int) {
			for range calls {
				subtle.XORBytes(difference, before, after)
				must(e.EncodeIdx(difference, deltaColumn, parities))
			}
		}},
		{name: intelDelta, peer: intel, run: prepared.update(s, []int{deltaColumn}, []int{blockDifference}, updated)},
		{name: intelSum, peer: intel, run: prepared.update(s, []int{deltaColumn}, []int{blockDifference}, updated, blockBefore, blockAfter)},
	}
	for i, c := range contenders {
		contenders[i].check = checkDelta(rows, blocks, c.run)
	}
	return append(contenders, updateContender(e, rows, blockBytes)), nil
}

// updateContender is reedsolomon's Update. It leaves the difference where the old block was, so it has blocks of its own.
func updateContender(e *encoder, rows matrix, blockBytes int) contender {
	blocks := oneStripe(firstParity+len(rows), blockBytes).views[0]
	shards, changed := make([][]byte, deltaColumns+len(rows)), make([][]byte, deltaColumns)
	shards[deltaColumn], changed[deltaColumn] = blocks[blockBefore], blocks[blockAfter]
	copy(shards[deltaColumns:], blocks[firstParity:])
	run := func(_, calls int) {
		for range calls {
			must(e.Update(shards, changed))
		}
	}
	return contender{name: klauspostUpdate, peer: klauspost, run: run, check: checkDelta(rows, blocks, run)}
}

// checkDelta runs a call and verifies what it added to the parities.
func checkDelta(rows matrix, blocks [][]byte, run func(first, calls int)) func() error {
	return func() error {
		difference := make([]byte, len(blocks[blockBefore]))
		subtle.XORBytes(difference, blocks[blockBefore], blocks[blockAfter])
		column := newMatrix(len(rows), 1, func(row, _ int) byte { return rows[row][deltaColumn] })
		return checkAdded(column, blocks[firstParity:], [][]byte{difference}, run)
	}
}

// checkAdded runs a call and verifies that it added the matrix times in to out.
func checkAdded(rows matrix, out, in [][]byte, run func(first, calls int)) error {
	added := make([][]byte, len(out))
	for i := range out {
		added[i] = append([]byte{}, out[i]...)
	}
	run(0, 1)
	for i := range out {
		subtle.XORBytes(added[i], added[i], out[i])
	}
	return rows.verify(added, in)
}
