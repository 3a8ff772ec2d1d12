package kv

import (
	"context"
	"errors"
	"time"
)

// finalError marks an error that asking again cannot mend.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// Final marks an error with which Retry ends. It returns nil for nil.
func Final(err error) error {
	if err == nil {
		return nil
	}
	return finalError{err}
}

// Retry calls turn until it is done, fails with what Final has marked, or ctx ends. A turn that is neither done nor failed is
// repeated at once: somebody else was faster, so the system as a whole makes progress. One that failed is repeated after pause,
// which is told for which time from 1, and returns an error to give up. A turn must be such that repeating it after an unclear
// answer is right.
func Retry(ctx context.Context, pause func(ctx context.Context, turn int) error, turn func(context.Context) (done bool, err error)) error {
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
		if errors.Is(err, ErrClosed) || errors.Is(err, ErrNewer) {
			return err
		}
		failures++
		if pauseErr := pause(ctx, failures); pauseErr != nil {
			return errors.Join(err, pauseErr)
		}
	}
}

// PauseDoubling waits 10 ms, twice as long each time, up to one second.
func PauseDoubling(ctx context.Context, turn int) error {
	timer := time.NewTimer(min(time.Second, 10*time.Millisecond<<min(turn-1, 10)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// eachPage is how many records Each lists at a time.
const eachPage = 256

// Each visits every record with a prefix, page by page.
func Each(ctx context.Context, engine Engine, prefix string, visit func(Record) error) error {
	return EachAfter(ctx, engine, prefix, prefix, visit)
}

// EachAfter is Each of the records whose keys are greater than after.
func EachAfter(ctx context.Context, engine Engine, prefix, after string, visit func(Record) error) error {
	for {
		records, err := engine.Scan(ctx, prefix, after, eachPage)
		if err != nil {
			return err
		}
		for _, record := range records {
			if err := visit(record); err != nil {
				return err
			}
			after = record.Key
		}
		if len(records) < eachPage {
			return nil
		}
	}
}

// Successor returns the smallest string greater than all that begin with prefix; empty if there is none.
func Successor(prefix string) string {
	end := []byte(prefix)
	// Byte by byte: the trimming functions of the library take an invalid byte for every other one.
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) > 0 {
		end[len(end)-1]++
	}
	return string(end)
}
