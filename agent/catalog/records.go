package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
	"github.com/restripe/restripe/agent/catalog/session"
)

// records is what every part of a catalog works on: the engine, and how it is asked until it gives a clear answer.
type records struct {
	engine   kv.Engine
	now      func() time.Time
	random   *lockedReader
	patience time.Duration
	pause    func(ctx context.Context, turn int) error
	holdFrom int // how many extents an object has at least that are held when it is taken away, and at most in one record
}

// retry is kv.Retry for as long as the catalog is patient. It gives up where a record is damaged, and where the session is over.
func (r *records) retry(ctx context.Context, turn func(context.Context) (done bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	return kv.Retry(ctx, r.pause, func(ctx context.Context) (bool, error) {
		done, err := turn(ctx)
		if errors.Is(err, ErrCorrupt) || session.IsOver(err) {
			err = kv.Final(err)
		}
		return done, err
	})
}

// apply carries out writes that may be repeated at any time.
func (r *records) apply(ctx context.Context, writes []kv.Write) error {
	return r.retry(ctx, func(ctx context.Context) (bool, error) {
		_, err := r.engine.Update(ctx, nil, writes)
		return err == nil, err
	})
}

// each visits every record with a prefix.
func (r *records) each(ctx context.Context, prefix string, visit func(kv.Record) error) error {
	return kv.Each(ctx, r.engine, prefix, visit)
}

// draw returns 64 random bits.
func (r *records) draw() (uint64, error) {
	var bytes [8]byte
	if _, err := io.ReadFull(r.random, bytes[:]); err != nil {
		return 0, fmt.Errorf("drawing random bits: %w", err)
	}
	return binary.BigEndian.Uint64(bytes[:]), nil
}

// lockedReader lets goroutines share a source of random bytes.
type lockedReader struct {
	mu     sync.Mutex
	source io.Reader
}

func (r *lockedReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.Read(p)
}

// number reads a record that is a number; 0 where there is none.
func (r *records) number(ctx context.Context, key string) (uint64, error) {
	values, err := r.engine.Read(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("reading %q: %w", key, err)
	}
	number, err := codec.DecodeCount(key, values[0])
	return uint64(number), err
}

// raise returns what an update does to the floor, given its record as it was read, when it takes a stamp with the given number out of
// sight of those who look at what they write over: what they draw is above it all the same (rule 43). Once raised to the time now,
// the floor is above all that was drawn before.
func (r *records) raise(raw []byte, number uint64) ([]kv.Check, []kv.Write, error) {
	floor, err := codec.DecodeCount(schema.KeyFloor, raw)
	if err != nil || number <= uint64(floor) {
		return nil, nil, err
	}
	return []kv.Check{{Key: schema.KeyFloor, Value: raw}}, []kv.Write{{
		Key: schema.KeyFloor, Value: codec.EncodeCount(max(number, r.clock())),
	}}, nil
}

// clock returns the time as a number of a stamp.
func (r *records) clock() uint64 { return uint64(max(1, r.now().UnixMicro())) }

// Kept returns the number below which the blocks of attempts are kept, dead or not: see Claim. 0 where none are.
func (r *records) Kept(ctx context.Context) (uint64, error) { return r.number(ctx, schema.KeyKept) }
