// Package block names blocks and defines how one looks at rest.
//
// A block is what one attempt writes into one slot of one group on one node: a run of equal-size units (cells of a
// data column, parity blocks of a parity row) behind a self-describing header. Units are stored without their trailing
// zeros, so that a group that is not full takes no room for what it does not hold. A block's address is written with one content
// only and never reused; a block is live if and only if a group record names exactly its address.
//
// The package is pure: it knows neither stores nor the catalog.
package block
