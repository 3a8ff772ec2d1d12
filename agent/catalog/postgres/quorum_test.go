package postgres_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/postgres/postgrestest"
)

// A primary that waits for any one of two standbys loses no acknowledged update when it is killed and the one of them that has more is
// promoted, also where the other was away when it was acknowledged.
func TestAnyOfTwoStandbys(t *testing.T) {
	for what, away := range map[string]string{"both there": "", "one away": "c"} {
		t.Run(what, func(t *testing.T) {
			primary := postgrestest.Start(t, newest(t))
			standbys := map[string]*postgrestest.Server{"b": copyOf(t, primary, "b"), "c": copyOf(t, primary, "c")}
			other := session(t, primary)
			say(t, other, "alter system set synchronous_standby_names = 'any 1 (b, c)'")
			say(t, other, "select pg_reload_conf()")
			await(t, "the server waits for one of two", func() bool {
				return say(t, other, "select count(*) from pg_stat_replication where sync_state = 'quorum'")[0] == "2"
			})
			hosts := strings.Join([]string{primary.Host(), standbys["b"].Host(), standbys["c"].Host()}, ",")
			engine := open(t, strings.Replace(primary.Address(""), primary.Host(), hosts, 1))
			defer shut(t, engine)
			if engine.MayLose() {
				t.Errorf("any one of two standbys is warned of: %q", engine.Warnings())
			}
			if away != "" {
				standbys[away].Kill()
			}
			// Clients write numbers of their own, until an answer does not come.
			var acknowledged [4]atomic.Int64
			var clients sync.WaitGroup
			for i := range acknowledged {
				clients.Go(func() {
					for n := int64(1); ; n++ {
						write := kv.Write{Key: fmt.Sprint("n", i), Value: strconv.AppendInt(nil, n, 10)}
						if _, err := engine.Update(t.Context(), nil, []kv.Write{write}); err != nil {
							return
						}
						acknowledged[i].Store(n)
					}
				})
			}
			await(t, "updates are acknowledged", func() bool {
				for i := range acknowledged {
					if acknowledged[i].Load() < 50 {
						return false
					}
				}
				return true
			})
			primary.Kill()
			clients.Wait()
			if away != "" {
				standbys[away].Run()
			}
			reached := map[string]int64{}
			for name, s := range standbys {
				lsn := say(t, session(t, s), "select pg_wal_lsn_diff(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0')::bigint")[0]
				at, err := strconv.ParseInt(lsn, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				reached[name] = at
			}
			best, less := "b", "c"
			if reached["c"] > reached["b"] {
				best, less = less, best
			}
			if away != "" && (less != away || reached[less] == reached[best]) {
				t.Fatalf("the standbys have %v, and %s was away: the test shows nothing", reached, away)
			}
			standbys[best].Do("pg_ctl", "promote", "-D", standbys[best].Data(), "-w")
			for i := range acknowledged {
				told := acknowledged[i].Load()
				text, err := read(t, engine, time.Minute, fmt.Sprint("n", i))
				if err != nil {
					t.Fatal(err)
				}
				if text != strconv.FormatInt(told, 10) && text != strconv.FormatInt(told+1, 10) {
					t.Errorf("client %d was told of %d and %s is there", i, told, text)
				}
				t.Logf("client %d was told of %d, and %s is there", i, told, text)
			}
			await(t, "updates go on", func() bool {
				_, err := engine.Update(t.Context(), nil, []kv.Write{{Key: "n0", Value: []byte("on")}})
				return err == nil
			})
		})
	}
}
