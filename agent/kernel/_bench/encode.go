package main

import (
	"fmt"

	"github.com/restripe/restripe/agent/kernel"
)

type code struct{ k, m int }

func (c code) String() string { return fmt.Sprintf("(%d,%d)", c.k, c.m) }

var codes = []code{{4, 2}, {6, 3}, {8, 3}, {10, 4}, {12, 4}}

const (
	oursOnes  = "ours, ones row"
	oursDense = "ours, dense"
	copying   = "memcpy"
	klauspost = "klauspost"
	intel     = "ISA-L"
)

func (b *bench) encode() (*section, error) {
	t := newTable("code", "block", "ones row GB/s", "dense GB/s", "klauspost GB/s", "ISA-L GB/s", "memcpy GB/s",
		"ones row / best peer", "dense / best peer", "ones row of k*m", "of its own products", "dense of k*m")
	onesPeer := newAim(1, "the ones row at least 1.00 times as fast as the best peer")
	onesSmall := newAim(1.3, "the ones row at least 1.30 times as fast as the best peer at 4 KiB")
	densePeer := newAim(1, "a dense matrix at least 1.00 times as fast as the best peer")
	denseCeiling := newAim(0.85, "a dense matrix at least 0.85 of the affine ceiling at 4 KiB")
	onesCeiling := newAim(0.85, "the ones row at least 0.85 of the affine ceiling of all k*m products at 4 KiB")
	for _, blockBytes := range []int{4 << 10, 64 << 10} {
		for _, c := range codes {
			name := c.String() + " " + size(blockBytes)
			contenders, err := encodeContenders(c, blockBytes, func(blocks int) *stripes { return oneStripe(blocks, blockBytes) })
			if err != nil {
				return nil, err
			}
			r, err := b.measure(name, contenders...)
			if err != nil {
				return nil, err
			}
			rows := universal(c.k, c.m)
			fullShare := b.affineShare(r, oursOnes, c.k*c.m, blockBytes)
			ownShare := b.affineShare(r, oursOnes, rows.products(), blockBytes)
			denseShare := b.affineShare(r, oursDense, c.k*c.m, blockBytes)
			ones, others := r.faster(oursOnes, r.best()), r.faster(oursDense, r.best())
			bytes := c.k * blockBytes
			t.add(c.String(), size(blockBytes), rate(bytes, r.nanoseconds[oursOnes]), rate(bytes, r.nanoseconds[oursDense]),
				r.bestRate(klauspost, bytes), r.bestRate(intel, bytes), rate(bytes, r.nanoseconds[copying]),
				ones.String(), others.String(), percent(fullShare), percent(ownShare), percent(denseShare))
			onesPeer.add(name, ones)
			densePeer.add(name, others)
			if blockBytes == 4<<10 {
				onesSmall.add(name, ones)
				denseCeiling.add(name, denseShare)
				onesCeiling.add(name, fullShare)
			}
		}
	}
	return &section{
		title: "Encoding in cache",
		table: t,
		aims:  []*aim{onesPeer, onesSmall, densePeer, denseCeiling, onesCeiling},
		text: "GB/s of data read, k blocks a call. Ratios: median and worst round. klauspost and ISA-L: the fastest of their matrices, " +
			"named behind the figure (New and Cauchy are their own, U is the project's). memcpy copies the k blocks over the m outputs in turn. " +
			"Ceilings: the share of the time that so many products take at 64 bytes a cycle; the ones row has (k-1)*(m-1) products of its own, the rest are sums.",
	}, nil
}

// bestRate is the rate of a peer's fastest contender, and which that is.
func (r *results) bestRate(peer string, bytes int) string {
	name := r.best(peer)
	return rate(bytes, r.nanoseconds[name]) + " " + name[len(peer)+2:]
}

// encodeContenders are the ways to encode a stripe; lay makes stripes of so many blocks. Where stripes share their
// memory the matrix of the one who came last is not that of the others, so every check computes anew.
func encodeContenders(c code, blockBytes int, lay func(blocks int) *stripes) ([]contender, error) {
	rows := universal(c.k, c.m)
	s := lay(c.k + c.m)
	contenders := []contender{
		encodeOurs(oursOnes, rows, s, (*kernel.Matrix).Apply),
		encodeOurs(oursDense, dense(c.k, c.m), s, (*kernel.Matrix).Apply),
	}
	all, err := encoders(c.k, c.m, blockBytes, rows)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		contenders = append(contenders, encodeKlauspost(e, c, s))
	}
	return append(contenders, encodeISAL("U", rows, s), encodeISAL("Cauchy", isalCauchy(c.k, c.m), s), copyBlocks(c, s)), nil
}

func encodeOurs(name string, rows matrix, s *stripes, apply func(m *kernel.Matrix, out, in [][]byte)) contender {
	k, m, compiled := len(rows[0]), len(rows), rows.compile()
	run := func(first, calls int) {
		for call := first; call < first+calls; call++ {
			apply(compiled, s.of(call, k, k+m), s.of(call, 0, k))
		}
	}
	return contender{name: name, run: run, check: checkEncode(rows, s, run)}
}

func encodeKlauspost(e *encoder, c code, s *stripes) contender {
	run := func(first, calls int) {
		for call := first; call < first+calls; call++ {
			must(e.Encode(s.of(call, 0, c.k+c.m)))
		}
	}
	return contender{name: klauspost + ", " + e.name, peer: klauspost, run: run, check: checkEncode(e.rows, s, run), goroutines: e.goroutines}
}

func encodeISAL(name string, rows matrix, s *stripes) contender {
	k, m := len(rows[0]), len(rows)
	run := newISAL(rows).apply(s, indices(0, k), indices(k, k+m))
	return contender{name: intel + ", " + name, peer: intel, run: run, check: checkEncode(rows, s, run)}
}

// copyBlocks reads what an encoder reads and writes over what it writes.
func copyBlocks(c code, s *stripes) contender {
	return contender{name: copying, run: func(first, calls int) {
		for call := first; call < first+calls; call++ {
			in, out := s.of(call, 0, c.k), s.of(call, c.k, c.k+c.m)
			for i := range in {
				copy(out[i%c.m], in[i])
			}
		}
	}}
}

// checkEncode spoils the outputs of the first stripe, encodes it and verifies them.
func checkEncode(rows matrix, s *stripes, run func(first, calls int)) func() error {
	k, m := len(rows[0]), len(rows)
	return func() error {
		in, out := s.of(0, 0, k), s.of(0, k, k+m)
		spoil(out)
		run(0, 1)
		return rows.verify(out, in)
	}
}

// spoil writes what no result is.
func spoil(blocks [][]byte) {
	for _, block := range blocks {
		for i := range block {
			block[i] = 0xa5
		}
	}
}

// indices are the numbers from (with) to (without).
func indices(from, to int) []int {
	list := make([]int, to-from)
	for i := range list {
		list[i] = from + i
	}
	return list
}
