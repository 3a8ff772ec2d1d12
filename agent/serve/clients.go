package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"
)

// handshakePatience bounds the handshake of TLS.
const handshakePatience = 10 * time.Second

// keepAlive is how often the machine of an idle client is asked whether it is still there.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 15 * time.Second, Count: 4}

// Client is one connection of Clients.
type Client interface {
	// Serve carries out what the client asks, until one of the two ends; Clients close the connection then. state is what the
	// handshake of TLS came to; nil without TLS. The context ends when the server has waited for long enough.
	Serve(ctx context.Context, state *tls.ConnectionState)

	// Stop has Serve take in no more, and return once what was asked is answered. It does not wait.
	Stop()
}

// Clients are those of one server of a protocol other than HTTP. Fields are set before Serve, and not changed any more.
type Clients struct {
	Name    string      // of the protocol, for messages
	TLS     *tls.Config // nil: connections are not encrypted
	Most    int         // connections at a time
	Refusal string      // what one too many is sent, where it is not encrypted
	Metrics *ConnectionMetrics
	Log     *slog.Logger

	// Begin returns the client of a connection that was let in. It reads and writes nothing yet.
	Begin func(conn net.Conn) Client

	mutex sync.Mutex
	open  map[net.Conn]Client
	under sync.WaitGroup // connections
}

// Count is how many are connected.
func (c *Clients) Count() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return len(c.open)
}

// Serve serves whoever connects, once, until the context ends; then it ends what is idle at once, and gives what is under way a few
// seconds. It closes the listener.
func (c *Clients) Serve(ctx context.Context, listener net.Listener) error {
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	closing := context.AfterFunc(ctx, func() { _ = listener.Close() }) // Accept says what came of it
	err := c.accept(ctx, working, listener)
	if closing() {
		err = errors.Join(err, listener.Close())
	}
	c.drain(stop)
	if ctx.Err() != nil && errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("serving clients of %s at %s: %w", c.Name, listener.Addr(), err)
}

// accept takes connections until the listener is closed.
func (c *Clients) accept(ctx, working context.Context, listener net.Listener) error {
	pause := time.Duration(0)
	for {
		conn, err := listener.Accept()
		if err == nil {
			pause = 0
			c.take(working, conn)
			continue
		}
		var passing net.Error
		if !isTooManyFiles(err) && (!errors.As(err, &passing) || !passing.Timeout()) {
			return err
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		c.Log.Warn("no connection was accepted", "cause", err, "after", pause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done(): // the listener is closed
			timer.Stop()
		}
	}
}

// isTooManyFiles reports whether a connection was not accepted because the process, or the machine, has too many files open.
func isTooManyFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// take serves a connection on its own, or refuses it where there are too many.
func (c *Clients) take(ctx context.Context, conn net.Conn) {
	if tcp, is := conn.(*net.TCPConn); is {
		_ = tcp.SetKeepAliveConfig(keepAlive) // without it, who is gone is met by the first write
	}
	if c.TLS != nil {
		conn = tls.Server(conn, c.TLS)
	}
	client := c.enter(conn)
	if client == nil {
		c.Metrics.Refused.Inc()
		go c.refuse(conn)
		return
	}
	c.Metrics.Open.Inc()
	c.under.Go(func() {
		defer c.leave(conn)
		state, err := handshake(ctx, conn)
		if err != nil {
			c.Log.Info("a client was not let in", "protocol", c.Name, "from", conn.RemoteAddr().String(), "cause", err)
			return
		}
		client.Serve(ctx, state)
	})
}

// enter begins with a connection, where there may be one more.
func (c *Clients) enter(conn net.Conn) Client {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.open) >= c.Most {
		return nil
	}
	if c.open == nil {
		c.open = map[net.Conn]Client{}
	}
	client := c.Begin(conn)
	c.open[conn] = client
	return client
}

func (c *Clients) leave(conn net.Conn) {
	_ = conn.Close() // the client learns that it is over, and there is nobody to tell of a failure
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.open, conn)
	c.Metrics.Open.Dec()
}

// refuse tells a client that there are too many, as far as it can be told without a handshake.
func (c *Clients) refuse(conn net.Conn) {
	if c.TLS == nil {
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // it is told
		_, _ = conn.Write([]byte(c.Refusal))                   // if it listens
	}
	_ = conn.Close() // and there is nobody to tell of a failure
}

func handshake(ctx context.Context, conn net.Conn) (*tls.ConnectionState, error) {
	secure, is := conn.(*tls.Conn)
	if !is {
		return nil, nil
	}
	patient, done := context.WithTimeout(ctx, handshakePatience)
	defer done()
	if err := secure.HandshakeContext(patient); err != nil {
		return nil, err
	}
	state := secure.ConnectionState()
	return &state, nil
}

// drain ends all connections, those in which nothing goes on at once.
func (c *Clients) drain(stop context.CancelFunc) {
	each := func(end func(net.Conn, Client)) {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		for conn, client := range c.open {
			end(conn, client)
		}
	}
	each(func(_ net.Conn, client Client) { client.Stop() })
	ended := make(chan struct{})
	go func() {
		c.under.Wait()
		close(ended)
	}()
	timer := time.NewTimer(drainPatience)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		stop()
		each(func(conn net.Conn, _ Client) { _ = conn.Close() }) // its goroutine learns of it
		<-ended
	}
}
