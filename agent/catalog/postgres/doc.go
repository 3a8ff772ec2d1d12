// Package postgres keeps a catalog in a schema of a PostgreSQL database, for several gateways.
//
// Its records are the rows of one table, ordered by their keys. Updates that exclude none of one another share a transaction, which is one
// call of one function: it locks the rows of all keys in ascending order, those of absent keys as rows that it makes and removes again,
// evaluates the checks on what is then there, and makes the writes of those updates whose checks hold. A row that is checked alone is
// shared by many. A Read, and a page of a Scan, is one statement on the primary.
//
// # What the server needs
//
// PostgreSQL 14 or newer. A role that may make a schema, or one that the owner of the schema grants what Open names: usage of the schema,
// execution of its functions, and to select, insert, update and delete in its tables. A gateway has up to ten connections: six that
// read, two that update, one that listens, one that asks for proofs; and one for each snapshot. Between them there may be a pooler that
// lends sessions for single transactions, as PgBouncer does: no statement is kept in a session. Where there is one, watchers ask four
// times a second, because nobody can listen through it.
//
// # What can be lost
//
// Nothing that was acknowledged, as long as the server waits for its disk; the engine has it wait, whatever synchronous_commit says.
// Where a standby takes over, nothing is lost if synchronous_standby_names names it. Warnings says where it is otherwise.
//
// # Old primaries
//
// A standby is refused, and so is a server whose timeline is older than one that was met. That does not help who has not met the newer
// one, as it was cut off from it; and a primary whose standby was promoted behind its back does not know of it. Updates it cannot
// acknowledge, because nobody confirms them. For reads it has to give proof: a commit of its own that its standbys confirmed, asked for
// no more than two seconds before the read, and after the connection was made. A standby that has been promoted confirms nothing. So
// nothing old is read, as long as none is promoted within two seconds of having followed, unless the old primary has ended before. And
// what a server has that was killed while an update waited for its standbys is not read before they have it. An update that is
// confirmed is proof too; where there is no synchronous standby a server's answer is. The price is that reads wait as updates do while
// no standby confirms. A pooler that outlives a server it leads to takes some of this away: for up to two seconds after the server
// came back it passes for the same.
//
// All servers of the address are tried at once when a connection is made, and looked for again while a server does not answer. When a
// newer one is met what waits for the old one ends with an error, an update with an unknown outcome.
//
// No call is cancelled on the server, because a transaction that waits for standbys would then take effect without them; where a person
// cancels one, its outcome is unknown.
//
// An Update is asked again only where the server has refused it, because of what others did at the same time, or nothing of it was sent.
package postgres
