package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/postgres/postgrestest"
)

// newest is the newest release that is here.
func newest(t *testing.T) string {
	t.Helper()
	all := programs(t)
	return all[len(all)-1]
}

// session is one beside those of engines.
func session(t *testing.T, s *postgrestest.Server) *pgconn.PgConn {
	t.Helper()
	connection, err := pgconn.Connect(t.Context(), s.Address(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close(context.Background()) }) // its server may be gone
	return connection
}

// say has statements done, and returns the first column of what the last one answers.
func say(t *testing.T, connection *pgconn.PgConn, statements string) (column []string) {
	t.Helper()
	results, err := connection.Exec(t.Context(), statements).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
	for _, row := range results[len(results)-1].Rows {
		column = append(column, string(row[0]))
	}
	return column
}

// shut closes an engine.
func shut(t *testing.T, engine kv.Engine) {
	t.Helper()
	if err := engine.Close(); err != nil {
		t.Error(err)
	}
}

// put stores a value, which is answered.
func put(ctx context.Context, t *testing.T, engine kv.Engine, key, value string) {
	t.Helper()
	if failed, err := engine.Update(ctx, nil, []kv.Write{{Key: key, Value: []byte(value)}}); err != nil || failed != nil {
		t.Fatalf("storing %s: %v, %v", key, failed, err)
	}
}

// A lock that another client keeps is waited for, even where the server gives up on it, and a caller who goes is let go.
func TestLocksOfOthers(t *testing.T) {
	s := postgrestest.Start(t, newest(t))
	engine := open(t, s.Address("lock_timeout=20"))
	defer shut(t, engine)
	put(t.Context(), t, engine, "k", "first")
	other := session(t, s)
	say(t, other, "begin; select 1 from restripe.records for update")
	limited, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := engine.Update(limited, nil, []kv.Write{{Key: "k", Value: []byte("of who has gone")}})
		gone <- err
	}()
	waits := func() bool { return len(say(t, other, "select 1 from pg_locks where not granted")) > 0 }
	await(t, "the update waits", waits)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone is told %v", err)
	}
	stays := make(chan error, 1)
	go func() {
		failed, err := engine.Update(t.Context(), []kv.Check{{Key: "k", Value: []byte("first")}}, []kv.Write{{Key: "k", Value: []byte("second")}})
		if failed != nil {
			err = errors.Join(err, errors.New("the check failed"))
		}
		stays <- err
	}()
	refusals := func() int { return strings.Count(s.Log(), "canceling statement due to lock timeout") }
	before := refusals()
	await(t, "the server has refused it again", func() bool { return refusals() > before+2 })
	say(t, other, "commit")
	if err := <-stays; err != nil {
		t.Errorf("after the lock was gone: %v", err)
	}
	if retries := engine.Retries(); retries[kv.RetryLock] < 3 || retries[kv.RetrySerialization] != 0 {
		t.Errorf("of the refusals are counted %v", retries)
	}
}

// A server that waits for a standby is not cancelled: the update would take effect without it. Where a person does, it is not taken
// for made.
func TestNoStandbyAnswers(t *testing.T) {
	s := postgrestest.Start(t, newest(t))
	engine := open(t, s.Address(""))
	defer shut(t, engine)
	other := session(t, s)
	reload := func(names string) {
		say(t, other, "set synchronous_commit = local")
		say(t, other, "alter system set synchronous_standby_names = '"+names+"'")
		say(t, other, "select pg_reload_conf()")
		await(t, "the server has read it", func() bool { return say(t, other, "show synchronous_standby_names")[0] == names })
	}
	reload("nobody")
	const waiting = "select pid from pg_stat_activity where wait_event = 'SyncRep'"
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan error, 1)
	ask := func(ctx context.Context, key string) {
		_, err := engine.Update(ctx, nil, []kv.Write{{Key: key, Value: []byte("v")}})
		answers <- err
	}
	go ask(ctx, "left")
	await(t, "the update waits", func() bool { return len(say(t, other, waiting)) == 1 })
	cancel()
	if err := <-answers; !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone is told %v", err)
	}
	go ask(t.Context(), "cancelled")
	await(t, "both updates wait", func() bool { return len(say(t, other, waiting)) == 2 })
	say(t, other, "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep' order by query_start desc limit 1")
	if err := <-answers; err == nil || !strings.Contains(err.Error(), "standbys") {
		t.Errorf("an update whose wait was cancelled: %v", err)
	}
	if found := say(t, other, "select value from restripe.records where lead = 'left'"); len(found) > 0 {
		t.Errorf("%q is seen, which no standby has", found)
	}
	reload("")
	await(t, "the update is made", func() bool {
		values, err := engine.Read(t.Context(), "left")
		return err == nil && values[0] != nil
	})
}

// What a disk has no room for is not made, and what was there stays.
func TestFullTable(t *testing.T) {
	s := postgrestest.Start(t, newest(t))
	engine := open(t, s.Address(""))
	defer shut(t, engine)
	put(t.Context(), t, engine, "k", "v")
	other := session(t, s)
	say(t, other, "create function refuse() returns trigger language plpgsql as $$ "+
		"begin raise exception 'no room' using errcode = 'disk_full'; end $$")
	say(t, other, "create trigger refuse before insert on restripe.records execute function refuse()")
	for range 2 {
		_, err := engine.Update(t.Context(), nil, []kv.Write{{Key: "k", Value: []byte("w")}, {Key: "l", Value: []byte("w")}})
		if err == nil || !strings.Contains(err.Error(), "no room") {
			t.Errorf("without room: %v", err)
		}
	}
	values, err := engine.Read(t.Context(), "k", "l")
	if err != nil || string(values[0]) != "v" || values[1] != nil {
		t.Errorf("read are %q, %v", values, err)
	}
}

// A counter that would be too large is an error of its update alone.
func TestLargeCounters(t *testing.T) {
	s := postgrestest.Start(t, newest(t))
	engine := open(t, s.Address(""))
	defer shut(t, engine)
	add := func(key string, count int64) error {
		_, err := engine.Update(t.Context(), nil, []kv.Write{{Key: key, Kind: kv.Increment, Add: count}})
		return err
	}
	if err := errors.Join(add("n", 1<<62), add("m", 1)); err != nil {
		t.Fatal(err)
	}
	results := make(chan error, 40)
	for i := range cap(results) {
		go func() {
			if i%2 == 0 {
				results <- add("m", 1)
			} else if add("n", 1<<62) == nil {
				results <- errors.New("a counter is larger than it may be")
			} else {
				results <- nil
			}
		}()
	}
	for range cap(results) {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	values, err := engine.Read(t.Context(), "n", "m")
	if err != nil || string(values[0]) != "4611686018427387904" || string(values[1]) != "21" {
		t.Errorf("read are %q, %v", values, err)
	}
}

// An update that is larger than any catalog makes is refused before it is sent.
func TestTooLarge(t *testing.T) {
	s := postgrestest.Start(t, newest(t))
	engine := open(t, s.Address(""))
	defer shut(t, engine)
	_, err := engine.Update(t.Context(), nil, []kv.Write{{Key: "k", Value: make([]byte, 16*kv.UpdateBytes)}})
	if !errors.Is(err, kv.ErrTooLarge) {
		t.Errorf("an update of 128 MiB: %v", err)
	}
}

// Who writes a record that many others check all the time is not kept from it by them.
func TestWriterAmongCheckers(t *testing.T) {
	s := postgrestest.Start(t, newest(t))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	first := open(t, s.Address(""))
	put(t.Context(), t, first, "checked", "0")
	var made atomic.Int64
	for i := range 4 {
		engine := first
		if i > 0 {
			engine = open(t, s.Address(""))
		}
		for j := range 4 {
			all.Go(func() {
				own := fmt.Sprintf("own/%d/%d", i, j)
				for ctx.Err() == nil {
					values, err := engine.Read(t.Context(), "checked")
					if err == nil {
						_, err = engine.Update(t.Context(), []kv.Check{{Key: "checked", Value: values[0]}}, []kv.Write{{Key: own, Value: values[0]}})
					}
					if err != nil {
						t.Error(err)
						return
					}
					made.Add(1)
				}
			})
		}
		defer shut(t, engine)
	}
	writer := open(t, s.Address(""))
	defer shut(t, writer)
	longest := time.Duration(0)
	for i := range 20 {
		before := made.Load()
		await(t, "others go on", func() bool { return made.Load() > before+20 })
		began := time.Now()
		put(t.Context(), t, writer, "checked", strconv.Itoa(i))
		longest = max(longest, time.Since(began))
	}
	cancel()
	all.Wait()
	t.Logf("the longest of 20 writes took %s while %d checked", longest, made.Load())
}

// While nothing is told nobody gets tokens, and the connection that listens stays.
func TestQuietWatch(t *testing.T) {
	s := postgrestest.Start(t, newest(t))
	engine := open(t, s.Address(""))
	defer shut(t, engine)
	tokens := engine.Watch(t.Context(), "k")
	<-tokens
	other := session(t, s)
	const asking = "select pid || ' ' || query_start from pg_stat_activity where query like '%told_since(%' and pid <> pg_backend_pid()"
	first := say(t, other, asking)
	last := first
	for range 2 {
		await(t, "it is asked again", func() bool {
			now := say(t, other, asking)
			changed := len(now) > 0 && !slices.Equal(now, last)
			if changed {
				last = now
			}
			return changed
		})
	}
	pid, _, _ := strings.Cut(first[0], " ")
	if len(last) != 1 || !strings.HasPrefix(last[0], pid+" ") {
		t.Errorf("at first there was %q, then %q", first, last)
	}
	select {
	case <-tokens:
		t.Error("there is a token, though nothing was told")
	default:
	}
}
