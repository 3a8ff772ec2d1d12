package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/restripe/restripe/agent/catalog/etcd"
	"github.com/restripe/restripe/agent/catalog/kv"
)

// Reads of more keys than one transaction has, listings and watches go on while the members forget what was; a snapshot ends, and says so.
func TestCompaction(t *testing.T) {
	t.Parallel()
	members := start(t, 1, nil)
	client := members.client(t)
	engine := shut(t, open(t, members.address(""), alone))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const count = 2500
	var keys []string
	for i := range count {
		keys = append(keys, fmt.Sprintf("k/%04d", i))
	}
	write := func(value string) {
		writes := make([]kv.Write, count)
		for i := range writes {
			writes[i] = kv.Write{Key: keys[i], Value: []byte(value), Notify: i == 0}
		}
		if _, err := engine.Update(ctx, nil, writes); err != nil {
			t.Error(err)
		}
	}
	write("0")
	held, err := engine.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	tokens := engine.Watch(ctx, keys[0])
	<-tokens
	var done atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		for i := 1; !done.Load(); i++ {
			write(strconv.Itoa(i))
			select {
			case <-tokens:
			case <-ctx.Done():
				t.Error("the watch hears nothing")
				return
			}
			now, err := client.Get(ctx, "none")
			if err == nil {
				_, err = client.Compact(ctx, now.Header.Revision)
			}
			if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
				t.Error(err)
			}
		}
	})
	for i := range 15 {
		values, err := engine.Read(ctx, keys...)
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range values {
			if string(value) != string(values[0]) {
				t.Fatalf("read %d is not of one instant: %q and %q", i, value, values[0])
			}
		}
		records, err := engine.Scan(ctx, "k/", "", count)
		if err != nil || len(records) != count || string(records[0].Value) != string(records[count-1].Value) {
			t.Fatalf("listing %d has %d records, %v", i, len(records), err)
		}
	}
	done.Store(true)
	all.Wait()
	_, err = held.Scan(ctx, "k/", "", 10)
	if err == nil || !strings.Contains(err.Error(), "--auto-compaction-retention") {
		t.Errorf("a snapshot that is compacted says %v", err)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
}

// Members die under load: one, and the others go on; most of them, and nobody answers until they are back. Nothing that was
// acknowledged is lost, counted twice or untold of.
func TestFullMembersDie(t *testing.T) {
	leave(t)
	t.Parallel()
	members := start(t, 3, nil)
	engine := shut(t, open(t, members.address("")))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	const clients = 8
	var acknowledged, unknown [clients]atomic.Int64
	var over atomic.Bool
	var all sync.WaitGroup
	defer all.Wait()
	defer over.Store(true)
	for client := range clients {
		all.Go(func() {
			key := fmt.Sprintf("n/%d", client)
			for !over.Load() && ctx.Err() == nil {
				_, err := engine.Update(ctx, nil, []kv.Write{
					{Key: key, Kind: kv.Increment, Add: 1}, {Key: "version", Value: []byte("x"), Notify: true},
				})
				if err == nil {
					acknowledged[client].Add(1)
				} else {
					unknown[client].Add(1)
				}
			}
		})
	}
	tokens := engine.Watch(ctx, "version")
	goOn := func(what string) {
		t.Helper()
		for client := range clients {
			before := acknowledged[client].Load()
			await(t, what, func(context.Context) bool { return acknowledged[client].Load() >= before+5 })
		}
		for range 2 { // one may be there from before
			select {
			case <-tokens:
			case <-ctx.Done():
				t.Fatalf("%s: the watch hears nothing", what)
			}
		}
	}
	goOn("work at first")
	led := members.leader(t)
	led.kill(t)
	goOn("work without the leader")
	next := members.leader(t)
	next.kill(t)
	await(t, "a refusal for want of a leader", func(context.Context) bool {
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		_, err := engine.Read(short, "version")
		return errors.Is(err, context.DeadlineExceeded)
	})
	led.run(t)
	goOn("work with one that is back")
	next.run(t)
	members.leader(t)
	goOn("work with all")
	over.Store(true)
	all.Wait()
	for client := range clients {
		values, err := engine.Read(ctx, fmt.Sprintf("n/%d", client))
		if err != nil {
			t.Fatal(err)
		}
		count, err := strconv.ParseInt(string(values[0]), 10, 64)
		if least := acknowledged[client].Load(); err != nil || count < least || count > least+unknown[client].Load() {
			t.Errorf("client %d counted %s, %v; %d were acknowledged, of %d nobody knows", client, values[0], err, least, unknown[client].Load())
		}
	}
}

// A leader that stood still, and does not know yet that there is another, does not answer with what was.
func TestAFormerLeader(t *testing.T) {
	t.Parallel()
	members := start(t, 3, nil)
	led := members.leader(t)
	var rest cluster
	for _, m := range members {
		if m != led {
			rest = append(rest, m)
		}
	}
	former := shut(t, open(t, cluster{led}.address("")))
	all := shut(t, open(t, members.address("")))
	others := shut(t, open(t, rest.address("")))
	ctx := t.Context()
	update := func(engine *etcd.Engine, value string) func(context.Context) bool {
		return func(context.Context) bool {
			_, err := engine.Update(ctx, nil, []kv.Write{{Key: "a", Value: []byte(value)}})
			return err == nil
		}
	}
	await(t, "a first update", update(former, "before"))
	if err := led.process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await(t, "an update by others", update(others, "after"))
	values, err := all.Read(ctx, "a") // also by way of the one that stands still
	for range 2 {
		if err != nil || string(values[0]) != "after" {
			t.Errorf("beside one that stands still %q is read, %v", values, err)
		}
		values, err = all.Read(ctx, "a")
	}
	if err := led.process.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await(t, "an answer by the one that stood still", func(context.Context) bool {
		values, err := former.Read(ctx, "a")
		if err == nil && string(values[0]) != "after" {
			t.Errorf("the former leader answers with %q", values[0])
		}
		return err == nil
	})
}

// Members say how far they are, one that has died says nothing, and to ask again for a counter that another process changed is counted.
func TestReplicasAndRetries(t *testing.T) {
	t.Parallel()
	members := start(t, 3, nil)
	engine, other := shut(t, open(t, members.address(""))), shut(t, open(t, members.address("")))
	one := []kv.Write{{Key: "one", Kind: kv.Increment, Add: 1}}
	for _, each := range []*etcd.Engine{engine, other, engine} {
		if failed, err := each.Update(t.Context(), nil, one); err != nil || failed != nil {
			t.Fatal(failed, err)
		}
	}
	if counted := engine.Retries()[kv.RetryConflict]; counted != 1 {
		t.Errorf("%d conflicts were counted, want 1", counted)
	}
	if counted, known := other.Retries()[kv.RetryUnavailable]; !known || counted != 0 {
		t.Errorf("who met no fault counts %v", other.Retries())
	}
	await(t, "three members that have all", func(ctx context.Context) bool {
		replicas, err := engine.Replicas(ctx)
		return err == nil && len(replicas) == 3 && !slices.ContainsFunc(replicas, func(r kv.Replica) bool {
			return !r.Up || r.LagEntries != 0 || r.LagBytes != -1
		})
	})
	died := members[0]
	died.kill(t)
	await(t, "two members that have all, and one that is gone", func(ctx context.Context) bool {
		replicas, err := engine.Replicas(ctx)
		return err == nil && len(replicas) == 3 && !slices.ContainsFunc(replicas, func(r kv.Replica) bool {
			if r.Name == died.settings.Client {
				return r.Up || r.LagEntries != -1
			}
			return !r.Up || r.LagEntries != 0
		})
	})
}

// Who increments what another process has changed since counts right.
func TestCountersOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	members := start(t, 1, nil)
	engines := [3]*etcd.Engine{}
	for i := range engines {
		engines[i] = shut(t, open(t, members.address(""), alone))
	}
	ctx := t.Context()
	var all sync.WaitGroup
	for i := range 12 {
		engine := engines[i%len(engines)]
		all.Go(func() {
			for range 20 {
				failed, err := engine.Update(ctx, nil, []kv.Write{
					{Key: "one", Kind: kv.Increment, Add: 1}, {Key: "two", Kind: kv.Increment, Add: -2}, {Key: "three", Kind: kv.Increment, Add: 3},
				})
				if err != nil || failed != nil {
					t.Error(failed, err)
				}
			}
		})
	}
	all.Wait()
	values, err := engines[0].Read(ctx, "one", "two", "three")
	if err != nil || string(values[0]) != "240" || string(values[1]) != "-480" || string(values[2]) != "720" {
		t.Errorf("counted are %q, %v", values, err)
	}
	now, err := members.client(t).Get(ctx, "restripe/restripe/r/one", clientv3.WithSerializable())
	if err != nil || len(now.Kvs) != 1 {
		t.Errorf("a counter is not where it should be: %v, %v", now, err)
	}
}
