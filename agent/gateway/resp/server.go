package resp

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
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
	Store          *values.Store
	TLS            *tls.Config  // nil: connections are not encrypted
	Logger         *slog.Logger // default slog.Default
	MaxConnections int          // default 10,000
	MemoryBytes    int64        // of large commands, all together, that are read or carried out; default 128 MiB
	Release        string       // of the program; empty: it is not said
	Metrics        prometheus.Registerer
}

// drainPatience is how long commands under way may go on when the server ends.
const drainPatience = 5 * time.Second

// keepAlive is how often the machine of an idle client is asked whether it is still there.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 15 * time.Second, Count: 4}

// Server serves clients of Redis. Create it with New.
type Server struct {
	store   *values.Store
	tls     *tls.Config
	release string
	run     string // a random name of this start
	began   time.Time
	log     *slog.Logger
	limits  limits
	most    int
	metrics *metrics
	cursors cursors
	workers *workers
	seed    maphash.Seed
	entries map[string]*entry

	clients  atomic.Int64 // that ever were
	commands atomic.Int64

	mutex sync.Mutex
	open  map[*connection]struct{}
	idle  *sync.WaitGroup // connections
}

// New returns a server of the values of a gateway.
func New(options Options) *Server {
	most := options.Store.MaxBytes()
	logger := options.Logger
	if logger == nil {
		logger = slog.Default()
	}
	s := &Server{
		store: options.Store, tls: options.TLS, release: options.Release, log: logger, began: time.Now(), seed: maphash.MakeSeed(),
		entries: newEntries(), workers: newWorkers(),
		most: cmp.Or(options.MaxConnections, 10_000), metrics: newMetrics(options.Metrics), open: map[*connection]struct{}{},
		idle: &sync.WaitGroup{},
	}
	s.limits = limits{
		argument: most, command: max(4*most, 16<<20), memory: budget.New(max(cmp.Or(options.MemoryBytes, 128<<20), 4*most)),
	}
	var run [20]byte
	_, _ = rand.Read(run[:]) // which never fails
	s.run = hex.EncodeToString(run[:])
	return s
}

// Serve serves clients, once, until the context ends; commands under way then have a few seconds. It closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	closed := context.AfterFunc(ctx, func() { _ = listener.Close() }) // Accept says what came of it
	defer closed()
	err := s.accept(working, listener)
	s.drain(stop)
	s.workers.end()
	if ctx.Err() != nil && errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("serving clients of Redis at %s: %w", listener.Addr(), errors.Join(err, listener.Close()))
}

func (s *Server) accept(ctx context.Context, listener net.Listener) error {
	pause := time.Duration(0)
	for {
		conn, err := listener.Accept()
		var passing net.Error
		if errors.As(err, &passing) && passing.Timeout() || isTooManyFiles(err) {
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.log.Warn("no connection was accepted", "cause", err, "after", pause)
			if err := waitFor(ctx, pause); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		pause = 0
		s.take(ctx, conn)
	}
}

// take serves a connection on its own, or refuses it where there are too many.
func (s *Server) take(ctx context.Context, conn net.Conn) {
	if tcp, is := conn.(*net.TCPConn); is {
		_ = tcp.SetKeepAliveConfig(keepAlive) // without it, who is gone is met by the first write
	}
	if s.tls != nil {
		conn = tls.Server(conn, s.tls)
	}
	c := newConnection(s, conn)
	s.mutex.Lock()
	room := len(s.open) < s.most
	if room {
		s.open[c] = struct{}{}
		s.idle.Add(1)
	}
	s.mutex.Unlock()
	if !room {
		s.metrics.refused.Inc()
		go refuse(conn, s.tls != nil)
		return
	}
	s.metrics.connections.Inc()
	go func() {
		defer s.idle.Done()
		defer s.metrics.connections.Dec()
		c.serve(ctx)
		s.mutex.Lock()
		delete(s.open, c)
		s.mutex.Unlock()
	}()
}

// refuse tells a client that there are too many, as far as it can be told without a handshake.
func refuse(conn net.Conn, encrypted bool) {
	if !encrypted {
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))       // it is told
		_, _ = conn.Write([]byte("-" + string(errClients) + "\r\n")) // if it listens
	}
	_ = conn.Close() // and there is nobody to tell of a failure
}

// drain ends all connections, those in which nothing goes on at once.
func (s *Server) drain(stop context.CancelFunc) {
	each := func(end func(*connection)) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		for c := range s.open {
			end(c)
		}
	}
	each(func(c *connection) { c.reader.source.close() })
	ended := make(chan struct{})
	go func() {
		s.idle.Wait()
		close(ended)
	}()
	timer := time.NewTimer(drainPatience)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		stop()
		each(func(c *connection) { _ = c.conn.Close() }) // its goroutine learns of it
		<-ended
	}
}

func waitFor(ctx context.Context, while time.Duration) error {
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
