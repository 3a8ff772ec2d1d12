package memcached

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// connection is one TCP connection, used by one call at a time. Requests are written into a buffer, sent together, and
// answered in order. After an error it is in an unknown state and must be closed.
type connection struct {
	socket  net.Conn
	reader  *bufio.Reader
	writer  *bufio.Writer
	timeout time.Duration

	pending int   // requests whose answers are not read yet
	err     error // the first failure

	mu        sync.Mutex
	cancelled bool // deadlines are no longer moved
}

const (
	readBufferBytes  = 16 << 10 // also the longest line
	writeBufferBytes = 64 << 10
)

// dial connects to address.
func dial(ctx context.Context, address string, timeout time.Duration) (*connection, error) {
	dialer := net.Dialer{Timeout: timeout}
	socket, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &connection{
		socket:  socket,
		reader:  bufio.NewReaderSize(socket, readBufferBytes),
		writer:  bufio.NewWriterSize(socket, writeBufferBytes),
		timeout: timeout,
	}, nil
}

// guard makes the end of ctx interrupt the connection, until the returned function is called.
func (c *connection) guard(ctx context.Context) (release func()) {
	c.mu.Lock()
	c.cancelled = false
	c.mu.Unlock()
	finished := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(finished)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.cancelled = true
		_ = c.socket.SetDeadline(time.Unix(1, 0)) // fails only on a socket that is closed already
	})
	return func() {
		if !stop() {
			<-finished
			c.harm(context.Cause(ctx))
		}
	}
}

// extend gives the server another timeout to answer.
func (c *connection) extend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.cancelled {
		if err := c.socket.SetDeadline(time.Now().Add(c.timeout)); err != nil {
			c.harm(err)
		}
	}
}

// fail keeps the first error and returns it.
func (c *connection) fail(err error) error {
	c.harm(err)
	return c.err
}

// harm is fail where nobody waits for the error now: the next step of the call meets it.
func (c *connection) harm(err error) {
	if c.err == nil {
		c.err = err
	}
}

// reusable reports whether the connection is between two calls and unharmed.
func (c *connection) reusable() bool {
	return c.err == nil && c.pending == 0 && c.writer.Buffered() == 0 && c.reader.Buffered() == 0
}

// alive reports whether the server still holds its end of an idle connection.
func (c *connection) alive() bool {
	raw, err := c.socket.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	var peekErr error
	err = raw.Read(func(descriptor uintptr) bool {
		_, _, peekErr = unix.Recvfrom(int(descriptor), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return true
	})
	return err == nil && errors.Is(peekErr, unix.EAGAIN)
}

// request puts a request without data into the buffer; one answer is expected.
func (c *connection) request(words ...string) {
	c.pending++
	for i, word := range words {
		if i > 0 {
			c.write([]byte{' '})
		}
		c.write([]byte(word))
	}
	c.write([]byte("\r\n"))
}

// requestWithData is request with a value after the line.
func (c *connection) requestWithData(data []byte, words ...string) {
	c.request(words...)
	c.write(data)
	c.write([]byte("\r\n"))
}

// write puts bytes into the buffer, and large ones on the wire.
func (c *connection) write(data []byte) {
	if c.err != nil {
		return
	}
	if len(data) > c.writer.Available() {
		c.extend()
	}
	if _, err := c.writer.Write(data); err != nil {
		c.harm(fmt.Errorf("sending: %w", err))
	}
}

// flush sends what is in the buffer.
func (c *connection) flush() error {
	if c.err != nil {
		return c.err
	}
	c.extend()
	if err := c.writer.Flush(); err != nil {
		return c.fail(fmt.Errorf("sending: %w", err))
	}
	return c.err
}

// readLine returns the next line without its end; it is valid until the next read.
func (c *connection) readLine() ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	c.extend()
	line, err := c.reader.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, c.fail(fmt.Errorf("line of over %d bytes: %w", readBufferBytes, errProtocol))
	}
	if err != nil {
		return nil, c.fail(fmt.Errorf("waiting for an answer: %w", err))
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'}), nil
}

// readReply reads the next answer, without the data that follows a VA.
func (c *connection) readReply() (reply, error) {
	line, err := c.readLine()
	if err != nil {
		return reply{}, err
	}
	r, err := parseReply(line)
	if err != nil {
		return reply{}, c.fail(err)
	}
	c.pending--
	if r.status == statusError || r.status == statusClientError {
		return r, c.fail(refusal(r)) // whether the server takes the rest of the request for a new one is unknown
	}
	return r, nil
}

// readData reads the size bytes that follow a VA: p is filled from offset on. It returns how much of p there was.
func (c *connection) readData(size int64, p []byte, offset int64) (int, error) {
	wanted := p[:max(0, min(int64(len(p)), size-offset))]
	skipped := size
	if len(wanted) > 0 {
		skipped = offset
	}
	if err := c.discard(skipped); err != nil {
		return 0, err
	}
	for rest := wanted; len(rest) > 0; {
		c.extend()
		count, err := c.reader.Read(rest)
		if err != nil {
			return 0, c.fail(fmt.Errorf("receiving a value: %w", err))
		}
		rest = rest[count:]
	}
	if len(wanted) > 0 {
		if err := c.discard(size - offset - int64(len(wanted))); err != nil {
			return 0, err
		}
	}
	var end [2]byte
	if _, err := io.ReadFull(c.reader, end[:]); err != nil {
		return 0, c.fail(fmt.Errorf("receiving a value: %w", err))
	}
	if string(end[:]) != "\r\n" {
		return 0, c.fail(fmt.Errorf("value of %d bytes does not end where it should: %w", size, errProtocol))
	}
	return len(wanted), nil
}

// discard skips count bytes of a value.
func (c *connection) discard(count int64) error {
	for count > 0 {
		c.extend()
		skipped, err := c.reader.Discard(int(min(count, readBufferBytes)))
		count -= int64(skipped)
		if err != nil {
			return c.fail(fmt.Errorf("receiving a value: %w", err))
		}
	}
	return nil
}

// close ends the connection.
func (c *connection) close() error { return c.socket.Close() }

// abandon ends a connection that is of no use any more; that this may fail as well tells nobody anything.
func (c *connection) abandon() { _ = c.socket.Close() }
