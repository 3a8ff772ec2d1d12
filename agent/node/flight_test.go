package node

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/blockstore"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/mem"
)

// slowStore holds reads up until it is told to go on, and counts them.
type slowStore struct {
	store.Store
	goOn  chan struct{}
	reads atomic.Int64
}

func (s *slowStore) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	s.reads.Add(1)
	select {
	case <-s.goOn:
		return s.Store.ReadAt(ctx, key, p, offset)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// slowReader returns the reader of a node that has one stored block of one unit.
func slowReader(t *testing.T) (*reader, *slowStore, stored, []byte) {
	t.Helper()
	payload := bytes.Repeat([]byte("unit"), 1000)
	header := &block.Header{
		Group: block.GroupID{Stamp: block.Stamp{Sequence: 1}}, Stamp: block.Stamp{Sequence: 2}, Node: "n1", Units: 1, UnitBytes: len(payload),
		Checksums: []uint32{kernel.Checksum(payload)}, Fingerprints: make([]block.Fingerprint, 1),
	}
	value, err := block.Encode(header, payload)
	if err != nil {
		t.Fatal(err)
	}
	s := &slowStore{Store: mem.New(0), goOn: make(chan struct{})}
	if err := s.Create(t.Context(), header.Address().Key(), value); err != nil {
		t.Fatal(err)
	}
	n, err := New(Options{ID: "n1", Store: s, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n.blocks.reader, s, blockstore.New(header, len(value)-len(payload)), payload
}

// awaitUsers waits until a flight has so many.
func (f *flights) awaitUsers(name unitName, users int) {
	for {
		f.mutex.Lock()
		now := 0
		if flight := f.units[name]; flight != nil {
			now = flight.users
		}
		f.mutex.Unlock()
		if now == users {
			return
		}
		runtime.Gosched()
	}
}

func TestParallelReadsOfAUnitShareOneReading(t *testing.T) {
	r, s, found, payload := slowReader(t)
	const readers = 50
	var workers sync.WaitGroup
	for range readers {
		workers.Go(func() {
			data, done, err := r.readShared(context.Background(), found, 0)
			if err != nil || !bytes.Equal(data, payload) {
				t.Errorf("%d bytes, %v", len(data), err)
				return
			}
			done()
		})
	}
	r.flights.awaitUsers(unitName{found.Header.Address(), 0}, readers)
	close(s.goOn)
	workers.Wait()
	if reads := s.reads.Load(); reads != 1 {
		t.Errorf("%d readings of the store for %d reads of one unit at a time", reads, readers)
	}
	if _, done, err := r.readShared(context.Background(), found, 0); err != nil {
		t.Error(err)
	} else {
		done()
	}
	if reads := s.reads.Load(); reads != 2 {
		t.Errorf("a later read did not look at the store again: %d readings", reads)
	}
}

func TestOneReaderGivingUpLeavesTheOthers(t *testing.T) {
	r, s, found, payload := slowReader(t)
	name := unitName{found.Header.Address(), 0}
	impatient, giveUp := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	workers.Go(func() {
		if _, _, err := r.readShared(impatient, found, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("the impatient reader got %v", err)
		}
	})
	workers.Go(func() {
		data, done, err := r.readShared(context.Background(), found, 0)
		if err != nil || !bytes.Equal(data, payload) {
			t.Errorf("the patient reader got %d bytes, %v", len(data), err)
			return
		}
		done()
	})
	r.flights.awaitUsers(name, 2)
	giveUp()
	r.flights.awaitUsers(name, 1)
	close(s.goOn)
	workers.Wait()
	r.flights.awaitUsers(name, 0)
}

func TestAReadingNobodyWaitsForIsCancelled(t *testing.T) {
	r, _, found, _ := slowReader(t)
	ctx, cancel := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	workers.Go(func() {
		if _, _, err := r.readShared(ctx, found, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("the reader got %v", err)
		}
	})
	r.flights.awaitUsers(unitName{found.Header.Address(), 0}, 1)
	cancel()
	workers.Wait()
	r.work.Wait() // the reading itself, which the store would hold up for ever
}
