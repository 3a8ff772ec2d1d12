package postgres_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/postgres"
	"github.com/restripe/restripe/agent/catalog/postgres/postgrestest"
)

// copyOf makes a standby of a server, which has the name for which one may wait.
func copyOf(t *testing.T, s *postgrestest.Server, name string) *postgrestest.Server {
	t.Helper()
	standby := postgrestest.Prepare(t, s.Folder, "cluster_name="+name)
	standby.Do("pg_basebackup", "-D", standby.Data(), "-R", "-c", "fast", "-d", strings.TrimSuffix(s.Address(""), "&"))
	standby.Run()
	return standby
}

// follow makes a standby of a server, which from then on waits for it.
func follow(t *testing.T, s *postgrestest.Server) *postgrestest.Server {
	t.Helper()
	standby := copyOf(t, s, "standby")
	other := session(t, s)
	await(t, "the standby follows", func() bool {
		return say(t, other, "select count(*) from pg_stat_replication where state = 'streaming'")[0] == "1"
	})
	say(t, other, "alter system set synchronous_standby_names = '*'")
	say(t, other, "select pg_reload_conf()")
	await(t, "the server waits for it", func() bool { return say(t, other, "select sync_state from pg_stat_replication")[0] == "sync" })
	return standby
}

// impatient is for what is expected to be answered never.
const impatient = time.Second

// read reads a record with bounded patience.
func read(t *testing.T, engine kv.Engine, patience time.Duration, key string) (value string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	values, err := engine.Read(ctx, key)
	if err != nil {
		return "", err
	}
	return string(values[0]), nil
}

// A primary whose standby has taken over without its knowledge answers nobody any more, neither who had connections nor who comes,
// nor after it was started again, also where nobody has met the new one.
func TestOldPrimary(t *testing.T) {
	old := postgrestest.Start(t, newest(t))
	standby := follow(t, old)
	isolated := open(t, old.Address("")) // it never meets the other
	defer shut(t, isolated)
	put(t.Context(), t, isolated, "k", "v")
	standby.Do("pg_ctl", "promote", "-D", standby.Data(), "-w")
	await(t, "the old primary is not read from any more", func() bool {
		_, err := read(t, isolated, impatient, "k")
		return err != nil
	})
	both := strings.Replace(old.Address(""), old.Host(), old.Host()+","+standby.Host(), 1)
	follower := open(t, both)
	defer shut(t, follower)
	put(t.Context(), t, follower, "k", "w")
	refused := func(when string) {
		t.Helper()
		for range 3 {
			if value, err := read(t, isolated, impatient, "k"); err == nil {
				t.Errorf("%s the old primary is read from: %q", when, value)
			}
		}
		if value, err := read(t, follower, time.Minute, "k"); err != nil || value != "w" {
			t.Errorf("%s there is %q, %v", when, value, err)
		}
		await(t, when+" the old primary is reached, and not opened", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 2*impatient)
			defer cancel()
			engine, err := postgres.Open(ctx, old.Address(""))
			if err == nil {
				shut(t, engine)
				t.Fatalf("%s the old primary is opened", when)
			}
			return strings.Contains(err.Error(), "standbys do not answer")
		})
		newcomer := open(t, both)
		defer shut(t, newcomer)
		if value, err := read(t, newcomer, time.Minute, "k"); err != nil || value != "w" {
			t.Errorf("%s who comes is told %q, %v", when, value, err)
		}
	}
	refused("at once")
	old.Kill()
	old.Run()
	refused("started again")
}

// What waits for a primary that hangs is ended as soon as a standby has taken over, and all goes on there.
func TestHangingPrimary(t *testing.T) {
	old := postgrestest.Start(t, newest(t))
	standby := follow(t, old)
	engine := open(t, strings.Replace(old.Address(""), old.Host(), old.Host()+","+standby.Host(), 1))
	defer shut(t, engine)
	put(t.Context(), t, engine, "k", "v")
	old.Signal(syscall.SIGSTOP)
	defer old.Signal(syscall.SIGCONT)
	stuck := make(chan error, 2)
	go func() {
		_, err := engine.Update(t.Context(), nil, []kv.Write{{Key: "k", Value: []byte("of the old")}})
		stuck <- err
	}()
	go func() {
		_, err := engine.Read(t.Context(), "k")
		stuck <- err
	}()
	standby.Do("pg_ctl", "promote", "-D", standby.Data(), "-w")
	promoted := time.Now()
	for range cap(stuck) { // the read may have been answered before
		t.Logf("told %v after the standby took over: %v", time.Since(promoted).Round(time.Millisecond), <-stuck)
	}
	await(t, "updates are made", func() bool {
		failed, err := engine.Update(t.Context(), []kv.Check{{Key: "k", Value: []byte("v")}}, []kv.Write{{Key: "k", Value: []byte("w")}})
		return err == nil && failed == nil
	})
	if took := time.Since(promoted); took > 30*time.Second {
		t.Errorf("it goes on %v after the standby took over; a hanging server is left after a minute only if nothing is known", took)
	}
	if value, err := read(t, engine, time.Minute, "k"); err != nil || value != "w" {
		t.Errorf("read is %q, %v", value, err)
	}
}

// What a primary has that was started again, and no standby, is not read before one has it: else it could be gone after it was read.
func TestUnconfirmedAfterRestart(t *testing.T) {
	s := postgrestest.Start(t, newest(t))
	other := session(t, s)
	engine := open(t, s.Address(""))
	defer shut(t, engine)
	say(t, other, "alter system set synchronous_standby_names = 'nobody'")
	say(t, other, "select pg_reload_conf()")
	ctx, leave := context.WithCancel(t.Context())
	told := make(chan error, 1)
	await(t, "the server has read it", func() bool { return say(t, other, "show synchronous_standby_names")[0] == "nobody" })
	go func() {
		_, err := engine.Update(ctx, nil, []kv.Write{{Key: "k", Value: []byte("v")}})
		told <- err
	}()
	await(t, "the update waits", func() bool {
		return len(say(t, other, "select pid from pg_stat_activity where wait_event = 'SyncRep' and query like '%apply%'")) == 1
	})
	leave()
	<-told
	s.Kill()
	s.Run()
	other = session(t, s)
	if found := say(t, other, "select value from restripe.records where lead = 'k'"); len(found) != 1 {
		t.Fatalf("the server shows %q itself: the test shows nothing", found)
	}
	for range 3 {
		if value, err := read(t, engine, impatient, "k"); err == nil {
			t.Errorf("read is %q, which no standby has", value)
		}
	}
	say(t, other, "alter system reset synchronous_standby_names")
	say(t, other, "select pg_reload_conf()")
	await(t, "it is read once nobody has to confirm it", func() bool {
		value, err := read(t, engine, time.Minute, "k")
		return err == nil && value == "v"
	})
}

// Standbys that are connected are told of with how far they are behind; one that is gone is not, and neither is what may not be known.
func TestReplicas(t *testing.T) {
	s := postgrestest.Start(t, newest(t))
	engine := open(t, s.Address(""))
	defer shut(t, engine)
	of := func(engine kv.Reporting) []kv.Replica {
		replicas, err := engine.Replicas(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return replicas
	}
	if replicas := of(engine); len(replicas) != 0 {
		t.Errorf("a server that is alone has %v", replicas)
	}
	standby := copyOf(t, s, "b")
	put(t.Context(), t, engine, "k", "v")
	await(t, "the standby has all", func() bool {
		replicas := of(engine)
		return len(replicas) == 1 && replicas[0] == kv.Replica{Name: "b", Up: true, LagEntries: -1}
	})
	standby.Kill()
	await(t, "the standby is gone", func() bool { return len(of(engine)) == 0 })
}
