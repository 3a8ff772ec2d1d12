// Package sqlite keeps a catalog in one SQLite database on a local disk, for clusters with one gateway.
//
// The database is one table of keys and values in write-ahead-logging mode with synchronous=FULL: an Update that was
// acknowledged survives power loss, as far as the disk keeps what it acknowledged. Updates that arrive while one is
// being written share the next transaction, so that one sync serves them all; each is checked in its turn and answered
// by itself.
//
// As nobody else writes the database, records that were read or written lately are kept in memory, 32 MiB of them, and read from there
// (cache). A commit under way takes those that it writes out of it before it may take effect, so that memory and database never differ.
//
// One Engine owns the database, by a lock on a file beside it that the operating system releases when the process ends,
// however it ends. The file must be on a local file system.
package sqlite
