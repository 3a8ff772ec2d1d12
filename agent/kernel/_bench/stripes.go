package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/restripe/restripe/agent/kernel"
)

// stripes are equally long blocks in one piece of memory, grouped in stripes, in the strides that kernel.Pool gives:
// whole pages and 512 bytes, so that the blocks of a stripe do not fall on the same cache sets.
type stripes struct {
	memory     []byte
	stride     int
	blocks     int // of each stripe
	blockBytes int
	views      [][][]byte // by stripe and block
}

const (
	pageBytes    = 4096
	staggerBytes = 512
)

func strideOf(blockBytes int) int { return (blockBytes+pageBytes-1)/pageBytes*pageBytes + staggerBytes }

// layStripes lays as many stripes into the memory as fit.
func layStripes(memory []byte, blocks, blockBytes int) *stripes {
	s := &stripes{memory: memory, stride: strideOf(blockBytes), blocks: blocks, blockBytes: blockBytes}
	for from := 0; from+s.stride*blocks <= len(memory); from += s.stride * blocks {
		view := make([][]byte, blocks)
		for i := range view {
			start := from + i*s.stride
			view[i] = memory[start : start+blockBytes : start+blockBytes]
		}
		s.views = append(s.views, view)
	}
	return s
}

// oneStripe returns a stripe of its own with random content.
func oneStripe(blocks, blockBytes int) *stripes {
	memory := kernel.Buffer(strideOf(blockBytes) * blocks)
	fill(memory)
	return layStripes(memory, blocks, blockBytes)
}

func (s *stripes) count() int { return len(s.views) }

// of returns blocks from (with) to (without) of the stripe that a call number works on.
func (s *stripes) of(call, from, to int) [][]byte { return s.views[call%len(s.views)][from:to] }

// fill writes random bytes, the same in every run.
func fill(memory []byte) {
	source := rand.NewChaCha8([32]byte{1})
	if _, err := source.Read(memory); err != nil {
		panic("a generator of random bytes failed: " + err.Error()) // invariant: ChaCha8.Read returns no error
	}
}

// arena is memory so much larger than the last-level cache that what was used one turn ago is no longer cached. It is not
// of the Go heap: that stays as small as in a program without it, so that garbage is collected and its memory used again
// as often as there.
type arena struct {
	bytes  int
	memory []byte
}

// arenaBytes chooses four times the last-level cache, 1 GiB at least and 4 GiB at most.
func arenaBytes(lastLevelCache int) int { return min(max(4*lastLevelCache, 1<<30), 4<<30) }

// stripes lays out the whole arena.
func (a *arena) stripes(blocks, blockBytes int) (*stripes, error) {
	if a.memory == nil {
		memory, err := unix.Mmap(-1, 0, a.bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return nil, fmt.Errorf("taking %d MiB of memory for stripes: %w", a.bytes>>20, err)
		}
		fill(memory)
		a.memory = memory
	}
	return layStripes(a.memory, blocks, blockBytes), nil
}

// lastLevelCacheBytes reads the size of the largest cache from sysfs; 0 if it is not told.
func lastLevelCacheBytes() int {
	names, err := filepath.Glob("/sys/devices/system/cpu/cpu0/cache/index*/size")
	if err != nil {
		return 0
	}
	largest := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		kibibytes, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(string(text)), "K"))
		if err == nil {
			largest = max(largest, kibibytes<<10)
		}
	}
	return largest
}
