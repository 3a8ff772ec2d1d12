package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/resp"
	"github.com/restripe/restripe/agent/gateway/values"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/decorate"
)

// Commands that are sent without waiting are answered in order, and those of one key take effect in it.
func TestRedisPipelinesKeepTheirOrder(t *testing.T) {
	for _, bytes := range []int64{0, 1 << 20} {
		t.Run(fmt.Sprintf("cache=%d", bytes), func(t *testing.T) {
			redisPipelinesKeepTheirOrder(newCluster(t, 8).with(func(o *gateway.Options) { o.CacheBytes = bytes }))
		})
	}
}

func redisPipelinesKeepTheirOrder(c *cluster) {
	t := c.t
	address := c.serveRedis()
	seed := rand.Uint64()
	var clients errgroup.Group
	for client := range 8 {
		w := dialRedis(t, address)
		clients.Go(func() error {
			dice := rand.New(rand.NewPCG(seed, uint64(client)))
			is := map[string]int{}
			var text strings.Builder
			var wants []string
			for range 300 {
				key := fmt.Sprintf("%d/%d", client, dice.IntN(5))
				switch dice.IntN(5) {
				case 0:
					text.WriteString(redisCommand("INCR", key))
					is[key]++
					wants = append(wants, ":"+strconv.Itoa(is[key]))
				case 1:
					text.WriteString(redisCommand("MGET", key, key))
					shown := "(nil)"
					if is[key] > 0 {
						shown = strconv.Itoa(is[key])
					}
					wants = append(wants, "*["+shown+" "+shown+"]")
				case 2:
					text.WriteString(redisCommand("DEL", key, key+"x"))
					wants = append(wants, ":"+strconv.Itoa(min(is[key], 1)))
					is[key] = 0
				case 3:
					is[key] = 1 + dice.IntN(100)
					text.WriteString(redisCommand("SET", key, strconv.Itoa(is[key])))
					wants = append(wants, "+OK")
				case 4:
					text.WriteString(redisCommand("ECHO", key))
					wants = append(wants, key)
				}
			}
			if _, err := io.WriteString(w.conn, text.String()); err != nil {
				return err
			}
			for i, want := range wants {
				if got, err := readReply(w.from); err != nil || got != want {
					return fmt.Errorf("seed %d, client %d, reply %d: %s, %w, want %s", seed, client, i, got, err, want)
				}
			}
			return nil
		})
	}
	if err := clients.Wait(); err != nil {
		t.Error(err)
	}
}

// Reads that were sent together are under way together, and none waits for the answer of another one.
func TestRedisPipelinesReadSideBySide(t *testing.T) {
	const reads = 8
	var waiting atomic.Int64
	var gate atomic.Pointer[chan struct{}]
	c := newCluster(t, 8, func(agent *testAgent) {
		agent.wrap = func(inner store.Store) store.Store {
			fault := &decorate.Fault{Rule: func(call decorate.Call) decorate.Effect {
				open := gate.Load()
				if open == nil || call.Operation != decorate.ReadAt {
					return decorate.Effect{}
				}
				waiting.Add(1)
				return decorate.Effect{Gate: *open}
			}}
			return fault.Wrap(inner)
		}
	})
	w := dialRedis(t, c.serveRedis())
	var text strings.Builder
	for i := range reads {
		key := fmt.Sprintf("tmp/%d", i) // a group of its own for each
		w.want("+OK", "SET", key, string(noise(10_000, uint64(i))))
		text.WriteString(redisCommand("GET", key))
	}
	closed := make(chan struct{})
	gate.Store(&closed)
	w.send(text.String())
	c.await("all reads are under way", func() bool { return waiting.Load() >= reads })
	close(closed)
	for i := range reads {
		if got := w.reply(); got != string(noise(10_000, uint64(i))) {
			t.Errorf("reply %d has %d bytes", i, len(got))
		}
	}
}

// Answers that have no room in memory wait until it is their turn, and come all the same.
func TestRedisPipelinesOfLargeValues(t *testing.T) {
	c := newCluster(t, 8)
	const size = 60_000
	few := values.New(values.Parts{
		Objects: c.gateway.Objects, Classes: c.gateway.Registry, MaxBytes: size, MemoryBytes: 4 * size, Patience: time.Minute,
	})
	address := c.serveRedis(func(o *resp.Options) { o.Store = few })
	var clients errgroup.Group
	for client := range 3 {
		w := dialRedis(t, address)
		clients.Go(func() error {
			var text strings.Builder
			for i := range 8 {
				key := fmt.Sprintf("%d/%d", client, i)
				text.WriteString(redisCommand("SET", key, string(noise(size, uint64(i)))))
				text.WriteString(redisCommand("GET", key))
				text.WriteString(redisCommand("GETSET", key, "short"))
			}
			go io.WriteString(w.conn, text.String()) // a failure is seen by what is not answered
			for i := range 8 {
				want := string(noise(size, uint64(i)))
				for _, want := range []string{"+OK", want, want} {
					if got, err := readReply(w.from); err != nil || got != want {
						return fmt.Errorf("client %d, value %d: %.50s, %w", client, i, got, err)
					}
				}
			}
			return nil
		})
	}
	if err := clients.Wait(); err != nil {
		t.Error(err)
	}
}

// What was read of a watched key is what a transaction goes by, though the key has none again, as it had when it was watched.
func TestRedisWatchedKeyThatCameAndWent(t *testing.T) {
	c := newCluster(t, 8)
	address := c.serveRedis()
	w, other := dialRedis(t, address), dialRedis(t, address)
	for _, read := range [][]string{{"GET", "a"}, {"MGET", "b", "a"}, {"STRLEN", "a"}, {"EXISTS", "a"}} {
		w.want("+OK", "WATCH", "a")
		other.want("+OK", "SET", "a", "one")
		if got := w.do(read...); !strings.Contains(got, "one") && !strings.ContainsAny(got, "31") {
			t.Errorf("%q reads %q", read, got)
		}
		other.want(":1", "DEL", "a")
		w.want("+OK", "MULTI")
		w.want("+QUEUED", "SET", "a", "two")
		w.want("(nil list)", "EXEC")
		w.want("(nil)", "GET", "a")
	}
	w.want("+OK", "WATCH", "a") // nothing of before matters
	w.want("(nil)", "GET", "a")
	w.want("+OK", "MULTI")
	w.want("+QUEUED", "SET", "a", "two")
	w.want("*[+OK]", "EXEC")
}

// Transactions of many clients on the same keys all take effect, one after the other.
func TestRedisTransactionsOfMany(t *testing.T) {
	c := newCluster(t, 8)
	address := c.serveRedis()
	const clients, each = 6, 10
	var work errgroup.Group
	var lost atomic.Int64
	for range clients {
		w := dialRedis(t, address)
		work.Go(func() error {
			do := func(arguments ...string) (string, error) {
				if _, err := io.WriteString(w.conn, redisCommand(arguments...)); err != nil {
					return "", err
				}
				return readReply(w.from)
			}
			for done := 0; done < each; {
				var sum int
				for _, command := range [][]string{{"WATCH", "a"}, {"GET", "a"}, {"MULTI"}} {
					got, err := do(command...)
					if err != nil {
						return err
					}
					if command[0] == "GET" && got != "(nil)" {
						if sum, err = strconv.Atoi(got); err != nil {
							return err
						}
					}
				}
				for _, command := range [][]string{{"SET", "a", strconv.Itoa(sum + 1)}, {"INCR", "b"}} {
					if got, err := do(command...); got != "+QUEUED" {
						return fmt.Errorf("%s, %w", got, err)
					}
				}
				switch got, err := do("EXEC"); {
				case err != nil:
					return err
				case got == "(nil list)":
					lost.Add(1)
				case strings.HasPrefix(got, "*[+OK :"):
					done++
				default:
					return errors.New(got)
				}
			}
			for range each { // without a watched key all are carried out
				if got, err := do("INCRBY", "b", "1"); err != nil || !strings.HasPrefix(got, ":") {
					return fmt.Errorf("%s, %w", got, err)
				}
			}
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
	w := dialRedis(t, address)
	w.want(fmt.Sprintf("*[%d %d]", clients*each, 2*clients*each), "MGET", "a", "b")
	t.Logf("%d transactions were refused because of a watched key", lost.Load())
}

// A client that leaves in the middle of a command, or sends none, harms nobody; one that sends too much is told so.
func TestRedisClientsThatMisbehave(t *testing.T) {
	c := newCluster(t, 8)
	address := c.serveRedis()
	for _, text := range []string{"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$100000\r\nhalf", "*", "GET a", "*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nPING\r\n"} {
		w := dialRedis(t, address)
		w.send(text)
		if err := w.conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w := dialRedis(t, address)
	w.send(redisCommand("PING") + "*1\r\n$x\r\n" + redisCommand("PING"))
	if got := []string{w.reply(), w.reply()}; got[0] != "+PONG" || got[1] != "-ERR Protocol error: invalid bulk length" {
		t.Errorf("%q", got)
	}
	if rest, err := io.ReadAll(w.from); len(rest) > 0 {
		t.Errorf("after what is no command: %q, %v", rest, err)
	}
	w = dialRedis(t, address)
	w.send(redisCommand("QUIT") + redisCommand("PING"))
	if got := w.reply(); got != "+OK" {
		t.Error(got)
	}
	if rest, err := io.ReadAll(w.from); len(rest) > 0 {
		t.Errorf("after QUIT: %q, %v", rest, err)
	}
	w = dialRedis(t, address)
	most := int(c.gateway.Values().MaxBytes())
	if got := w.do("SET", "a", strings.Repeat("x", most+1)); !strings.HasPrefix(got, "-ERR bad request: an argument of") {
		t.Error(got)
	}
	w.want("(nil)", "GET", "a")
	if got := w.do("SET", "", "x"); !strings.HasPrefix(got, "-ERR bad request: a key has 1 to 4096 bytes") {
		t.Error(got)
	}
	w.want("+OK", "SET", "\x00\xff\r\n", "\x00")
	w.want("\x00", "GET", "\x00\xff\r\n")
}

// The server has as many clients as it may have; when it ends, it answers what is under way, and closes connections.
func TestRedisServersEnd(t *testing.T) {
	var waiting atomic.Int64
	var gate atomic.Pointer[chan struct{}]
	c := newCluster(t, 8, func(agent *testAgent) {
		agent.wrap = func(inner store.Store) store.Store {
			fault := &decorate.Fault{Rule: func(decorate.Call) decorate.Effect {
				open := gate.Load()
				if open == nil {
					return decorate.Effect{}
				}
				waiting.Add(1)
				return decorate.Effect{Gate: *open}
			}}
			return fault.Wrap(inner)
		}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	server := resp.New(resp.Options{Store: c.gateway.Values(), MaxConnections: 3})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	dial := func() *redisWire { return dialRedis(t, listener.Addr().String()) }
	idle, busy, piped := dial(), dial(), dial()
	for _, w := range []*redisWire{idle, busy, piped} {
		w.want("+PONG", "PING")
	}
	if got := dial().reply(); got != "-ERR max number of clients reached" {
		t.Error(got)
	}
	if err := piped.conn.Close(); err != nil {
		t.Fatal(err)
	}
	c.await("a client's place is free", func() bool {
		piped = dial()
		return piped.do("PING") == "+PONG"
	})
	closed := make(chan struct{})
	gate.Store(&closed)
	var opened sync.Once
	open := func() { opened.Do(func() { close(closed) }) }
	t.Cleanup(open)
	value := string(noise(10_000, 1)) // each has a group of its own
	busy.send(redisCommand("SET", "tmp/a", value))
	piped.send(redisCommand("SET", "tmp/b", value) + redisCommand("ECHO", "x"))
	c.await("both values are being stored", func() bool { return waiting.Load() >= 2 })
	stop()
	if rest, err := io.ReadAll(idle.from); len(rest) > 0 {
		t.Errorf("an idle client was told %q, %v", rest, err)
	}
	open()
	for w, want := range map[*redisWire]string{busy: "+OK\r\n", piped: "+OK\r\n$1\r\nx\r\n"} {
		if got, err := io.ReadAll(w.from); err != nil || string(got) != want {
			t.Errorf("a busy client was told %q, %v, want %q", got, err, want)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
