package schema

import (
	"hash/maphash"

	"github.com/restripe/restripe/agent/block"
)

// GroupSummary is what a statistic needs of a group: a part of its record, which takes a fraction of the time to read.
type GroupSummary struct {
	ID            block.GroupID `cbor:"1,keyasint"`
	Epoch         block.Stamp   `cbor:"3,keyasint"`
	Class         string        `cbor:"4,keyasint"`
	Ladder        string        `cbor:"5,keyasint"`
	Mode          string        `cbor:"6,keyasint"`
	LayoutVersion int           `cbor:"7,keyasint"`
	Columns       int           `cbor:"8,keyasint"`
	Scheme        string        `cbor:"9,keyasint"`
	CellBytes     int           `cbor:"10,keyasint"`
	Packed        bool          `cbor:"11,keyasint"`
	Home          Likeness      `cbor:"13,keyasint"`
	Settled       int64         `cbor:"15,keyasint"`
	Lies          []Column      `cbor:"16,keyasint"`
	Brought       []Column      `cbor:"17,keyasint"`
}

// ObjectSummary is the same of an object.
type ObjectSummary struct {
	Key   string `cbor:"1,keyasint"`
	Class string `cbor:"3,keyasint"`
	Size  int64  `cbor:"5,keyasint"`
}

// Likeness is the same of lists that are equal, and hardly ever of others, in one process: among those of records that were read as
// summaries, or among those of LikenessOf.
type Likeness uint64

// LikenessOf is that of nodes.
func LikenessOf(nodes []block.NodeID) Likeness {
	var text []byte
	for _, node := range nodes {
		text = append(append(text, node...), 0)
	}
	return likenessOf(text)
}

// UnmarshalCBOR takes an encoded list for what it is.
func (l *Likeness) UnmarshalCBOR(encoded []byte) error {
	*l = likenessOf(encoded)
	return nil
}

var likenessSeed = maphash.MakeSeed()

func likenessOf(text []byte) Likeness { return Likeness(maphash.Bytes(likenessSeed, text)) }
