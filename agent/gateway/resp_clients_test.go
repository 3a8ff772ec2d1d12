package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/resp"
)

// program runs a program that comes with Redis, and returns what it says.
func redisProgram(t *testing.T, address, stdin, name string, arguments ...string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, name, append([]string{"-h", host, "-p", port}, arguments...)...)
	command.Stdin = strings.NewReader(stdin)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, output)
	}
	return string(output)
}

// redis-cli works with the gateway, in both versions of the protocol.
func TestRedisCommandLine(t *testing.T) {
	c := newCluster(t, 8)
	address := c.serveRedis()
	for _, version := range []string{"-2", "-3"} {
		script := "SET a 1\nINCR a\nGET none\nMULTI\nSET b \"x y\"\nGET b\nEXEC\nLPUSH l 1\nDEL a b\n"
		want := "OK\n2\n\nOK\nQUEUED\nQUEUED\nOK\nx y\nERR unknown command 'LPUSH', with args beginning with: 'l' '1' \n\n2\n"
		if got := redisProgram(t, address, script, "redis-cli", version); got != want {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
	if got := redisProgram(t, address, "", "redis-cli", "--no-raw", "SET", "a", "1", "EX", "100", "GET"); got != "(nil)\n" {
		t.Errorf("%q", got)
	}
	redisProgram(t, address, "", "redis-cli", "MSET", "walk:1", "a", "walk:2", "b")
	if got := redisProgram(t, address, "", "redis-cli", "--scan", "--pattern", "walk:*"); got != "walk:1\nwalk:2\n" {
		t.Errorf("%q", got)
	}
	if got := redisProgram(t, address, "", "redis-cli", "-n", "3", "PING"); !strings.Contains(got, "DB index is out of range") {
		t.Errorf("%q", got)
	}
	bulk := redisCommand("SET", "bulk", "x") + redisCommand("SET", "bulk", "y")
	if got := redisProgram(t, address, bulk, "redis-cli", "--pipe"); !strings.Contains(got, "errors: 0, replies: 2") {
		t.Errorf("%q", got)
	}
}

// redis-benchmark runs, with and without pipelines.
func TestRedisBenchmarkRuns(t *testing.T) {
	c := newCluster(t, 8)
	address := c.serveRedis()
	for _, more := range [][]string{nil, {"-P", "16"}, {"-P", "16", "-3"}} {
		arguments := append([]string{"-t", "ping,set,get,incr,mset", "-n", "320", "-c", "8", "-r", "100", "-d", "300", "--csv"}, more...)
		got := redisProgram(t, address, "", "redis-benchmark", arguments...)
		if strings.Contains(strings.ToLower(got), "err") || strings.Count(got, "\n") != 7 {
			t.Errorf("%q: %s", more, got)
		}
	}
}

// A client library of Go finds its way: it logs in, names itself, asks what it is talking to, and sends what it is given together.
func TestRedisClientLibrary(t *testing.T) {
	c := newCluster(t, 8)
	users := usersFile(t)
	guarded := c.newGateway("guarded", func(o *gateway.Options) { o.Users = users })
	address := c.serveRedis(func(o *resp.Options) { o.Store = guarded.Values() })
	option := rueidis.ClientOption{
		InitAddress: []string{address}, Username: "GALLERY", Password: keySecret, ClientName: "album", DisableCache: true,
		PipelineMultiplex: -1, // one connection, so that what SELECT says counts
	}
	for _, two := range []bool{false, true} {
		option.AlwaysRESP2 = two
		client, err := rueidis.NewClient(option)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		ctx := t.Context()
		name, err := client.Do(ctx, client.B().ClientGetname().Build()).ToString()
		if err != nil || name != "album" {
			t.Errorf("%q, %v", name, err)
		}
		if err := client.Do(ctx, client.B().Arbitrary("SELECT", "odd").Build()).Error(); err != nil {
			t.Fatal(err)
		}
		commands := make(rueidis.Commands, 0, 200)
		for i := range 100 {
			key := fmt.Sprintf("photos/%d", i)
			commands = append(commands, client.B().Set().Key(key).Value(key).ExSeconds(1000).Build(), client.B().Get().Key(key).Build())
		}
		for i, result := range client.DoMulti(ctx, commands...) {
			got, err := result.ToString()
			if want := fmt.Sprintf("photos/%d", i/2); err != nil || i%2 == 1 && got != want {
				t.Fatalf("%d: %q, %v", i, got, err)
			}
		}
		scanned, err := client.Do(ctx, client.B().Scan().Cursor(0).Match("photos/1?").Count(1000).Build()).AsScanEntry()
		if err != nil || len(scanned.Elements) != 10 || scanned.Cursor != 0 {
			t.Errorf("%+v, %v", scanned, err)
		}
		err = client.Do(ctx, client.B().Set().Key("others").Value("x").Build()).Error()
		if answer, is := rueidis.IsRedisErr(err); !is || !strings.HasPrefix(answer.Error(), "NOPERM ") {
			t.Errorf("%v", err)
		}
		err = client.Dedicated(func(one rueidis.DedicatedClient) error {
			ctx := context.Background()
			if err := one.Do(ctx, one.B().Watch().Key("photos/1").Build()).Error(); err != nil {
				return err
			}
			results := one.DoMulti(ctx, one.B().Multi().Build(), one.B().Get().Key("photos/1").Build(), one.B().Strlen().Key("photos/2").Build(),
				one.B().Exec().Build())
			values, err := results[3].ToArray()
			if err != nil {
				return err
			}
			if got, err := values[0].ToString(); err != nil || got != "photos/1" {
				return errors.Join(err, fmt.Errorf("%q", got))
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if keys := c.keys(); len(keys) != 100 || !slices.Contains(keys, "photos/99") {
		t.Errorf("%d keys", len(keys))
	}
}
