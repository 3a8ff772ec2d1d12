package catalog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// records is what every part of a catalog works on: the engine, and how it is asked until it gives a clear answer.
type records struct {
	engine   kv.Engine
	now      func() time.Time
	random   *lockedReader
	patience time.Duration
	pause    func(ctx context.Context, turn int) error
}

// finalError marks an error that asking again cannot mend.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

func final(err error) error {
	if err == nil {
		return nil
	}
	return finalError{err}
}

// retry calls turn until it is done, fails for good, or patience or ctx ends. A turn that is neither done nor failed
// is repeated at once: somebody else was faster, so the system as a whole makes progress. A turn must be such that
// repeating it after an unclear answer is right.
func (r *records) retry(ctx context.Context, turn func(context.Context) (done bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	for failures := 0; ; {
		done, err := turn(ctx)
		if done {
			return nil
		}
		if err == nil {
			if err = ctx.Err(); err != nil {
				return err
			}
			continue
		}
		var last finalError
		if errors.As(err, &last) {
			return last.error
		}
		if errors.Is(err, kv.ErrClosed) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNewer) || isOver(err) {
			return err
		}
		failures++
		if pauseErr := r.pause(ctx, failures); pauseErr != nil {
			return errors.Join(err, pauseErr)
		}
	}
}

func pauseDoubling(ctx context.Context, turn int) error {
	wait := min(time.Second, 10*time.Millisecond<<min(turn-1, 10))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// apply carries out writes that may be repeated at any time.
func (r *records) apply(ctx context.Context, writes []kv.Write) error {
	return r.retry(ctx, func(ctx context.Context) (bool, error) {
		_, err := r.engine.Update(ctx, nil, writes)
		return err == nil, err
	})
}

// assign gives a record a value by comparing it with what was read, so that a request that arrives late does not bring
// back what was replaced since.
func (r *records) assign(ctx context.Context, key string, value []byte) error {
	return r.retry(ctx, func(ctx context.Context) (bool, error) {
		values, err := r.engine.Read(ctx, key)
		if err != nil || bytes.Equal(values[0], value) {
			return err == nil, err
		}
		failed, err := r.engine.Update(ctx, []kv.Check{{Key: key, Value: values[0]}}, []kv.Write{{Key: key, Value: value}})
		return err == nil && len(failed) == 0, err
	})
}

// scanPage is how many records are listed at a time.
const scanPage = 256

// each visits every record with a prefix, page by page.
func (r *records) each(ctx context.Context, prefix string, visit func(kv.Record) error) error {
	for after := prefix; ; {
		records, err := r.engine.Scan(ctx, prefix, after, scanPage)
		if err != nil {
			return err
		}
		for _, record := range records {
			if err := visit(record); err != nil {
				return err
			}
			after = record.Key
		}
		if len(records) < scanPage {
			return nil
		}
	}
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

func (r *records) readNext(ctx context.Context) (raw []byte, next uint64, err error) {
	values, err := r.engine.Read(ctx, keyNext)
	if err != nil {
		return nil, 0, err
	}
	next, err = decodeNext(values[0])
	return values[0], next, err
}

func decodeNext(raw []byte) (uint64, error) {
	next, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("decoding record %q: %w: %w", keyNext, ErrCorrupt, err)
	}
	return next, nil
}

func encodeNext(next uint64) []byte { return strconv.AppendUint(nil, next, 10) }

// Kept returns the number below which the blocks of attempts are kept, dead or not: see Claim. 0 where none are.
func (r *records) Kept(ctx context.Context) (uint64, error) {
	values, err := r.engine.Read(ctx, keyKept)
	if err != nil {
		return 0, fmt.Errorf("asking what is kept: %w", err)
	}
	below, err := decodeCount(keyKept, values[0])
	return uint64(below), err
}
