// Package node is the core of an agent: the process beside one store. It writes, reads, inspects and deletes blocks,
// and carries out its position's part of plans, all on behalf of gateways and other agents that call it over wire.
//
// It knows nothing of the catalog. What it vouches for is the identity of the contents of its store: a random marker
// kept in the store itself, the incarnation. Before a gateway has said that the catalog knows the present incarnation
// (Attach), and from the moment the marker is found gone, every operation on blocks is refused. Every write reads the
// marker before and after, so that a receipt is only given for a block in the contents it names.
//
// What a run has gathered is kept in memory only: after a restart the coordinator begins a new attempt.
package node
