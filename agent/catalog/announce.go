package catalog

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/combine"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
	"github.com/restripe/restripe/agent/catalog/session"
)

// batchLimit bounds how many announcements share one transaction, and how many objects they look at.
const (
	batchLimit = 64
	lookLimit  = 4096
)

// ledger keeps the attempts: it announces them, settles them, and remembers for a while how each of them ended. What an
// attempt leaves behind goes to the graves.
type ledger struct {
	*records
	graves  *graveyard
	session *session.Session
	drawing *combine.Queue[*announcement]
}

func newLedger(kept *records, graves *graveyard, session *session.Session) *ledger {
	l := &ledger{records: kept, graves: graves, session: session}
	l.drawing = combine.New(l.batch, l.announce)
	return l
}

type announcement struct {
	ctx      context.Context
	kind     Kind
	deadline time.Time
	blocks   func(block.Stamp) []BlockSet
	basis    []Basis
	over     []string // record keys
	ahead    bool
	beside   []*announcement // that are announced with it

	done chan struct{} // closed once attempt or err is set

	stamp   block.Stamp
	sets    []BlockSet
	attempt *Attempt
	err     error
}

// Begin announces an attempt (rules 1, 3 and 43): one transaction draws its stamp, checks that every basis is as it was
// read, and inserts the intent with every address that may be written. blocks is told the stamp and names those
// addresses; it may be called more than once, from another goroutine, and must only compute. What the attempt will change
// must be among the basis, objects that it writes over blindly as Over.
//
// It fails with ErrStale if a basis moved. After an error no block may be written; if the announcement did happen, it
// expires at its deadline.
func (l *ledger) Begin(ctx context.Context, kind Kind, deadline time.Time, blocks func(stamp block.Stamp) []BlockSet, basis ...Basis) (*Attempt, error) {
	a := &announcement{ctx: ctx, kind: kind, deadline: deadline, blocks: blocks, done: make(chan struct{})}
	for _, one := range basis {
		if over, is := one.(Over); is {
			a.over = append(a.over, schema.ObjectKey(string(over)))
		} else {
			a.basis = append(a.basis, one)
		}
	}
	if err := l.begin(ctx, a); err != nil {
		return nil, err
	}
	return a.attempt, nil
}

// BeginAhead announces puts, one for each of blocks, of which nobody knows yet what they will write over: the commit of each is refused
// if an object or a group has a greater stamp by then, or has had one and is out of sight (rules 22 and 43). One transaction announces
// them, and asks blocks in their order. Their attempts are in the order of their stamps; with an error come those that were announced
// all the same, or none, and they are given up.
func (l *ledger) BeginAhead(ctx context.Context, deadline time.Time, blocks ...func(stamp block.Stamp) []BlockSet) ([]*Attempt, error) {
	all := make([]*announcement, len(blocks))
	for i := range all {
		all[i] = &announcement{ctx: ctx, kind: KindPut, deadline: deadline, blocks: blocks[i], ahead: true, done: make(chan struct{})}
	}
	all[0].beside = all[1:]
	if err := l.begin(ctx, all[0]); err != nil {
		return nil, err
	}
	attempts, err := []*Attempt{all[0].attempt}, error(nil)
	for _, a := range all[1:] {
		<-a.done
		if a.err != nil {
			err = fmt.Errorf("announcing puts ahead: %w", a.err)
			continue // the others are the caller's all the same
		}
		attempts = append(attempts, a.attempt)
	}
	return attempts, err
}

// begin has an announcement made, and those beside it.
func (l *ledger) begin(ctx context.Context, a *announcement) error {
	begun, err := l.drawing.Do(ctx, a, a.done)
	if err == nil {
		err = a.err
	}
	if err == nil {
		return nil
	}
	if begun {
		for _, one := range append(a.beside, a) {
			go one.withdraw(context.WithoutCancel(ctx))
		}
	}
	return fmt.Errorf("announcing a %s: %w", a.kind, err)
}

// withdraw gives up an announcement that was under way when its caller left, or beside one that failed, so that it need not
// expire. If that fails too, it does expire.
func (a *announcement) withdraw(ctx context.Context) {
	<-a.done
	if a.attempt != nil {
		_ = a.attempt.Abort(ctx) // bounded by the catalog's patience; the deadline settles what this cannot
	}
}

// batch is how many of those that wait share a transaction.
func (l *ledger) batch(waiting []*announcement) int {
	count, looks := 0, 0
	for count < min(len(waiting), batchLimit) && (count == 0 || looks+len(waiting[count].over) <= lookLimit) {
		looks += len(waiting[count].over)
		count++
	}
	return count
}

func (l *ledger) announce(ctx context.Context, batch []*announcement) {
	for _, a := range batch[:len(batch):len(batch)] {
		batch = append(batch, a.beside...)
	}
	err := l.retry(ctx, func(ctx context.Context) (bool, error) {
		batch = slices.DeleteFunc(batch, func(a *announcement) bool {
			err := a.ctx.Err()
			if err != nil {
				a.fail(err)
			}
			return err != nil
		})
		if len(batch) == 0 {
			return true, nil
		}
		raw, next, err := l.readNumbers(ctx, batch)
		if err != nil {
			return false, err
		}
		var draw *draw
		if draw, batch, err = l.prepareDraw(raw, next, batch); err != nil || len(batch) == 0 {
			return err == nil, err
		}
		done, err := l.insert(ctx, draw, batch)
		if err != nil {
			return false, err
		}
		if done {
			for _, a := range batch {
				a.attempt = &Attempt{ledger: l, stamp: a.stamp, kind: a.kind, ahead: a.ahead}
				close(a.done)
			}
			return true, nil
		}
		batch = draw.dropStale(batch)
		return false, nil
	})
	if err != nil {
		for _, a := range batch {
			a.fail(err)
		}
	}
}

func (a *announcement) fail(err error) {
	a.err = err
	close(a.done)
}

// draw is the transaction that announces a batch.
type draw struct {
	raw    []byte // number of the last stamp of the session, as read
	checks []kv.Check
	writes []kv.Write
	asker  []int // announcement of each check; -1 for that number
	basis  []Basis
	failed []int
}

// readNumbers returns the number of the last stamp of the session, as it is recorded, and the next for a batch: above that one,
// above the floor, and above all that the batch is over and builds on.
func (l *ledger) readNumbers(ctx context.Context, batch []*announcement) (raw []byte, next uint64, err error) {
	keys := []string{schema.UptoKey(l.session.Owner), schema.KeyFloor}
	above := uint64(0)
	for _, a := range batch {
		keys = append(keys, a.over...)
		for _, basis := range a.basis {
			above = max(above, basis.newest())
		}
	}
	values, err := l.engine.Read(ctx, keys...)
	if err != nil {
		return nil, 0, err
	}
	for i := range 2 {
		number, err := codec.DecodeCount(keys[i], values[i])
		if err != nil {
			return nil, 0, err
		}
		above = max(above, uint64(number))
	}
	for i, value := range values[2:] {
		if value == nil {
			continue
		}
		// What is wrong with one the commit says, and of that attempt alone.
		if object, err := codec.Decode[Object](keys[2+i], value); err == nil {
			above = max(above, object.Newest())
		}
	}
	return values[0], max(above+1, l.clock()), nil
}

// prepareDraw builds the transaction of a batch and returns the batch without the announcements that cannot be made.
func (l *ledger) prepareDraw(raw []byte, next uint64, batch []*announcement) (*draw, []*announcement, error) {
	d := &draw{raw: raw, checks: []kv.Check{{Key: schema.UptoKey(l.session.Owner), Value: raw}}, asker: []int{-1}, basis: []Basis{nil}}
	var kept []*announcement
	for _, a := range batch {
		salt, err := l.salt()
		if err != nil {
			return nil, batch, kv.Final(err)
		}
		a.stamp = block.Stamp{Sequence: next, Salt: salt}
		a.sets = a.blocks(a.stamp)
		if err := checkBlockSets(a.sets); err != nil {
			a.fail(err)
			continue
		}
		next++
		for _, basis := range a.basis {
			d.checks, d.asker, d.basis = append(d.checks, basis.basis()), append(d.asker, len(kept)), append(d.basis, basis)
		}
		d.writes = append(d.writes, kv.Write{Key: schema.IntentKey(a.stamp), Value: codec.Encode(Intent{
			Stamp: a.stamp, Kind: a.kind, Owner: l.session.Owner, Deadline: a.deadline.UnixMilli(), State: IntentActive, Blocks: a.sets,
		})})
		kept = append(kept, a)
	}
	d.writes = append(d.writes, kv.Write{Key: schema.UptoKey(l.session.Owner), Value: codec.EncodeCount(next - 1)})
	return d, kept, nil
}

// salt draws the salt of a stamp: its upper half says which session drew it (rule 27).
func (l *ledger) salt() (uint64, error) {
	drawn, err := l.draw()
	return uint64(l.session.Mark())<<32 | drawn&math.MaxUint32, err
}

// insert carries out a draw. Where the engine's answer is unclear it is found out: the number of the last stamp never returns to
// an earlier one, so once it has moved without the intents being there, the request can never be applied any more.
func (l *ledger) insert(ctx context.Context, d *draw, batch []*announcement) (done bool, err error) {
	unclear := false
	err = l.retry(ctx, func(ctx context.Context) (bool, error) {
		if unclear {
			values, err := l.engine.Read(ctx, schema.UptoKey(l.session.Owner), schema.IntentKey(batch[0].stamp), schema.EndedKey(batch[0].stamp))
			if err != nil {
				return false, err
			}
			if values[1] != nil || values[2] != nil {
				done = true
				return true, nil
			}
			if !bytes.Equal(values[0], d.raw) {
				return true, nil
			}
		}
		failed, err := l.engine.Update(ctx, d.checks, d.writes)
		if err != nil {
			unclear = true
			return false, err
		}
		if len(failed) > 0 && unclear && failed[0] == 0 {
			return false, nil // the earlier request may have moved the number: look
		}
		d.failed, done = failed, len(failed) == 0
		return true, nil
	})
	return done, err
}

// dropStale answers the announcements whose basis moved and returns the others.
func (d *draw) dropStale(batch []*announcement) []*announcement {
	details := map[int][]StaleDetail{}
	for _, i := range d.failed {
		if asker := d.asker[i]; asker >= 0 {
			details[asker] = append(details[asker], d.basis[i].stale())
		}
	}
	var kept []*announcement
	for i, a := range batch {
		if details[i] != nil {
			a.fail(&StaleError{Details: details[i]})
			continue
		}
		kept = append(kept, a)
	}
	return kept
}

func checkBlockSets(sets []BlockSet) error {
	for _, set := range sets {
		if len(set.Slots) != len(set.Nodes) {
			return fmt.Errorf("group %s is announced with %d slots on %d nodes: %w", set.Group, len(set.Slots), len(set.Nodes), ErrBadChange)
		}
		for i, slot := range set.Slots {
			if slot < 0 || set.Nodes[i] == "" {
				return fmt.Errorf("group %s is announced with slot %d on node %q: %w", set.Group, slot, set.Nodes[i], ErrBadChange)
			}
		}
	}
	return nil
}
