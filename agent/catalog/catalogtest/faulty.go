package catalogtest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// Fault is what happens to one Update.
type Fault int

// The faults of a catalog engine behind a network.
const (
	None        Fault = iota
	LoseRequest       // not applied, and the caller is told that nothing is known
	LoseAnswer        // applied, and the caller is told that nothing is known
	Delay             // the caller is told that nothing is known; Deliver applies it later
	Duplicate         // applied and answered; Deliver applies it once more
)

// ErrLost is what a caller is told when nothing is known.
var ErrLost = errors.New("no answer from the catalog engine")

// Faulty passes calls on to an engine and lets Updates fail as Decide says. It does not close the engine it wraps.
type Faulty struct {
	kv.Engine

	// Decide is asked before every Update; nil decides None. It is called under a lock.
	Decide func() Fault

	mu   sync.Mutex
	late []pending
}

type pending struct {
	checks []kv.Check
	writes []kv.Write
}

// Update implements catalog.Engine.
func (f *Faulty) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	f.mu.Lock()
	fault := None
	if f.Decide != nil {
		fault = f.Decide()
	}
	if fault == Delay || fault == Duplicate {
		f.late = append(f.late, retain(checks, writes))
	}
	f.mu.Unlock()
	if fault == LoseRequest || fault == Delay {
		return nil, ErrLost
	}
	failed, err := f.Engine.Update(ctx, checks, writes)
	if fault == LoseAnswer {
		return nil, ErrLost
	}
	return failed, err
}

// retain copies what belongs to the caller.
func retain(checks []kv.Check, writes []kv.Write) pending {
	p := pending{slices.Clone(checks), slices.Clone(writes)}
	for i := range p.checks {
		p.checks[i].Value = bytes.Clone(p.checks[i].Value)
	}
	for i := range p.writes {
		p.writes[i].Value = bytes.Clone(p.writes[i].Value)
	}
	return p
}

// Close leaves the wrapped engine open, for it may be shared.
func (f *Faulty) Close() error { return nil }

// Late returns how many delayed or duplicated Updates wait for Deliver.
func (f *Faulty) Late() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.late)
}

// Deliver lets the i-th of the waiting Updates arrive, and keep says whether it may arrive once more.
func (f *Faulty) Deliver(ctx context.Context, i int, keep bool) error {
	f.mu.Lock()
	p := f.late[i]
	if !keep {
		f.late = append(f.late[:i:i], f.late[i+1:]...)
	}
	f.mu.Unlock()
	_, err := f.Engine.Update(ctx, p.checks, p.writes)
	return err
}
