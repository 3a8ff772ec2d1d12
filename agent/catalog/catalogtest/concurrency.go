package catalogtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/restripe/restripe/agent/catalog/kv"
)

const clients = 16

// snapshotReads checks that reads and listings are of one instant while updates of several records go on.
func snapshotReads(t *testing.T, instance Instance) {
	engine, ctx := instance.Engine, deadline(t)
	keys := []string{"s/a", "s/b", "s/c"}
	write := func(value string) error {
		_, err := engine.Update(ctx, nil, []kv.Write{set(keys[0], value), set(keys[1], value), set(keys[2], value)})
		return err
	}
	if err := write("0"); err != nil {
		t.Fatal(err)
	}
	var done atomic.Bool
	var writers, all sync.WaitGroup
	for w := range 4 {
		writers.Add(1)
		all.Go(func() {
			defer writers.Done()
			for i := range 50 {
				if err := write(fmt.Sprintf("%d-%d", w, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Go(func() { writers.Wait(); done.Store(true) })
	for r := range 4 {
		all.Go(func() {
			for !done.Load() {
				var got [][]byte
				var err error
				if r%2 == 0 {
					got, err = engine.Read(ctx, keys...)
				} else {
					var records []kv.Record
					records, err = engine.Scan(ctx, "s/", "", 10)
					for _, record := range records {
						got = append(got, record.Value)
					}
				}
				if err != nil || len(got) != 3 || string(got[0]) != string(got[1]) || string(got[1]) != string(got[2]) {
					t.Errorf("not of one instant: %q, %v", got, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// oneWinner checks that of many updates with the same condition exactly one is made.
func oneWinner(t *testing.T, instance Instance) {
	engine, ctx := instance.Engine, deadline(t)
	for round := range 10 {
		key := fmt.Sprintf("winner/%d", round)
		var wins atomic.Int64
		var winner atomic.Value
		var all sync.WaitGroup
		for client := range clients {
			all.Go(func() {
				name := strconv.Itoa(client)
				failed, err := engine.Update(ctx, []kv.Check{{Key: key}}, []kv.Write{set(key, name)})
				if err != nil {
					t.Error(err)
				} else if len(failed) == 0 {
					wins.Add(1)
					winner.Store(name)
				}
			})
		}
		all.Wait()
		if got := string(read(t, engine, key)[0]); wins.Load() != 1 || got != winner.Load() {
			t.Fatalf("round %d: %d winners, the record says %s", round, wins.Load(), got)
		}
	}
}

// coalescing checks that updates that share a transaction are answered by themselves, and that nobody starves: every
// client has its own record, which never conflicts, and all of them fight for one more.
func coalescing(t *testing.T, instance Instance) {
	engine, ctx := instance.Engine, deadline(t)
	const rounds = 25
	var all sync.WaitGroup
	var conflicts atomic.Int64
	for client := range clients {
		all.Go(func() {
			own := fmt.Sprintf("own/%d", client)
			var value []byte
			for i := range rounds {
				next := []byte(strconv.Itoa(i))
				failed, err := engine.Update(ctx, []kv.Check{{Key: own, Value: value}},
					[]kv.Write{{Key: own, Value: next}, {Key: "sum", Kind: kv.Increment, Add: 1}})
				if err != nil || len(failed) > 0 {
					t.Errorf("client %d, round %d: an update nobody disturbs: %v, %v", client, i, failed, err)
					return
				}
				value = next
				shared, err := engine.Read(ctx, "shared")
				if err != nil {
					t.Error(err)
					return
				}
				failed, err = engine.Update(ctx, []kv.Check{{Key: "shared", Value: shared[0]}},
					[]kv.Write{set("shared", fmt.Sprintf("%d-%d", client, i)), {Key: "shared sum", Kind: kv.Increment, Add: 1}})
				if err != nil {
					t.Error(err)
				}
				conflicts.Add(int64(len(failed)))
			}
		})
	}
	all.Wait()
	got := read(t, engine, "sum", "shared sum")
	if string(got[0]) != strconv.Itoa(clients*rounds) {
		t.Errorf("%s updates were made, want %d", got[0], clients*rounds)
	}
	if want := int64(clients*rounds) - conflicts.Load(); string(got[1]) != strconv.FormatInt(want, 10) {
		t.Errorf("%s updates of the shared record were made, %d were answered so", got[1], want)
	}
}

// call and reply are one operation of the linearizability check, over two registers and a counter.
type call struct {
	kind     string // read, swap, add
	register int
	check    string
	value    string
}

type reply struct {
	values [3]string
	failed bool
}

type registers [3]string

var model = porcupine.Model{
	Init: func() any { return registers{"", "", "0"} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(registers), input.(call), output.(reply)
		switch in.kind {
		case "read":
			return out.values == [3]string(s), s
		case "swap":
			holds := s[in.register] == in.check
			if holds == out.failed {
				return false, s
			}
			if holds {
				s[in.register] = in.value
			}
			return true, s
		default:
			count, err := strconv.Atoi(s[2])
			if err != nil {
				return false, s
			}
			s[2] = strconv.Itoa(count + 1)
			return true, s
		}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// linearizable runs clients against three records and looks for an order that explains all they were told.
func linearizable(t *testing.T, instance Instance) {
	engine, ctx := instance.Engine, deadline(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	keys := []string{"lin/0", "lin/1", "lin/n"}
	update(t, engine, nil, set(keys[0], ""), set(keys[1], ""), set(keys[2], "0"))
	start := time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(client)))
			seen := [3]string{}
			for i := range 25 {
				in := call{kind: "read"}
				switch register := random.IntN(2); random.IntN(4) {
				case 0:
					in = call{kind: "add"}
				case 1, 2:
					in = call{"swap", register, seen[register], fmt.Sprintf("%d-%d", client, i)}
				}
				began := time.Since(start)
				out, err := perform(ctx, engine, keys, in)
				ended := time.Since(start)
				if err != nil {
					t.Error(err)
					return
				}
				if in.kind == "read" {
					seen = out.values
				}
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: int64(began), Return: int64(ended)})
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if result := porcupine.CheckOperationsTimeout(model, history, 20*time.Second); result != porcupine.Ok {
		t.Errorf("%d operations by %d clients: %s", len(history), clients, result)
	}
}

func perform(ctx context.Context, engine kv.Engine, keys []string, in call) (out reply, err error) {
	switch in.kind {
	case "read":
		values, err := engine.Read(ctx, keys...)
		if err != nil {
			return out, err
		}
		for i := range values {
			out.values[i] = string(values[i])
		}
		return out, nil
	case "swap":
		failed, err := engine.Update(ctx, []kv.Check{{Key: keys[in.register], Value: []byte(in.check)}},
			[]kv.Write{set(keys[in.register], in.value)})
		return reply{failed: len(failed) > 0}, err
	default:
		_, err := engine.Update(ctx, nil, []kv.Write{{Key: keys[2], Kind: kv.Increment, Add: 1}})
		return out, err
	}
}

// crash checks that everything acknowledged is there after the engine died in the middle of updates.
func crash(t *testing.T, instance Instance) {
	if instance.Crash == nil {
		t.Skip("the engine does not outlive its process")
	}
	ctx := deadline(t)
	var acknowledged, unclear [clients]int
	var all sync.WaitGroup
	var total atomic.Int64
	enough := make(chan struct{})
	for client := range clients {
		all.Go(func() {
			for i := 1; i <= 10000; i++ {
				_, err := instance.Engine.Update(ctx, nil, []kv.Write{set(fmt.Sprintf("crash/%d", client), strconv.Itoa(i))})
				if err != nil {
					unclear[client] = i
					return
				}
				acknowledged[client] = i
				if total.Add(1) == 200 {
					close(enough)
				}
			}
		})
	}
	select {
	case <-enough:
	case <-ctx.Done():
		t.Fatal("no 200 updates within the time of the test")
	}
	again := instance.Crash()
	all.Wait()
	defer func() {
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}()
	for client := range clients {
		got := 0
		if value := read(t, again, fmt.Sprintf("crash/%d", client))[0]; value != nil {
			var err error
			if got, err = strconv.Atoi(string(value)); err != nil {
				t.Fatal(err)
			}
		}
		if got != acknowledged[client] && got != unclear[client] {
			t.Errorf("client %d: %d was acknowledged, %d was on its way, the engine has %d", client, acknowledged[client], unclear[client], got)
		}
	}
}
