package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/trace"
)

// ClientOptions bound a client's waiting. Zero fields take the defaults.
type ClientOptions struct {
	DialTimeout time.Duration // default 5 s
	// KeepAlive is how long a connection with calls on it may be silent before the client asks for a sign of life;
	// after four such times without any, the peer counts as dead. Default 5 s.
	KeepAlive time.Duration
	// Concurrent is the largest number of calls under way; others wait. Default 512.
	Concurrent int
	// Dial connects to the agent at an address. Default: TCP, within DialTimeout.
	Dial Dial
	// Traffic counts what the client's calls send and receive. Default: nobody is told.
	Traffic *Traffic
}

// Dial connects to the agent at address (host:port). It may be called by several goroutines.
type Dial func(ctx context.Context, address string) (net.Conn, error)

// Client calls one agent. It connects at the first call and again after a failure; calls share one connection, and
// answers come in any order. Safe for concurrent use.
type Client struct {
	address string
	options ClientOptions
	slots   chan struct{}
	dialing chan struct{} // holds one token while nobody dials

	mutex  sync.Mutex
	conn   *connection
	closed bool

	running        sync.WaitGroup // readers and keep-alives
	sent, received atomic.Int64
}

// NewClient returns a client for the agent at address (host:port). It does not connect yet.
func NewClient(address string) *Client { return NewClientWith(address, ClientOptions{}) }

// NewClientWith is NewClient with other bounds.
func NewClientWith(address string, options ClientOptions) *Client {
	if options.DialTimeout <= 0 {
		options.DialTimeout = 5 * time.Second
	}
	if options.KeepAlive <= 0 {
		options.KeepAlive = 5 * time.Second
	}
	if options.Concurrent <= 0 {
		options.Concurrent = 512
	}
	if options.Dial == nil {
		dialer := net.Dialer{Timeout: options.DialTimeout, KeepAlive: options.KeepAlive}
		options.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}
	}
	if options.Traffic == nil {
		options.Traffic = new(Traffic)
	}
	c := &Client{
		address: address, options: options,
		slots: make(chan struct{}, options.Concurrent), dialing: make(chan struct{}, 1),
	}
	c.dialing <- struct{}{}
	return c
}

// Address returns where the client calls.
func (c *Client) Address() string { return c.address }

// Counters returns the bytes sent and received so far, frames included.
func (c *Client) Counters() (sent, received int64) { return c.sent.Load(), c.received.Load() }

// Close ends the connection and with it the calls under way, and waits for the client's goroutines.
func (c *Client) Close() error {
	c.mutex.Lock()
	c.closed = true
	conn := c.conn
	c.mutex.Unlock()
	if conn != nil {
		conn.fail(ErrClosed)
	}
	c.running.Wait()
	return nil
}

// Call sends a request and waits for the answer. request is the operation's struct, reply points to the reply's or is
// nil. payload is sent as it is and may be reused once Call returned. The answer's payload belongs to the caller, who
// may Recycle it; it is nil where there is none.
//
// An error is the peer's (a sentinel of this package), ErrUnreachable, ErrClosed, or ctx's; with the last three the
// outcome is unknown. When ctx ends the peer is told so.
func (c *Client) Call(ctx context.Context, op Op, request any, payload []byte, reply any) (answered []byte, err error) {
	ctx, span := trace.BeginCall(ctx, op.String())
	defer func() { span.Int("restripe.bytes.received", int64(len(answered))).End(err) }()
	span.Text("server.address", c.address).Int("restripe.bytes.sent", int64(len(payload)))
	header, err := encode(request)
	header = withMark(header, trace.Mark(ctx))
	if err != nil {
		return nil, fmt.Errorf("calling %s at %s: %w", op, c.address, err)
	}
	answer, err := c.call(ctx, op, header, payload)
	if err != nil {
		return nil, fmt.Errorf("calling %s at %s: %w", op, c.address, err)
	}
	if reply != nil {
		if err := decoding.Unmarshal(answer.header, reply); err != nil {
			Recycle(answer.payload)
			return nil, fmt.Errorf("calling %s at %s: %w: reading the answer: %w", op, c.address, ErrInternal, err)
		}
	}
	return answer.payload, nil
}

func (c *Client) call(ctx context.Context, op Op, header, payload []byte) (answer, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	conn, err := c.connect(ctx)
	if err != nil {
		return answer{}, err
	}
	stream, waiting, err := conn.open(op)
	if err != nil {
		return answer{}, err
	}
	head, err := newPrefix(kindRequest, op, stream, header, payload)
	if err != nil {
		conn.drop(stream)
		return answer{}, err
	}
	if notSent, err := conn.link.write(ctx, head, header, payload); err != nil {
		conn.drop(stream)
		if !notSent {
			conn.fail(err)
		}
		return answer{}, whose(ctx, err)
	}
	c.options.Traffic.asked(head)
	select {
	case got := <-waiting:
		return got, got.err
	case <-ctx.Done():
		if conn.drop(stream) {
			conn.sendCancel(stream)
		} else if late := <-waiting; late.err == nil { // the answer came at the same moment
			return late, nil
		}
		return answer{}, ctx.Err()
	}
}

// whose prefers the caller's own end of patience over the failure it caused.
func whose(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// connect returns the present connection or makes one. One caller dials, the others wait for it.
func (c *Client) connect(ctx context.Context) (*connection, error) {
	if conn, err := c.present(); conn != nil || err != nil {
		return conn, err
	}
	select {
	case <-c.dialing:
		defer func() { c.dialing <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if conn, err := c.present(); conn != nil || err != nil {
		return conn, err
	}
	raw, err := c.options.Dial(ctx, c.address)
	if err != nil {
		return nil, whose(ctx, fmt.Errorf("%w: %w", ErrUnreachable, err))
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed {
		return nil, joinClose(ErrClosed, raw)
	}
	c.conn = newConnection(c, raw)
	return c.conn, nil
}

func (c *Client) present() (*connection, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	return c.conn, nil
}

// forget makes the next call dial again.
func (c *Client) forget(conn *connection) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.conn == conn {
		c.conn = nil
	}
}

// joinClose closes conn because of err and returns err, with the failure to close if there is one that matters.
func joinClose(err error, conn net.Conn) error {
	if closing := conn.Close(); closing != nil && !errors.Is(closing, net.ErrClosed) {
		return errors.Join(err, closing)
	}
	return err
}
