package sim

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/catalog/kv"
	catalogmem "github.com/restripe/restripe/agent/catalog/mem"
)

// errNoAnswer is all that a gateway learns of a request to the catalog that went wrong.
var errNoAnswer = errors.New("no answer from the catalog")

// catalogName is the catalog's in the network.
const catalogName = "catalog"

// links are the ways of all processes to the catalog.
type links struct {
	journal *journal
	network *network
	checker *checker
	dice    *dice
	mayLose bool // acknowledged updates
	watches kv.Hub

	mutex    sync.Mutex
	odds     linkOdds
	astray   *catalogmem.Engine // an old copy of the catalog, in its place; nil: none
	election chan struct{}      // closed once there is a leader again; nil: there is one
}

// records are what requests of now go to: the catalog that is checked, or a copy of it.
type records struct {
	engine *catalogmem.Engine
	apply  func(checks []kv.Check, writes []kv.Write) ([]int, error)
}

func (l *links) records() records {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	engine, apply := l.checker.ledger.engine, l.checker.apply
	if astray := l.astray; astray != nil {
		engine, apply = astray, func(checks []kv.Check, writes []kv.Write) ([]int, error) {
			return astray.Update(context.Background(), checks, writes)
		}
	}
	return records{engine, func(checks []kv.Check, writes []kv.Write) ([]int, error) {
		failed, err := apply(checks, writes)
		if err == nil && len(failed) == 0 {
			l.watches.Made(writes)
		}
		return failed, err
	}}
}

// lead has requests go to another catalog from now on, nil for the one that is checked.
func (l *links) lead(astray *catalogmem.Engine) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.astray = astray
	l.watches.Hears()
}

// elect has the catalog be without a leader until elected is called.
func (l *links) elect() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.election == nil {
		l.election = make(chan struct{})
	}
}

// elected gives the catalog a leader, who has all that took effect. Who watches is told to look, as after a cut connection.
func (l *links) elected() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.election != nil {
		close(l.election)
		l.election = nil
		l.watches.Hears()
	}
}

// vacancy is closed once there is a leader again; nil where there is one.
func (l *links) vacancy() <-chan struct{} {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.election
}

// reach waits until the catalog has a leader.
func (l *links) reach(ctx context.Context) error {
	for {
		vacancy := l.vacancy()
		if vacancy == nil {
			return nil
		}
		select {
		case <-vacancy:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *links) oddsNow() linkOdds {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.odds
}

// with changes the odds of updates until what it returns is called.
func (l *links) with(odds linkOdds) func() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.odds = odds
	return func() {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.odds = linkOdds{}
	}
}

// link is the catalog's engine as one process reaches it: requests and answers take time, get lost, and requests of which
// nothing was heard may take effect later, or twice, also after their sender has died.
type link struct {
	*links
	process *process
}

var (
	_ kv.Engine    = (*link)(nil)
	_ kv.Forgetful = (*link)(nil)
)

// MayLose implements kv.Forgetful: in some runs nodes witness what clients are told.
func (l *link) MayLose() bool { return l.mayLose }

// linkOdds are probabilities per update, and per read.
type linkOdds struct {
	loseRequest, loseAnswer float64
	late, twice             float64
	crawl                   float64 // what was read is old when it comes
}

// travel is one way of a message between a process and the catalog.
func (l *link) travel(ctx context.Context, from, to string) error {
	n := l.network
	n.mutex.Lock()
	extra := n.slow[l.process.name]
	n.mutex.Unlock()
	took := l.dice.between(50*time.Microsecond, 500*time.Microsecond)
	if extra > 0 {
		took += l.dice.between(0, extra)
	}
	if err := wait(ctx, took); err != nil {
		return err
	}
	for n.isBlocked(from, to) {
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (l *link) ask(ctx context.Context) error {
	if err := l.travel(ctx, l.process.name, catalogName); err != nil {
		return err
	}
	if !l.process.isAlive() {
		return errNoAnswer
	}
	return l.reach(ctx)
}

func (l *link) hear(ctx context.Context) error {
	if err := l.travel(ctx, catalogName, l.process.name); err != nil {
		return err
	}
	if !l.process.isAlive() {
		return errNoAnswer
	}
	return nil
}

// Read implements catalog.Engine.
func (l *link) Read(ctx context.Context, keys ...string) ([][]byte, error) {
	if err := l.ask(ctx); err != nil {
		return nil, err
	}
	values, err := l.records().engine.Read(ctx, keys...)
	if err != nil {
		return nil, err
	}
	if odds := l.oddsNow(); odds.crawl > 0 && l.dice.chance(odds.crawl) {
		if err := wait(ctx, l.dice.between(0, 2*time.Second)); err != nil {
			return nil, err
		}
	}
	return values, l.hear(ctx)
}

// Scan implements catalog.Engine.
func (l *link) Scan(ctx context.Context, prefix, after string, limit int) ([]kv.Record, error) {
	if err := l.ask(ctx); err != nil {
		return nil, err
	}
	found, err := l.records().engine.Scan(ctx, prefix, after, limit)
	if err != nil {
		return nil, err
	}
	return found, l.hear(ctx)
}

// Update implements catalog.Engine.
func (l *link) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	odds := l.oddsNow()
	if err := wait(ctx, l.dice.between(50*time.Microsecond, 500*time.Microsecond)); err != nil || !l.process.isAlive() {
		return nil, errors.Join(err, errNoAnswer)
	}
	checks, writes = retain(checks, writes)
	to := l.records()
	later := func(doing string) {
		after := l.dice.late()
		l.network.count(doing)
		time.AfterFunc(after, func() {
			// Whoever asked has given up on the answer.
			failed, err := to.apply(checks, writes)
			l.journal.write(catalogName, "an update of %s %s, after %s: failed %v, %v", l.process.name, doing, after.Round(time.Millisecond), failed, err)
		})
	}
	switch {
	case odds.loseRequest > 0 && l.dice.chance(odds.loseRequest):
		return nil, errNoAnswer
	case odds.late > 0 && l.dice.chance(odds.late):
		later("comes late")
		return nil, errNoAnswer
	}
	if l.network.isBlocked(l.process.name, catalogName) {
		if l.dice.chance(0.5) { // in the buffers of the connection, which outlive the sender
			later("comes late")
		}
		return nil, errors.Join(errNoAnswer, wait(ctx, time.Second))
	}
	if odds.twice > 0 && l.dice.chance(odds.twice) {
		later("comes twice")
	}
	if vacancy := l.vacancy(); vacancy != nil {
		switch l.dice.below(3) {
		case 0: // it went with the leader
			return nil, errNoAnswer
		case 1: // the next leader has it, and nobody is told
			go func() {
				<-vacancy
				failed, err := to.apply(checks, writes)
				l.journal.write(catalogName, "an update of %s is found by the next leader: failed %v, %v", l.process.name, failed, err)
			}()
			return nil, errNoAnswer
		default:
			if err := l.reach(ctx); err != nil {
				return nil, errors.Join(errNoAnswer, err)
			}
		}
	}
	failed, err := to.apply(checks, writes)
	if err != nil {
		return nil, err
	}
	if l.vacancy() != nil && l.dice.chance(0.5) { // the leader had no time to answer
		return nil, errNoAnswer
	}
	if odds.loseAnswer > 0 && l.dice.chance(odds.loseAnswer) {
		return nil, errNoAnswer
	}
	return failed, l.hear(ctx)
}

// Watch implements kv.Engine: what it tells of takes its time to come.
func (l *link) Watch(ctx context.Context, keys ...string) <-chan struct{} {
	tokens := make(chan struct{}, 1)
	go func() {
		defer close(tokens)
		for range l.watches.Watch(ctx, keys...) {
			if l.travel(ctx, catalogName, l.process.name) != nil {
				return
			}
			select {
			case tokens <- struct{}{}:
			default:
			}
		}
	}()
	return tokens
}

// Snapshot implements kv.Engine.
func (l *link) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	if err := l.ask(ctx); err != nil {
		return nil, err
	}
	return l.records().engine.Snapshot(ctx)
}

// Size implements kv.Engine.
func (l *link) Size(ctx context.Context) (kv.Size, error) {
	if err := l.ask(ctx); err != nil {
		return kv.Size{}, err
	}
	return l.records().engine.Size(ctx)
}

// Close implements catalog.Engine; the catalog outlives the process.
func (l *link) Close() error { return nil }

// retain copies what belongs to the caller.
func retain(checks []kv.Check, writes []kv.Write) ([]kv.Check, []kv.Write) {
	checks, writes = slices.Clone(checks), slices.Clone(writes)
	for i := range checks {
		checks[i].Value = bytes.Clone(checks[i].Value)
	}
	for i := range writes {
		writes[i].Value = bytes.Clone(writes[i].Value)
	}
	return checks, writes
}
