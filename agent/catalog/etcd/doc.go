// Package etcd keeps a catalog in a cluster of etcd, for several gateways: what it acknowledges is on the disks of most of its
// members, so that no single failure loses it.
//
// Records are keys under one prefix. An Update is one transaction of etcd, whose conditions are the checks and which is never repeated
// where it may have been made. Counters are decimal text: who increments one says what it was, as known or as read, and where only
// that has changed the transaction is made anew. Who increments the same counters of one process waits in line. Reads are linearizable
// and of one revision. Updates that tell of keys change one more key, which all watch: its value names them.
//
// # What the cluster needs
//
//   - Members that take transactions and requests as large as a catalog makes them: --max-txn-ops=8192 and
//     --max-request-bytes=18874368 on each. Open asks them, and refuses a cluster that does not.
//   - Compaction, for they keep every version of a key until they are told otherwise: --auto-compaction-mode=periodic
//     --auto-compaction-retention=1h. A Snapshot lasts as long.
//   - A --quota-backend-bytes for all records; about twice their size is good. Warnings says when a member has used 60 % of it. What does
//     not fit is an error that says what to do; the Update that fills the last of it may have been made.
//   - Three members, for one to fail; Warnings says when there are fewer.
//   - Where it has users, one of a role that may read and write the prefix restripe/NAME/, NAME being the catalog's.
//
// # What is waited for
//
// While there is no leader, or no connection, calls wait, for callLimit or as long as their context lasts. A read is asked again, an
// Update only where it is known that nothing was done: it was refused before it was proposed to the other members. A member that is
// silent without having ended is found out within about 15 seconds.
package etcd
