// Package ceph keeps values in a pool of Ceph, through librados. A node is what one CRUSH bucket holds, a host or a single
// OSD: its pool has size 1 and a rule that takes that bucket alone, and redundancy is Restripe's. Open refuses any other
// pool, since one that keeps copies of its own, or spreads over hosts, would be no node.
//
// # Objects
//
// A value is one object named as its key, created exclusively and written in one operation of RADOS, whole or not at all.
// Its attribute "restripe" has the CRC-32C and the length of the value.
//
// # Time-outs
//
// An operation on an OSD that is gone would hang for ever. Every operation is asynchronous, ends with its context, and
// fails with store.ErrDown after Options.Timeout; whether it was carried out is unknown then. A client whose operation
// timed out may go on asking an OSD that is not there any more, so before its next operation it waits for the latest map
// of the OSDs.
//
// # Contents that are lost
//
// With size 1 a placement group whose OSD is gone does not answer, whether the OSD is down, out or purged, until somebody
// tells Ceph that its contents are lost; then Ceph makes it anew, empty. Each placement group therefore holds a witness of
// the incarnation, and reading the incarnation of a store looks for them all whenever the map of the OSDs has changed:
// with one missing, the incarnation is forgotten, as if the whole store had been emptied. The same look finds a pool whose
// rule does not keep to its bucket any more; such a store is down, because its blocks are no longer lost independently of
// other nodes' blocks.
//
// The package needs librados and the build tag ceph. Without them Open fails with ErrNotBuilt.
package ceph
