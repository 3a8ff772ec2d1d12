package direct

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/blockstore"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/open"
	"github.com/restripe/restripe/agent/wire"
)

const (
	headersBytes = 32 << 20
	// wholeUnit is how large a unit may be that is read whole for any part of it: its checksum is that of all of it. Of larger ones half
	// has to be wanted, as the agent sends no more than what is.
	wholeUnit = 1 << 10
	// openPatience is how long a store may take to be opened, and failedPause how long it is left alone after it failed: twice as long
	// each time that it cannot be opened, up to failedMost.
	openPatience = 5 * time.Second
	failedPause  = 5 * time.Second
	failedMost   = 10 * time.Minute
)

// Stores are the stores of nodes that the gateway reaches by itself. They are safe for concurrent use.
type Stores struct {
	headers *blockstore.Headers
	log     *slog.Logger
	reads   *prometheus.CounterVec
	served  prometheus.Counter
	bytes   prometheus.Counter
	batches prometheus.Counter

	mutex  sync.RWMutex
	ways   map[block.NodeID]*way
	work   sync.WaitGroup
	closed bool
}

// way is how one store is reached. All of it but address is under the mutex of Stores.
type way struct {
	address string
	store   store.Store // nil: it is not open
	opening bool
	paused  time.Time     // until when it is left alone
	pause   time.Duration // for how long it was last, since it was open

	lane lane // of its own mutex
}

// New returns no stores yet.
func New(log *slog.Logger) *Stores {
	s := &Stores{headers: blockstore.NewHeaders(headersBytes), log: log, ways: map[block.NodeID]*way{}}
	s.reads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "restripe_gateway_direct_reads_total",
		Help: "Reads of parts of blocks that the gateway tried straight from a node's store, by what came of it: served, missed (the block " +
			"is not there, or is damaged), failed. All but those served were asked of the agent.",
	}, []string{"outcome"})
	s.served = s.reads.WithLabelValues("served")
	s.bytes = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "restripe_gateway_direct_read_bytes_total",
		Help: "Bytes of units of blocks that the gateway has read straight from nodes' stores.",
	})
	s.batches = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "restripe_gateway_direct_batches_total",
		Help: "Batches of reads that were sent straight to a node's store: reads of small objects that come together, from one client or from " +
			"several, go in one.",
	})
	return s
}

// Describe describes the counters.
func (s *Stores) Describe(out chan<- *prometheus.Desc) {
	s.reads.Describe(out)
	s.bytes.Describe(out)
	s.batches.Describe(out)
}

// Collect shows the counters.
func (s *Stores) Collect(out chan<- prometheus.Metric) {
	s.reads.Collect(out)
	s.bytes.Collect(out)
	s.batches.Collect(out)
}

// Learn says at which address the store of a node may be read; empty: it may not.
func (s *Stores) Learn(node block.NodeID, address string) {
	s.mutex.RLock()
	known := s.ways[node]
	s.mutex.RUnlock()
	if known == nil && address == "" || known != nil && known.address == address {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if known = s.ways[node]; known != nil && known.store != nil {
		s.release(known.store)
	}
	delete(s.ways, node)
	if address != "" && !s.closed {
		s.ways[node] = &way{address: address}
	}
}

// release closes a store in the background. The caller holds the mutex.
func (s *Stores) release(opened store.Store) {
	s.work.Go(func() {
		if err := opened.Close(); err != nil {
			s.log.Debug("closing a node's store", "cause", err)
		}
	})
}

// Close closes all stores.
func (s *Stores) Close() {
	s.mutex.Lock()
	for _, known := range s.ways {
		if known.store != nil {
			s.release(known.store)
		}
	}
	s.ways, s.closed = nil, true
	s.mutex.Unlock()
	s.work.Wait()
}

// of returns the store of a node, nil where it cannot be used now.
func (s *Stores) of(node block.NodeID) (store.Store, *way) {
	s.mutex.RLock()
	known := s.ways[node]
	var opened store.Store
	idle := false
	if known != nil {
		opened = known.store
		idle = !known.opening
		if !known.paused.IsZero() && time.Now().Before(known.paused) {
			opened, idle = nil, false
		}
	}
	s.mutex.RUnlock()
	if opened == nil && idle {
		s.open(node, known)
	}
	return opened, known
}

// open begins to open a store.
func (s *Stores) open(node block.NodeID, known *way) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.closed || s.ways[node] != known || known.opening || known.store != nil {
		return
	}
	known.opening = true
	s.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), openPatience)
		defer cancel()
		opened, err := open.Open(ctx, known.address)
		s.mutex.Lock()
		defer s.mutex.Unlock()
		known.opening = false
		switch {
		case err != nil:
			known.pause = min(max(2*known.pause, failedPause), failedMost)
			known.paused = time.Now().Add(known.pause)
			s.log.Info("a node's store cannot be read directly", "node", node, "store", open.Redact(known.address), "cause", err,
				"after", known.pause)
		case s.ways[node] != known:
			s.release(opened)
		default:
			known.store, known.pause = opened, 0
			s.log.Info("a node's store is read directly", "node", node, "store", open.Redact(known.address))
		}
	})
}

// Read returns length bytes of a unit of a block from an offset on, without zeros at their end, and whether it could. The caller owns
// them.
func (s *Stores) Read(ctx context.Context, address block.Address, unit, offset, length int) (data []byte, done bool) {
	return s.from(ctx, address, func(from store.Store) ([]byte, error) {
		return s.read(ctx, from, address, unit, offset, length)
	})
}

// ReadKnown returns length bytes of a block from an offset in a unit on, which may go on in the units after it, and whether it could:
// those that have this CRC-32C, and no others. The caller owns them.
func (s *Stores) ReadKnown(ctx context.Context, address block.Address, unit, offset, length int, checksum uint32) (data []byte, done bool) {
	return s.from(ctx, address, func(from store.Store) ([]byte, error) {
		return s.readKnown(ctx, from, address, unit, offset, length, checksum)
	})
}

// from has bytes of a block read from the store of its node.
func (s *Stores) from(ctx context.Context, address block.Address, read func(store.Store) ([]byte, error)) (data []byte, done bool) {
	from, known := s.of(address.Node)
	if from == nil {
		return nil, false
	}
	data, err := read(from)
	s.note(ctx, known, address, err)
	return data, err == nil
}

// note counts a read by what came of it, and has a store that failed left alone for a while.
func (s *Stores) note(ctx context.Context, known *way, address block.Address, err error) {
	switch {
	case err == nil:
		s.served.Inc()
	case ctx.Err() != nil, errors.Is(err, errElsewhere):
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrCorrupt), errors.Is(err, wire.ErrUnsupported):
		s.headers.Drop(address)
		s.reads.WithLabelValues("missed").Inc()
	default:
		s.reads.WithLabelValues("failed").Inc()
		now := time.Now()
		s.mutex.Lock()
		isNews := !now.Before(known.paused)
		known.paused = now.Add(failedPause)
		s.mutex.Unlock()
		if isNews {
			s.log.Info("reading a node's store directly", "node", address.Node, "cause", err)
		}
	}
}

// errElsewhere says that a read is one for the agent.
var errElsewhere = errors.New("is read through the agent")

func (s *Stores) read(ctx context.Context, from store.Store, address block.Address, unit, offset, length int) ([]byte, error) {
	found, err := s.headers.LookUp(ctx, from, address)
	if err != nil {
		return nil, err
	}
	h := found.Header
	if unit < h.FirstUnit || unit >= h.FirstUnit+h.Units || offset < 0 || length < 0 || offset > h.UnitBytes-length {
		return nil, errElsewhere
	}
	stored := found.Length(unit)
	switch {
	case stored <= offset:
		return wire.Buffer(0), nil
	case stored > max(wholeUnit, 2*length):
		return nil, errElsewhere
	}
	whole := wire.Buffer(stored)
	if err = found.ReadExactly(ctx, from, whole, found.Offset(unit)); err == nil {
		err = found.CheckUnit(unit, whole)
	}
	if err != nil {
		wire.Recycle(whole)
		return nil, err
	}
	s.bytes.Add(float64(stored))
	if offset == 0 {
		return whole[:min(stored, length)], nil
	}
	data := wire.Buffer(min(stored-offset, length))
	copy(data, whole[offset:])
	wire.Recycle(whole)
	return data, nil
}

func (s *Stores) readKnown(
	ctx context.Context, from store.Store, address block.Address, unit, offset, length int, checksum uint32,
) ([]byte, error) {
	found, err := s.headers.LookUp(ctx, from, address)
	if err != nil {
		return nil, err
	}
	stored, isOne := found.Run(unit, offset, length)
	if !isOne {
		return nil, errElsewhere
	}
	data := wire.Buffer(length)
	if err := found.ReadRun(ctx, from, data, unit, offset, stored, checksum); err != nil {
		wire.Recycle(data)
		return nil, err
	}
	s.bytes.Add(float64(stored))
	return data, nil
}
