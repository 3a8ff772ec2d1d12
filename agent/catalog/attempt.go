package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// Attempt is one announced operation. It takes effect at most once, by Commit, and only its owner commits it (rule 9).
type Attempt struct {
	ledger *ledger
	stamp  block.Stamp
	kind   Kind
	ahead  bool // it was announced before it was known what it would write over
	pieces int  // that it has committed
	result map[block.GroupID]*Group
}

// Stamp returns the stamp all blocks of the attempt carry.
func (a *Attempt) Stamp() block.Stamp { return a.stamp }

// Result is a group as the attempt has committed it, to base a GroupChange on; nil where it did not change that, or failed.
func (a *Attempt) Result(id block.GroupID) *GroupView {
	group := a.result[id]
	if group == nil {
		return nil
	}
	return &GroupView{Group: *group, raw: codec.Encode(group)}
}

// Extend announces further blocks and moves the deadline (rules 3 and 9). Blocks that are announced already may be
// named again. It fails with ErrNotActive if the attempt has ended; after any error the further blocks may not be
// written.
func (a *Attempt) Extend(ctx context.Context, blocks []BlockSet, deadline time.Time) error {
	if err := checkBlockSets(blocks); err != nil {
		return fmt.Errorf("extending attempt %s: %w", a.stamp, err)
	}
	key := schema.IntentKey(a.stamp)
	var want []byte
	err := a.ledger.retry(ctx, func(ctx context.Context) (bool, error) {
		values, err := a.ledger.engine.Read(ctx, key)
		if err != nil {
			return false, err
		}
		if values[0] == nil {
			return false, kv.Final(ErrNotActive)
		}
		if want != nil && bytes.Equal(values[0], want) {
			return true, nil // an earlier turn was applied though its answer was lost
		}
		intent, err := codec.DecodeToChange[Intent](key, values[0])
		if err != nil {
			return false, err
		}
		intent.Blocks = intent.With(blocks)
		intent.Deadline = deadline.UnixMilli()
		want = codec.Encode(intent)
		failed, err := a.ledger.engine.Update(ctx, []kv.Check{{Key: key, Value: values[0]}}, []kv.Write{{Key: key, Value: want}})
		return err == nil && len(failed) == 0, err
	})
	if err != nil {
		return fmt.Errorf("extending attempt %s: %w", a.stamp, err)
	}
	return nil
}

// Abort settles the attempt (rule 8). nil says that it did not take effect and never will, and that its blocks are in
// the graveyard; ErrCommitted that it did take effect after all; ErrUnknown that neither could be found out. It works
// on a cancelled ctx too.
func (a *Attempt) Abort(ctx context.Context) error {
	outcome, err := a.ledger.Settle(context.WithoutCancel(ctx), a.stamp)
	if err != nil {
		return err
	}
	switch outcome {
	case Failed:
		return nil
	case Done:
		return fmt.Errorf("aborting attempt %s: %w", a.stamp, ErrCommitted)
	default:
		return fmt.Errorf("aborting attempt %s, which the catalog does not remember: %w", a.stamp, ErrUnknown)
	}
}

// Discard ends attempts of which no block was ever sent: nothing can be there to delete. What it does not end expires.
func (l *ledger) Discard(ctx context.Context, attempts ...*Attempt) error {
	keys := make([]string, len(attempts))
	for i, a := range attempts {
		keys[i] = schema.IntentKey(a.stamp)
	}
	err := l.retry(ctx, func(ctx context.Context) (bool, error) {
		values, err := l.engine.Read(ctx, keys...)
		if err != nil {
			return false, err
		}
		var checks []kv.Check
		var writes []kv.Write
		for i, key := range keys {
			if values[i] == nil {
				continue
			}
			intent, err := codec.DecodeToChange[Intent](key, values[i])
			if err != nil {
				return false, err
			}
			checks, writes = append(checks, kv.Check{Key: key, Value: values[i]}), append(writes, l.end(&intent, IntentAborted)...)
		}
		if len(checks) == 0 {
			return true, nil
		}
		_, err = l.engine.Update(ctx, checks, writes)
		return false, err // the next turn sees
	})
	if err != nil {
		return fmt.Errorf("discarding attempts: %w", err)
	}
	return nil
}

// settleAfter settles the attempt because of cause and says what the caller of Commit must know.
func (a *Attempt) settleAfter(ctx context.Context, cause error) error {
	err := a.Abort(ctx)
	switch {
	case errors.Is(err, ErrCommitted):
		return nil
	case err != nil:
		return fmt.Errorf("%w; settling it: %w", cause, err)
	case errors.Is(cause, ErrStale), errors.Is(cause, ErrNotActive), errors.Is(cause, ErrBadChange):
		return cause
	default:
		return fmt.Errorf("%w: %w", ErrNotActive, cause)
	}
}
