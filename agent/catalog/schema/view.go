package schema

import "github.com/restripe/restripe/agent/block"

// View is what a gateway says of the nodes. It has two records: a small one, its sign of life, which is written anew every few
// seconds, and one with the marks of stores, which is large and written when they have changed. Releases before this one have all of it
// in the first, and take the second for what the same gateway said before it: its key comes first.
type View struct {
	Gateway string         `cbor:"1,keyasint"`
	Count   uint64         `cbor:"2,keyasint"`           // of the views it wrote since it started, from 1
	At      int64          `cbor:"3,keyasint"`           // by its clock, Unix milliseconds
	Unheard []block.NodeID `cbor:"4,keyasint"`           // members that do not answer it, in order
	Schema  int            `cbor:"6,keyasint,omitempty"` // newest version of records that it knows; 0: 2
	// Water are the highest marks of stores that the gateway heard, itself or from another.
	Water map[block.NodeID]block.Watermark `cbor:"5,keyasint,omitempty"`
}
