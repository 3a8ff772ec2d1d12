package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

const (
	// ExtentsLimit is how many extents an object has at most: one update takes its record, and the records that hold the extents of
	// another one as large that it is put over, as kv.UpdateBytes are.
	ExtentsLimit = 56 << 10

	// pieceRecords and pieceBytes are what the groups of one piece take of an update: the rest is for blocks that were announced
	// and not used, the incarnations of the nodes, and what was put over.
	pieceRecords = kv.UpdateRecords / 2
	pieceBytes   = kv.UpdateBytes / 4

	// holdFrom is the default of WithHolding.
	holdFrom = 512

	// pieceBatch is how many pieces are listed at a time.
	pieceBatch = 16
)

// PieceShare returns which part of a piece, or of a commit without pieces, a new group takes, about: those of one together take no
// more than 1.
func PieceShare(group *Group) float64 {
	records := 3 // that it is new, the record, how many extents live in it
	if group.Packed {
		records++ // and how many bytes
	}
	bytes := len(codec.Encode(group)) + records*len(schema.GroupKey(group.ID))
	return max(float64(records)/pieceRecords, float64(bytes)/pieceBytes)
}

// CommitPiece makes groups of a put, or a move, live that has many of them, before the object is, or is in them (rule 44): in one
// transaction the groups appear, a record holds their extents, one for each, in the order in which the object will have them, and their
// blocks are announced no more. Where that is more than the engine takes, as many blocks were announced that are not used, it is done in
// several. The attempt goes on, and its Commit puts the one object whose first extents are those of its pieces, or moves it. An attempt
// commits its pieces one after the other.
//
// After any error the attempt can only be aborted: an ErrStale, as a *StaleError, names the conditions that did not hold,
// ErrNotActive says that it has ended. What pieces of it were committed are swept then.
func (a *Attempt) CommitPiece(ctx context.Context, key string, groups []Group, extents []Extent) error {
	if a.kind != KindPut && a.kind != KindMove || len(groups) == 0 || len(extents) != len(groups) {
		return fmt.Errorf("an attempt to %s has a piece of %d groups and %d extents: %w", a.kind, len(groups), len(extents), ErrBadChange)
	}
	err := a.commitGroups(ctx, key, groups, extents)
	if half := len(groups) / 2; half > 0 && errors.Is(err, kv.ErrTooLarge) {
		if err = a.CommitPiece(ctx, key, groups[:half], extents[:half]); err == nil {
			err = a.CommitPiece(ctx, key, groups[half:], extents[half:])
		}
	}
	return err
}

func (a *Attempt) commitGroups(ctx context.Context, key string, groups []Group, extents []Extent) error {
	change := &Change{NewGroups: groups}
	err := change.check(a.stamp)
	if err == nil {
		err = a.ledger.retry(ctx, func(ctx context.Context) (bool, error) {
			done, err := a.commitPiece(ctx, change, schema.Piece{Attempt: a.stamp, Key: key, Extents: extents})
			if errors.Is(err, ErrStale) || errors.Is(err, ErrNotActive) || errors.Is(err, ErrBadChange) || errors.Is(err, kv.ErrTooLarge) {
				err = kv.Final(err)
			}
			return done, err
		})
	}
	if err != nil {
		return fmt.Errorf("committing piece %d of attempt %s: %w", a.pieces, a.stamp, err)
	}
	a.pieces++
	return nil
}

// commitPiece tries once. Each piece raises the count in the intent, which is compared: of its requests one takes effect, and
// whether one has is seen by the count.
func (a *Attempt) commitPiece(ctx context.Context, change *Change, piece schema.Piece) (done bool, err error) {
	t, err := a.open(ctx, change)
	if err != nil {
		return false, err
	}
	switch t.intent.Pieces {
	case a.pieces:
	case a.pieces + 1:
		return true, nil
	default:
		return false, fmt.Errorf("the attempt has committed %d pieces: %w", t.intent.Pieces, ErrBadChange)
	}
	t.isPiece = true
	if err := t.changeGroups(change); err != nil {
		return false, err
	}
	if err := t.place(piece.Key, piece.Extents, nil); err != nil {
		return false, err
	}
	if err := t.requireWhole(); err != nil {
		return false, err
	}
	t.lives.Add(piece.Extents, 1)
	t.count()
	intent := t.intent
	intent.Pieces++
	intent.Blocks = slices.DeleteFunc(slices.Clone(intent.Blocks), func(set BlockSet) bool { return t.created[set.Group] })
	t.writes = append(t.writes, kv.Write{Key: schema.PieceKey(a.stamp.String(), a.pieces), Value: codec.Encode(piece)},
		kv.Write{Key: schema.IntentKey(a.stamp), Value: codec.Encode(intent)})
	failed, err := a.ledger.engine.Update(ctx, t.checks, t.writes)
	return err == nil && len(failed) == 0, err
}

// joinPieces takes the extents of pieces over into the object that is put or moved. No piece is swept while the intent is there, which is
// compared; so its count says which there are.
func (t *transaction) joinPieces(change *Change) error {
	pieces := t.attempt.pieces
	if t.intent.Pieces != pieces {
		return fmt.Errorf("the attempt has committed %d pieces, not %d: %w", t.intent.Pieces, pieces, ErrBadChange)
	}
	if pieces == 0 {
		return nil
	}
	if len(change.Put)+len(change.Move) != 1 {
		return fmt.Errorf("an attempt that has pieces puts %d objects and moves %d: %w", len(change.Put), len(change.Move), ErrBadChange)
	}
	var extents []Extent
	if len(change.Put) > 0 {
		extents = change.Put[0].Extents
	} else {
		extents = change.Move[0].Extents
	}
	for i := range pieces {
		key := schema.PieceKey(t.attempt.stamp.String(), i)
		piece, err := codec.DecodeToChange[schema.Piece](key, t.values[key])
		if err != nil {
			return err
		}
		t.joined = append(t.joined, piece.Extents...)
		t.writes = append(t.writes, kv.Write{Key: key, Kind: kv.Remove})
	}
	if len(extents) < len(t.joined) || !slices.Equal(extents[:len(t.joined)], t.joined) {
		return fmt.Errorf("the object does not begin with the extents of its pieces: %w", ErrBadChange)
	}
	t.lives.Add(t.joined, -1) // they are counted, and will be as the object's
	return nil
}

// hold returns the extents that a commit takes from an object at once: none where they are many, which records hold then.
func (t *transaction) hold(key string, extents []Extent) []Extent {
	left, writes := t.attempt.ledger.hold(t.attempt.stamp.String(), t.intent.Pieces+t.holds, key, extents)
	t.writes = append(t.writes, writes...)
	t.holds += len(writes)
	return left
}

// hold returns those of extents to take from an object at once, and the writes that have records hold the others until they are
// swept (rule 45). Where there are few those are all.
func (r *records) hold(name string, index int, key string, extents []Extent) (left []Extent, writes []kv.Write) {
	if len(extents) < r.holdFrom {
		return extents, nil
	}
	for part := range slices.Chunk(extents, r.holdFrom) {
		writes = append(writes, kv.Write{
			Key: schema.PieceKey(name, index+len(writes)), Value: codec.Encode(schema.Piece{Key: key, Extents: part}),
		})
	}
	return nil, writes
}

// sweepPieces gives up what is held by pieces that nobody goes on with (rule 45): Free frees their groups.
func (g *graveyard) sweepPieces(ctx context.Context) error {
	for after := schema.PrefixPiece; ; {
		records, err := g.engine.Scan(ctx, schema.PrefixPiece, after, pieceBatch)
		if err != nil {
			return err
		}
		for _, record := range records {
			after = record.Key
			if err := g.sweepPiece(ctx, record); err != nil {
				return err
			}
		}
		if len(records) < pieceBatch {
			return nil
		}
	}
}

// sweepPiece gives up what one piece holds, unless its attempt is active. That an attempt has ended is for ever.
func (g *graveyard) sweepPiece(ctx context.Context, record kv.Record) error {
	piece, err := codec.DecodeToChange[schema.Piece](record.Key, record.Value)
	if err != nil {
		return err
	}
	checks := []kv.Check{{Key: record.Key, Value: record.Value}}
	if !piece.Attempt.IsZero() {
		intent, err := g.engine.Read(ctx, schema.IntentKey(piece.Attempt))
		if err != nil || intent[0] != nil {
			return err
		}
		checks = append(checks, kv.Check{Key: schema.IntentKey(piece.Attempt)})
	}
	dropped := schema.Lives{}
	dropped.Add(piece.Extents, -1)
	writes := append(dropped.Writes(), kv.Write{Key: record.Key, Kind: kv.Remove})
	// A request that takes effect after an unclear answer takes effect once, and the others fail: the record never returns.
	return g.retry(ctx, func(ctx context.Context) (bool, error) {
		failed, err := g.engine.Update(ctx, checks, writes)
		if err == nil && failed == nil {
			g.swept.Add(1)
		}
		return err == nil, err
	})
}

// SweptPieces returns of how many pieces this catalog has given up what they held.
func (g *graveyard) SweptPieces() int64 { return g.swept.Load() }
