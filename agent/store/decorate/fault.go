package decorate

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"

	"github.com/restripe/restripe/agent/store"
)

// Fault makes operations fail as Rule says. Rule is called once per operation and may be called concurrently; nil
// injects nothing.
type Fault struct {
	Rule func(Call) Effect

	mu    sync.Mutex
	calls map[operationKey]int
}

type operationKey struct {
	operation Operation
	key       string
}

// Call is what a rule decides on.
type Call struct {
	Operation Operation
	Key       string // prefix for a listing
	Size      int    // bytes of the value to create, or of the buffer to read into
	Number    int    // how often this operation was called on this key before
}

// Effect is what happens to one call. The zero Effect is none. Fields are honoured in this order.
type Effect struct {
	Gate   <-chan struct{} // the call waits until the gate is closed or the context ends
	Refuse error           // the call fails with this error and does nothing
	Torn   bool            // Create stores only the first half, and fails with ErrInjected; ReadAt yields its bytes with one bit flipped
	Lose   error           // the call is carried out, and then fails with this error: its acknowledgement is lost
}

// ErrInjected is wrapped by errors that a Fault makes up. It is not definite: the outcome is unknown.
var ErrInjected = errors.New("injected fault")

// FullDisk is a rule: nothing more can be created.
func FullDisk(call Call) Effect {
	if call.Operation == Create {
		return Effect{Refuse: fmt.Errorf("%w: %w", ErrInjected, store.ErrFull)}
	}
	return Effect{}
}

// Odds are probabilities between 0 and 1 for Seeded.
type Odds struct {
	Refuse float64 // fails with ErrDown, nothing done
	Lose   float64 // done, but fails with ErrDown
	Torn   float64 // half a value, or a flipped bit
}

// Seeded is a rule by lot. Whether a call fails depends on seed, operation, key and the call's number alone, so that
// a run is repeated whatever the order in which goroutines come.
func Seeded(seed uint64, odds Odds) func(Call) Effect {
	return func(call Call) Effect {
		hash := fnv.New64a()
		fmt.Fprintf(hash, "%s %s", call.Operation, call.Key)
		lot := rand.New(rand.NewPCG(seed, hash.Sum64()^uint64(call.Number)*0x9e3779b97f4a7c15)).Float64()
		down := fmt.Errorf("%w: %w", ErrInjected, store.ErrDown)
		switch {
		case lot < odds.Refuse:
			return Effect{Refuse: down}
		case lot < odds.Refuse+odds.Lose:
			return Effect{Lose: down}
		case lot < odds.Refuse+odds.Lose+odds.Torn && (call.Operation == Create || call.Operation == ReadAt):
			return Effect{Torn: true}
		}
		return Effect{}
	}
}

// Wrap puts the faults around inner.
func (f *Fault) Wrap(inner store.Store) store.Store {
	return keepLister(inner, &faulty{inner, f}, func(ctx context.Context, prefix string, call func() error) error {
		effect, err := f.begin(ctx, List, prefix, 0)
		if err != nil {
			return err
		}
		return effect.end(List, prefix, call())
	})
}

// begin asks the rule, waits at the gate and refuses.
func (f *Fault) begin(ctx context.Context, operation Operation, key string, size int) (Effect, error) {
	if f.Rule == nil {
		return Effect{}, nil
	}
	f.mu.Lock()
	if f.calls == nil {
		f.calls = map[operationKey]int{}
	}
	number := f.calls[operationKey{operation, key}]
	f.calls[operationKey{operation, key}]++
	f.mu.Unlock()
	effect := f.Rule(Call{Operation: operation, Key: key, Size: size, Number: number})
	if effect.Gate != nil {
		select {
		case <-effect.Gate:
		case <-ctx.Done():
			return effect, fmt.Errorf("%s %q: waiting at a gate: %w", operation, key, ctx.Err())
		}
	}
	if effect.Refuse != nil {
		return effect, fmt.Errorf("%s %q: %w", operation, key, effect.Refuse)
	}
	return effect, nil
}

// end loses the acknowledgement of a call that ended with err.
func (e Effect) end(operation Operation, key string, err error) error {
	if err == nil && e.Lose != nil {
		return fmt.Errorf("%s %q: acknowledgement lost: %w", operation, key, e.Lose)
	}
	return err
}

type faulty struct {
	store.Store
	fault *Fault
}

func (s *faulty) Create(ctx context.Context, key string, value []byte) error {
	effect, err := s.fault.begin(ctx, Create, key, len(value))
	if err != nil {
		return err
	}
	if effect.Torn {
		if err := s.Store.Create(ctx, key, value[:len(value)/2]); err != nil {
			return err
		}
		return fmt.Errorf("create %q: torn after %d of %d bytes: %w", key, len(value)/2, len(value), ErrInjected)
	}
	return effect.end(Create, key, s.Store.Create(ctx, key, value))
}

func (s *faulty) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	effect, err := s.fault.begin(ctx, ReadAt, key, len(p))
	if err != nil {
		return 0, err
	}
	count, err := s.Store.ReadAt(ctx, key, p, offset)
	if effect.Torn && err == nil && count > 0 {
		p[count/2] ^= 1
	}
	if err = effect.end(ReadAt, key, err); err != nil {
		return 0, err
	}
	return count, nil
}

func (s *faulty) Delete(ctx context.Context, key string) error {
	effect, err := s.fault.begin(ctx, Delete, key, 0)
	if err != nil {
		return err
	}
	return effect.end(Delete, key, s.Store.Delete(ctx, key))
}

func (s *faulty) Info(ctx context.Context) (store.Info, error) {
	effect, err := s.fault.begin(ctx, Info, "", 0)
	if err != nil {
		return store.Info{}, err
	}
	info, err := s.Store.Info(ctx)
	if err = effect.end(Info, "", err); err != nil {
		return store.Info{}, err
	}
	return info, nil
}
