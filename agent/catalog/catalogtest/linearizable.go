package catalogtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/restripe/restripe/agent/catalog/kv"
)

// family is some records that are read together: registers, which are swapped, and a counter. Families share no record, so that
// each has an order of its own; many of few records are checked fast, however much an engine overlaps what it does.
type family struct {
	registers int
	counter   bool
	clients   int
}

var families = []family{
	{registers: 1, clients: 8}, {registers: 1, clients: 8}, {registers: 1, clients: 8}, {registers: 1, clients: 8}, {registers: 2, clients: 5},
	{registers: 1, counter: true, clients: 3},
}

// rounds is how many operations each client of a family does.
const rounds = 25

// keys of a family; the counter is the last one.
func (f family) keys(index int) []string {
	var keys []string
	for i := range f.registers {
		keys = append(keys, fmt.Sprintf("lin/%d/%d", index, i))
	}
	if f.counter {
		keys = append(keys, fmt.Sprintf("lin/%d/n", index))
	}
	return keys
}

// call and reply are one operation on a family.
type call struct {
	family   int
	kind     string // read, swap, add
	register int
	check    string
	value    string
}

type reply struct {
	values  [2]string // of a read
	failed  bool
	unknown bool // nobody knows whether it was done
}

// contents of a family; those of absent records are empty.
type contents [2]string

// model is what a family may do. No value is written twice, so that a swap that arrives once more changes nothing.
var model = porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := make([][]porcupine.Operation, len(families))
		for _, operation := range history {
			family := operation.Input.(call).family
			parts[family] = append(parts[family], operation)
		}
		return parts
	},
	Init: func() []any { return []any{contents{}} },
	Step: func(state, input, output any) []any {
		s, in, out := state.(contents), input.(call), output.(reply)
		switch in.kind {
		case "read":
			if out.values != [2]string(s) {
				return nil
			}
			return []any{s}
		case "swap":
			holds := s[in.register] == in.check
			next := s
			next[in.register] = in.value
			switch {
			case out.unknown && holds:
				return []any{s, next}
			case out.unknown, out.failed && !holds:
				return []any{s}
			case out.failed || !holds:
				return nil
			}
			return []any{next}
		default:
			count, _ := strconv.Atoi(s[in.register]) // an absent counter is 0
			next := s
			next[in.register] = strconv.Itoa(count + 1)
			if out.unknown {
				return []any{s, next}
			}
			return []any{next}
		}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// history is what clients were told.
type history struct {
	mutex      sync.Mutex
	began      time.Time
	operations []porcupine.Operation
}

// add notes an operation. One whose outcome is unknown may be done at any time after it began, or never.
func (h *history) add(client int, in call, out reply, began time.Duration) {
	operation := porcupine.Operation{ClientId: client, Input: in, Output: out, Call: int64(began), Return: int64(time.Since(h.began))}
	if out.unknown {
		operation.Return = math.MaxInt64
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.operations = append(h.operations, operation)
}

// counts returns how many operations there are, and of how many nobody knows whether they were done.
func (h *history) counts() (all, unknown int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, operation := range h.operations {
		if operation.Output.(reply).unknown {
			unknown++
		}
	}
	return len(h.operations), unknown
}

// check looks for an order that explains all that clients were told. That none was found in time is a failure like any other.
func (h *history) check(t *testing.T) {
	t.Helper()
	slices.SortStableFunc(h.operations, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	if result := porcupine.CheckOperationsTimeout(model.ToModel(), h.operations, time.Minute); result != porcupine.Ok {
		all, unknown := h.counts()
		t.Errorf("%d operations, of which %d have an unknown outcome: linearizable: %s", all, unknown, result)
	}
}

// run has all clients of all families do their operations over an engine that may fail. done is told of every operation.
func (h *history) run(ctx context.Context, t *testing.T, engine kv.Engine, seed uint64, done func()) {
	t.Helper()
	var all sync.WaitGroup
	client := 0
	for index, family := range families {
		for range family.clients {
			name := client
			client++
			all.Go(func() {
				random := rand.New(rand.NewPCG(seed, uint64(name)))
				for round := range rounds {
					if err := h.step(ctx, engine, index, name, round, random); err != nil {
						t.Error(err)
						return
					}
					done()
				}
			})
		}
	}
	all.Wait()
}

// step does one operation, after a read that was answered: what is swapped is what was seen last.
func (h *history) step(ctx context.Context, engine kv.Engine, index, client, round int, random *rand.Rand) error {
	family := families[index]
	keys := family.keys(index)
	var seen [2]string
	for answered := false; !answered; {
		began := time.Since(h.began)
		values, err := engine.Read(ctx, keys...)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("client %d: no answer within the time of the test: %w", client, errors.Join(err, ctx.Err()))
		case err != nil:
			breathe(ctx)
			continue
		}
		for i := range values {
			seen[i] = string(values[i])
		}
		h.add(client, call{family: index, kind: "read"}, reply{values: seen}, began)
		answered = true
	}
	in := call{family: index, kind: "swap", register: random.IntN(len(keys)), value: fmt.Sprintf("%d-%d", client, round)}
	write := kv.Write{Key: keys[in.register], Value: []byte(in.value)}
	checks := []kv.Check{{Key: keys[in.register]}}
	if in.check = seen[in.register]; in.check != "" {
		checks[0].Value = []byte(in.check)
	}
	if family.counter && in.register == len(keys)-1 {
		in.kind, checks = "add", nil
		write = kv.Write{Key: keys[in.register], Kind: kv.Increment, Add: 1}
	}
	began := time.Since(h.began)
	failed, err := engine.Update(ctx, checks, []kv.Write{write})
	h.add(client, in, reply{failed: len(failed) > 0, unknown: err != nil}, began)
	return nil
}

// breathe waits for a moment, or the end of the test.
func breathe(ctx context.Context) {
	select {
	case <-time.After(2 * time.Millisecond):
	case <-ctx.Done():
	}
}

// linearizable runs clients that are always answered.
func linearizable(t *testing.T, instance Instance) {
	h := &history{began: time.Now()}
	h.run(deadline(t), t, instance.Engine, seedOf(t), func() {})
	if _, unknown := h.counts(); unknown > 0 {
		t.Errorf("%d updates were not answered, though nothing failed", unknown)
	}
	h.check(t)
}

// linearizableThroughFaults runs them where requests and answers are lost.
func linearizableThroughFaults(t *testing.T, instance Instance) {
	seed := seedOf(t)
	h := &history{began: time.Now()}
	h.run(deadline(t), t, through(t, instance, seed), seed, func() {})
	if _, unknown := h.counts(); unknown < 10 {
		t.Errorf("%d updates were not answered: this tests little", unknown)
	}
	h.check(t)
}

// linearizableOverACrash ends what serves the records in the middle: what was acknowledged is there afterwards, what was not may be.
func linearizableOverACrash(t *testing.T, instance Instance) {
	if instance.Crash == nil || instance.Dial == nil {
		t.Skip("nothing serves the records that could end by itself")
	}
	seed, ctx := seedOf(t), deadline(t)
	engine, err := instance.Dial(instance.Server)
	if err != nil {
		t.Fatal(err)
	}
	half := make(chan struct{})
	var did sync.WaitGroup
	total, mutex := 0, sync.Mutex{}
	for _, family := range families {
		total += family.clients * rounds
	}
	done := func() {
		mutex.Lock()
		defer mutex.Unlock()
		if total--; total == 400 {
			close(half)
		}
	}
	did.Go(func() {
		select {
		case <-half:
			if err := instance.Crash().Close(); err != nil {
				t.Error(err)
			}
		case <-ctx.Done():
		}
	})
	h := &history{began: time.Now()}
	h.run(ctx, t, engine, seed, done)
	did.Wait()
	if err := engine.Close(); err != nil {
		t.Error(err)
	}
	h.check(t)
}

// seedOf draws the seed of a test, and says it.
func seedOf(t *testing.T) uint64 {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return seed
}
