package main

import (
	"fmt"

	"github.com/restripe/restripe/agent/kernel"
)

const (
	cachedStores     = "cached"
	streamedStores   = "streamed"
	cachedAndRead    = "cached, read"
	streamedAndRead  = "streamed, read"
	cachedSliceBytes = 32 << 10
)

func (b *bench) crossover() (*section, error) {
	t := newTable("code", "from", "block", "in all", "Apply GB/s", "cached GB/s", "streamed GB/s", "streamed / cached", "cached and read GB/s", "streamed and read GB/s", "streamed / cached")
	sizes := []int{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20}
	if b.quick {
		sizes = []int{4 << 10, 64 << 10, 1 << 20, 16 << 20}
	}
	for _, c := range []code{{4, 2}, {12, 4}} {
		for _, cold := range []bool{false, true} {
			for _, blockBytes := range sizes {
				s, err := b.arena.stripes(c.k+c.m, blockBytes)
				if err != nil {
					return nil, err
				}
				place := "memory"
				if !cold {
					s.views, place = s.views[:1], "one stripe"
				}
				r, err := b.measure(fmt.Sprintf("%s %s from %s", c, size(blockBytes), place), crossoverContenders(c, s)...)
				if err != nil {
					return nil, err
				}
				bytes := c.k * blockBytes
				t.add(c.String(), place, size(blockBytes), size((c.k+c.m)*blockBytes),
					rate(bytes, r.nanoseconds[oursApply]), rate(bytes, r.nanoseconds[cachedStores]), rate(bytes, r.nanoseconds[streamedStores]), r.faster(streamedStores, cachedStores).String(),
					rate(bytes, r.nanoseconds[cachedAndRead]), rate(bytes, r.nanoseconds[streamedAndRead]), r.faster(streamedAndRead, cachedAndRead).String())
			}
		}
	}
	return &section{
		title: "Where streaming stores pay",
		table: t,
		text: fmt.Sprintf("In all: inputs and outputs. Apply: on whole blocks, which it streams by itself from %s in all on. Cached: Apply on slices of %s, which it does not stream. "+
			"Streamed: Stream on whole blocks. Read: the outputs are copied to a small buffer right after. "+
			"From one stripe: the same one in every call; from memory: the next of the arena. Ratios of more than 1 are where streaming is faster, median and worst round.", size(applyStreamsFrom), size(cachedSliceBytes)),
	}, nil
}

func crossoverContenders(c code, s *stripes) []contender {
	rows := universal(c.k, c.m)
	ways := []struct {
		name  string
		apply func(m *kernel.Matrix, out, in [][]byte)
	}{
		{cachedStores, newSlicer(c).apply},
		{streamedStores, (*kernel.Matrix).Stream},
	}
	contenders := []contender{encodeOurs(oursApply, rows, s, (*kernel.Matrix).Apply)}
	for _, way := range ways {
		buffer := kernel.Buffer(cachedSliceBytes)
		read := func(m *kernel.Matrix, out, in [][]byte) {
			way.apply(m, out, in)
			readBlocks(buffer, out)
		}
		contenders = append(contenders, encodeOurs(way.name, rows, s, way.apply), encodeOurs(way.name+", read", rows, s, read))
	}
	return contenders
}

// slicer applies a matrix to one short slice of the blocks after the other.
type slicer struct{ out, in [][]byte }

func newSlicer(c code) *slicer { return &slicer{out: make([][]byte, c.m), in: make([][]byte, c.k)} }

func (s *slicer) apply(m *kernel.Matrix, out, in [][]byte) {
	for from := 0; from < len(in[0]); from += cachedSliceBytes {
		to := min(from+cachedSliceBytes, len(in[0]))
		for i := range in {
			s.in[i] = in[i][from:to]
		}
		for i := range out {
			s.out[i] = out[i][from:to]
		}
		m.Apply(s.out, s.in)
	}
}

// readBlocks reads blocks as a sender does: into a small buffer.
func readBlocks(buffer []byte, blocks [][]byte) {
	for _, block := range blocks {
		for len(block) > 0 {
			block = block[copy(buffer, block):]
		}
	}
}
