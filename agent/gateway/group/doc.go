// Package group makes one attempt on one group: it stages a new group or carries out a proved plan on one there is, through
// the agents of its nodes, verifies what was staged by fingerprints, and commits it in one transaction of the catalog
// (docs/protocol.md). Writes, transitions, repairs and relocations all go through it.
//
// What an attempt needs beside itself is here too: buffers within bounds, codes ready to encode, the pace that work in the
// background keeps, and tries that start over after a race.
package group
