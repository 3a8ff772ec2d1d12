package memcache

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/budget"
	"github.com/restripe/restripe/agent/gateway/values"
	"github.com/restripe/restripe/agent/serve"
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

	connections *serve.Clients
}

// The patience of the server.
const (
	loginPatience    = time.Minute      // until a client has said who it is
	progressPatience = time.Minute      // with a client that does not go on sending a command, or taking replies
	memoryPatience   = 10 * time.Second // of a value that comes, for memory
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
		options: options, log: options.Logger,
		incoming: budget.New(options.MemoryBytes), waiting: budget.New(options.MemoryBytes),
	}
	s.stats.began = time.Now()
	metrics, err := newMetrics(options.Metrics)
	if err != nil {
		return nil, fmt.Errorf("serving clients of memcached: %w", err)
	}
	s.metrics = metrics
	s.connections = &serve.Clients{
		Name: "memcached", TLS: options.TLS, Most: options.MaxConnections, Refusal: "ERROR Too many open connections\r\n",
		Metrics: metrics.connections, Log: s.log, Begin: func(conn net.Conn) serve.Client { return newConnection(s, conn) },
	}
	return s, nil
}

// Serve serves whoever connects until the context ends, then closes what is idle, gives commands under way a few seconds, and returns.
// It closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	return s.connections.Serve(ctx, listener)
}
