package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/restripe/restripe/agent/budget"
	"github.com/restripe/restripe/agent/gateway/api"
)

// Memory bounds the gateway's buffers. Each kind has a budget of its own, so that none waits in a circle: an update may
// read its object and write it anew as groups, and what was read for that waits for the group to have room (rewrites, one
// at a time). A copy of an object, which may take hours, does the same out of another budget. Small objects are held as they
// come, until their batch is committed. Groups are filled at the pace of their clients, which batches of small objects must
// not wait for. A fragment holds the memory of its own bytes until they are written to a client; what it is decoded from
// (decodes) it holds until nodes have answered, and for nobody else.
type Memory struct {
	Groups, Small, Batches, Reads, Decodes, Updates, Rewrites, Copies budget.Budget
}

// admission is how long a client's request waits for memory before it is refused.
const admission = 5 * time.Second

// Body is what has come of a client's body, and the memory that it holds. It belongs to one goroutine.
type Body struct {
	Bytes []byte
	held  *budget.Holding
}

// firstBytes is what a body holds before any of it has come.
const firstBytes = 1 << 10

// ReadBody reads a body up to limit bytes, holding memory of a budget as they come, at most twice as much, so that one that
// is announced and does not come holds none. Release is due whatever the error. It is ErrBusy where there is no room.
func ReadBody(ctx context.Context, memory budget.Budget, body io.Reader, limit int64) (*Body, error) {
	read := &Body{held: memory.Hold(admission)}
	for int64(len(read.Bytes)) < limit {
		have := int64(len(read.Bytes))
		next := min(limit, max(2*have, firstBytes))
		if err := read.held.Grow(ctx, next-have, limit-next); errors.Is(err, budget.ErrFull) {
			return read, fmt.Errorf("%w: %w", api.ErrBusy, err)
		} else if err != nil {
			return read, err
		}
		larger := make([]byte, next)
		copy(larger, read.Bytes)
		n, ended, err := ReadFull(body, larger[have:])
		read.Bytes = larger[:have+int64(n)]
		if err != nil || ended {
			return read, err
		}
	}
	return read, nil
}

// Release gives the memory back. The bytes must not be used any more.
func (b *Body) Release() {
	if b.held != nil {
		b.held.Release()
	}
}

// ReadFull reads until into is full or the body has ended. In contrast to io.ReadFull it tells the end from a body that
// broke off, which net/http reports as io.ErrUnexpectedEOF: a part must never be stored as the whole.
func ReadFull(body io.Reader, into []byte) (n int, ended bool, err error) {
	for n < len(into) && !ended && err == nil {
		var more int
		more, ended, err = ReadSome(body, into[n:])
		n += more
	}
	return n, ended, err
}

// ReadSome is ReadFull that is content with what comes first, which is at least one byte but at the end.
func ReadSome(body io.Reader, into []byte) (n int, ended bool, err error) {
	for n == 0 && err == nil {
		n, err = body.Read(into)
	}
	if err == io.EOF { //nolint:errorlint // only the bare value is the end; an error that wraps it is a failure
		return n, true, nil
	}
	return n, false, err
}
