package wire

import (
	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/stripe"
)

// Op names an operation of the protocol.
type Op uint8

// The operations. Each has a request struct of its name, but for DeliverLast, and a reply struct where it answers more than a
// payload.
const (
	OpHello   Op = 1 + iota // HelloRequest -> HelloReply
	OpAttach                // AttachRequest -> nothing
	OpWrite                 // WriteRequest, payload -> block.Receipt
	OpRead                  // ReadRequest -> payload
	OpInspect               // InspectRequest -> InspectReply
	OpRun                   // RunRequest, payload -> RunReply
	OpDeliver               // DeliverRequest, payload -> nothing
	OpDelete                // DeleteRequest -> DeleteReply
	OpList                  // ListRequest -> ListReply
	OpHeader                // HeaderRequest -> HeaderReply
	OpWitness               // WitnessRequest -> nothing
	// OpDeliverLast is OpDeliver, by the same request, where the message ends with the payload, which may be empty: all bytes of
	// it that follow are zeros. It is an operation so that an agent that does not know of it refuses it (VersionShort), and does
	// not wait for those bytes.
	OpDeliverLast
)

var opNames = [...]string{
	"", "Hello", "Attach", "Write", "Read", "Inspect", "Run", "Deliver", "Delete", "List", "Header", "Witness", "DeliverLast",
}

// String returns the name of the operation.
func (op Op) String() string {
	if op == 0 || int(op) >= len(opNames) {
		return "unknown operation"
	}
	return opNames[op]
}

// IsControl reports whether an operation is one by which gateways and agents learn who is there and whom to obey. Those wait
// for nothing else that is asked of an agent, so that one with much to do counts as no dead one; callers have a connection
// for them alone.
func IsControl(op Op) bool { return op == OpHello || op == OpAttach || op == OpWitness }

// Counters count work since the agent started, or of one run. A block here is one unit: a cell or a parity block. Bytes read
// and written are those of whole units, as plans predict them, also where trailing zeros are neither stored nor read. Bytes
// sent are those that were sent, which trailing zeros are not: a plan predicts how many they are at most.
type Counters struct {
	BlocksRead    int64 `cbor:"1,keyasint" json:"blocksRead"`
	BlocksSent    int64 `cbor:"2,keyasint" json:"blocksSent"`
	BlocksWritten int64 `cbor:"3,keyasint" json:"blocksWritten"`
	BytesRead     int64 `cbor:"4,keyasint" json:"bytesRead"`    // of units read from the store
	BytesSent     int64 `cbor:"5,keyasint" json:"bytesSent"`    // of messages to other agents, each once
	BytesWritten  int64 `cbor:"6,keyasint" json:"bytesWritten"` // of units stored
}

// Add adds other to c.
func (c *Counters) Add(other Counters) {
	c.BlocksRead += other.BlocksRead
	c.BlocksSent += other.BlocksSent
	c.BlocksWritten += other.BlocksWritten
	c.BytesRead += other.BytesRead
	c.BytesSent += other.BytesSent
	c.BytesWritten += other.BytesWritten
}

// HelloRequest asks an agent who it is. It is answered whether or not the agent serves; ErrDown means that its store does
// not answer, so that nobody can say what it holds, ErrBadRequest that its store is another node's. An agent whose contents
// are older than Known gives them a new name before it answers: they went back.
type HelloRequest struct {
	Cluster string            `cbor:"1,keyasint,omitempty"` // of the catalog
	Known   block.Incarnation `cbor:"2,keyasint,omitempty"` // what it knows of the node's contents; empty: nothing, or it is not said
	// Timeline is shown to have the agent obey it, unless the store belongs to no cluster yet; nil: it is only asked.
	Timeline *Timeline `cbor:"3,keyasint,omitempty"`
	// Water is the highest mark that gateways heard of the node's store. One that has less under the same contents is an
	// earlier state of itself.
	Water block.Watermark `cbor:"4,keyasint"`
	// Versions are those of the protocol that the gateway understands; an agent that shares none refuses.
	Versions Versions `cbor:"5,keyasint"`
}

// Timeline is what a gateway shows of its catalog, by which agents tell it from a copy, and from what it was before it lost
// something: what a catalog has obeyed of it, its later states have too.
type Timeline struct {
	Start string         `cbor:"1,keyasint"` // of the gateway that shows it
	Read  block.Timeline `cbor:"2,keyasint"` // of the catalog, with the starts that agents told of
	// Told is what agents had told of theirs before that was read.
	Told    map[string]block.Counts `cbor:"3,keyasint,omitempty"`
	Closing bool                    `cbor:"4,keyasint,omitempty"` // the gateway stops and asks for nothing more
}

// Allegiance says whether an agent obeys a gateway.
type Allegiance struct {
	Obeyed   bool                    `cbor:"1,keyasint"`           // also deletes are carried out
	Newcomer bool                    `cbor:"2,keyasint,omitempty"` // writes are; deletes are not before another gateway names it or all are silent
	Lacks    map[string]block.Counts `cbor:"3,keyasint,omitempty"` // refused: what was obeyed and the timeline has not, or less of
	Expelled []string                `cbor:"4,keyasint,omitempty"` // starts that an obeyed timeline did not have: of a copy of the catalog
}

// Refused reports whether the timeline was not accepted.
func (a *Allegiance) Refused() bool { return !a.Obeyed && !a.Newcomer }

// WitnessRequest tells an agent how far a start of a gateway has come: a catalog that has less is not obeyed by it any more. It
// is kept in memory, and in the store within a minute. ErrNotObeyed if the agent does not obey that start.
type WitnessRequest struct {
	Start  string       `cbor:"1,keyasint"`
	Counts block.Counts `cbor:"2,keyasint"`
}

// HelloReply says who the agent is and what its store holds.
type HelloReply struct {
	Node        block.NodeID      `cbor:"1,keyasint"`
	Incarnation block.Incarnation `cbor:"2,keyasint"`
	Start       string            `cbor:"3,keyasint"` // random, of this start of the agent: runs of an earlier start are void
	Cluster     string            `cbor:"4,keyasint"` // the cluster the store belongs to; empty: none yet
	Store       store.Info        `cbor:"5,keyasint"`
	Registered  bool              `cbor:"6,keyasint"` // Attach confirmed the present incarnation: the agent serves
	Counters    Counters          `cbor:"7,keyasint"`
	// FingerprintKey is that of the blocks in the store, for a rebuild of the catalog; nil where none was kept.
	FingerprintKey []byte `cbor:"8,keyasint,omitempty"`
	// Allegiance answers HelloRequest.Timeline; nil where none was shown, or the store belongs to no cluster yet.
	Allegiance *Allegiance `cbor:"9,keyasint,omitempty"`
	// Starts are those of gateways that the agent has obeyed, or expelled; a catalog that is claimed disowns them.
	Starts []string `cbor:"10,keyasint,omitempty"`
	// Water is the high-water mark of the contents: it grows once a minute while blocks are written.
	Water int64 `cbor:"11,keyasint,omitempty"`
	// Versions are those of the protocol that the agent understands.
	Versions Versions `cbor:"12,keyasint"`
	// Release is that of the agent's program; empty from those before it was said.
	Release string `cbor:"13,keyasint,omitempty"`
	// Direct is the address at which gateways may read the store by themselves, with what they need for that; empty: they may not. It may
	// have secrets.
	Direct string `cbor:"14,keyasint,omitempty"`
}

// AttachRequest says that the catalog knows Incarnation, so the agent may serve. It is refused with ErrUnregistered if
// the store's contents are no longer that incarnation, and with ErrBadRequest if the store belongs to another cluster or node,
// or its blocks have fingerprints of another key, and with ErrNotObeyed if Timeline is refused.
type AttachRequest struct {
	Cluster        string            `cbor:"1,keyasint"`
	Incarnation    block.Incarnation `cbor:"2,keyasint"`
	FingerprintKey [16]byte          `cbor:"3,keyasint"`
	Timeline       *Timeline         `cbor:"4,keyasint,omitempty"`
	// Start is that of the agent as it answered before Water was read, so that a store that went back before that is seen; one
	// that was started again since answers ErrUnregistered. Empty: whichever.
	Start string          `cbor:"5,keyasint,omitempty"`
	Water block.Watermark `cbor:"6,keyasint"` // as in HelloRequest
}

// WriteRequest stores one block. The payload is Header.Units units of Header.UnitBytes bytes or, where Header.Lengths are
// given, that much of each, the rest being zeros (block.Header.Pack makes both); in either case the agent stores no
// trailing zeros. It fills in Checksums and Fingerprints, those of the full units, which must be empty. A block with
// equal content that is there already, however it was sent, is answered with its receipt; another content is ErrConflict. It is
// ErrNotObeyed if the gateway that drew the stamp is not obeyed.
type WriteRequest struct {
	Header block.Header `cbor:"1,keyasint"`
}

// Range is a run of bytes within one unit.
type Range struct {
	Unit   int `cbor:"1,keyasint"` // as in the block's header: FirstUnit .. FirstUnit+Units-1
	Offset int `cbor:"2,keyasint"` // bytes into the unit
	Length int `cbor:"3,keyasint"`
}

// ReadRequest reads ranges of one block. The reply's payload is the ranges one after the other, trailing zeros of units
// included, but for those at the end where Short is set; what is stored of a unit comes verified against its checksum. Ranges that are
// nothing but trailing zeros are answered from the header, which may be remembered: they do not show that the block is there still.
type ReadRequest struct {
	Address block.Address `cbor:"1,keyasint"`
	Ranges  []Range       `cbor:"2,keyasint"`
	// Short says that the payload may end before the ranges do: what is missing of them is zeros. Agents that do not know of it
	// answer in full.
	Short bool `cbor:"3,keyasint,omitempty"`
}

// InspectRequest asks whether blocks are present and whole: header readable and length at rest right; with Deep also every
// unit's checksum and fingerprint, computed from its bytes.
type InspectRequest struct {
	Addresses []block.Address `cbor:"1,keyasint"`
	Deep      bool            `cbor:"2,keyasint"`
}

// InspectReply has a receipt for every block that is whole, and the others, each group in the order asked.
type InspectReply struct {
	Receipts []block.Receipt `cbor:"1,keyasint"`
	Missing  []block.Address `cbor:"2,keyasint"`
	Damaged  []Damage        `cbor:"3,keyasint,omitempty"` // those of Missing that are there and wrong
}

// Damage says what is wrong with a block that is there.
type Damage struct {
	Address block.Address `cbor:"1,keyasint"`
	Unit    int           `cbor:"2,keyasint"` // the first unit whose bytes are wrong; -1: the header or the length is
	Cause   string        `cbor:"3,keyasint"`
}

// Source says where a run finds units First..First+Units-1 of a slot at its own node: in the block at Address, whose
// first unit is Base.
type Source struct {
	Slot    int           `cbor:"1,keyasint"`
	First   int           `cbor:"2,keyasint"`
	Units   int           `cbor:"3,keyasint"`
	Address block.Address `cbor:"4,keyasint"`
	Base    int           `cbor:"5,keyasint"`
}

// Patch announces Length bytes of the run's payload as the new bytes of a cell from Offset on. Patches of one cell do
// not overlap.
type Patch struct {
	Slot   int `cbor:"1,keyasint"`
	Unit   int `cbor:"2,keyasint"`
	Offset int `cbor:"3,keyasint"`
	Length int `cbor:"4,keyasint"`
}

// Copy says where a part of a new cell comes from (stripe.SourceCopy): Length bytes at From of unit Source of the block at Address, which
// this node stores, are those at Offset of the cell. Copies of one cell do not overlap, and what none of them covers is zeros.
type Copy struct {
	Slot    int           `cbor:"1,keyasint"`
	Unit    int           `cbor:"2,keyasint"`
	Offset  int           `cbor:"3,keyasint"`
	Length  int           `cbor:"4,keyasint"`
	Address block.Address `cbor:"5,keyasint"`
	Source  int           `cbor:"6,keyasint"`
	From    int           `cbor:"7,keyasint"`
}

// RunRequest gives one position its part of a plan. The payload is the bytes of Patches, in order.
//
// It is ErrNotObeyed if the gateway that drew the stamp is not obeyed.
// A run with the stamp, group and position of one the agent runs or still remembers is answered with that one's result.
type RunRequest struct {
	Stamp    block.Stamp                `cbor:"1,keyasint"`
	Group    block.GroupID              `cbor:"2,keyasint"`
	Program  stripe.Program             `cbor:"3,keyasint"`
	Blocks   []Source                   `cbor:"4,keyasint"`
	Peers    map[stripe.Position]string `cbor:"5,keyasint"` // address of the agent at each position this one sends to
	Messages []stripe.Message           `cbor:"6,keyasint"` // Plan.Messages
	Stage    []block.Header             `cbor:"7,keyasint"` // one for each staged slot, without Lengths; FirstUnit and Units say which units
	Patches  []Patch                    `cbor:"8,keyasint"`
	// UnitBytes is the cell size. Zero means that of Stage[0]; a run that stages nothing must say it.
	UnitBytes int `cbor:"9,keyasint,omitempty"`
	// PieceBytes is how much of a message leaves at a time, as soon as every input of it has come so far; all programs of
	// a plan have the same. Zero means whole units.
	PieceBytes int `cbor:"10,keyasint,omitempty"`
	// Inspect names blocks to inspect when all else is done, which spares a request after the run.
	Inspect []block.Address `cbor:"11,keyasint,omitempty"`
	// Copies are what cells are put together from. If one of them cannot be read, nothing is staged.
	Copies []Copy `cbor:"12,keyasint,omitempty"`
	// Speaks is the newest version of the protocol that the agent at a position of Peers said to understand. Without it the
	// first: such an agent is sent messages in full.
	Speaks map[stripe.Position]uint8 `cbor:"13,keyasint,omitempty"`
}

// RunReply says what a run stored and what it cost.
type RunReply struct {
	Receipts  []block.Receipt `cbor:"1,keyasint"` // in the order of RunRequest.Stage
	Counters  Counters        `cbor:"2,keyasint"`
	Inspected []block.Receipt `cbor:"3,keyasint,omitempty"` // of RunRequest.Inspect, those that are there, in any order
}

// DeliverRequest brings a message of a plan, or one or more pieces of it, as payload, to the run it belongs to. Every
// piece is counted once however often it is sent. It waits a bounded time for its run; ErrNotFound means the run is not
// there (yet, or any more).
type DeliverRequest struct {
	Stamp   block.Stamp   `cbor:"1,keyasint"`
	Group   block.GroupID `cbor:"2,keyasint"`
	Message int           `cbor:"3,keyasint"` // index into Plan.Messages
	// Position is the receiving position, which tells two runs of one group apart where both are on one node.
	Position stripe.Position `cbor:"4,keyasint"`
	// Offset is where the payload begins in the message: a multiple of RunRequest.PieceBytes. The payload ends at another
	// one, or with the message, and that of OpDeliverLast anywhere: it stands for all pieces from Offset on.
	Offset int `cbor:"5,keyasint,omitempty"`
}

// DeleteRequest removes blocks; absent ones count as removed. It is ErrNotObeyed from a gateway that is not obeyed, or is a
// newcomer, and with a timeline that lacks anything the agent has accepted.
type DeleteRequest struct {
	Addresses []block.Address `cbor:"1,keyasint"`
	// Orphans says that the blocks were found by listing the store, by nothing but their keys: those whose headers say that
	// they are another node's are left where they are.
	Orphans bool `cbor:"2,keyasint,omitempty"`
	// Timeline was read after the agent had accepted one in which the blocks were dead.
	Timeline *Timeline `cbor:"3,keyasint,omitempty"`
}

// DeleteReply names the blocks of DeleteRequest.Orphans that were left, as they are not this node's.
type DeleteReply struct {
	Foreign []block.Address `cbor:"1,keyasint,omitempty"`
}

// ListRequest asks for blocks in the order of the store, which is the same for each page. A block that is there all the while
// is in one page; one that is written or deleted meanwhile may or may not be. It is ErrUnsupported where the store cannot list.
type ListRequest struct {
	// After is the key of the last block of the page before, which need not be there any more; empty: from the start.
	After string `cbor:"1,keyasint"`
	Limit int    `cbor:"2,keyasint"` // 0: MaxListed
}

// ListReply is one page of blocks; More says whether others may follow, and an empty page that none do.
type ListReply struct {
	Addresses []block.Address `cbor:"1,keyasint"`
	More      bool            `cbor:"2,keyasint"`
}

// HeaderRequest asks for the stored header of one block, for a rebuild of the catalog.
type HeaderRequest struct {
	Address block.Address `cbor:"1,keyasint"`
}

// HeaderReply is the stored header.
type HeaderReply struct {
	Header block.Header `cbor:"1,keyasint"`
}

// Limits of the protocol.
const (
	MaxHeaderBytes  = 16 << 20 // header of a frame
	MaxPayloadBytes = 64 << 20 // payload of a frame
	MaxListed       = 10000    // addresses in one ListReply
	MaxAddresses    = 10000    // addresses in one InspectRequest or DeleteRequest
)
