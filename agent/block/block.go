package block

// Fingerprint is a GF(2^8)-linear fingerprint of a unit or of a whole block: F(aX + bY) = aF(X) + bF(Y).
// kernel.Fingerprinter computes it under the cluster's key.
type Fingerprint [16]byte

// Header describes a block to whoever finds it: a reader, a scrubber, or a catalog rebuild with nothing else at hand.
// It is encoded as CBOR (RFC 8949) between a fixed preamble and the payload; see Encode.
type Header struct {
	Group         GroupID       `cbor:"1,keyasint"`
	Slot          int           `cbor:"2,keyasint"`
	Stamp         Stamp         `cbor:"3,keyasint"` // the attempt that wrote the block; its epoch for a parity row
	Node          NodeID        `cbor:"4,keyasint"`
	Class         string        `cbor:"5,keyasint"`
	Ladder        string        `cbor:"6,keyasint"` // canonical text, for example "rep(3),rs(4,2),rs(12,2)"
	Mode          string        `cbor:"7,keyasint"` // layout mode
	LayoutVersion int           `cbor:"8,keyasint"`
	Columns       int           `cbor:"9,keyasint"`  // w
	Scheme        string        `cbor:"10,keyasint"` // canonical text, for example "rs(4,2)"
	FirstUnit     int           `cbor:"11,keyasint"` // row of the first cell, or index of the first stripe
	Units         int           `cbor:"12,keyasint"`
	UnitBytes     int           `cbor:"13,keyasint"`           // cell size
	Checksums     []uint32      `cbor:"14,keyasint"`           // CRC-32C of each unit, with its trailing zeros
	Fingerprints  []Fingerprint `cbor:"15,keyasint"`           // of each unit, with its trailing zeros
	Manifest      []byte        `cbor:"16,keyasint,omitempty"` // CBOR of []ManifestEntry; with parities, or column 0 where m = 0
	Lengths       []int         `cbor:"17,keyasint,omitempty"` // stored bytes of each unit, the rest of which is zeros; nil: all are stored in full
	Span          []uint32      `cbor:"18,keyasint,omitempty"` // indices of all groups that an update of several writes, ascending; nil: of one group
	Brought       []Column      `cbor:"19,keyasint,omitempty"` // whose column each of the last columns is; nil: all are its own
}

// Column is a data column of a group.
type Column struct {
	Group  GroupID `cbor:"1,keyasint"`
	Column int     `cbor:"2,keyasint"`
}

// ManifestEntry names one object range held by the group, as known when the block was written.
// A rebuild from manifests may resurrect deletes newer than them.
type ManifestEntry struct {
	Key      []byte `cbor:"1,keyasint"`
	Revision Stamp  `cbor:"2,keyasint"`
	Size     int64  `cbor:"3,keyasint"` // of the whole object; 0 where it was not known yet
	At       int64  `cbor:"4,keyasint"` // offset of this range within the object
	Column   int    `cbor:"5,keyasint"` // -1: the range runs over the group's cells in row-major order
	Offset   int64  `cbor:"6,keyasint"` // within the column, or within the group where Column is -1
	Length   int64  `cbor:"7,keyasint"`

	Expires  int64             `cbor:"8,keyasint,omitempty"`  // of the whole object, Unix milliseconds; 0: never
	Metadata map[string]string `cbor:"9,keyasint,omitempty"`  // of the whole object
	Checksum uint32            `cbor:"10,keyasint,omitempty"` // CRC-32C of the whole object; 0: not known
	Keep     int               `cbor:"11,keyasint,omitempty"` // versions before this one that were to be kept, or KeepDurable

	// Origin is the group that Column and Offset are of where columns of that lie in this one, and Columns how many it had; zero: this group.
	Origin  GroupID `cbor:"12,keyasint,omitzero"`
	Columns int     `cbor:"13,keyasint,omitempty"`
}

// Receipt is what a node answers for a block it holds whole and, for a write, has made durable.
type Receipt struct {
	Address      Address       `cbor:"1,keyasint"`
	Checksum     uint32        `cbor:"2,keyasint"` // CRC-32C over the header's unit checksums: identifies the content
	Fingerprint  Fingerprint   `cbor:"3,keyasint"` // of the full units as one run of bytes
	Fingerprints []Fingerprint `cbor:"4,keyasint"` // of each unit
	FirstUnit    int           `cbor:"5,keyasint"`
	Units        int           `cbor:"6,keyasint"`
	Incarnation  Incarnation   `cbor:"7,keyasint"`
}
