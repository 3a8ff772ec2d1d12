package catalog

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/block"
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
	cutoff := now.Add(-retention).UnixMilli()
	forgotten, err := l.forget(ctx, prefixEnded, cutoff, func(record Record) (int64, error) {
		intent, err := decode[Intent](record.Key, record.Value)
		return intent.Settled, err
	})
	result.Forgotten += forgotten
	if err != nil {
		return result, fmt.Errorf("forgetting attempts: %w", err)
	}
	forgotten, err = l.forget(ctx, prefixRequest, cutoff, func(record Record) (int64, error) {
		row, err := decode[request](record.Key, record.Value)
		return row.At, err
	})
	result.Forgotten += forgotten
	if err != nil {
		return result, fmt.Errorf("forgetting deletes: %w", err)
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
	return l.each(ctx, prefixIntent, func(record Record) error {
		intent, err := decode[Intent](record.Key, record.Value)
		if err != nil {
			return err
		}
		return visit(&intent, record.Value)
	})
}

// forget removes the records under prefix that are older than cutoff. Records come roughly in the order they were made,
// so it stops at the first page that has nothing to forget.
func (l *ledger) forget(ctx context.Context, prefix string, cutoff int64, at func(Record) (int64, error)) (int, error) {
	total := 0
	for after := prefix; ; {
		records, err := l.engine.Scan(ctx, prefix, after, scanPage)
		if err != nil {
			return total, err
		}
		var writes []Write
		for _, record := range records {
			after = record.Key
			settled, err := at(record)
			if err != nil {
				return total, err
			}
			if settled < cutoff {
				writes = append(writes, Write{Key: record.Key, Kind: Remove})
			}
		}
		if len(writes) == 0 {
			return total, nil
		}
		if err := l.apply(ctx, writes); err != nil {
			return total, err
		}
		total += len(writes)
	}
}

// has reports whether the intent announces address.
func (intent *Intent) has(address block.Address) bool {
	if intent.Stamp != address.Stamp {
		return false
	}
	for _, set := range intent.Blocks {
		if set.Group != address.Group {
			continue
		}
		for i, slot := range set.Slots {
			if slot == address.Slot && set.Nodes[i] == address.Node {
				return true
			}
		}
	}
	return false
}
