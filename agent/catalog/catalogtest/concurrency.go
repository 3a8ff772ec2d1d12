package catalogtest

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

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
				nearby, isNearby := engine.(kv.Nearby)
				switch {
				case r == 0 && isNearby:
					var known bool
					if got, known = nearby.ReadAllNow(keys); !known {
						continue
					}
				case r%2 == 0:
					got, err = engine.Read(ctx, keys...)
				default:
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

// crash checks that everything acknowledged is there after the engine died in the middle of updates.
func crash(t *testing.T, instance Instance) {
	if instance.Crash == nil {
		t.Skip("the engine does not outlive its process")
	}
	ctx := deadline(t)
	var acknowledged, unclear [clients]int
	var all sync.WaitGroup
	var total atomic.Int64
	var over atomic.Bool // also where others go on serving what one did
	enough := make(chan struct{})
	for client := range clients {
		all.Go(func() {
			for i := 1; !over.Load(); i++ {
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
		over.Store(true)
		all.Wait()
		t.Fatal("no 200 updates within the time of the test")
	}
	again := instance.Crash()
	over.Store(true)
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
