package wire

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// connection is the client's side of one TCP connection, from dialling to its first failure.
type connection struct {
	client *Client
	link   *link

	mutex   sync.Mutex
	next    uint64                 // number of the last call
	pending map[uint64]chan answer // each of capacity 1, sent to once
	broken  error
	cancels []uint64 // streams whose cancel is still to be sent
	given   bool     // a caller gave up, and nothing has come in since

	cancelling chan struct{} // of capacity 1: there are cancels to send
	gone       chan struct{} // closed with the first failure
}

type answer struct {
	header  []byte
	payload []byte
	err     error
}

// newConnection starts reading; the caller holds client.mutex and the client is not closed.
func newConnection(client *Client, raw net.Conn) *connection {
	c := &connection{
		client: client, link: newLink(raw, &client.sent, &client.received),
		pending: map[uint64]chan answer{}, cancelling: make(chan struct{}, 1), gone: make(chan struct{}),
	}
	client.running.Add(2)
	go func() {
		defer client.running.Done()
		c.fail(fmt.Errorf("%w: receiving: %w", ErrUnreachable, c.read()))
	}()
	go func() {
		defer client.running.Done()
		c.keepAlive(client.options.KeepAlive)
	}()
	return c
}

// open registers a new call.
func (c *connection) open(op Op) (stream uint64, _ <-chan answer, _ error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.broken != nil {
		return 0, nil, c.broken
	}
	c.next++
	waiting := make(chan answer, 1)
	stream = streamOf(c.next, op)
	c.pending[stream] = waiting
	return stream, waiting, nil
}

// drop forgets a call; false means that its answer has been delivered, or is about to be.
func (c *connection) drop(stream uint64) bool {
	_, found := c.take(stream)
	return found
}

func (c *connection) take(stream uint64) (chan answer, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	waiting, found := c.pending[stream]
	delete(c.pending, stream)
	return waiting, found
}

// fail ends the connection; every pending call gets err. Only the first call has an effect.
func (c *connection) fail(err error) {
	c.client.forget(c)
	c.mutex.Lock()
	if c.broken != nil {
		c.mutex.Unlock()
		return
	}
	c.broken = joinClose(err, c.link.conn)
	pending := c.pending
	c.pending = nil
	close(c.gone)
	err = c.broken
	c.mutex.Unlock()
	for _, waiting := range pending {
		waiting <- answer{err: err}
	}
}

// read hands out answers until the connection fails.
func (c *connection) read() error {
	for {
		head, err := c.link.readPrefix()
		if err != nil {
			return err
		}
		switch head.kind {
		case kindPong:
		case kindReply, kindError:
			if err := c.readAnswer(head); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: kind %d from a server", errFrame, head.kind)
		}
	}
}

func (c *connection) readAnswer(head prefix) error {
	c.mutex.Lock()
	_, wanted := c.pending[head.stream]
	c.mutex.Unlock()
	if !wanted {
		err := c.link.skipBody(head)
		if err == nil {
			c.client.options.Traffic.answered(head)
		}
		return err
	}
	got := answer{header: make([]byte, head.header)}
	if head.payload > 0 {
		got.payload = buffers.Get(int(head.payload))
	}
	if err := c.link.readBody(head, got.header, got.payload); err != nil {
		Recycle(got.payload)
		return err
	}
	c.client.options.Traffic.answered(head) // before its caller looks
	if head.kind == kindError {
		var failure errorHeader
		if err := Decode(got.header, &failure); err != nil {
			return err
		}
		got.err = decodeError(failure)
	}
	if waiting, found := c.take(head.stream); found {
		waiting <- got
	} else {
		Recycle(got.payload)
	}
	return nil
}

// sendCancel tells the peer that nobody waits for stream any more. Where that cannot be said the connection is broken
// anyway, which says the same.
func (c *connection) sendCancel(stream uint64) {
	c.mutex.Lock()
	c.cancels = append(c.cancels, stream)
	c.given = true
	c.mutex.Unlock()
	select {
	case c.cancelling <- struct{}{}:
	default: // the sender has been woken already
	}
}

func (c *connection) takeCancels() []uint64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	streams := c.cancels
	c.cancels = nil
	return streams
}

// control sends a frame without a body, in bounded time, or breaks the connection.
func (c *connection) control(kind frameKind, stream uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*c.client.options.KeepAlive)
	defer cancel()
	head := prefix{kind: kind, stream: stream}
	if _, err := c.link.write(ctx, head, nil, nil); err != nil {
		c.fail(fmt.Errorf("%w: %w", ErrUnreachable, err))
	}
}

// keepAlive sends cancels and pings, and breaks the connection when nothing has come in for four periods although calls
// wait on it, or did until their callers gave up: calls that are always given up sooner must not keep a dead peer alive.
func (c *connection) keepAlive(period time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	seen, silent := c.client.received.Load(), 0
	for {
		select {
		case <-c.gone:
			return
		case <-c.cancelling:
			for _, stream := range c.takeCancels() {
				c.control(kindCancel, stream)
			}
			continue
		case <-ticker.C:
		}
		now := c.client.received.Load()
		c.mutex.Lock()
		c.given = c.given && now == seen
		owed := len(c.pending) > 0 || c.given
		c.mutex.Unlock()
		if now != seen || !owed {
			seen, silent = now, 0
			continue
		}
		if silent++; silent > 4 {
			c.fail(fmt.Errorf("%w: no sign of life for %s", ErrUnreachable, time.Duration(silent)*period))
			return
		}
		c.control(kindPing, 0)
	}
}
