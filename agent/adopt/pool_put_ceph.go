//go:build ceph

package adopt

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/ceph/go-ceph/rados"
)

// errEnd is io.EOF, where a variable named io hides the package.
var errEnd = io.EOF

// writtenAtOnce is the largest object that is written in one operation. Larger ones are written in pieces and carry
// unfinishedMark until the last one is there, so that nobody takes a part for the whole.
const writtenAtOnce = 8 << 20

// Put stores an object.
func (p *Pool) Put(ctx context.Context, name string, body io.Reader, size int64, expected Expectation) (Version, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return Version{}, refusal("RADOS has no objects whose names are empty or hold a zero byte: choose a --key-prefix that leaves more of the key, or rename the object")
	}
	own, err := p.context()
	if err != nil {
		return Version{}, err
	}
	defer p.idle(own)
	w := &poolWriter{pool: p, io: own, name: name, ctx: ctx}
	first := make([]byte, min(size, p.aligned(writtenAtOnce)))
	if _, err := io.ReadFull(body, first); err != nil {
		return Version{}, fmt.Errorf("reading what to store: %w", err)
	}
	done := int64(len(first))
	if err := w.begin(first, expected, done < size); err != nil {
		return Version{}, err
	}
	if done < size {
		if err := w.rest(body, done, size); err != nil {
			return Version{}, err
		}
	}
	version, number, err := p.stat(own, name)
	if err != nil {
		return Version{}, err
	}
	if number != w.number || version.Size != size {
		return Version{}, fmt.Errorf("storing %q: %w", name, ErrChanged)
	}
	return version, nil
}

// aligned rounds down to where a write may begin.
func (p *Pool) aligned(offset int64) int64 { return offset / p.alignment * p.alignment }

// poolWriter writes one object.
type poolWriter struct {
	ctx    context.Context
	pool   *Pool
	io     *rados.IOContext
	name   string
	number uint64 // the version of the last write
}

// begin writes the first piece over what is expected to be there.
func (w *poolWriter) begin(first []byte, expected Expectation, unfinished bool) error {
	operation := rados.CreateWriteOp()
	defer operation.Release()
	switch {
	case expected.Any:
	case expected.Version == "":
		left, err := w.leftover()
		if err != nil {
			return err
		}
		if left > 0 {
			operation.AssertVersion(left)
		} else {
			operation.Create(rados.CreateExclusive)
		}
	default:
		number, err := strconv.ParseUint(expected.Version, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: the journal's version %q: %w", ErrStop, expected.Version, err)
		}
		operation.AssertVersion(number)
	}
	if unfinished {
		operation.SetXattr(unfinishedMark, []byte("1"))
	}
	if len(first) == 0 {
		return w.empty(operation)
	}
	return w.write(operation, first, -1)
}

// empty makes an object without bytes: go-ceph passes no empty slices on.
func (w *poolWriter) empty(operation *rados.WriteOp) error {
	operation.Create(rados.CreateIdempotent)
	if err := w.operate(operation); err != nil {
		return err
	}
	if version, _, err := w.pool.stat(w.io, w.name); err != nil || version.Size == 0 {
		return err
	}
	if err := w.io.Truncate(w.name, 0); err != nil {
		return fmt.Errorf("emptying %q: %w", w.name, w.pool.seen(err))
	}
	var err error
	w.number, err = w.io.GetLastVersion()
	return err
}

// leftover returns the version of an object that an interrupted write left; 0 if there is none.
func (w *poolWriter) leftover() (uint64, error) {
	if !w.pool.hasAttribute(w.name, unfinishedMark) {
		return 0, nil
	}
	_, number, err := w.pool.stat(w.io, w.name)
	return number, err
}

// write adds bytes to an operation and carries it out: at an offset, or as the whole object where that is -1.
func (w *poolWriter) write(operation *rados.WriteOp, data []byte, offset int64) error {
	if offset < 0 {
		operation.WriteFull(data)
	} else {
		operation.Write(data, uint64(offset))
	}
	return pinned(data, func() error { return w.operate(operation) })
}

// operate carries an operation out and notes the version that it makes. A full pool answers instead of letting it wait.
func (w *poolWriter) operate(operation *rados.WriteOp) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	err := operation.Operate(w.io, w.name, rados.OperationFullTry)
	switch code := codeOf(err); {
	case code == syscall.EEXIST, code == syscall.ERANGE, code == syscall.EOVERFLOW:
		return ErrConflict
	case err != nil:
		return fmt.Errorf("storing %q: %w", w.name, w.pool.seen(err))
	}
	w.number, err = w.io.GetLastVersion()
	return err
}

// rest writes all from an offset on, each piece only onto the one before.
func (w *poolWriter) rest(body io.Reader, offset, size int64) error {
	buffer := make([]byte, w.pool.aligned(pieceBytes))
	for offset < size {
		piece := buffer[:min(int64(len(buffer)), size-offset)]
		if _, err := io.ReadFull(body, piece); err != nil {
			return fmt.Errorf("reading what to store: %w", err)
		}
		operation := rados.CreateWriteOp()
		operation.AssertVersion(w.number)
		err := w.write(operation, piece, offset)
		operation.Release()
		if err != nil {
			return err
		}
		offset += int64(len(piece))
	}
	if err := w.io.RmXattr(w.name, unfinishedMark); err != nil {
		return fmt.Errorf("finishing %q: %w", w.name, w.pool.seen(err))
	}
	var err error
	w.number, err = w.io.GetLastVersion()
	return err
}

// pinned keeps memory in its place while librados works with it.
func pinned(memory []byte, work func() error) error {
	if len(memory) == 0 {
		return work()
	}
	var pinner runtime.Pinner
	pinner.Pin(&memory[0])
	defer pinner.Unpin()
	return work()
}
