package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

func caching(o *gateway.Options) { o.CacheBytes = 1 << 20 }

// hits is how many reads a gateway answered from its memory so far.
func hits(c *cluster, g *gateway.Gateway) float64 {
	return c.figure(g, "restripe_gateway_cache_reads_total", map[string]string{"outcome": "hit"})
}

// What was read once is read from memory as long as it is the same, and no longer, whoever changes it, and however.
func TestSmallObjectsAreReadFromMemory(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	g := c.newGateway("other", caching)
	for _, size := range []int{1, 700, 60_000} {
		key := fmt.Sprint("k", size)
		c.put(key, noise(size, 1), api.PutOptions{})
		read := func(want []byte, fromMemory bool) {
			t.Helper()
			before := hits(c, g)
			c.checkAt(g, key, want)
			if got := hits(c, g) > before; got != fromMemory {
				t.Errorf("%d bytes: read from memory: %v", size, got)
			}
		}
		read(noise(size, 1), false)
		read(noise(size, 1), true)
		c.put(key, noise(size, 2), api.PutOptions{}) // by another gateway
		read(noise(size, 2), false)
		read(noise(size, 2), true)
		patched := noise(size, 2)
		patched[size/2] ^= 1
		if _, err := c.gateway.Update(t.Context(), key, int64(size/2), patched[size/2:size/2+1], nil); err != nil {
			t.Fatal(err)
		}
		read(patched, false)
		read(patched, true)
		if _, err := c.readFrom(g, key); err != nil {
			t.Error(err)
		}
		if err := c.gateway.Delete(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := c.readFrom(g, key); err == nil {
			t.Errorf("%d bytes are read after they were deleted", size)
		}
		c.put(key, noise(size, 3), api.PutOptions{Expires: time.Now().Add(time.Hour)})
		read(noise(size, 3), false)
		read(noise(size, 3), true)
	}
	c.transition(api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: "rs(6,2)"})
	before := hits(c, g)
	c.checkAt(g, "k700", noise(700, 3))
	if hits(c, g) == before {
		t.Error("an object that lies elsewhere now was not read from memory")
	}
}

// An object that is past its time is not read from memory either.
func TestExpiredObjectsAreNotReadFromMemory(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	g := c.newGateway("other", caching)
	c.put("k", noise(700, 1), api.PutOptions{Expires: time.Now().Add(500 * time.Millisecond)})
	c.await("it is gone", func() bool {
		_, err := c.readFrom(g, "k")
		return errors.Is(err, catalog.ErrNoObject)
	})
	if hits(c, g) == 0 {
		t.Error("nothing was read from memory before")
	}
}

// Ranges of an object that is in memory are read from there, and its parts alone do not bring it there.
func TestRangesAreReadFromMemory(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	g := c.newGateway("other", caching)
	data := noise(5000, 1)
	c.put("k", data, api.PutOptions{})
	part := func(offset, length int64) {
		t.Helper()
		reader, err := g.Open(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, reader.WriteTo, offset, length); string(got) != string(data[offset:offset+length]) {
			t.Errorf("bytes %d+%d are wrong", offset, length)
		}
	}
	part(100, 50)
	part(100, 50)
	if n := hits(c, g); n != 0 {
		t.Errorf("%v reads were from memory though no one read all", n)
	}
	part(0, 5000)
	part(100, 50)
	part(0, 0)
	part(4999, 1)
	if n := hits(c, g); n != 3 {
		t.Errorf("%v reads were from memory", n)
	}
}

func readAll(t *testing.T, write func(ctx context.Context, w io.Writer, offset, length int64) error, offset, length int64) []byte {
	t.Helper()
	read, into := io.Pipe()
	go func() { _ = into.CloseWithError(write(t.Context(), into, offset, length)) }()
	got, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Reads from memory are accesses as any others: what is read often does not become cold.
func TestReadsFromMemoryAreCounted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	g := c.newGateway("other", caching)
	c.put("k", noise(700, 1), api.PutOptions{})
	c.checkAt(g, "k", noise(700, 1))
	group := c.stat("k").Groups[0].ID
	before := g.HeatOf("default", group, time.Now())
	for range 20 {
		c.checkAt(g, "k", noise(700, 1))
	}
	if n := hits(c, g); n != 20 {
		t.Fatalf("%v reads were from memory", n)
	}
	if after := g.HeatOf("default", group, time.Now()); after < 10*before {
		t.Errorf("the group is read at a rate of %v after 20 reads more than at %v", after, before)
	}
}

// What is in memory is answered though the client has sent no more than half of its next command, in the order of what was asked.
func TestAnswersFromMemoryDoNotWaitForMore(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9).with(caching)
	c.put("a", []byte("first"), api.PutOptions{})
	c.put("b", []byte("second"), api.PutOptions{})
	c.check("a", []byte("first")) // "b" is not in memory
	redis := dialRedis(t, c.serveRedis())
	last := redisCommand("GET", "a")
	for _, cut := range []int{1, 5, len(last) - 1} {
		redis.send(redisCommand("GET", "a") + redisCommand("GET", "none") + last[:cut])
		for _, want := range []string{"first", "(nil)"} {
			if got := redis.reply(); got != want {
				t.Fatalf("%q, want %q", got, want)
			}
		}
		redis.send(last[cut:] + redisCommand("GET", "b") + redisCommand("PING") + redisCommand("GET", "a") + redisCommand("DEL", "c") +
			redisCommand("GET", "a"))
		for _, want := range []string{"first", "second", "+PONG", "first", ":0", "first"} {
			if got := redis.reply(); got != want {
				t.Fatalf("%q, want %q", got, want)
			}
		}
	}
	memcached := dialMemcache(t, c.serveMemcache())
	const has = "VALUE a 0 5\r\nfirst\r\nEND\r\n"
	for _, cut := range []int{1, 5} {
		memcached.send("get a\r\nget none\r\n" + "get a\r\n"[:cut])
		for _, want := range []string{has, "END\r\n"} {
			got := make([]byte, len(want))
			if _, err := io.ReadFull(memcached.reader, got); err != nil || string(got) != want {
				t.Fatalf("%q, want %q: %v", got, want, err)
			}
		}
		memcached.send("get a\r\n"[cut:])
		got := make([]byte, len(has))
		if _, err := io.ReadFull(memcached.reader, got); err != nil || string(got) != has {
			t.Fatalf("%q, want %q: %v", got, has, err)
		}
		memcached.want("get a b none a\r\ngets none\r\n", "VALUE a 0 5\r\nfirst\r\nVALUE b 0 6\r\nsecond\r\nVALUE a 0 5\r\nfirst\r\nEND\r\nEND\r\n")
		memcached.want("set c 0 0 1\r\nx\r\nget c a\r\ndelete c\r\nget a c\r\n",
			"STORED\r\nVALUE c 0 1\r\nx\r\nVALUE a 0 5\r\nfirst\r\nEND\r\nDELETED\r\n"+has)
	}
	if hits(c, c.gateway) == 0 {
		t.Error("nothing was read from memory")
	}
}
