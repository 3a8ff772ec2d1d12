// Command kernelbench measures package kernel beside its peers, klauspost/reedsolomon and ISA-L, in one run: encoding,
// deltas, sparse plans, decoding, streaming stores, fingerprints and allocations. Contenders of one row take turns, so
// that what disturbs the machine disturbs all of them; times are of the processor's, not of the clock on the wall.
//
// It is a module of its own: ISA-L needs cgo, which the project does without. It needs Linux on amd64; setup.sh installs
// the rest. `make bench-kernel` at the root writes docs/benchmarks/kernel.md.
package main
