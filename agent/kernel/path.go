package kernel

import (
	"fmt"
	"os"
)

// path is an implementation of the products.
type path uint8

const (
	generic  path = iota // github.com/klauspost/reedsolomon, on any machine
	avx2                 // two look-ups in tables of 16 for each product
	avx2gfni             // bit matrix products on 32 bytes
	avx512               // bit matrix products on 64 bytes, masked tails, streaming stores, the fingerprint, CRC-32C
)

var pathNames = [...]string{generic: "generic", avx2: "avx2", avx2gfni: "avx2-gfni", avx512: "avx512"}

// PathVariable is the environment variable that names the path to take instead of the best one of the machine. A path
// the machine does not have is a mistake that ends the program.
const PathVariable = "RESTRIPE_KERNEL"

// chosen is the path that matrices compiled from now on take. Only tests change it after initialisation.
var chosen = choose(os.Getenv(PathVariable))

func (p path) String() string { return pathNames[p] }

// Path returns the name of the implementation in use: "avx512", "avx2-gfni", "avx2" or "generic".
func Path() string { return chosen.String() }

// choose returns the path of that name, or the best one for an empty name. It panics on a name that no path of the machine
// has: there is nobody yet to return an error to.
func choose(name string) path {
	have := machinePaths()
	if name == "" {
		return have[len(have)-1]
	}
	for _, p := range have {
		if p.String() == name {
			return p
		}
	}
	panic(fmt.Sprintf("%s is %q; this machine has %v: use one of these, or unset the variable for the last one", PathVariable, name, have))
}

// whole returns how many of so many bytes the assembly of a path takes; the rest is done by the generic path.
func (p path) whole(bytes int) int {
	switch p {
	case avx512:
		return bytes
	case avx2, avx2gfni:
		return bytes &^ 31
	default:
		return 0
	}
}
