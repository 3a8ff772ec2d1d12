// Package rebuild makes a lost catalog anew from what the stores hold: every block says in its header which group, slot
// and attempt it is of, and parity blocks carry a manifest of the objects in their group.
//
// The pure part takes headers and returns records with what is doubtful about them. Of each group it takes the state in
// which the fewest units are missing or contradict the parity equations, by fingerprints, and of those the newest: so
// attempts that were never committed are told from those that were, as far as blocks can tell. Of each key it takes the
// newest version that is complete.
//
// What blocks cannot tell is said in the report: deletes, and puts that were staged whole and not committed, or committed
// in another order than their stamps, within the time that dead blocks stay. Nothing is ever deleted, and a catalog that
// exists is never written to.
package rebuild
