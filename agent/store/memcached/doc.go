// Package memcached keeps values in one memcached server, over the meta protocol (memcached 1.6, doc/protocol.txt).
//
// A value of up to a part's size is one item, "restripe.value/" and the key. A larger one is a set of part items,
// "restripe.part/", a random id, the part's number and the key, and a main item that says which parts there are. Parts
// are written first and expire if their writer dies; then the main item is added, which fails if the key is taken, and
// then the parts are made to stay. So a reader finds a whole value or none. Where a writer dies between the last two
// steps, the value, which nobody has acknowledged, loses its parts in time, unless its creation is repeated: whoever
// finds a key taken makes its parts stay before saying so. Deleting goes the other way round: parts are made to expire,
// then the main item goes, then the parts. Parts that stay were named once; a listing deletes those that no value names.
//
// The main item is added with the classic add: a meta set that fails for want of memory, or for its size, deletes the
// item that has the key, even in its mode for adding (seen in 1.6.18), and so would destroy a value it must not touch.
//
// memcached neither survives a restart nor, unless started with -M, keeps what it has: it evicts when it is full.
// Info warns of that. An evicted part makes its value corrupt, an evicted item makes it absent; both are repaired from
// the other blocks of the stripe.
package memcached
