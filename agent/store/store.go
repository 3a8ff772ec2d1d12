// Package store is the border to the stores users already have: one narrow interface, optional capabilities found by
// assertion, decorators, and a conformance suite (storetest) that every backend runs.
package store

import (
	"context"
	"errors"
)

// Store keeps named values on one node. Values are created and deleted, never overwritten, so every operation may be
// retried. Keys are 1 to 200 bytes of printable ASCII without spaces. All methods are safe for concurrent use.
//
// Errors wrap one of the sentinels below where one applies; anything else means the outcome is unknown.
type Store interface {
	// Create stores value under key, whole or not at all, as durably as Info says, before it returns.
	// It fails with ErrExists if the key is there already, whatever its content. value is not retained.
	Create(ctx context.Context, key string, value []byte) error

	// ReadAt fills p with the value's bytes from offset on and returns how many there were; fewer than len(p) only
	// at the end of the value (no error). A missing key is ErrNotFound; a value with missing or torn parts is ErrCorrupt.
	ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error)

	// Delete removes key. Deleting an absent key succeeds.
	Delete(ctx context.Context, key string) error

	// Info describes the store as it is now.
	Info(ctx context.Context) (Info, error)

	// Close releases connections and locks; the values stay.
	Close() error
}

// Lister is the capability to enumerate keys, all at once or in pages. Either way a key that is there all the while is seen,
// once; one that is created or deleted meanwhile may or may not be.
type Lister interface {
	// List visits every key that begins with prefix, in no particular order, with the size of its value. visit may use the
	// store; its error ends the listing and is returned.
	List(ctx context.Context, prefix string, visit func(key string, size int64) error) error

	// Page returns the next keys that begin with prefix: limit of them, which is at least 1, or all that are left; more says
	// whether others may follow.
	//
	// A store has one order of all keys that there could be, of its own choice, for good: a page has the first keys that come
	// after the key after, in that order. So the last key of a page is where the next one begins, whether it is still there
	// or not, also after the store was opened again; a page may be asked for again, and several listings may be under way.
	// An empty after comes before all keys.
	//
	// A page costs what it shows, however much the store holds, and looks at no values. Only a server that cannot be
	// entered in the middle is passed over once, where a listing begins or goes on after a long pause (see Pass).
	Page(ctx context.Context, prefix, after string, limit int) (keys []string, more bool, err error)
}

// ManyReader is the capability to read from several values in one go, for less than one read after the other costs.
type ManyReader interface {
	// ReadMany does each of the reads as ReadAt does, in any order, and says in each what came of it. What becomes of one is no matter to
	// the others, but that all wait for what is asked of one server.
	ReadMany(ctx context.Context, reads []Read)
}

// Read is one of several reads.
type Read struct {
	Key    string
	Into   []byte // is filled with the value's bytes from Offset on
	Offset int64

	Count int   // of bytes, as ReadAt returns it
	Err   error // likewise
}

// Volatile is the capability to say whether acknowledged values may have been lost unseen: a server that keeps its values
// in memory, and writes them down now and then, comes back from a crash as it was a while ago.
type Volatile interface {
	// Run names the present run of the server, in up to 64 letters and digits; another name means that it was started
	// again, and may have lost values. It is empty where the server loses none. What is asked of the store before
	// and after a call that answers the same was asked of the same run.
	Run(ctx context.Context) (string, error)
}

// Between is the capability to create a value between two readings of another one, in one round trip.
type Between interface {
	// CreateBetween is Create between two readings of the first limit bytes of the value under marker, which are empty where it is
	// absent; the server does one after the other. What the first reading shows does not keep the value from being created.
	CreateBetween(ctx context.Context, marker string, limit int, key string, value []byte) (before, after []byte, err error)
}

// Info is what a store says of itself. Zero means unknown or unlimited.
type Info struct {
	Kind          string `cbor:"1,keyasint" json:"kind"`     // file, memcached, redis, ceph, mem
	Location      string `cbor:"2,keyasint" json:"location"` // without secrets
	Durable       bool   `cbor:"3,keyasint" json:"durable"`  // an acknowledged Create survives power loss
	CapacityBytes int64  `cbor:"4,keyasint" json:"capacityBytes"`
	UsedBytes     int64  `cbor:"5,keyasint" json:"usedBytes"`
	ValueLimit    int64  `cbor:"6,keyasint" json:"valueLimit"` // largest value Create accepts
	// Volume names what capacity and use are of where several stores may share it, such as a file system; empty: the store's own.
	Volume string `cbor:"8,keyasint,omitempty" json:"volume,omitempty"`
	// Discarded counts pieces of values that were half made or half deleted: listings found and deleted them since it was opened.
	Discarded int64 `cbor:"9,keyasint,omitempty" json:"discarded,omitempty"`
	// Evicted counts values that the server dropped by itself since it was started.
	Evicted  int64    `cbor:"10,keyasint,omitempty" json:"evicted,omitempty"`
	Warnings []string `cbor:"7,keyasint" json:"warnings"` // whole sentences: what is wrong and the cure, e.g. that the store evicts
}

// Sentinels; use errors.Is.
var (
	ErrNotFound = errors.New("no such key")
	ErrExists   = errors.New("key exists already")
	ErrFull     = errors.New("store is full")
	ErrTooLarge = errors.New("value is over the store's limit")
	ErrCorrupt  = errors.New("stored value is torn")
	ErrReadOnly = errors.New("store cannot be written")
	ErrDown     = errors.New("store does not answer")
	ErrAuth     = errors.New("store refused the credentials")
)
