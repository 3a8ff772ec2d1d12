package stripe

// Position is where values live while a plan runs. For a layout of w columns and a plan over m = Parities parity rows:
// 0..w-1 are the nodes of the data columns, w..w+m-1 the nodes of the parity rows, w+m is a proxy (baselines only), and
// w+m+1.. are the nodes of a new pool in the same order (copy-pool and relocations), those that new columns come from (widenings), or those
// of the columns that the group loses (narrowings).
type Position int

// SourceKind says where an input of a program comes from.
type SourceKind uint8

// The kinds of sources.
const (
	SourceBlock   SourceKind = iota // a unit stored at this position: cell of a data column, parity of a parity row
	SourceMessage                   // a message from another position
	SourcePatch                     // the difference new-old of one cell, which the caller supplies (updates only)
	SourceCopy                      // a cell that the caller says how to put together from what is stored here (splices, widenings, narrowings)
)

// Input is one operand of a program; its length is one unit (a cell).
type Input struct {
	Kind    SourceKind `cbor:"1,keyasint" json:"kind"`
	Slot    int        `cbor:"2,keyasint" json:"slot"`    // all but SourceMessage: data column x is slot x, parity row p is slot w+p
	Unit    int        `cbor:"3,keyasint" json:"unit"`    // all but SourceMessage: row of the cell, or stripe index in the partition of Plan.From
	Message int        `cbor:"4,keyasint" json:"message"` // SourceMessage: index into Plan.Messages
}

// Term is one product of a combination: Coefficient times the program's Inputs[Input].
type Term struct {
	Input       int  `cbor:"1,keyasint" json:"input"`
	Coefficient byte `cbor:"2,keyasint" json:"coefficient"`
}

// Row is one linear combination a program computes. It either leaves as a message or is staged as a unit of a slot at
// this position.
type Row struct {
	Message int    `cbor:"1,keyasint" json:"message"` // index into Plan.Messages, or -1 where the row is staged
	Slot    int    `cbor:"2,keyasint" json:"slot"`    // staged rows: the slot
	Unit    int    `cbor:"3,keyasint" json:"unit"`    // staged rows: row of the cell, or stripe index in the partition of Plan.To
	Terms   []Term `cbor:"4,keyasint" json:"terms"`   // ascending by Input, coefficients non-zero, no input twice
}

// Program is the part of a plan that one position carries out: a sparse matrix over its inputs. No position waits for
// itself: the rows of all programs, taken together, can be ordered so that every message is computed before it is used.
type Program struct {
	Position Position `cbor:"1,keyasint" json:"position"`
	Inputs   []Input  `cbor:"2,keyasint" json:"inputs"`
	Rows     []Row    `cbor:"3,keyasint" json:"rows"`
}

// Message is one unit-sized block that crosses from one position to another.
type Message struct {
	From Position `cbor:"1,keyasint" json:"from"`
	To   Position `cbor:"2,keyasint" json:"to"`
}

// Plan takes one group from From to To. It speaks of positions, slots and units only; the coordinator binds them to
// nodes and addresses. Treat plans as immutable: they are shared.
type Plan struct {
	Planner   string // restripe, ers2-proxy, ers1-proxy, srs-proxy, reencode, copy-pool; update; splice; widen; narrow; a shape of repair
	Objective Objective
	Before    *Layout // by which From cuts; Layout itself unless the ladder of the group changes too, or its columns
	Layout    *Layout // by which To cuts
	From, To  Scheme
	Parities  int       // max(From.M, To.M): positions of parity rows
	Programs  []Program // ascending by position; positions with nothing to do are absent
	Messages  []Message // every one crosses between two different positions
	Proved    bool      // set by Prove alone
	Cost      Cost
}

// positions is how many positions the plan may have.
func (p *Plan) positions() int { return p.Layout.Columns + p.Before.Columns + 2*p.Parities + 1 }

// KeepsStripes reports whether the parities of the result are of the stripes that there are, so that rows of them stay.
func (p *Plan) KeepsStripes() bool {
	return p.From.K == p.To.K && p.Before.SameStripes(p.Layout, p.To.K)
}

// Cost counts whole blocks of one cell each, per group.
type Cost struct {
	BlocksRead            int `json:"blocksRead"`      // distinct stored units read at their own nodes
	BlocksSent            int `json:"blocksSent"`      // messages
	BlocksWritten         int `json:"blocksWritten"`   // staged units
	DataBlocksMoved       int `json:"dataBlocksMoved"` // data cells staged anywhere
	MaxNodeBlocksSent     int `json:"maxNodeBlocksSent"`
	MaxNodeBlocksReceived int `json:"maxNodeBlocksReceived"`
}

// Objective is what a planner minimises first.
type Objective string

// The objectives of a planner.
const (
	LeastNetwork    Objective = "network"    // fewest messages, then the least loaded busiest node
	LeastReads      Objective = "reads"      // fewest units read, then fewest messages
	LeastBottleneck Objective = "bottleneck" // least max(sent, received) of any node, then fewest messages
)

// Objectives lists every objective, the default first.
func Objectives() []Objective { return []Objective{LeastNetwork, LeastReads, LeastBottleneck} }

// The planners of transitions. Restripe is ours; the others are baselines that work through a proxy.
const (
	PlannerRestripe = "restripe"   // parity nodes keep what they hold and fetch only loose cells
	PlannerERS2     = "ers2-proxy" // ERS Algorithms 2 and 4; its own layout is mode pair
	PlannerERS1     = "ers1-proxy" // the same; its own layout is mode row
	PlannerSRS      = "srs-proxy"  // SRS as ERS Section 6.1 counts it
	PlannerReencode = "reencode"   // reads every cell, writes every parity anew
	PlannerCopyPool = "copy-pool"  // reads every cell, writes cells and parities to new nodes

	plannerUpdate      = "update"
	plannerSplice      = "splice"
	plannerWiden       = "widen"
	plannerNarrow      = "narrow"
	plannerRepair      = "repair"
	plannerRepairChain = "repair-chain"
	plannerRepairTree  = "repair-tree"
	plannerInitiator   = "initiator"
)

// Planners lists the planners NewPlan knows, the default first.
func Planners() []string {
	return []string{PlannerRestripe, PlannerERS2, PlannerERS1, PlannerSRS, PlannerReencode, PlannerCopyPool}
}
