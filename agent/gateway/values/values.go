package values

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/budget"
	"github.com/restripe/restripe/agent/gateway/class"
	"github.com/restripe/restripe/agent/gateway/object"
)

// Value is an object with all its bytes. Release is due once they are not needed any more; nobody changes them.
type Value struct {
	Data     []byte
	Class    string
	Revision block.Stamp
	Expires  time.Time // zero: never
	Metadata map[string]string
	free     func()
}

// Release has the memory of the bytes not count any more, for whoever waits for memory. The bytes stay as they are for those who have
// them. It may be called once, and of a nil value.
func (v *Value) Release() {
	if v != nil && v.free != nil {
		v.free()
		v.free, v.Data = nil, nil
	}
}

// Put is a value to be stored. Nobody may change Data any more.
type Put struct {
	Data     []byte
	Class    string    // empty: by the key
	Expires  time.Time // zero: never
	Metadata map[string]string
}

// Change is what becomes of a value: it is put, or deleted, or left as it is where neither is said.
type Change struct {
	Put    *Put
	Delete bool
}

// Keyspace is what a command works with: a Session, or a Transaction of one. Absent values are nil, without an error.
type Keyspace interface {
	// Get returns the value of a key.
	Get(ctx context.Context, key string) (*Value, error)
	// Look is Get without the bytes: Data is nil, and Size says how many there are.
	Look(ctx context.Context, key string) (*Info, error)
	// Put stores a value over whatever the key has, and returns its revision.
	Put(ctx context.Context, key string, put Put) (block.Stamp, error)
	// Delete removes a value, and reports whether there was one.
	Delete(ctx context.Context, key string) (existed bool, err error)
	// Modify has decide say what becomes of a value, and makes it so if that is still what it is; else decide is asked again. It is given
	// nil where there is none, and an error of it ends Modify. The value is decide's to read until it returns. The revision is that of the
	// value afterwards, zero where there is none.
	Modify(ctx context.Context, key string, decide func(now *Value) (Change, error)) (block.Stamp, error)
	// Replace is Modify of a decision that needs no bytes of the value.
	Replace(ctx context.Context, key string, decide func(now *Info) (Change, error)) (block.Stamp, error)
	// Accumulate is Modify of what puts or leaves a value, deletes none, and does not ask for revisions. Several may be made at once.
	Accumulate(ctx context.Context, key string, decide func(now *Value) (Change, error)) error
}

var _, _ Keyspace = (*Session)(nil), (*Transaction)(nil)

// Info is what is known of a value without its bytes.
type Info struct {
	Size     int64
	Class    string
	Scheme   string
	Revision block.Stamp
	Modified time.Time
	Expires  time.Time // zero: never
	Metadata map[string]string
}

// Parts are what a Store works with.
type Parts struct {
	Objects *object.Objects
	Classes *class.Registry
	Users   access.Authority // nil: nobody is asked who they are

	// Certified returns the user that a client's certificate names, nil where it has shown none.
	Certified func(*tls.ConnectionState) (*access.User, error)

	// Count counts all values, or, recently, takes what was counted a moment before; nil: each is looked at.
	Count func(ctx context.Context, recently bool) (int64, error)

	MaxBytes    int64 // of one value; 0: DefaultMaxBytes
	MemoryBytes int64 // of the values that are read and not yet sent; 0: 64 MiB

	Patience time.Duration // of reads, for that memory; 0: 5 s
	Believed time.Duration // for how long what a client showed is, before it is looked at again; 0: 10 s
}

// DefaultMaxBytes is how large a value may be where nothing else is said.
const DefaultMaxBytes = 8 << 20

// Store is the values of a gateway.
type Store struct {
	parts  Parts
	memory budget.Budget
	ahead  budget.Budget // of sessions that are ahead of others
	turns  turns
	puts   puts
	sums   sums
}

// New returns the values of a gateway.
func New(parts Parts) *Store {
	if parts.MaxBytes == 0 {
		parts.MaxBytes = DefaultMaxBytes
	}
	if parts.MemoryBytes == 0 {
		parts.MemoryBytes = 64 << 20
	}
	if parts.Patience == 0 {
		parts.Patience = 5 * time.Second
	}
	if parts.Believed == 0 {
		parts.Believed = 10 * time.Second
	}
	memory := max(parts.MemoryBytes, parts.MaxBytes)
	return &Store{parts: parts, memory: budget.New(memory), ahead: budget.New(memory / 4)}
}

// MaxBytes is how large a value may be.
func (s *Store) MaxBytes() int64 { return s.parts.MaxBytes }

// CheckClass refuses the name of a class that there is not.
func (s *Store) CheckClass(name string) error {
	if s.parts.Classes.Named(name) == nil {
		_, err := s.parts.Classes.For("", name)
		return err
	}
	return nil
}
