package main

// #cgo CFLAGS: -O2
// #include "machine.h"
import "C"

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	addsPerRound     = 64
	addRounds        = 5_000 // about a tenth of a millisecond
	productsPerRound = 16
	lineBytes        = 64
)

// cycleMeter tells how many cycles the processor ran per nanosecond of the thread: by the hardware's counter where the
// system lets a program have it, else by timing chains of additions, of which each takes one cycle.
type cycleMeter struct {
	counter      *os.File // nil without
	source       string
	cycles, time int64 // at the beginning of a stretch
	chain        float64
}

func newCycleMeter() *cycleMeter {
	attributes := unix.PerfEventAttr{
		Type:   unix.PERF_TYPE_HARDWARE,
		Config: unix.PERF_COUNT_HW_CPU_CYCLES,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits:   unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}
	descriptor, err := unix.PerfEventOpen(&attributes, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return &cycleMeter{source: fmt.Sprintf("chains of dependent additions before and after each round (no counter of cycles here: %v)", err)}
	}
	return &cycleMeter{counter: os.NewFile(uintptr(descriptor), "cycles"), source: "the hardware's counter"}
}

// begin begins a stretch.
func (m *cycleMeter) begin() {
	if m.counter == nil {
		m.chain = chainFrequency()
		return
	}
	m.cycles, m.time = m.read(), threadClock.now()
}

// end returns the frequency in gigahertz since begin.
func (m *cycleMeter) end() float64 {
	if m.counter == nil {
		return (m.chain + chainFrequency()) / 2
	}
	return float64(m.read()-m.cycles) / float64(threadClock.now()-m.time)
}

// read returns the cycles counted so far. It panics if the counter breaks: the invariant is that an open one can be read.
func (m *cycleMeter) read() int64 {
	var count int64
	if _, err := m.counter.Read(unsafe.Slice((*byte)(unsafe.Pointer(&count)), unsafe.Sizeof(count))); err != nil {
		panic(fmt.Sprintf("reading the counter of cycles: %v", err))
	}
	return count
}

// chainFrequency returns additions per nanosecond in a chain, which is gigahertz.
func chainFrequency() float64 {
	start := threadClock.now()
	C.dependent_adds(addRounds)
	return float64(addRounds*addsPerRound) / float64(threadClock.now()-start)
}

// affineBytesPerCycle measures how many bytes a cycle the affine instruction multiplies when nothing else is in its
// way, or 0 where there is none with 64-byte vectors.
func affineBytesPerCycle(rounds int) float64 {
	if C.has_affine_products() == 0 {
		return 0
	}
	const loops = 20_000
	var all sample
	for range rounds {
		before := chainFrequency()
		start := threadClock.now()
		C.affine_products(loops)
		elapsed := threadClock.now() - start
		cycles := float64(elapsed) * (before + chainFrequency()) / 2
		all = append(all, loops*productsPerRound*lineBytes/cycles)
	}
	return all.median()
}

// callNanoseconds measures a call from Go to C that does nothing.
func callNanoseconds(rounds int) float64 {
	const calls = 20_000
	var all sample
	for range rounds {
		start := threadClock.now()
		for range calls {
			C.nothing()
		}
		all = append(all, float64(threadClock.now()-start)/calls)
	}
	return all.median()
}

// affineCycles is the least number of cycles for so many products of blocks, 64 bytes a cycle.
func affineCycles(products, blockBytes int) float64 {
	return float64(products * ((blockBytes + lineBytes - 1) / lineBytes))
}
