// Package scrub reads every block and audits every parity equation by fingerprints, once in a while and at a bounded pace,
// and has repaired what it finds. One cycle is a durable job of one gateway; another takes it over where that is gone.
package scrub
