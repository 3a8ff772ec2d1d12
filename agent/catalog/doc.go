// Package catalog is the one point of agreement of a cluster: which objects there are, in which groups their bytes lie,
// and which blocks make up those groups. Every rule of the commit protocol that concerns records is written here, once,
// over a small Engine that only knows keys, values and conditional updates; engines live in sub-packages and all run
// the suite in catalogtest.
//
// The life of a write is an Attempt: Begin draws a stamp and announces every block address that may be written, the
// caller stages the blocks, Commit makes them live in one transaction, and whatever is not a clear yes is settled
// before anybody believes it. An address is live if and only if a group record names exactly it; addresses that die are
// put into the graveyard by the very transaction that killed them, so deletes may be late, repeated, and done by anyone.
//
// # Comparing records
//
// The protocol compares the revision of an object and the generation of a group. Catalog compares the encoded records
// as they were read, which says the same and a little more: a revision or generation is a stamp, is never drawn twice,
// and changes with every commit that changes the record (a move changes an object's extents and keeps its revision, and
// is noticed too). Encoding is CBOR with core deterministic encoding (RFC 8949 section 4.2), strings as byte strings
// because object keys are arbitrary bytes.
//
// # Sessions
//
// Nothing inside a catalog can tell that it went back in time, as all its marks go back with it. So each start of a gateway is
// a session, which remembers what it did: every update compares and raises the count of a lane of the session, and a count
// that is less than remembered shows that the catalog lost updates (ErrBehind). Every update also compares which start its
// gateway has at present, so that of two starts of one name only the later takes effect (ErrFenced). And the salt of a stamp
// says which session drew it: a block whose stamp no session of this catalog has drawn is another timeline's, and is not
// deleted (rule 27). Agents remember how far the catalog had come (Timeline) and obey no other (rule 24).
//
// # Numbers of stamps
//
// Nobody counts stamps for all gateways. The number of a stamp is the time in microseconds, unless the gateway has drawn that or
// a later one, or the attempt follows something later: what it writes over, what it is built on, or what was deleted, which
// the floor is not below. So what is asked for after a commit has a greater stamp than that, however clocks differ (rule 43); puts
// of one key that overlap may be committed in another order than their stamps.
//
// # Clocks
//
// Deadlines, the graces of the graveyard and retention are for people and for peace; no rule is unsafe when a clock is
// wrong by any amount.
package catalog
