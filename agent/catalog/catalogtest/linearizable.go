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
	{registers: 1, clients: 8}, {registers: 1, clients: 8}, {registers: 1, clients: 8}, {registers: 1, clients: 8},
	{registers: 2, clients: 5}, {registers: 1, counter: true, clients: 3},
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

// model is what a family may do. No value is written twice, so that a swap that arrives once more changes nothing, and who reads a
// value tells that its swap was made.
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
			if holds := s[in.register] == in.check; holds == out.failed {
				return nil
			} else if holds {
				s[in.register] = in.value
			}
			return []any{s}
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

// settled is the history without swaps of unknown outcome. One whose value was read was made, before that read ended; of another, whose
// value nobody read, not even at the end, nothing came: it could be undone by none but a swap of who read it. So the search for an order
// has nothing to guess, of which it would not come to an end.
func (h *history) settled() []porcupine.Operation {
	type value struct {
		family int
		text   string
	}
	seen := map[value]int64{}
	for _, operation := range h.operations {
		for _, text := range operation.Output.(reply).values {
			at := value{operation.Input.(call).family, text}
			if before, known := seen[at]; !known || operation.Return < before {
				seen[at] = operation.Return
			}
		}
	}
	var settled []porcupine.Operation
	for _, operation := range h.operations {
		in, out := operation.Input.(call), operation.Output.(reply)
		if out.unknown && in.kind == "swap" {
			read, made := seen[value{in.family, in.value}]
			if !made {
				continue
			}
			operation.Output, operation.Return = reply{}, read
		}
		settled = append(settled, operation)
	}
	slices.SortStableFunc(settled, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return settled
}

// check reads how the records are in the end, and looks for an order that explains all that clients were told. That none was found
// in time is a failure like any other.
func (h *history) check(ctx context.Context, t *testing.T, engine kv.Engine) {
	t.Helper()
	for index := range families {
		if _, err := h.read(ctx, engine, index, -1); err != nil {
			t.Error(err)
		}
	}
	if result := porcupine.CheckOperationsTimeout(model.ToModel(), h.settled(), time.Minute); result != porcupine.Ok {
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
				adds := true
				for round := range rounds {
					known, err := h.step(ctx, engine, index, name, round, adds, random)
					if err != nil {
						t.Error(err)
						return
					}
					adds = adds && known
					done()
				}
			})
		}
	}
	all.Wait()
}

// read reads a family until it is answered.
func (h *history) read(ctx context.Context, engine kv.Engine, index, client int) (seen contents, err error) {
	for {
		began := time.Since(h.began)
		values, err := engine.Read(ctx, families[index].keys(index)...)
		switch {
		case ctx.Err() != nil:
			return seen, fmt.Errorf("client %d: no answer within the time of the test: %w", client, errors.Join(err, ctx.Err()))
		case err != nil:
			breathe(ctx)
			continue
		}
		for i := range values {
			seen[i] = string(values[i])
		}
		h.add(client, call{family: index, kind: "read"}, reply{values: seen}, began)
		return seen, nil
	}
}

// step does one operation, after a read that was answered: what is swapped is what was seen last. It reports whether the outcome is
// known; after an addition of which it is not a client adds no more, as nothing would tell how many were made.
func (h *history) step(
	ctx context.Context, engine kv.Engine, index, client, round int, adds bool, random *rand.Rand,
) (known bool, err error) {
	family := families[index]
	keys := family.keys(index)
	seen, err := h.read(ctx, engine, index, client)
	if err != nil {
		return false, err
	}
	in := call{family: index, kind: "swap", register: random.IntN(len(keys)), value: fmt.Sprintf("%d-%d", client, round)}
	write := kv.Write{Key: keys[in.register], Value: []byte(in.value)}
	checks := []kv.Check{{Key: keys[in.register]}}
	if in.check = seen[in.register]; in.check != "" {
		checks[0].Value = []byte(in.check)
	}
	if family.counter && in.register == len(keys)-1 {
		if !adds {
			return true, nil
		}
		in.kind, checks = "add", nil
		write = kv.Write{Key: keys[in.register], Kind: kv.Increment, Add: 1}
	}
	began := time.Since(h.began)
	failed, err := engine.Update(ctx, checks, []kv.Write{write})
	h.add(client, in, reply{failed: len(failed) > 0, unknown: err != nil}, began)
	return err == nil || in.kind != "add", nil
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
	ctx := deadline(t)
	h := &history{began: time.Now()}
	h.run(ctx, t, instance.Engine, seedOf(t), func() {})
	if _, unknown := h.counts(); unknown > 0 {
		t.Errorf("%d updates were not answered, though nothing failed", unknown)
	}
	h.check(ctx, t, instance.Engine)
}

// linearizableThroughFaults runs them where requests and answers are lost.
func linearizableThroughFaults(t *testing.T, instance Instance) {
	seed, ctx := seedOf(t), deadline(t)
	h := &history{began: time.Now()}
	h.run(ctx, t, through(t, instance, seed), seed, func() {})
	all, unknown := h.counts()
	t.Logf("of %d operations %d have an unknown outcome", all, unknown)
	if unknown < 10 {
		t.Errorf("%d updates were not answered: this tests little", unknown)
	}
	h.check(ctx, t, instance.Engine)
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
	h.check(ctx, t, engine)
	if err := engine.Close(); err != nil {
		t.Error(err)
	}
}

// seedOf draws the seed of a test, and says it.
func seedOf(t *testing.T) uint64 {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return seed
}
