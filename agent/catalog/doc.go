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
// # Records
//
//	o/<key>       Object
//	g/<group>     Group
//	l/<group>     live extents of the group, a decimal changed by increments only once the group exists
//	f/<group>     the live count of the group went down or began at zero: look whether it can be freed
//	i/<stamp>     Intent of an active attempt
//	e/<stamp>     Intent that ended, without its blocks, kept for a while to answer late questions
//	d/<address>   grave: a dead block that may still lie on its node
//	r/<request>   outcome of a delete
//	n/<node>      Node
//	x/<node>      Incarnation of the node's store, raw
//	j/<id>        Job
//	c/<name>      Class, also of a class that was removed
//	h/<part>/<gateway>  heat counters of a part of the groups, the gateway's own encoding
//	s/<finding>   what a scrub found, newest first, the gateway's own encoding
//	v/<gateway>/<start>         a start of a gateway, empty
//	v/<gateway>/<start>/<lane>  how many updates it carried out in the lane; see Sessions
//	w/<gateway>   the present start of the gateway, as <gateway>/<start>
//	u/<gateway>/<start>         number of the last stamp that the start drew
//	view/<gateway>  View: which nodes the gateway hears, and its sign of life
//	meta/schema, meta/cluster
//	meta/next     the floor: every stamp that is drawn is above this number, as it is read for that
//	meta/drawn    stamps below this number are from before there were sessions, or were taken over by Accept
//	meta/alarm    Alarm: the catalog was put back, and nothing is deleted until a person has said what counts
//	meta/disowned starts of gateways that count no more, as the catalog was claimed after them
//	meta/classes  raised by every change of a class
//	meta/heat     since when accesses are counted, Unix milliseconds
//	meta/scrub    Job of the scrub, of which a cluster has one
//	meta/rebuilt  in a catalog that was rebuilt or claimed: blocks of attempts below this number are kept, dead or not
//	meta/members  Membership
//	meta/repair   RepairControl
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
