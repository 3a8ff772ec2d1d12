package catalog

import (
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// Outcome is what became of an attempt.
type Outcome string

// The outcomes of Settle.
const (
	Done    Outcome = "done"    // it took effect
	Failed  Outcome = "failed"  // it did not and never will
	Unknown Outcome = "unknown" // the catalog does not remember it
)

// Causes of graves.
const (
	causeAborted    = "aborted"    // the attempt that announced it was aborted
	causeUnused     = "unused"     // announced, but not used by the commit
	causeSuperseded = "superseded" // a commit put another block in its place
	causeFreed      = "freed"      // its group was freed
)

// Settle ends an attempt (rule 8): an active one is aborted and every address it announced is buried, in one
// transaction. Unknown means that nothing is known and nothing was changed. An error, always ErrUnknown, means that the
// engine gave no clear answer in time.
func (l *ledger) Settle(ctx context.Context, stamp block.Stamp) (Outcome, error) {
	outcome := Unknown
	err := l.retry(ctx, func(ctx context.Context) (bool, error) {
		intentRaw, ended, err := l.readIntent(ctx, stamp)
		if err != nil {
			return false, err
		}
		switch {
		case ended != nil && ended.State == IntentCommitted:
			outcome = Done
			return true, nil
		case ended != nil:
			outcome = Failed
			return true, nil
		case intentRaw == nil:
			outcome = Unknown
			return true, nil
		}
		_, err = l.abort(ctx, stamp, intentRaw)
		return false, err // the next turn reads how it ended
	})
	if err != nil {
		return Unknown, fmt.Errorf("settling attempt %s: %w: %w", stamp, ErrUnknown, err)
	}
	return outcome, nil
}

// readIntent returns the encoded intent if it is active, or the record of how it ended; neither if there is none.
func (l *ledger) readIntent(ctx context.Context, stamp block.Stamp) (active []byte, ended *Intent, err error) {
	values, err := l.engine.Read(ctx, schema.IntentKey(stamp), schema.EndedKey(stamp))
	if err != nil {
		return nil, nil, err
	}
	if values[1] != nil {
		intent, err := codec.Decode[Intent](schema.EndedKey(stamp), values[1])
		if err != nil {
			return nil, nil, err
		}
		return nil, &intent, nil
	}
	return values[0], nil, nil
}

// abort aborts the attempt if its intent is still exactly raw, and reports whether it did.
func (l *ledger) abort(ctx context.Context, stamp block.Stamp, raw []byte) (bool, error) {
	intent, err := codec.DecodeToChange[Intent](schema.IntentKey(stamp), raw)
	if err != nil {
		return false, err
	}
	writes := append(l.end(&intent, IntentAborted), l.graves.bury(intent.Addresses(), causeAborted, false)...)
	failed, err := l.engine.Update(ctx, []kv.Check{{Key: schema.IntentKey(stamp), Value: raw}}, writes)
	return err == nil && len(failed) == 0, err
}

// end returns the writes that move an intent out of the active ones.
func (l *ledger) end(intent *Intent, state IntentState) []kv.Write {
	ended := *intent
	ended.State, ended.Blocks, ended.Settled = state, nil, l.now().UnixMilli()
	return []kv.Write{{Key: schema.IntentKey(intent.Stamp), Kind: kv.Remove}, {Key: schema.EndedKey(intent.Stamp), Value: codec.Encode(ended)}}
}

// Intents lists up to limit active attempts after the given one, oldest first.
func (l *ledger) Intents(ctx context.Context, after block.Stamp, limit int) ([]Intent, error) {
	records, err := l.engine.Scan(ctx, schema.PrefixIntent, schema.IntentKey(after), limit)
	if err != nil {
		return nil, fmt.Errorf("listing intents: %w", err)
	}
	return codec.DecodeAll[Intent](records)
}
