// Package member is the nodes of a cluster as a gateway sees them: a connection to the agent of each, a failure detector
// that does not flap, the handshake that registers contents with the catalog before they are served, what people declare of
// nodes, and where the slots of groups go.
package member
