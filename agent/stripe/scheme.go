package stripe

// Scheme protects each stripe of K cells with M parity blocks: any M of the K+M may be lost. Replication rep(r) is
// K = 1, M = r-1. The zero Scheme is invalid.
type Scheme struct {
	K, M int
}

// Limits of the package.
const (
	MaxData    = 64 // largest K and largest number of columns
	MaxParity  = 8  // largest M
	MaxSchemes = 6  // longest ladder
)

// Ladder is the list of schemes a class may ever take, distinct, in the order the user gave them.
type Ladder []Scheme
