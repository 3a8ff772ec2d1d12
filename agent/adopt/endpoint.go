package adopt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Version tells one state of an object from every other. Two versions of one object are the same state exactly if they
// are equal.
type Version struct {
	Tag      string    `json:"tag"`  // opaque; changes with every write
	Size     int64     `json:"size"` // bytes
	Modified time.Time `json:"modified"`
}

// Same reports whether both are the same state.
func (v Version) Same(other Version) bool {
	return v.Tag == other.Tag && v.Size == other.Size && v.Modified.Equal(other.Modified)
}

// Content is the bytes of one state of an object on their way. Read fails with ErrChanged where the object changes
// before the last byte was read: bytes of two states are never mixed. The caller closes it.
type Content interface {
	io.ReadCloser
	Version() Version
}

// Source is where objects come from. Names are of any bytes. It is safe for concurrent use.
type Source interface {
	// List calls visit with the names of all objects that are selected, in any order. visit's error ends the listing and
	// is returned.
	List(ctx context.Context, visit func(name string) error) error

	// Stat returns the version an object has now; ErrGone if there is none.
	Stat(ctx context.Context, name string) (Version, error)

	// Open opens the bytes of an object; ErrGone if there is none, a *RefusalError where it cannot be carried.
	Open(ctx context.Context, name string) (Content, error)
}

// Target is where objects go. It is safe for concurrent use.
type Target interface {
	// Put stores size bytes of body under name, whole or not at all, and returns the version they have there. It fails
	// with ErrConflict, and changes nothing, where the target is not in the state that expected describes.
	Put(ctx context.Context, name string, body io.Reader, size int64, expected Expectation) (Version, error)

	// Open opens the bytes of an object; ErrGone if there is none.
	Open(ctx context.Context, name string) (Content, error)
}

// Trimmer is the capability of a source to delete.
type Trimmer interface {
	// Trim deletes an object if it is still at the version, in one operation. Otherwise it fails with ErrChanged, or with
	// ErrGone, and deletes nothing.
	Trim(ctx context.Context, name string, at Version) error
}

// Expectation is what a Put expects to find.
type Expectation struct {
	Any     bool   // whatever is there is replaced
	Version string // the tag of the version that is replaced; "" if nothing may be there
}

// Sentinels of endpoints; use errors.Is.
var (
	ErrGone     = errors.New("there is no such object")
	ErrChanged  = errors.New("the object was changed meanwhile")
	ErrConflict = errors.New("there is an object of this name already")

	// ErrStop marks errors that every further object would meet, too: the job ends.
	ErrStop = errors.New("the job cannot go on")
)

// RefusalError says why an object is not carried: a clause about the object, and what to do.
type RefusalError struct{ Reason string }

// Error returns the reason.
func (e *RefusalError) Error() string { return e.Reason }

func refusal(format string, values ...any) error {
	return &RefusalError{Reason: fmt.Sprintf(format, values...)}
}
