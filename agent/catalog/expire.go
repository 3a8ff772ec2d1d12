package catalog

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// ExpireResult says what Expire did.
type ExpireResult struct {
	Expired   int // attempts past their deadline that were aborted
	Forgotten int // outcomes of attempts and deletes removed after retention
}

// Expire aborts every active attempt whose deadline lies before now, and forgets outcomes that are older than retention
// (rule 11). Retention must be far longer than any client call, 24 hours say; a call settled later than that is told
// Unknown.
func (l *ledger) Expire(ctx context.Context, now time.Time, retention time.Duration) (ExpireResult, error) {
	var result ExpireResult
	err := l.eachIntent(ctx, func(intent *Intent, raw []byte) error {
		if intent.Deadline >= now.UnixMilli() {
			return nil
		}
		// Comparing the whole record compares state and deadline: an attempt extended meanwhile is left alone.
		aborted, err := l.abort(ctx, intent.Stamp, raw)
		if aborted {
			result.Expired++
		}
		return err
	})
	if err != nil {
		return result, fmt.Errorf("expiring attempts: %w", err)
	}
	f := forgetting{ledger: l, now: now.UnixMilli(), cutoff: now.Add(-retention).UnixMilli()}
	err = f.pass(ctx, schema.PrefixEnded, func(record kv.Record) (int64, func(int64) []byte, error) {
		intent, err := codec.Decode[Intent](record.Key, record.Value)
		return intent.Settled, func(at int64) []byte { intent.Settled = at; return codec.Encode(intent) }, err
	})
	if err == nil {
		err = f.pass(ctx, schema.PrefixRequest, func(record kv.Record) (int64, func(int64) []byte, error) {
			row, err := codec.Decode[request](record.Key, record.Value)
			return row.At, func(at int64) []byte { row.At = at; return codec.Encode(row) }, err
		})
	}
	result.Forgotten = f.forgotten
	if err != nil {
		return result, fmt.Errorf("forgetting outcomes: %w", err)
	}
	return result, nil
}

// AbortOwn aborts the active attempts of earlier starts of a gateway (rule 9), which must not run any more.
func (l *ledger) AbortOwn(ctx context.Context, ownerID, startID string) error {
	err := l.eachIntent(ctx, func(intent *Intent, _ []byte) error {
		if intent.Owner == Owner(ownerID, startID) || !strings.HasPrefix(intent.Owner, Owner(ownerID, "")) {
			return nil
		}
		_, err := l.Settle(ctx, intent.Stamp)
		return err
	})
	if err != nil {
		return fmt.Errorf("aborting attempts of earlier starts of %s: %w", ownerID, err)
	}
	return nil
}

// eachIntent visits every active intent.
func (l *ledger) eachIntent(ctx context.Context, visit func(intent *Intent, raw []byte) error) error {
	return l.each(ctx, schema.PrefixIntent, func(record kv.Record) error {
		intent, err := codec.Decode[Intent](record.Key, record.Value)
		if err != nil {
			return err
		}
		return visit(&intent, record.Value)
	})
}

// clockDrift is how far apart clocks may be before a time that lies ahead is not believed. No rule depends on it.
const clockDrift = time.Hour

// forgetting removes outcomes that are old, and gives those from a time far ahead, by a clock that was wrong, the present.
type forgetting struct {
	ledger      *ledger
	now, cutoff int64 // Unix milliseconds
	forgotten   int
}

// dated reads when an outcome was recorded, and how its record is with another time.
type dated func(kv.Record) (at int64, with func(at int64) []byte, err error)

// pass looks at the records under prefix. They come roughly in the order in which they were made, so it stops at the first
// page that has nothing to change.
func (f *forgetting) pass(ctx context.Context, prefix string, read dated) error {
	for after := prefix; after != ""; {
		last, changed, err := f.page(ctx, prefix, after, read)
		if err != nil || changed == 0 {
			return err
		}
		after = last
	}
	return nil
}

// scanPage is how many records are looked at before those of them are changed.
const scanPage = 256

// page looks at one page of records and returns the last of them, empty at the end, and how many it changed.
func (f *forgetting) page(ctx context.Context, prefix, after string, read dated) (last string, changed int, err error) {
	records, err := f.ledger.engine.Scan(ctx, prefix, after, scanPage)
	if err != nil {
		return "", 0, err
	}
	var old []kv.Write
	for _, record := range records {
		at, with, err := read(record)
		if err != nil {
			return "", changed, err
		}
		switch {
		case at < f.cutoff:
			old = append(old, kv.Write{Key: record.Key, Kind: kv.Remove})
		case at > f.now+clockDrift.Milliseconds():
			// Somebody else may remove it meanwhile: then it stays removed.
			checks, writes := []kv.Check{{Key: record.Key, Value: record.Value}}, []kv.Write{{Key: record.Key, Value: with(f.now)}}
			if _, err := f.ledger.engine.Update(ctx, checks, writes); err != nil {
				return "", changed, err
			}
			changed++
		}
	}
	if len(old) > 0 {
		if err := f.ledger.apply(ctx, old); err != nil {
			return "", changed, err
		}
		f.forgotten += len(old)
	}
	if len(records) == scanPage {
		last = records[len(records)-1].Key
	}
	return last, changed + len(old), nil
}
