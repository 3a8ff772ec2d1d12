package main

import (
	"fmt"

	"github.com/klauspost/reedsolomon"

	"github.com/restripe/restripe/agent/kernel"
)

const (
	oursApply  = "ours, Apply"
	oursStream = "ours, Stream"

	streamAim = 1.4 // times klauspost

	// applyStreamsFrom is the constant streamBytes of package kernel.
	applyStreamsFrom = 96 << 20
)

func (b *bench) memory() (*section, error) {
	t := newTable("code", "block", "Apply GB/s", "Stream GB/s", "klauspost GB/s", "ISA-L GB/s", "memcpy GB/s", "reading alone GB/s",
		"Apply / klauspost", "Stream / klauspost", "Stream / ISA-L", "Stream / reading alone", "klauspost / reading alone")
	streaming := newAim(streamAim, fmt.Sprintf("Stream from memory at least %.2f times as fast as klauspost", streamAim))
	var bound readBound
	sizes := []int{64 << 10, 256 << 10, 1 << 20, 4 << 20}
	if b.quick {
		sizes = []int{64 << 10, 4 << 20}
	}
	for _, c := range codes {
		for _, blockBytes := range sizes {
			name := c.String() + " " + size(blockBytes)
			contenders, err := b.memoryContenders(c, blockBytes)
			if err != nil {
				return nil, err
			}
			r, err := b.measure(name, contenders...)
			if err != nil {
				return nil, err
			}
			bytes, peer, reader := c.k*blockBytes, r.best(klauspost), r.best(reading)
			read, ofStream, ofPeer := "-", "-", "-"
			if reader != "" {
				read, ofStream, ofPeer = rate(bytes, r.nanoseconds[reader]), r.faster(oursStream, reader).String(), r.faster(peer, reader).String()
				bound.add(r.faster(oursStream, peer).median(), r.faster(oursStream, reader).median(), r.faster(peer, reader).median())
			}
			t.add(c.String(), size(blockBytes), rate(bytes, r.nanoseconds[oursApply]), rate(bytes, r.nanoseconds[oursStream]), r.bestRate(klauspost, bytes),
				r.bestRate(intel, bytes), rate(bytes, r.nanoseconds[copying]), read, r.faster(oursApply, peer).String(), r.faster(oursStream, peer).String(),
				r.faster(oursStream, r.best(intel)).String(), ofStream, ofPeer)
			streaming.add(name, r.faster(oursStream, peer))
		}
	}
	return &section{
		title: "Encoding from memory",
		table: t,
		aims:  []*aim{streaming},
		notes: bound.notes(),
		text: "Every call takes the next stripe of an arena much larger than the caches: GB/s of data read. All use the project's matrix. " +
			fmt.Sprintf("Stream stores past the caches; Apply does by itself only from %d MiB of inputs and outputs on, as only its caller knows what is cached below. ", applyStreamsFrom>>20) +
			"memcpy copies the k blocks over the m outputs in turn. Reading alone loads the k blocks in the order of an encoder, 64 bytes at a time, sums them up and does nothing else, " +
			"with and without asking for memory in advance, the better of both: so fast can one core read here. That is what limits Stream, which has to write besides: " +
			"where klauspost already reads at nearly 1/1.40 of it, nothing is 1.40 times as fast. Ratios: median and worst round.",
	}, nil
}

// readBound sets the aim of Stream beside what one core can read.
type readBound struct {
	wanted, wantedInVain, reached sample // shares of the speed of reading alone
}

// add takes a row: Stream's speed over klauspost's, and both over that of reading alone.
func (b *readBound) add(streamed, streamShare, klauspostShare float64) {
	wanted := streamAim * klauspostShare
	b.wanted, b.reached = append(b.wanted, wanted), append(b.reached, streamShare)
	if streamed < streamAim {
		b.wantedInVain = append(b.wantedInVain, wanted)
	}
}

// notes is empty if there was nobody to read alone.
func (b *readBound) notes() []string {
	if len(b.wanted) == 0 {
		return nil
	}
	text := fmt.Sprintf("%.2f times klauspost is %s of what one core can read at all, and Stream reaches %s", streamAim, b.wanted.spread(), b.reached.spread())
	if len(b.wantedInVain) > 0 {
		text += fmt.Sprintf("; in the %d rows that miss the aim it is %s", len(b.wantedInVain), b.wantedInVain.spread())
	}
	return []string{text + " (median rounds)"}
}

func (b *bench) memoryContenders(c code, blockBytes int) ([]contender, error) {
	rows := universal(c.k, c.m)
	s, err := b.arena.stripes(c.k+c.m, blockBytes)
	if err != nil {
		return nil, err
	}
	single, err := newEncoder("U", c.k, c.m, reedsolomon.WithCustomMatrix(rows))
	if err != nil {
		return nil, err
	}
	contenders := []contender{
		encodeOurs(oursApply, rows, s, (*kernel.Matrix).Apply),
		encodeOurs(oursStream, rows, s, (*kernel.Matrix).Stream),
		encodeKlauspost(single, c, s),
		encodeISAL("U", rows, s),
		copyBlocks(c, s),
	}
	contenders = append(contenders, readers(c, s)...)
	if c.k > 10 {
		parallel, err := newParallelEncoder(c.k, c.m, blockBytes, rows)
		if err != nil {
			return nil, err
		}
		contenders = append(contenders, encodeKlauspost(parallel, c, s))
	}
	return contenders, nil
}
