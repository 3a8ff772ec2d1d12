// Package redis keeps a catalog in one Redis or Valkey server, or in one slot of a cluster, for several gateways.
//
// All records are fields of one hash, beside one sorted set of their keys for ordered listing; both carry the same hash
// tag. An Update is one Lua script: it evaluates the checks, then makes the writes, and nothing runs in between. Keys
// and values are binary-safe. The client never repeats a request by itself, because a repeated Update would be told
// that its own first copy violates its checks.
//
// # What can be lost
//
// An Update is acknowledged when the primary has executed it. How durable that is, is the server's configuration:
//
//   - appendonly yes and appendfsync always: it survives a crash of the server process and of its machine.
//   - appendfsync everysec: a crash of the machine loses up to about two seconds of acknowledged updates.
//   - a failover to a replica loses what the replica had not received yet, in every configuration: replication is
//     asynchronous, and WAIT would narrow the window without closing it.
//   - no append-only file: a restart loses everything since the last snapshot.
//
// What is lost is whole transactions from the end. Objects written since are gone or have their former content, blocks
// deleted since may be named again, and the stamp counter goes back. Gateways that live on notice it at
// their next update (ErrBehind), nodes refuse a catalog that lost what they had witnessed, and the next search of a store finds
// blocks whose stamps no session of the catalog has drawn:
// nothing is deleted from then on before a person has said what counts (Catalog.Claim, Catalog.Accept).
// A server that evicts keys would lose the catalog as a whole: Open refuses one.
//
// Warnings says which of these apply to the server as it is configured.
package redis
