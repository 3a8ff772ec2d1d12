package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/klauspost/reedsolomon"

	"github.com/restripe/restripe/agent/kernel"
)

const (
	sparseOutputs = 12
	sparseInputs  = 38
	ours          = "ours"
)

// sparseMatrix has about a quarter of its entries, half of them ones: the shape of a node's part in a transition.
func sparseMatrix() matrix {
	random := rand.New(rand.NewPCG(38, 12))
	return newMatrix(sparseOutputs, sparseInputs, func(int, int) byte {
		switch random.IntN(8) {
		case 0:
			return 1
		case 1:
			return byte(2 + random.IntN(254))
		}
		return 0
	})
}

func (b *bench) sparse() (*section, error) {
	t := newTable("block", "ours GB/s", "klauspost GB/s", "parallel path GB/s", "ISA-L GB/s", "/ klauspost", "/ parallel path", "/ ISA-L", "of its products")
	direct := newAim(4, "a sparse plan at least 4.00 times as fast as klauspost, one goroutine")
	parallel := newAim(4, "a sparse plan at least 4.00 times as fast as klauspost's parallel path")
	rows := sparseMatrix()
	for _, blockBytes := range []int{4 << 10, 64 << 10} {
		s := oneStripe(sparseInputs+sparseOutputs, blockBytes)
		single, err := newEncoder("U", sparseInputs, sparseOutputs, reedsolomon.WithCustomMatrix(rows))
		if err != nil {
			return nil, err
		}
		through, err := newParallelEncoder(sparseInputs, sparseOutputs, blockBytes, rows)
		if err != nil {
			return nil, err
		}
		c := code{sparseInputs, sparseOutputs}
		contenders := []contender{
			encodeOurs(ours, rows, s, (*kernel.Matrix).Apply), encodeKlauspost(single, c, s), encodeKlauspost(through, c, s), encodeISAL("U", rows, s),
		}
		r, err := b.measure(size(blockBytes), contenders...)
		if err != nil {
			return nil, err
		}
		cells := []string{size(blockBytes)}
		for _, one := range contenders {
			cells = append(cells, rate(c.k*blockBytes, r.nanoseconds[one.name]))
		}
		for _, peer := range contenders[1:] {
			cells = append(cells, r.faster(ours, peer.name).String())
		}
		t.add(append(cells, percent(b.affineShare(r, ours, rows.products(), blockBytes)))...)
		direct.add(size(blockBytes), r.faster(ours, contenders[1].name))
		parallel.add(size(blockBytes), r.faster(ours, contenders[2].name))
	}
	return &section{
		title: "A sparse plan in cache",
		table: t,
		aims:  []*aim{direct, parallel},
		text: fmt.Sprintf("%d outputs of %d inputs; %d of the %d coefficients are not zero and %d of those are ones. GB/s of inputs. Peers take the matrix as dense. "+
			"klauspost has GFNI for more than 10 inputs or outputs only in its parallel path, here with one goroutine for all of a block. Ratios: median and worst round.",
			sparseOutputs, sparseInputs, rows.entries(), sparseOutputs*sparseInputs, rows.entries()-rows.products()),
	}, nil
}
