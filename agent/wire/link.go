package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

const (
	// readBufferBytes is what is read at a time where frames are small; of a long body nearly all goes where it is wanted.
	readBufferBytes = 16 << 10
	// wakeBytes is how much of a long body comes in before its reader is woken, and shows life: a client takes a connection
	// that brings less in all the time that it may be silent for dead.
	wakeBytes = 256 << 10
	// bodyTime bounds how long a peer may take to take in a frame.
	bodyTime = 60 * time.Second
	// stallTime bounds how long the next wakeBytes of a frame that has begun may take to come.
	stallTime = 15 * time.Second
	// cancelledWriteTime bounds how long a frame goes on being written after its caller has given up: finishing it
	// spares the other calls on the connection.
	cancelledWriteTime = time.Second
)

// link is one connection as both sides see it: frames out, one at a time; frames in, read by one goroutine.
type link struct {
	conn    net.Conn
	reader  *bufio.Reader
	wake    waker
	writing chan struct{} // holds one token while nobody writes
	stall   time.Duration
	sent    *atomic.Int64
}

// countingReader counts what comes in as it comes in, so that a long body shows life before it is complete.
type countingReader struct {
	conn     net.Conn
	received *atomic.Int64
}

func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.conn.Read(p)
	r.received.Add(int64(n))
	return n, err
}

func newLink(conn net.Conn, sent, received *atomic.Int64) *link {
	boundSilence(conn)
	l := &link{
		conn: conn, reader: bufio.NewReaderSize(countingReader{conn, received}, readBufferBytes),
		wake: newWaker(conn), writing: make(chan struct{}, 1), stall: stallTime, sent: sent,
	}
	l.writing <- struct{}{}
	return l
}

// write sends a frame. An error while it was under way leaves the connection broken, and closed; notSent says that
// ctx ended before the first byte, which leaves it good.
func (l *link) write(ctx context.Context, p prefix, header, payload []byte) (notSent bool, err error) {
	select {
	case <-l.writing:
	case <-ctx.Done():
		return true, ctx.Err()
	}
	defer func() { l.writing <- struct{}{} }()
	if err := l.conn.SetWriteDeadline(time.Now().Add(bodyTime)); err != nil {
		return false, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	stop := context.AfterFunc(ctx, func() {
		// A failure here means that the connection is closed, and then the write below fails too.
		_ = l.conn.SetWriteDeadline(time.Now().Add(cancelledWriteTime))
	})
	defer stop()
	head := p.encode()
	parts := net.Buffers{head[:]}
	if _, encrypts := l.conn.(*tls.Conn); encrypts && len(header) <= readBufferBytes { // which makes a record of each part
		parts[0] = append(head[:], header...)
	} else if len(header) > 0 {
		parts = append(parts, header)
	}
	if len(payload) > 0 {
		parts = append(parts, payload)
	}
	n, err := parts.WriteTo(l.conn)
	l.sent.Add(n)
	if err != nil {
		return false, fmt.Errorf("%w: sending: %w", ErrUnreachable, joinClose(err, l.conn))
	}
	return false, nil
}

// readPrefix waits for the next frame, however long that takes.
func (l *link) readPrefix() (prefix, error) {
	if err := l.conn.SetReadDeadline(time.Time{}); err != nil {
		return prefix{}, err
	}
	var b [prefixBytes]byte
	if _, err := io.ReadFull(l.reader, b[:]); err != nil {
		return prefix{}, err
	}
	return decodePrefix(&b)
}

// readBody reads header and payload into buffers of the right lengths and checks them.
func (l *link) readBody(p prefix, header, payload []byte) error {
	if err := l.readPayload(header); err != nil {
		return err
	}
	if err := l.readPayload(payload); err != nil {
		return err
	}
	return p.checkBody(header, payload)
}

// awaitBody waits until the first part of a body is in the reader's buffer.
func (l *link) awaitBody(p prefix) error {
	if err := l.progress(); err != nil {
		return err
	}
	_, err := l.reader.Peek(min(int(p.header)+int(p.payload), readBufferBytes))
	return err
}

// progress gives the peer stall from now on.
func (l *link) progress() error { return l.conn.SetReadDeadline(time.Now().Add(l.stall)) }

// readPayload is io.ReadFull that is not woken for every packet of a long body.
func (l *link) readPayload(payload []byte) error {
	for due := len(payload); len(payload) > 0; {
		if len(payload) <= due {
			if err := l.progress(); err != nil {
				return err
			}
			due = len(payload) - wakeBytes
		}
		l.wake.at(min(len(payload)-l.reader.Buffered(), wakeBytes))
		n, err := l.reader.Read(payload)
		payload = payload[n:]
		if err != nil && len(payload) > 0 { // an end that comes with the last bytes is met by the next read
			return err
		}
	}
	l.wake.at(1)
	return nil
}

// skipBody reads a body that nobody wants.
func (l *link) skipBody(p prefix) error { return l.discard(int64(p.header) + int64(p.payload)) }

// discard reads bytes of a body that nobody wants.
func (l *link) discard(bytes int64) error {
	for bytes > 0 {
		if err := l.progress(); err != nil {
			return err
		}
		n, err := io.CopyN(io.Discard, l.reader, min(bytes, wakeBytes))
		if bytes -= n; err != nil {
			return err
		}
	}
	return nil
}
