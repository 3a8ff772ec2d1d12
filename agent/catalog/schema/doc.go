// Package schema has the records of a catalog: what is in them, the keys they stand under, and what must hold of each by itself
// and of all together.
//
//	o/<key>       Object
//	g/<group>     Group
//	l/<group>     live extents of the group, a decimal changed by increments only once the group exists
//	b/<group>     bytes of the live extents of a packed group, a decimal changed with l/; releases before did not keep it
//	f/<group>     the live count of the group went down or began at zero: look whether it can be freed
//	i/<stamp>     Intent of an active attempt
//	e/<stamp>     Intent that ended, without its blocks, kept for a while to answer late questions
//	p/<stamp>/<index>    Piece that an attempt has committed
//	p/<request>/<index>  Piece of an object that was taken away
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
//	t/<time>/<key>              an object that expires then, in hexadecimal Unix milliseconds; at 0 an earlier version to be removed; empty
//	view/<gateway>  View: which nodes the gateway hears, and its sign of life
//	view/\x00<gateway>  View: the marks of stores that it heard
//	meta/schema   the version of the records, or why the catalog is set aside
//	meta/version  that version again, which is copied with the records and outlives their being set aside; version 2 has none
//	meta/cluster  Cluster
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
//	meta/compact  Job of the compaction, of which a cluster has one
//	meta/balance  Job of the balance of nodes, of which a cluster has one
package schema
