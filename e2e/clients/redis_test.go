package clients_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/restripe/restripe/agent/store/storetest/server"
)

// redisCLI types the same lines to the gateway and to a Redis, which answers with the same.
func (s *suite) redisCLI(t *testing.T) {
	script, err := os.ReadFile("testdata/redis-cli.txt")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(address string, arguments ...string) string {
		host, port := hostAndPort(t, address)
		return run(t, string(script), "redis-cli", append([]string{"-h", host, "-p", port}, arguments...)...).must(t)
	}
	real := server.Redis(t)
	for _, protocol := range []string{"-2", "-3"} {
		want, got := strings.Split(ask(real.Addr, protocol), "\n"), strings.Split(ask(s.first.redis, protocol), "\n")
		if len(want) < strings.Count(string(script), "\n") {
			t.Fatalf("Redis itself answers with too few lines: %q", want)
		}
		for i := range max(len(want), len(got)) {
			if i >= len(want) || i >= len(got) || want[i] != got[i] {
				t.Errorf("redis-cli %s: from line %d on the gateway answers\n%s\nand Redis\n%s", protocol, i+1,
					strings.Join(got[min(i, len(got)):], "\n"), strings.Join(want[min(i, len(want)):], "\n"))
				break
			}
		}
	}
}

func (s *suite) redisBenchmark(t *testing.T) {
	host, port := hostAndPort(t, s.first.redis)
	said := run(t, "", "redis-benchmark", "-h", host, "-p", port, "-t", "ping,set,get,mset,incr", "-n", "300", "-c", "8", "-r", "100",
		"-P", "4", "--csv")
	lines := strings.Split(strings.TrimSpace(said.must(t)), "\n")
	var measured []string
	for _, line := range lines[1:] {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, `"`), `"`)
		measured = append(measured, name)
	}
	if got, want := fmt.Sprint(measured), "[PING_INLINE PING_MBULK SET GET INCR MSET (10 keys)]"; got != want {
		t.Errorf("it measured %s, want %s", got, want)
	}
	if regexp.MustCompile(`(?i)error|warning`).MatchString(said.out + said.messages) {
		t.Errorf("it says: %v", said)
	}
}

func (s *suite) redisPython(t *testing.T) {
	host, port := hostAndPort(t, s.first.redis)
	for _, protocol := range []string{"2", "3"} {
		if out := runPython(t, "redis_values.py", host, port, protocol).must(t); strings.TrimSpace(out) != "done" {
			t.Errorf("protocol %s: it ends with %q", protocol, out)
		}
	}
}

func (s *suite) rueidis(t *testing.T) {
	r, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.first.redis}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx := t.Context()
	if err := r.Do(ctx, r.B().Set().Key("rueidis/a").Value("one").ExSeconds(100).Build()).Error(); err != nil {
		t.Error(err)
	}
	if got, err := r.Do(ctx, r.B().Get().Key("rueidis/a").Build()).ToString(); err != nil || got != "one" {
		t.Errorf("what was put reads %q, %v", got, err)
	}
	if left, err := r.Do(ctx, r.B().Ttl().Key("rueidis/a").Build()).AsInt64(); err != nil || left < 90 || left > 100 {
		t.Errorf("it lives for another %d s, %v; want 100", left, err)
	}
	if err := r.Do(ctx, r.B().Get().Key("rueidis/none").Build()).Error(); !rueidis.IsRedisNil(err) {
		t.Errorf("what was not put reads as %v", err)
	}
	var commands rueidis.Commands
	for i := range 50 {
		commands = append(commands, r.B().Incrby().Key("rueidis/sum").Increment(int64(i)).Build())
	}
	sum := int64(0)
	for i, result := range r.DoMulti(ctx, commands...) {
		sum += int64(i)
		if got, err := result.AsInt64(); err != nil || got != sum {
			t.Errorf("reply %d of a pipeline is %d, %v; want %d", i, got, err, sum)
		}
	}
	if _, err := r.Do(ctx, r.B().Lpush().Key("rueidis/list").Element("x").Build()).AsInt64(); err == nil {
		t.Error("a list is not refused")
	} else if _, is := rueidis.IsRedisErr(err); !is {
		t.Errorf("a list is refused with %v, which is no error of Redis", err)
	}
	err = r.Dedicated(func(c rueidis.DedicatedClient) error {
		if err := c.Do(ctx, c.B().Watch().Key("rueidis/a").Build()).Error(); err != nil {
			return err
		}
		if err := r.Do(ctx, r.B().Set().Key("rueidis/a").Value("two").Build()).Error(); err != nil { // over another connection
			return err
		}
		results := c.DoMulti(ctx, c.B().Multi().Build(), c.B().Set().Key("rueidis/a").Value("three").Build(), c.B().Exec().Build())
		if err := results[2].Error(); !rueidis.IsRedisNil(err) {
			t.Errorf("a transaction whose key was changed ends with %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if got, err := r.Do(ctx, r.B().Get().Key("rueidis/a").Build()).ToString(); err != nil || got != "two" {
		t.Errorf("after a transaction that did not take place it reads %q, %v", got, err)
	}
}

func (s *suite) goRedis(t *testing.T) {
	ctx := t.Context()
	for _, protocol := range []int{2, 3} {
		r := redis.NewClient(&redis.Options{Addr: s.first.redis, Protocol: protocol, ClientName: "test", MaxRetries: -1})
		key := func(name string) string { return fmt.Sprintf("go-redis/%d/%s", protocol, name) }
		if got, err := r.Set(ctx, key("a"), "one", time.Minute).Result(); err != nil || got != "OK" {
			t.Errorf("set: %q, %v", got, err)
		}
		if got, err := r.Get(ctx, key("a")).Result(); err != nil || got != "one" {
			t.Errorf("get: %q, %v", got, err)
		}
		if left, err := r.TTL(ctx, key("a")).Result(); err != nil || left < 50*time.Second || left > time.Minute {
			t.Errorf("ttl: %v, %v", left, err)
		}
		if _, err := r.Get(ctx, key("none")).Result(); !errors.Is(err, redis.Nil) {
			t.Errorf("what was not put reads as %v", err)
		}
		results, err := r.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Incr(ctx, key("n"))
			p.IncrBy(ctx, key("n"), 41)
			p.MGet(ctx, key("n"), key("none"))
			return nil
		})
		if err != nil || len(results) != 3 || results[1].(*redis.IntCmd).Val() != 42 ||
			fmt.Sprint(results[2].(*redis.SliceCmd).Val()) != "[42 <nil>]" {
			t.Errorf("a transaction: %v, %v", results, err)
		}
		err = r.Watch(ctx, func(tx *redis.Tx) error {
			if err := r.Set(ctx, key("a"), "two", 0).Err(); err != nil {
				return err
			}
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, key("a"), "three", 0).Err() })
			return err
		}, key("a"))
		if !errors.Is(err, redis.TxFailedErr) {
			t.Errorf("a transaction whose key was changed ends with %v", err)
		}
		for i := range 30 {
			if err := r.Set(ctx, key(fmt.Sprintf("many/%02d", i)), i, 0).Err(); err != nil {
				t.Error(err)
			}
		}
		found := map[string]bool{}
		keys := r.Scan(ctx, 0, key("many/*"), 7).Iterator()
		for keys.Next(ctx) {
			found[keys.Val()] = true
		}
		if err := keys.Err(); err != nil || len(found) != 30 {
			t.Errorf("a scan finds %d of 30 keys, %v", len(found), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
