package schema

import (
	"time"

	"github.com/restripe/restripe/agent/block"
)

// Object is what the catalog knows of one key. Revision changes with every commit that changes the object's bytes, and
// with no other.
type Object struct {
	Key      string      `cbor:"1,keyasint"` // any 1 to 4096 bytes
	Revision block.Stamp `cbor:"2,keyasint"`
	Class    string      `cbor:"3,keyasint"`
	Scheme   string      `cbor:"4,keyasint"` // as last asked for; groups say what is
	Size     int64       `cbor:"5,keyasint"`
	Modified int64       `cbor:"6,keyasint"` // Unix milliseconds by the writing gateway's clock; for people only
	Extents  []Extent    `cbor:"7,keyasint"` // in object order, gapless; none for an empty object

	// Expires is when the object is gone, in Unix milliseconds, as it was put; 0: never. Until it is removed there is a record of it
	// under ExpiryKey.
	Expires  int64             `cbor:"8,keyasint,omitempty"`
	Metadata map[string]string `cbor:"9,keyasint,omitempty"` // as it was put

	// Checksum is the CRC-32C of all bytes of the object under this revision, by which they are known wherever they are read; 0 where it
	// is not known.
	Checksum uint32 `cbor:"10,keyasint,omitempty"`

	// Keep is how many versions before this one were to be kept when it was put, or block.KeepDurable, and Earlier are those that are, the
	// last one first: each is an object of its own, under block.EarlierKey.
	Keep    int           `cbor:"11,keyasint,omitempty"`
	Earlier []block.Stamp `cbor:"12,keyasint,omitempty"`

	// Location is where the bytes of a small object were last stored; nil where that is not known.
	Location *Location `cbor:"13,keyasint,omitempty"`
}

// HasExpired reports whether the object is gone at a time, though its record may still be there.
func (o *Object) HasExpired(now time.Time) bool {
	return o.Expires != 0 && o.Expires <= now.UnixMilli()
}

// WholeGroup as an Extent's Column says that the range runs over the cells of the group in row-major order.
const WholeGroup = -1

// Extent is one range of an object inside one group.
type Extent struct {
	Group  block.GroupID `cbor:"1,keyasint"`
	Column int           `cbor:"2,keyasint"` // WholeGroup, or the one column that holds the range
	Offset int64         `cbor:"3,keyasint"` // bytes into the column (rows one after the other), or into the group
	Length int64         `cbor:"4,keyasint"`
}

// Group is the record of one redundancy group. Generation changes with every commit that changes anything in the
// record; Epoch is the stamp of its parities. The number of live extents is kept beside it, in a record of its own.
type Group struct {
	ID            block.GroupID  `cbor:"1,keyasint"`
	Generation    block.Stamp    `cbor:"2,keyasint"`
	Epoch         block.Stamp    `cbor:"3,keyasint"`
	Class         string         `cbor:"4,keyasint"`
	Ladder        string         `cbor:"5,keyasint"`
	Mode          string         `cbor:"6,keyasint"`
	LayoutVersion int            `cbor:"7,keyasint"`
	Columns       int            `cbor:"8,keyasint"`
	Scheme        string         `cbor:"9,keyasint"`
	CellBytes     int            `cbor:"10,keyasint"`
	Packed        bool           `cbor:"11,keyasint"` // shared by small objects
	Open          bool           `cbor:"12,keyasint"` // takes appends
	Home          []block.NodeID `cbor:"13,keyasint"` // node of every slot the ladder may use: Columns + largest m
	Slots         []Slot         `cbor:"14,keyasint"` // Columns + m of the present scheme

	// Settled is when the group came under its present scheme, in Unix milliseconds by the catalog's clock; 0 where an
	// earlier release wrote the record. It is for the temperature of data alone, no rule depends on it.
	Settled int64 `cbor:"15,keyasint,omitempty"`

	// Lies says of a group that was dissolved in which column of which other group each of its columns lies; one of which nothing was
	// stored lies nowhere, the zero value. Such a group has no slots of its own and no home.
	Lies []Column `cbor:"16,keyasint,omitempty"`

	// Brought says of the last columns which column of which group lies in each, nothing of any in those of the zero value. Extents that name
	// the group run over the columns before them.
	Brought []Column `cbor:"17,keyasint,omitempty"`
}

// Column is a data column of a group.
type Column = block.Column

// Slot lists the blocks that make up a data column or parity row, ordered by First, gapless and disjoint. A data column without any is
// empty: nothing was put into it, so its cells are zeros, which are not stored, not lost, and no condition of being whole.
type Slot []Item

// Item is a run of units of a slot and the block they lie in.
type Item struct {
	First       int               `cbor:"1,keyasint"` // first unit of the run (row, or stripe index)
	Units       int               `cbor:"2,keyasint"` // units of the run
	Base        int               `cbor:"3,keyasint"` // first unit the stored block holds; Base <= First
	Stamp       block.Stamp       `cbor:"4,keyasint"`
	Node        block.NodeID      `cbor:"5,keyasint"`
	Incarnation block.Incarnation `cbor:"6,keyasint"`
	Checksum    uint32            `cbor:"7,keyasint"`
	Fingerprint block.Fingerprint `cbor:"8,keyasint"`
}

// Address returns the address of the block that item of slot lies in.
func (g *Group) Address(slot int, item Item) block.Address {
	return block.Address{Node: item.Node, Group: g.ID, Slot: slot, Stamp: item.Stamp}
}

// Find returns the item that holds a unit of a slot.
func (g *Group) Find(slot, unit int) (Item, bool) {
	if slot < len(g.Slots) {
		for _, item := range g.Slots[slot] {
			if unit >= item.First && unit < item.First+item.Units {
				return item, true
			}
		}
	}
	return Item{}, false
}

// Empty returns the data columns that are empty, in order.
func (g *Group) Empty() (columns []int) {
	for column, items := range g.Slots[:min(g.Columns, len(g.Slots))] {
		if len(items) == 0 {
			columns = append(columns, column)
		}
	}
	return columns
}

// Node is a member of the cluster. What a person declares of it is its State; what the gateways find of it stands beside.
type Node struct {
	ID      block.NodeID `cbor:"1,keyasint"`
	Address string       `cbor:"2,keyasint"` // host:port of its agent
	Domain  string       `cbor:"3,keyasint"` // failure domain; empty: its own
	State   NodeState    `cbor:"4,keyasint"`

	Spare    bool         `cbor:"5,keyasint,omitempty"`  // takes no new groups while others can, and substitutes first
	Replaces block.NodeID `cbor:"6,keyasint,omitempty"`  // the node whose blocks it takes over before other nodes do
	Out      string       `cbor:"7,keyasint,omitempty"`  // the gateway that gave it up after it had not answered for long; empty: not given up
	Fenced   bool         `cbor:"8,keyasint,omitempty"`  // its blocks may have been rebuilt elsewhere: it takes none until its store was swept
	Drain    Drain        `cbor:"9,keyasint,omitzero"`   // how far its drain has come
	Since    int64        `cbor:"10,keyasint,omitempty"` // when State or Out was last changed, Unix milliseconds; for people only
	Version  uint64       `cbor:"11,keyasint,omitempty"` // raised by every change
}

// Drain is the drain of a node, as far as it must outlive a gateway. What is left to do is counted in the group records.
type Drain struct {
	Slots          int64 `cbor:"1,keyasint"`           // slots on the node when it began
	Began          int64 `cbor:"2,keyasint"`           // when it was last begun or resumed, Unix milliseconds; for people only
	Elapsed        int64 `cbor:"3,keyasint"`           // milliseconds it had run before that
	BytesPerSecond int64 `cbor:"4,keyasint,omitempty"` // limit on bytes read, sent and written; 0 is none
	Paused         bool  `cbor:"5,keyasint,omitempty"`
}

// NodeState is what is declared of a node.
type NodeState string

const (
	NodeUp       NodeState = "up"       // takes new blocks, if it answers
	NodeDown     NodeState = "down"     // takes none and is not expected back: its blocks are rebuilt elsewhere
	NodeDraining NodeState = "draining" // serves, takes none: its blocks are moved elsewhere
	NodeRemoving NodeState = "removing" // about to be removed: nothing can be committed onto it any more
	NodeRemoved  NodeState = "removed"  // no member any more; the record stays, so that a node list that still names it does not bring it back
)

// IsGone reports whether the node is not expected back: its blocks are rebuilt on other nodes.
func (n *Node) IsGone() bool {
	return n.State == NodeDown || n.IsExcluded() || n.Out != ""
}

// IsExcluded reports whether nothing can be committed onto the node: the contents of its store are not registered, and
// cannot be.
func (n *Node) IsExcluded() bool { return n.State == NodeRemoving || n.State == NodeRemoved }

// TakesBlocks reports whether new blocks may go to the node, as far as its record says.
func (n *Node) TakesBlocks() bool { return n.State == NodeUp && n.Out == "" && !n.Fenced }

// Membership is how patient a cluster is with nodes that do not answer. Zero fields mean the gateways' defaults.
type Membership struct {
	DownAfter int64 `cbor:"1,keyasint"` // milliseconds without an answer after which a node is down
	OutAfter  int64 `cbor:"2,keyasint"` // and after which it is given up; negative: never
}

// Kind names the operation of an attempt.
type Kind string

const (
	KindPut        Kind = "put" // also a batch of puts
	KindUpdate     Kind = "update"
	KindTransition Kind = "transition"
	KindRepair     Kind = "repair"
	KindRelocation Kind = "relocation" // slots of a group copied to other nodes
	KindMove       Kind = "move"       // bytes of an object copied to other groups, same revision
	KindWiden      Kind = "widen"      // groups dissolved into columns of others
	KindNarrow     Kind = "narrow"     // and taken out of them again
)

// IntentState is where an attempt stands.
type IntentState string

const (
	IntentActive    IntentState = "act"
	IntentCommitted IntentState = "com"
	IntentAborted   IntentState = "abt"
)

// BlockSet names the blocks an attempt may write into one group: Slots[i] on Nodes[i], all under the attempt's stamp.
type BlockSet struct {
	Group block.GroupID  `cbor:"1,keyasint"`
	Slots []int          `cbor:"2,keyasint"`
	Nodes []block.NodeID `cbor:"3,keyasint"`
}

// Place is the node a slot lies on or will lie on, and whether it has blocks.
func (g *Group) Place(slot int) (id block.NodeID, stored bool) {
	if slot < len(g.Slots) && len(g.Slots[slot]) > 0 {
		return g.Slots[slot][0].Node, true
	}
	return g.Home[slot], false
}

// Intent announces an attempt.
type Intent struct {
	Stamp    block.Stamp `cbor:"1,keyasint"`
	Kind     Kind        `cbor:"2,keyasint"`
	Owner    string      `cbor:"3,keyasint"` // gateway id and start id
	Deadline int64       `cbor:"4,keyasint"` // Unix milliseconds
	State    IntentState `cbor:"5,keyasint"`
	Blocks   []BlockSet  `cbor:"6,keyasint"`
	Settled  int64       `cbor:"7,keyasint,omitempty"` // when it stopped being active, Unix milliseconds
	Pieces   int         `cbor:"8,keyasint,omitempty"` // that it has committed; their blocks are not among Blocks any more
}

// Piece holds extents that no object has: those of a put that goes on, until its last commit, and those that were taken from a
// large object, until they are swept. They count as live.
type Piece struct {
	Attempt block.Stamp `cbor:"1,keyasint"` // that committed it; zero for what was taken from an object
	Key     string      `cbor:"2,keyasint"` // of the object
	Extents []Extent    `cbor:"3,keyasint"` // in object order
}

// Job is the record of a transition of many objects; its owner saves progress into it.
type Job struct {
	ID      string `cbor:"1,keyasint"`
	Body    []byte `cbor:"2,keyasint"` // the gateway's own encoding
	Owner   string `cbor:"3,keyasint"`
	Version uint64 `cbor:"4,keyasint"` // raised by every save
}

// Class is the record of a class of objects. One that is removed leaves a record behind, so that nobody takes it for
// one that was never declared.
type Class struct {
	Name    string `cbor:"1,keyasint"`
	Body    []byte `cbor:"2,keyasint"` // the gateway's own encoding
	Origin  string `cbor:"3,keyasint"` // who declared it as it is
	Removed bool   `cbor:"4,keyasint,omitempty"`
}
