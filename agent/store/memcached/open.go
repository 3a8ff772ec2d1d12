package memcached

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/store"
)

// Options change how a server is used. The zero Options are the defaults.
type Options struct {
	Connections int           // at most this many at a time; default 8
	PartBytes   int64         // size of a part; default 64 KiB, or what the server's item size limit allows if that is less
	Timeout     time.Duration // how long the server may be silent in the middle of a call before it counts as down; default 10 s
}

const (
	defaultConnections = 8
	defaultTimeout     = 10 * time.Second

	// defaultPartBytes trades large reads against small ranges, since memcached yields an item whole or not at all: a
	// range of 4 KiB costs half of what it costs with parts of 256 KiB. It also fits memcached's size classes: of 128
	// values of 1 MiB, 119 fit into 128 MiB, against 95 with parts of 128 or 256 KiB (memcached 1.6.18).
	defaultPartBytes = 64 << 10

	// valueLimit is the size of the largest value.
	valueLimit = 1 << 30

	// itemOverheadBytes is more than what memcached adds to the bytes of an item: its header, key and line end.
	itemOverheadBytes = 512

	// partsPerBatch is how many requests are under way before their answers are read.
	partsPerBatch = 32

	// abandonedPartSeconds is how long the parts of an interrupted creation live, and so the longest creation.
	abandonedPartSeconds = 3600
	// deletedPartSeconds is how long the parts of an interrupted deletion live.
	deletedPartSeconds = 60
)

// Store is a store.Store and store.Lister on one memcached server. Use Open.
type Store struct {
	address   string
	partBytes int64        // wanted
	itemBytes atomic.Int64 // the server's limit, as last seen
	unnamed   atomic.Int64 // parts that no value named, deleted by listings
	pool      *pool
	pass      store.Pass
}

var (
	_ store.Store      = (*Store)(nil)
	_ store.Lister     = (*Store)(nil)
	_ store.ManyReader = (*Store)(nil)
)

// Open uses the memcached server at address, host:port. The server must answer: errors wrap store.ErrDown if it does not.
func Open(ctx context.Context, address string, options Options) (*Store, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("opening memcached at %q: %w; write host:port, for example 127.0.0.1:11211", address, err)
	}
	if options.Connections <= 0 {
		options.Connections = defaultConnections
	}
	if options.PartBytes <= 0 {
		options.PartBytes = defaultPartBytes
	}
	if options.Timeout <= 0 {
		options.Timeout = defaultTimeout
	}
	s := &Store{
		address:   address,
		partBytes: options.PartBytes,
		pool:      newPool(address, options.Connections, options.Timeout),
	}
	s.pass.All, s.pass.There = s.keys, s.there
	if _, err := s.settings(ctx); err != nil {
		return nil, fmt.Errorf("opening: %w", err)
	}
	return s, nil
}

// partSize returns the size of the parts of a new value, which is also that of the largest value in one item.
func (s *Store) partSize() int64 {
	return max(1, min(s.partBytes, s.itemBytes.Load()-itemOverheadBytes))
}

// Close ends the connections. The values stay as long as the server does.
func (s *Store) Close() error {
	s.pass.Forget()
	if err := s.pool.close(); err != nil {
		return fmt.Errorf("closing memcached at %s: %w", s.address, err)
	}
	return nil
}
