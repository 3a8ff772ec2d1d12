package main

// #include "machine.h"
import "C"

import (
	"encoding/binary"
	"fmt"
)

const (
	reading = "reading alone"
	// readAhead is how far before the loads one of the readers asks for memory.
	readAhead = 2048
)

// readers load the data blocks of stripes in the order of an encoder and do nothing else: with the processor's own
// prefetching, and asking for memory in advance. There are none on machines without loads of 64 bytes.
func readers(c code, s *stripes) (all []contender) {
	if C.has_wide_loads() == 0 {
		return nil
	}
	for _, ahead := range []int{0, readAhead} {
		read := func(first, calls int) uint64 {
			return uint64(C.read_blocks(C.long(first), C.long(calls), pointer(s.memory), layoutOf(s), C.int(c.k), C.int(ahead)))
		}
		all = append(all, contender{
			name: fmt.Sprintf("%s, %d bytes ahead", reading, ahead), peer: reading,
			run:   func(first, calls int) { read(first, calls) },
			check: func() error { return checkReading(s.of(0, 0, c.k), read(0, 1)) },
		})
	}
	return all
}

// checkReading compares the sum of all words of blocks.
func checkReading(blocks [][]byte, got uint64) error {
	var want uint64
	for _, block := range blocks {
		for ; len(block) > 0; block = block[8:] {
			want ^= binary.LittleEndian.Uint64(block)
		}
	}
	if got != want {
		return fmt.Errorf("the blocks read sum up to %x, not %x", got, want)
	}
	return nil
}
