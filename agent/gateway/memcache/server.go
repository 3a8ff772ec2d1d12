package memcache

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/budget"
	"github.com/restripe/restripe/agent/gateway/values"
)

// Options configure a Server. Store is required.
type Options struct {
	Store *values.Store

	// TLS has clients come over TLS. Who shows a certificate that names a user is that user. nil: none.
	TLS *tls.Config

	// Session is whom everything is done as that comes from clients without a certificate. nil: where the gateway asks who its clients
	// are, each says so by memcached's authentication.
	Session *values.Session

	Logger         *slog.Logger          // default slog.Default
	Metrics        prometheus.Registerer // nil: metrics are shown nowhere
	MaxConnections int                   // default 10,000
	MaxItemBytes   int64                 // how large a value may be; default, and at most, what the store allows

	// AllowFlush has flush_all delete all objects that the client may list and delete. Without, it is refused.
	AllowFlush bool

	// MemoryBytes bounds the values that are on their way in, and those that were read and wait for the replies before theirs, each.
	// Default 64 MiB.
	MemoryBytes int64
}

// Server serves values to clients of memcached. It is safe for concurrent use.
type Server struct {
	options  Options
	log      *slog.Logger
	metrics  *metrics
	stats    stats
	incoming budget.Budget // values that clients send
	waiting  budget.Budget // values that were read before their turn

	verbosity atomic.Uint32 // from 1 on, commands that clients are refused are logged

	mutex sync.Mutex
	conns map[*connection]struct{}
}

// The patience of the server.
const (
	drainPatience     = 5 * time.Second  // commands under way, when it ends
	handshakePatience = 10 * time.Second // of TLS
	loginPatience     = time.Minute      // until a client has said who it is
	progressPatience  = time.Minute      // with a client that does not go on sending a command, or taking replies
	memoryPatience    = 10 * time.Second // of a value that comes, for memory
)

// New returns a server.
func New(options Options) (*Server, error) {
	if options.Store == nil {
		return nil, errors.New("serving clients of memcached takes a store of values")
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	if options.MaxConnections == 0 {
		options.MaxConnections = 10_000
	}
	if most := options.Store.MaxBytes(); options.MaxItemBytes == 0 || options.MaxItemBytes > most {
		options.MaxItemBytes = most
	}
	if options.MemoryBytes == 0 {
		options.MemoryBytes = 64 << 20
	}
	s := &Server{
		options: options, log: options.Logger, conns: map[*connection]struct{}{},
		incoming: budget.New(options.MemoryBytes), waiting: budget.New(options.MemoryBytes),
	}
	s.stats.began = time.Now()
	metrics, err := newMetrics(s, options.Metrics)
	if err != nil {
		return nil, fmt.Errorf("serving clients of memcached: %w", err)
	}
	s.metrics = metrics
	return s, nil
}

// Serve serves whoever connects until the context ends, then closes what is idle, gives commands under way a few seconds, and returns.
// It closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var open sync.WaitGroup
	closing := context.AfterFunc(ctx, func() { _ = listener.Close() }) // its error comes from Accept
	err := s.accept(ctx, working, listener, &open)
	if closing() {
		err = errors.Join(err, listener.Close())
	}
	s.end()
	ended := make(chan struct{})
	go func() {
		open.Wait()
		close(ended)
	}()
	patience := time.NewTimer(drainPatience)
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C:
		stop()
		s.cut()
		<-ended
	}
	return err
}

// accept starts a goroutine for each connection, until the context ends.
func (s *Server) accept(ctx, working context.Context, listener net.Listener, open *sync.WaitGroup) error {
	for wait := time.Duration(0); ; {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = conn.Close() // nobody is told of an error: it was never served
			}
			return nil
		}
		var temporary interface{ Temporary() bool }
		if errors.As(err, &temporary) && temporary.Temporary() { // there are no descriptors left
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			s.log.Warn("a client could not be taken in", "cause", err)
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("accepting clients of memcached: %w", err)
		}
		wait = 0
		open.Go(func() { s.serve(ctx, working, conn) })
	}
}

// serve serves one connection until it ends.
func (s *Server) serve(ctx, working context.Context, socket net.Conn) {
	c := newConnection(s, socket)
	defer c.close()
	if !s.enter(c) {
		s.metrics.refused.Inc()
		if s.options.TLS == nil { // over TLS the client would have to be waited for
			c.refuse("ERROR Too many open connections\r\n")
		}
		return
	}
	defer s.leave(c)
	if ctx.Err() != nil { // it came as the server ended
		return
	}
	c.serve(working)
}

// enter counts a connection, and reports whether there may be one more.
func (s *Server) enter(c *connection) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.conns) >= s.options.MaxConnections {
		return false
	}
	s.conns[c] = struct{}{}
	s.stats.connections.Add(1)
	return true
}

func (s *Server) leave(c *connection) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.conns, c)
}

// connections is how many there are.
func (s *Server) connections() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.conns)
}

// end has connections take no more commands.
func (s *Server) end() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for c := range s.conns {
		c.in.stop()
	}
}

// cut closes connections whatever they do.
func (s *Server) cut() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for c := range s.conns {
		c.close()
	}
}
