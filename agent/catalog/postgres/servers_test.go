package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/catalog/catalogtest"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/postgres"
	"github.com/restripe/restripe/agent/catalog/postgres/postgrestest"
)

// refusal is why a catalog is not opened.
func refusal(t *testing.T, address string) string {
	t.Helper()
	engine, err := postgres.Open(t.Context(), address)
	if err == nil {
		shut(t, engine)
		t.Errorf("%s was opened", postgres.Location(address))
		return ""
	}
	return err.Error()
}

// A standby is not opened, for what it has may be old, and the primary is found among several; once another has taken its place, who
// was told so does not go back to it.
func TestStandby(t *testing.T) {
	primary := postgrestest.Start(t, newest(t))
	standby := copyOf(t, primary, "standby")
	catalog := func(parameters string, servers ...*postgrestest.Server) string {
		var hosts []string
		for _, s := range servers {
			hosts = append(hosts, s.Host())
		}
		return "postgres://owner@" + strings.Join(hosts, ",") + "/postgres?sslmode=disable" + parameters
	}
	if got := refusal(t, catalog("", standby)); !strings.Contains(got, "is a standby") {
		t.Errorf("opening a standby: %s", got)
	}
	other := session(t, primary)
	await(t, "the standby follows", func() bool {
		return say(t, other, "select count(*) from pg_stat_replication where state = 'streaming'")[0] == "1"
	})
	for _, address := range []string{catalog("", standby, primary), catalog("&target_session_attrs=read-write", standby, primary)} {
		engine := open(t, address)
		if warnings := strings.Join(engine.Warnings(), "\n"); !engine.MayLose() || !strings.Contains(warnings, "synchronous_standby_names") {
			t.Errorf("a standby that may lack writes is warned of by %q", warnings)
		}
		put(t.Context(), t, engine, "k", "v")
		shut(t, engine)
	}
	say(t, other, "alter system set synchronous_standby_names = '*'")
	say(t, other, "select pg_reload_conf()")
	await(t, "the server has read it", func() bool { return say(t, other, "show synchronous_standby_names")[0] == "*" })
	engine := open(t, catalog("", standby, primary))
	defer shut(t, engine)
	if engine.MayLose() {
		t.Errorf("a standby that has every write is warned of: %q", engine.Warnings())
	}
	put(t.Context(), t, engine, "k", "w")

	standby.Do("pg_ctl", "promote", "-D", standby.Data(), "-w")
	follower := open(t, catalog("", standby, primary))
	defer shut(t, follower)
	if values, err := follower.Read(t.Context(), "k"); err != nil || string(values[0]) != "w" {
		t.Errorf("the new primary has %q, %v", values, err)
	}
	standby.Kill()
	await(t, "the old primary is refused", func() bool {
		values, err := follower.Read(t.Context(), "k")
		if err == nil {
			t.Fatalf("who knew the new primary reads %q of the old one", values)
		}
		return strings.Contains(err.Error(), "has taken the place")
	})
}

// What a role lacks is named with the statement that grants it; who has no more than that works.
func TestRights(t *testing.T) {
	s := postgrestest.Start(t, newest(t))
	other := session(t, s)
	say(t, other, `create role "some body" login; revoke create on database postgres from public`)
	address := strings.Replace(s.Address(""), "owner@", "some%20body@", 1)
	if got := refusal(t, address); !strings.Contains(got, `grant create on database "postgres" to "some body"`) {
		t.Errorf("making a schema without the right: %s", got)
	}
	shut(t, open(t, s.Address("")))
	say(t, other, "revoke execute on all functions in schema restripe from public")
	for granted := 0; ; granted++ {
		engine, err := postgres.Open(t.Context(), address)
		if err == nil {
			put(t.Context(), t, engine, "k", "v")
			tokens := engine.Watch(t.Context(), "k")
			<-tokens
			if _, err := engine.Update(t.Context(), nil, []kv.Write{{Key: "k", Kind: kv.Remove, Notify: true}}); err != nil {
				t.Error(err)
			}
			<-tokens
			shut(t, engine)
			if granted != 5 {
				t.Errorf("it works with %d grants", granted)
			}
			return
		}
		_, cure, found := strings.Cut(err.Error(), "may not use it: ")
		if !found || granted == 9 {
			t.Fatal(err)
		}
		say(t, other, cure)
	}
}

// A schema of a newer release is not touched, and what is no schema of a catalog neither.
func TestOtherSchemas(t *testing.T) {
	s := postgrestest.Start(t, newest(t))
	shut(t, open(t, s.Address("")))
	other := session(t, s)
	say(t, other, "update restripe.format set version = 99")
	_, err := postgres.Open(t.Context(), s.Address(""))
	if !errors.Is(err, kv.ErrNewer) || !strings.Contains(err.Error(), "use the newer release") {
		t.Errorf("opening a schema of a newer release: %v", err)
	}
	say(t, other, "delete from restripe.format")
	if got := refusal(t, s.Address("")); !strings.Contains(got, "says no version") {
		t.Errorf("opening a schema without a version: %s", got)
	}
	say(t, other, "alter role owner set default_transaction_isolation = 'serializable'")
	if got := refusal(t, s.Address("catalog=second")); !strings.Contains(got, "read committed") {
		t.Errorf("opening with another isolation: %s", got)
	}
}

// What a server loses in a crash is said.
func TestWarnings(t *testing.T) {
	for setting, want := range map[string]string{"fsync=off": "Set fsync on", "full_page_writes=off": "Set full_page_writes on"} {
		s := postgrestest.Start(t, newest(t), setting)
		engine := open(t, s.Address(""))
		if warnings := strings.Join(engine.Warnings(), "\n"); !engine.MayLose() || !strings.Contains(warnings, want) {
			t.Errorf("%s is warned of by %q", setting, warnings)
		}
		shut(t, engine)
	}
}

// A server that does not wait for its disk by itself does so for a catalog.
func TestAsynchronousServer(t *testing.T) {
	s := postgrestest.Start(t, newest(t), "synchronous_commit=off", "wal_writer_delay=10s")
	engine := open(t, s.Address(""))
	if engine.MayLose() {
		t.Errorf("warned of: %q", engine.Warnings())
	}
	for i := range 5 {
		put(t.Context(), t, engine, "k", strconv.Itoa(i))
		s.Kill()
		s.Run()
		await(t, "the server is reached again", func() bool {
			values, err := engine.Read(t.Context(), "k")
			if err == nil && string(values[0]) != strconv.Itoa(i) {
				t.Fatalf("after crash %d the record is %q", i, values[0])
			}
			return err == nil
		})
	}
	shut(t, engine)
}

// bouncer runs PgBouncer, which shares sessions of a server for a transaction each, until the test ends.
func bouncer(t *testing.T, s *postgrestest.Server) (host string) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			t.Skip("pgbouncer is not installed")
		}
	}
	port := postgrestest.FreePort(t)
	configuration := filepath.Join(s.Directory, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
postgres = host=127.0.0.1 port=%d user=owner
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 10
server_login_retry = 0
`, s.Port, port)
	if err := os.WriteFile(configuration, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	command := s.Command(program, configuration)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = command.Wait() // it says that the process was killed
	})
	host = fmt.Sprintf("127.0.0.1:%d", port)
	await(t, "pgbouncer answers", func() bool {
		return s.Command("pg_isready", "-q", "-h", "127.0.0.1", "-p", strconv.Itoa(port)).Run() == nil
	})
	return host
}

// Behind a pooler that shares sessions everything is the same.
func TestFullPooler(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves it out")
	}
	s := postgrestest.Start(t, programs(t)[0])
	host := bouncer(t, s)
	count := 0
	catalogtest.Run(t, func(t *testing.T) catalogtest.Instance {
		count++
		direct := s.Address(fmt.Sprintf("catalog=test%d", count))
		address := strings.Replace(direct, s.Host(), host, 1)
		return catalogtest.Instance{
			Engine: open(t, address),
			Second: func() (kv.Engine, error) { return postgres.Open(context.Background(), direct) },
			Crash: func() kv.Engine {
				s.Kill()
				s.Run()
				return open(t, direct)
			},
			Server: host,
			Dial: func(server string) (kv.Engine, error) {
				return postgres.Open(context.Background(), strings.Replace(address, host, server, 1))
			},
		}
	})
}
