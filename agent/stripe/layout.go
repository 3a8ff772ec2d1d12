package stripe

// Mode says what a layout favours; see ladders.
type Mode string

const (
	ModeFree Mode = "free" // default: every dividing pair nested, so its demotion sends nothing
	ModeAdj  Mode = "adj"  // every adjacent step at the pairwise minimum, for every m
	ModeAll  Mode = "all"  // lowest sum over all pairs
	ModeRow  Mode = "row"  // row-major baseline
	ModePair Mode = "pair" // closed-form ERS-aware placement of a two-point ladder (ERS Section 3.3), baseline
)

// Layout says, for every scheme of a ladder, how the cells of a group fall into stripes. Immutable; shared.
type Layout struct {
	Version    int
	Ladder     Ladder
	Mode       Mode
	Rows       int // R
	Columns    int // w
	partitions map[int]*Partition
}

// Partition is how the cells fall into stripes of K cells. Cell r*Columns+c is the cell in row r of column c.
type Partition struct {
	K        int
	Stripes  [][]int32 // cells of each stripe, ascending; stripes ordered by their first cell
	StripeOf []int32   // stripe of each cell
}
