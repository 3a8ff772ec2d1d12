package resp

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"hash/maphash"
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
	Store          *values.Store
	TLS            *tls.Config  // nil: connections are not encrypted
	Logger         *slog.Logger // default slog.Default
	MaxConnections int          // default 10,000
	MemoryBytes    int64        // of large commands, all together, that are read or carried out; default 128 MiB
	Release        string       // of the program; empty: it is not said
	Metrics        prometheus.Registerer
}

// Server serves clients of Redis. Create it with New.
type Server struct {
	store   *values.Store
	release string
	run     string // a random name of this start
	began   time.Time
	log     *slog.Logger
	limits  limits
	metrics *metrics
	cursors cursors
	workers *workers
	seed    maphash.Seed
	entries map[string]*entry

	clients  atomic.Int64 // that ever were
	commands atomic.Int64

	connections *serve.Clients
}

// New returns a server of the values of a gateway.
func New(options Options) *Server {
	most := options.Store.MaxBytes()
	logger := options.Logger
	if logger == nil {
		logger = slog.Default()
	}
	s := &Server{
		store: options.Store, release: options.Release, log: logger, began: time.Now(), seed: maphash.MakeSeed(),
		entries: newEntries(), workers: newWorkers(),
		metrics: newMetrics(options.Metrics),
	}
	s.connections = &serve.Clients{
		Name: "Redis", TLS: options.TLS, Most: cmp.Or(options.MaxConnections, 10_000), Refusal: "-" + string(errClients) + "\r\n",
		Metrics: s.metrics.connections, Log: logger, Begin: func(conn net.Conn) serve.Client { return newConnection(s, conn) },
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
	err := s.connections.Serve(ctx, listener)
	s.workers.end()
	return err
}
