package gateway_test

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/values"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

// smallValues are values of a cluster whose gateway reads stores by itself, put together, and each once read.
func smallValues(c *cluster, count int) map[string][]byte {
	c.t.Helper()
	var entries []values.Entry
	want := map[string][]byte{}
	for i := range count {
		key := fmt.Sprintf("k%03d", i)
		want[key] = noise(200+7*i, uint64(i))
		entries = append(entries, values.Entry{Key: key, Put: values.Put{Data: want[key]}})
	}
	if err := c.gateway.Values().Anybody().PutMany(c.t.Context(), entries); err != nil {
		c.t.Fatal(err)
	}
	c.await("reads straight from the stores", func() bool {
		before := c.direct("served")
		for key, data := range want {
			c.check(key, data)
		}
		return c.direct("served") == before+len(want)
	})
	return want
}

// eachDirect runs a test over Redis and over memcached.
func eachDirect(t *testing.T, run func(t *testing.T, c *cluster, stores map[block.NodeID]store.Store)) {
	_, redis := redisAddresses(t, 9)
	var memcached []string
	for range 9 {
		memcached = append(memcached, "memcached://"+server.Memcached(t, "-m", "32").Addr)
	}
	for kind, addresses := range map[string][]string{"redis": redis, "memcached": memcached} {
		t.Run(kind, func(t *testing.T) {
			c, stores := newDirectCluster(t, addresses)
			run(t, c, stores)
		})
	}
}

// pipelined sends commands in one write, and demands what is answered.
func (w *redisWire) pipelined(commands [][]string, wants []string) {
	w.t.Helper()
	var text strings.Builder
	for _, command := range commands {
		text.WriteString(redisCommand(command...))
	}
	w.send(text.String())
	for i, want := range wants {
		if got := w.reply(); got != want {
			w.t.Errorf("reply %d, to %.60q: %.60q, want %.60q", i, commands[i], got, want)
		}
	}
}

const (
	catalogReads  = `restripe_catalog_operation_seconds_count{operation="read",outcome="done"}`
	directBatches = "restripe_gateway_direct_batches_total"
)

// Reads that a client sends together are few reads of the catalog and of the stores, whatever else is among them.
func TestReadsTogetherAreFew(t *testing.T) {
	eachDirect(t, func(t *testing.T, c *cluster, _ map[block.NodeID]store.Store) {
		want := smallValues(c, 60)
		w := dialRedis(t, c.serveRedis())
		var commands [][]string
		var wants []string
		for i := range 30 { // which the gateway takes in at once
			key := fmt.Sprintf("k%03d", i)
			commands, wants = append(commands, []string{"GET", key}), append(wants, string(want[key]))
		}
		commands[7], wants[7] = []string{"GET", "absent"}, "(nil)"
		reads := func(work func()) int { // of the catalog, without those of who counts them
			c.metric(catalogReads)
			begun := c.metric(catalogReads)
			counting := c.metric(catalogReads) - begun
			begun = c.metric(catalogReads)
			work()
			return c.metric(catalogReads) - begun - counting
		}
		c.await("30 reads take one of the catalog, and one of each store", func() bool {
			batches, served := c.metric(directBatches), c.direct("served")
			took := reads(func() { w.pipelined(commands, wants) })
			return took <= 2 && c.direct("served")-served == 29 && c.metric(directBatches)-batches <= 9
		})
	})
}

// Clients of memcached read together as well, in one command or in several.
func TestReadsTogetherByMemcache(t *testing.T) {
	eachDirect(t, func(t *testing.T, c *cluster, stores map[block.NodeID]store.Store) {
		want := smallValues(c, 60)
		m := dialMemcache(t, c.serveMemcache())
		value := func(key string) string {
			return fmt.Sprintf("VALUE %s 0 %d\r\n%s\r\n", key, len(want[key]), want[key])
		}
		var one, several, all, each strings.Builder
		one.WriteString("get")
		for i := range 30 {
			key := fmt.Sprintf("k%03d", i)
			one.WriteString(" " + key)
			all.WriteString(value(key))
			several.WriteString("get " + key + "\r\n")
			each.WriteString(value(key) + "END\r\n")
		}
		one.WriteString(" none\r\n")
		all.WriteString("END\r\n")
		for text, reply := range map[string]string{one.String(): all.String(), several.String(): each.String()} {
			c.await("30 reads are one of each store", func() bool {
				batches, served := c.metric(directBatches), c.direct("served")
				m.want(text, reply)
				return c.direct("served")-served == 30 && c.metric(directBatches)-batches <= 9
			})
		}
		c.damageStored(stores, "k003", func([]byte) []byte { return nil })
		m.want("delete k004\r\nget k001 k002\r\nset k002 0 0 1\r\nx\r\nget k002 k003\r\nget k004 k002 k001\r\n",
			"DELETED\r\n"+value("k001")+value("k002")+"END\r\nSTORED\r\nVALUE k002 0 1\r\nx\r\n"+value("k003")+"END\r\n"+
				"VALUE k002 0 1\r\nx\r\n"+value("k001")+"END\r\n")
	})
}

// Each value has its own bytes until they are sent, whoever else reads meanwhile: of several connections at once, by both protocols.
func TestReadsTogetherKeepTheirBytes(t *testing.T) {
	_, addresses := redisAddresses(t, 9)
	c, _ := newDirectCluster(t, addresses)
	want := smallValues(c, 60)
	keys := []string{"large"} // which is read by itself, so that the others wait for it
	want["large"] = noise(100_000, 99)
	c.put("large", want["large"], api.PutOptions{})
	for i := range 30 {
		keys = append(keys, fmt.Sprintf("k%03d", i))
	}
	var many, all, pipeline, each strings.Builder
	many.WriteString("get")
	for _, key := range keys {
		many.WriteString(" " + key)
		fmt.Fprintf(&all, "VALUE %s 0 %d\r\n%s\r\n", key, len(want[key]), want[key])
		pipeline.WriteString(redisCommand("GET", key))
		fmt.Fprintf(&each, "$%d\r\n%s\r\n", len(want[key]), want[key])
	}
	many.WriteString("\r\n")
	all.WriteString("END\r\n")
	var clients errgroup.Group
	ask := func(address, text, reply string) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() }) // what it says has been read
		clients.Go(func() error {
			got := make([]byte, len(reply))
			for range 200 {
				if _, err := io.WriteString(conn, text); err != nil {
					return err
				}
				if _, err := io.ReadFull(conn, got); err != nil {
					return err
				}
				if string(got) != reply {
					return fmt.Errorf("%.60q is answered with other bytes than those of its values", text)
				}
			}
			return nil
		})
	}
	memcached, redis := c.serveMemcache(), c.serveRedis()
	for range 4 {
		ask(memcached, many.String(), all.String())
		ask(redis, pipeline.String(), each.String())
	}
	if err := clients.Wait(); err != nil {
		t.Error(err)
	}
}

// A pipeline of values that are there, were never there, have expired, were just deleted or overwritten, or cannot be read where they lie,
// is answered as each command by itself is.
func TestReadsTogetherOfAllKinds(t *testing.T) {
	eachDirect(t, func(t *testing.T, c *cluster, stores map[block.NodeID]store.Store) {
		want := smallValues(c, 60)
		w, other := dialRedis(t, c.serveRedis()), dialRedis(t, c.serveRedis())
		large := string(noise(30_000, 1))
		w.want("+OK", "SET", "large", large)
		w.want("+OK", "SET", "empty", "")
		w.want("+OK", "SET", "short", "lived", "PX", "40")
		c.await("a value has expired", func() bool { return w.do("GET", "short") == "(nil)" })
		other.want(":1", "DEL", "k011")
		other.want("+OK", "SET", "k012", "other")
		want["k012"] = []byte("other")
		c.damageStored(stores, "k013", func(value []byte) []byte { value[len(value)-1] ^= 1; return value })
		c.damageStored(stores, "k014", func([]byte) []byte { return nil })
		var commands [][]string
		var wants []string
		ask := func(want string, command ...string) { commands, wants = append(commands, command), append(wants, want) }
		for i := range 20 {
			key := fmt.Sprintf("k%03d", i)
			switch i {
			case 3:
				ask(large, "GET", "large")
			case 4:
				ask("", "GET", "empty")
			case 5:
				ask("(nil)", "GET", "short")
			case 6:
				ask("(nil)", "GET", "never")
			case 7:
				ask(other.do("GET", ""), "GET", "")
			case 11:
				ask("(nil)", "GET", key)
			case 16:
				ask("+OK", "SET", "k001", "new")
				ask("new", "GET", "k001")
				ask(":1", "DEL", "k002")
				ask("(nil)", "GET", "k002")
			default:
				ask(string(want[key]), "GET", key)
			}
		}
		w.pipelined(commands, wants)
		if c.direct("missed") == 0 {
			t.Error("damage was not noticed")
		}
		many := []string{"MGET", "k010", "k011", "k012", "k013", "k014", "large", "never", "k010"}
		w.want("*["+strings.Join([]string{string(want["k010"]), "(nil)", "other", string(want["k013"]), string(want["k014"]), large, "(nil)",
			string(want["k010"])}, " ")+"]", many...)
	})
}

// While the server of a store is away, and while an agent is, what was sent together is answered all the same.
func TestReadsTogetherWhileNodesAreAway(t *testing.T) {
	_, steady := redisAddresses(t, 7)
	process, shaky := redisAddresses(t, 1)
	c, _ := newDirectCluster(t, append(steady, shaky...))
	want := smallValues(c, 40)
	w := dialRedis(t, c.serveRedis())
	all := func() {
		t.Helper()
		var commands [][]string
		var wants []string
		for key, data := range want {
			commands, wants = append(commands, []string{"GET", key}), append(wants, string(data))
		}
		w.pipelined(commands, wants)
	}
	all()
	process.Suspend() // it takes what is asked, and does not answer
	all()
	process.Resume()
	all()
	process.Kill()
	all()
	all()
	c.agents[2].stop()
	all()
	all()
}

// Counters that others count up, and that are moved meanwhile, never go back for a client that reads many of them together.
func TestReadsTogetherNeverGoBack(t *testing.T) {
	_, addresses := redisAddresses(t, 9)
	c, _ := newDirectCluster(t, addresses)
	smallValues(c, 1)
	address := c.serveRedis()
	const keys = 12
	filler := strings.Repeat("x", 300)
	value := func(number int) string { return strconv.Itoa(number) + filler }
	var stopped sync.WaitGroup
	ended := make(chan struct{})
	set := dialRedis(t, address)
	for i := range keys {
		set.want("+OK", "SET", fmt.Sprint("n", i), value(0))
	}
	stopped.Go(func() {
		for number := 1; ; number++ {
			for i := range keys {
				set.want("+OK", "SET", fmt.Sprint("n", i), value(number))
			}
			select {
			case <-ended:
				return
			default:
			}
		}
	})
	var readers errgroup.Group
	for range 3 {
		w := dialRedis(t, address)
		readers.Go(func() error {
			var last [keys]int
			var text strings.Builder
			for i := range 2 * keys {
				text.WriteString(redisCommand("GET", fmt.Sprint("n", i%keys)))
			}
			for began := time.Now(); time.Since(began) < 2*time.Second; {
				w.send(text.String())
				for i := range 2 * keys {
					got, err := readReply(w.from)
					if err != nil {
						return err
					}
					number, err := strconv.Atoi(strings.TrimSuffix(got, filler))
					// What is read twice in one pipeline may be seen in either order.
					if err != nil || i < keys && number < last[i] {
						return fmt.Errorf("n%d is %.40q after %d, %w", i%keys, got, last[i%keys], err)
					}
					last[i%keys] = max(last[i%keys], number)
				}
			}
			return nil
		})
	}
	c.transition(api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: "rs(6,2)"})
	if err := readers.Wait(); err != nil {
		t.Error(err)
	}
	close(ended)
	stopped.Wait()
}

// Reads that are made together heat what they read as much as those by themselves.
func TestReadsTogetherAreCounted(t *testing.T) {
	_, addresses := redisAddresses(t, 9)
	c, _ := newDirectCluster(t, addresses)
	want := smallValues(c, 30)
	w := dialRedis(t, c.serveRedis())
	heat := func() float64 { return c.stat("k000").Groups[0].Heat }
	before := heat()
	for key, data := range want {
		w.want(string(data), "GET", key)
	}
	alone := heat() - before
	var commands [][]string
	var wants []string
	for key, data := range want {
		commands, wants = append(commands, []string{"GET", key}), append(wants, string(data))
	}
	before = heat()
	w.pipelined(commands, wants)
	if together := heat() - before; alone <= 0 || together < 0.95*alone || together > 1.05*alone {
		t.Errorf("%g together, %g by themselves", together, alone)
	}
}
