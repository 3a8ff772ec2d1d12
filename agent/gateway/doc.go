// Package gateway is what clients talk to: it owns puts, reads, updates, moves and deletes of objects, and coordinates
// transitions, repairs and the sweep of leftovers. All agreement is in the catalog; a gateway may be killed at any
// moment and forgets nothing that it acknowledged.
//
// Every write is one attempt of the commit protocol: announce in the catalog, stage blocks under new addresses through
// the agents, verify by linear fingerprints, commit in one transaction. Whatever is not a clear yes is settled in the
// catalog before it is answered.
package gateway
