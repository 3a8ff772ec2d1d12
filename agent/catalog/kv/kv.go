// Package kv is the contract of the engines that keep a catalog: values under keys, changed conditionally.
package kv

import (
	"context"
	"errors"
)

// Sentinels of engines; use errors.Is.
var (
	// ErrInUse says that another process has the catalog open and the engine allows one only.
	ErrInUse = errors.New("catalog is in use")
	// ErrNewer says that the catalog was written by a newer release.
	ErrNewer = errors.New("catalog is newer than this program")
	// ErrCorrupt says that a record cannot be decoded, or that records contradict each other.
	ErrCorrupt = errors.New("catalog record is damaged")
	// ErrClosed says that the engine was closed.
	ErrClosed = errors.New("catalog engine is closed")
	// ErrTooLarge says that an Update has more in it than the engine takes, which is at least UpdateRecords and UpdateBytes. Nothing
	// was changed.
	ErrTooLarge = errors.New("update is larger than the catalog takes")
)

// KeyLimit is the longest key, in bytes, that an Engine must accept.
const KeyLimit = 4200

// What an Update must be able to have in it; more may be refused with ErrTooLarge.
const (
	UpdateRecords = 4096    // checks and writes together
	UpdateBytes   = 8 << 20 // of their keys and values
)

// Engine keeps values under keys and changes them conditionally. Keys are 1 to KeyLimit arbitrary bytes; values are
// non-nil and may be empty. All methods are safe for concurrent use. Slices handed in are not retained, slices handed out
// belong to the caller.
//
// The commit protocol takes for granted what follows, and nothing else; each has the tests of its name in catalogtest, which every
// engine runs.
//
//   - ConditionalUpdate: an Update is made as a whole or not at all, its writes in order, and all checks that failed are named. A
//     value is compared to its last byte, and absent is not empty.
//   - Values: every byte of a key and a value is kept, and 2 MiB are no bound.
//   - LargestUpdate: what has UpdateRecords and UpdateBytes is made. What is larger is made too, or it is ErrTooLarge.
//   - Counters: are exact, from absent on, and read and compared as decimal integers. Incrementing what is none is an error.
//   - OrderedScan, ScanPrefixes, ScanPages: a Scan misses nothing that was there all the time, and its order is that of bytes.
//   - SnapshotReads: one Read, and one page of a Scan, is of one instant.
//   - Snapshots: a Snapshot is of one instant however long it is read, and others work on meanwhile.
//   - OneWinner, Coalescing: of Updates that exclude one another exactly one is made and the others are told so; others are not
//     disturbed, also not by incrementing what all increment, and nobody starves.
//   - Linearizable: all operations of all clients have an order in which each does what it answered, and in which none comes before
//     another that was over when it began. There are no stale reads.
//   - LinearizableThroughFaults: an error of an Update says nothing: it is made then or later, or never. What is answered is true: a
//     check is said to have failed only of an Update that is never made. So an engine asks again only where it knows that
//     nothing was done.
//   - LinearizableOverACrash, Crash: what was answered outlives whatever serves the records, unless the engine is Forgetful.
//   - Watching: who watches a key learns of every Update that told of it, in seconds, and of no key that nobody told of.
//   - WatchingThroughFaults: nor is it missed while connections are cut.
//   - CancelledContext: ends a call, and no later one.
//   - Closed: what is closed answers ErrClosed, and closing it again does nothing.
//   - TwoOpeners: several clients have the same records, or the second one gets ErrInUse.
type Engine interface {
	// Read returns the values of keys, in their order, as of one instant; nil for an absent key.
	Read(ctx context.Context, keys ...string) ([][]byte, error)

	// Scan returns up to limit records whose key begins with prefix and is greater than after, ascending by bytes, as
	// of one instant. Pages of one listing are not of the same instant.
	Scan(ctx context.Context, prefix, after string, limit int) ([]Record, error)

	// Update applies every write, in order, if every check holds; otherwise it changes nothing and returns the indices
	// of the checks that failed, ascending. It is atomic, and as durable as the engine promises before it returns.
	// An error means that the outcome is unknown: the writes may have been, or may yet be, applied, once or repeatedly.
	// Incrementing what is not a counter is an error and changes nothing; a key that is incremented is not written
	// otherwise by the same Update.
	Update(ctx context.Context, checks []Check, writes []Write) (failed []int, err error)

	// Watch returns a channel that holds a token when it is worth reading keys: at first, once what changes from then on
	// is seen; after every Update, of any client, with a Write of one of the keys that has Notify; and when one may have
	// been missed. Tokens that nobody takes become one. The channel is closed when ctx ends or the engine is closed.
	Watch(ctx context.Context, keys ...string) <-chan struct{}

	// Snapshot returns the records as of one instant within the call, for copies of all of them. The caller closes it.
	Snapshot(ctx context.Context) (Snapshot, error)

	// Size says how much the engine holds.
	Size(ctx context.Context) (Size, error)

	// Close releases what the engine holds. Operations after it fail with ErrClosed.
	Close() error
}

// Forgetful is an engine that says whether it may lose updates which it has acknowledged, as a server does that writes them to
// its disk later.
type Forgetful interface{ MayLose() bool }

// Nearby is an Engine that has some records in memory.
type Nearby interface {
	// ReadNow returns the value of a key as Read would now, nil for an absent one, where it is in memory: it does not wait for anything.
	// The value is the engine's, and valid for ever.
	ReadNow(key string) (value []byte, known bool)

	// ReadAllNow returns the values of keys as Read would now, as of one instant, where all of them are in memory. They are as that of
	// ReadNow.
	ReadAllNow(keys []string) (values [][]byte, known bool)
}

// Snapshot is all records of one instant. It may end by itself when the engine has to give up what it keeps for it; Scan is an error
// then.
type Snapshot interface {
	// Scan is like that of an Engine, but that all pages are of the same instant.
	Scan(ctx context.Context, prefix, after string, limit int) ([]Record, error)
	Close() error
}

// Size is how much an engine holds.
type Size struct {
	Records int64 // about; -1 where counting would take long
	Bytes   int64 // that the server or the file has for them
	Limit   int64 // of Bytes; 0 where none is known
}

// Record is a key and its value.
type Record struct {
	Key   string
	Value []byte
}

// Check is a condition of an Update: the value under Key is exactly Value, or, where Value is nil, Key is absent. Of a counter Value
// is its decimal integer.
type Check struct {
	Key   string
	Value []byte
}

// WriteKind says what a Write does.
type WriteKind uint8

// The kinds of writes.
const (
	Set       WriteKind = iota // store Value under Key
	Remove                     // remove Key, which may be absent
	Count                      // store the counter Add under Key
	Increment                  // add Add to the counter under Key, which is created at 0
)

// Write is one effect of an Update. Counters are what Count and Increment made; how they are kept is the engine's affair.
type Write struct {
	Key    string
	Value  []byte
	Add    int64
	Kind   WriteKind
	Notify bool // tell those who watch Key, also where there was nothing to remove
}
