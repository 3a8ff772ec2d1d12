// Command kernelgen writes the assembly of package kernel for one instruction set:
//
//	go run . -isa avx512 -pkg kernel -out ../avx512_amd64.s -stubs ../avx512_amd64.go
//
// `make generate` runs it for all of them; its output is committed.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/mmcloughlin/avo/build"
)

// maxRows is the most rows of a product that one function makes in a pass.
const maxRows = 6

func main() {
	name := flag.String("isa", "", "instruction set: avx512, avx2gfni or avx2")
	flag.Parse()
	var set instructions
	switch *name {
	case "avx512":
		set = avx512{}
	case "avx2gfni":
		set = avx2{affine: true}
	case "avx2":
		set = avx2{}
	default:
		fmt.Fprintf(os.Stderr, "kernelgen: -isa is %q; want avx512, avx2gfni or avx2\n", *name)
		os.Exit(2)
	}
	for rows := 1; rows <= set.maxRows(); rows++ {
		for _, ones := range []bool{false, true} {
			if ones && rows == 1 {
				continue // a row of ones alone has no other columns
			}
			dot{set: set, rows: rows, onesRow: ones}.write()
			if set.streams() {
				dot{set: set, rows: rows, onesRow: ones, stream: true}.write()
			}
		}
	}
	for rows := 1; rows <= maxColumnRows; rows++ {
		for _, ones := range []bool{false, true} {
			for _, delta := range []bool{false, true} {
				column{set: set, rows: rows, onesRow: ones, delta: delta}.write()
			}
		}
	}
	if set.folds() {
		fold()
		checksum()
	}
	build.Generate()
}
