package memcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/restripe/restripe/agent/budget"
)

const (
	bufferBytes  = 16 << 10 // of what comes from a client, and of what goes to it
	mostLine     = 2 << 10  // the longest line of most commands, as memcached has it
	mostLineKeys = 1 << 20  // of those that take many keys
	pieceBytes   = 64 << 10 // as they come, memory is taken for values in such pieces
	wakeBytes    = 64       // what is read first from a connection that cannot be waited for without a buffer
)

// binaryMagic begins requests of the binary protocol, and no command of the others.
const binaryMagic = 0x80

var (
	errLongLine = errors.New("line too long")
	errNoMemory = errors.New("there is no memory for a line as long as this now")
	errBinary   = errors.New("the client speaks the binary protocol, which is not supported; have it speak the text protocol")
	errStopped  = errors.New("the server ends")
)

// buffer is lent to connections that have something to read or to write: idle ones have none.
type buffer struct{ bytes [bufferBytes]byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// input is what comes from a client. It belongs to the goroutine that reads, but for stop.
type input struct {
	conn     net.Conn
	received func(bytes int)
	waits    func()        // is called before the client is waited for
	memory   budget.Budget // of lines that are longer than a buffer

	raw   syscall.RawConn // nil: it cannot be waited for what comes without a buffer for it
	try   func(fd uintptr) (done bool)
	wake  *[wakeBytes]byte // in place of raw
	lent  *buffer
	data  []byte // what came and was not taken, in lent or in a larger buffer of a long line
	room  []byte // the whole of that buffer
	held  func() // gives back the memory of a larger one
	count int    // what try read
	err   error  // of try

	mutex    sync.Mutex
	stopped  bool
	deadline bool // there is one
}

func (in *input) init(conn net.Conn, memory budget.Budget, received func(int), waits func()) {
	in.conn, in.memory, in.received, in.waits = conn, memory, received, waits
	if socket, is := conn.(syscall.Conn); is {
		if raw, err := socket.SyscallConn(); err == nil {
			in.raw, in.try = raw, in.tryRead
			return
		}
	}
	in.wake = new([wakeBytes]byte)
}

// tryRead reads what there is, without waiting. It takes a buffer only where there is something.
func (in *input) tryRead(fd uintptr) bool {
	in.lend()
	for {
		in.count, in.err = unix.Read(int(fd), in.room[len(in.data):])
		if !errors.Is(in.err, unix.EINTR) {
			break
		}
	}
	if errors.Is(in.err, unix.EAGAIN) {
		in.rest()
		return false
	}
	if in.count == 0 && in.err == nil {
		in.err = io.EOF
	}
	return true
}

// lend takes a buffer where there is none.
func (in *input) lend() {
	if in.room == nil {
		in.lent = buffers.Get().(*buffer)
		in.room = in.lent.bytes[:]
		in.data = in.room[:0]
	}
}

// rest gives the buffer back where nothing is in it.
func (in *input) rest() {
	if len(in.data) == 0 && in.room != nil {
		in.giveBack()
		in.room, in.data = nil, nil
	}
}

func (in *input) giveBack() {
	if in.lent != nil {
		buffers.Put(in.lent)
	}
	if in.held != nil {
		in.held()
	}
	in.lent, in.held = nil, nil
}

// more waits for more bytes. In the middle of a command the client has a minute to go on.
func (in *input) more(isMiddle bool) error {
	in.waits()
	if err := errors.Join(in.patience(isMiddle), in.compact()); err != nil {
		return err
	}
	switch {
	case in.raw != nil:
		if err := in.raw.Read(in.try); err != nil {
			return in.failed(err)
		}
		if in.err != nil {
			return in.failed(in.err)
		}
		in.data = in.room[:len(in.data)+in.count]
		in.received(in.count)
	case len(in.data) == 0:
		in.rest()
		count, err := in.conn.Read(in.wake[:])
		if count == 0 {
			return in.failed(err)
		}
		in.lend()
		in.data = append(in.data, in.wake[:count]...)
		in.received(count)
	default:
		count, err := in.conn.Read(in.room[len(in.data):])
		if count == 0 {
			return in.failed(err)
		}
		in.data = in.room[:len(in.data)+count]
		in.received(count)
	}
	return nil
}

// compact moves what is there to the beginning of the buffer, and takes a larger one where it is full.
func (in *input) compact() error {
	if in.room == nil {
		return nil
	}
	if len(in.data) < len(in.room) {
		in.data = in.room[:copy(in.room, in.data)]
		return nil
	}
	held, isRoom := in.memory.Try(int64(3 * len(in.room))) // twice as much, and once more for the line as a command has it
	if !isRoom {
		return errNoMemory
	}
	larger := make([]byte, 2*len(in.room))
	copy(larger, in.data)
	in.giveBack()
	in.held, in.room, in.data = held, larger, larger[:len(in.data)]
	return nil
}

// patience sets the deadline of a read.
func (in *input) patience(isMiddle bool) error {
	in.mutex.Lock()
	defer in.mutex.Unlock()
	if in.stopped {
		return errStopped
	}
	if !isMiddle && !in.deadline {
		return nil
	}
	var until time.Time
	if isMiddle {
		until = time.Now().Add(progressPatience)
	}
	in.deadline = isMiddle
	return in.conn.SetReadDeadline(until)
}

// close gives memory back, when nothing more is read.
func (in *input) close() {
	in.data = nil
	in.rest()
}

// stop ends the wait for what comes, now and later.
func (in *input) stop() {
	in.mutex.Lock()
	defer in.mutex.Unlock()
	in.stopped = true
	_ = in.conn.SetReadDeadline(time.Unix(1, 0)) // an error says that the connection is closed
}

func (in *input) failed(err error) error {
	in.mutex.Lock()
	defer in.mutex.Unlock()
	if in.stopped {
		return errStopped
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the client sent half a command, and then nothing for %s: %w", progressPatience, err)
	}
	return err
}

// isEmpty reports whether nothing came that was not taken.
func (in *input) isEmpty() bool { return len(in.data) == 0 }

// line takes one line, without its end. It is valid until the next call.
func (in *input) line() ([]byte, error) {
	for seen := 0; ; {
		if len(in.data) > 0 && in.data[0] == binaryMagic {
			return nil, errBinary
		}
		if at := bytes.IndexByte(in.data[seen:], '\n'); at >= 0 {
			line := in.data[:seen+at]
			in.data = in.data[seen+at+1:]
			if end := len(line) - 1; end >= 1 && line[end] == '\r' {
				line = line[:end]
			}
			return line, nil
		}
		seen = len(in.data)
		if seen > mostLine && (seen > mostLineKeys || !takesManyKeys(in.data)) {
			return nil, errLongLine
		}
		if seen == 0 {
			in.rest()
		}
		if err := in.more(seen > 0); err != nil {
			return nil, err
		}
	}
}

// takesManyKeys reports whether a line that is not whole yet is one of a command that may be long.
func takesManyKeys(line []byte) bool {
	line = bytes.TrimLeft(line[:min(len(line), 100)], " ")
	for _, name := range []string{"get ", "gets ", "gat ", "gats "} {
		if bytes.HasPrefix(line, []byte(name)) {
			return true
		}
	}
	return false
}

// block takes the bytes of a value, and the end of line behind it, into memory of its own, which the holding has. It is
// budget.ErrFull where there is none, with left bytes still to come.
func (in *input) block(ctx context.Context, held *budget.Holding, length int64) (data []byte, isWhole bool, left int64, err error) {
	left = length + 2
	first := min(length, max(int64(len(in.data)), pieceBytes))
	if err := held.Grow(ctx, first, length-first); err != nil {
		return nil, false, left, err
	}
	data = make([]byte, 0, first)
	for int64(len(data)) < length {
		if len(data) == cap(data) {
			piece := min(int64(cap(data)), length-int64(cap(data)))
			if err := held.Grow(ctx, piece, length-int64(cap(data))-piece); err != nil {
				return nil, false, left, err
			}
			data = append(make([]byte, 0, int64(cap(data))+piece), data...)
		}
		count, err := in.take(data[len(data):cap(data)])
		if err != nil {
			return nil, false, 0, err
		}
		data = data[:len(data)+count]
		left -= int64(count)
	}
	var end [2]byte
	for at := 0; at < 2; {
		count, err := in.take(end[at:])
		if err != nil {
			return nil, false, 0, err
		}
		at += count
	}
	return data, end == [2]byte{'\r', '\n'}, 0, nil
}

// take reads some bytes of a value, at least one.
func (in *input) take(into []byte) (int, error) {
	if len(in.data) == 0 && len(into) > bufferBytes {
		if err := in.patience(true); err != nil {
			return 0, err
		}
		count, err := in.conn.Read(into)
		if count == 0 && err != nil {
			return 0, in.failed(err)
		}
		in.received(count)
		return count, nil
	}
	if len(in.data) == 0 {
		if err := in.more(true); err != nil {
			return 0, err
		}
	}
	count := copy(into, in.data)
	in.data = in.data[count:]
	return count, nil
}

// swallow takes bytes that nobody wants.
func (in *input) swallow(count int64) error {
	for count > 0 {
		if len(in.data) == 0 {
			if err := in.more(true); err != nil {
				return err
			}
		}
		taken := min(count, int64(len(in.data)))
		in.data = in.data[taken:]
		count -= taken
	}
	return nil
}
