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
