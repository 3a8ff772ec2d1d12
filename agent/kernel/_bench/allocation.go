package main

import (
	"fmt"
	"runtime"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/kernel"
)

func (b *bench) allocation() (*section, error) {
	const blockBytes = 100_000 // not a multiple of a vector
	c := code{12, 4}
	rows, s := universal(c.k, c.m), oneStripe(c.k+c.m, blockBytes)
	in, out, prints := s.of(0, 0, c.k), s.of(0, c.k, c.k+c.m), make([]block.Fingerprint, c.m)
	compiled, fingerprinter := rows.compile(), kernel.NewFingerprinter(fingerprintKey)
	var pool kernel.Pool
	t := newTable("call", "allocations")
	none := newAim(1, "calls without an allocation")
	for _, one := range []struct {
		name string
		call func()
	}{
		{"Matrix.Apply", func() { compiled.Apply(out, in) }},
		{"Matrix.Stream", func() { compiled.Stream(out, in) }},
		{"Matrix.ApplySum", func() { compiled.ApplySum(out, in, fingerprinter, prints) }},
		{"Matrix.Accumulate", func() { compiled.Accumulate(out, in) }},
		{"Matrix.AccumulateColumn", func() { compiled.AccumulateColumn(out, 3, in[3]) }},
		{"Matrix.AccumulateDelta", func() { compiled.AccumulateDelta(out, 3, in[3], in[4]) }},
		{"Multiply", func() { kernel.Multiply(7, in[0], out[0]) }},
		{"MultiplyAdd", func() { kernel.MultiplyAdd(7, in[0], out[0]) }},
		{"Fingerprinter.Sum", func() { prints[0] = fingerprinter.Sum(in[0]) }},
		{"Fingerprinter.Join", func() { prints[0] = fingerprinter.Join(prints[1], prints[2], blockBytes) }},
		{"Fingerprinter.JoinUnits", func() { prints[0] = fingerprinter.JoinUnits(prints, blockBytes) }},
		{"Fingerprinter.Extend", func() { prints[0] = fingerprinter.Extend(prints[1], blockBytes, 2*blockBytes) }},
		{"Combine", func() { prints[0] = kernel.Combine([]byte{1, 2, 3, 4}, prints) }},
		{"Pool.Get and Put", func() { pool.Put(pool.Get(blockBytes)) }},
	} {
		count := allocations(one.call)
		t.add(one.name, fmt.Sprintf("%.0f", count))
		without := sample{0}
		if count == 0 {
			without[0] = 1
		}
		none.add(one.name, without)
	}
	return &section{
		title: "Allocations",
		table: t,
		aims:  []*aim{none},
		text:  fmt.Sprintf("Allocations a call on blocks of %d bytes of %s, after the first.", blockBytes, c),
	}, nil
}

// allocations returns the average number of allocations of a call after the first, rounded down: others of the program
// may allocate a little meanwhile.
func allocations(call func()) float64 {
	const calls = 100
	call()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		call()
	}
	runtime.ReadMemStats(&after)
	return float64((after.Mallocs - before.Mallocs) / calls)
}
