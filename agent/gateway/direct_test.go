package gateway_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/values"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/open"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

// newDirectCluster is a cluster over servers that the gateway reads by itself: addresses of stores, one for each node.
func newDirectCluster(t *testing.T, addresses []string) (*cluster, map[block.NodeID]store.Store) {
	t.Helper()
	stores := map[block.NodeID]store.Store{}
	c := newCluster(t, len(addresses), func(agent *testAgent) {
		number, err := strconv.Atoi(string(agent.id[1:]))
		if err != nil {
			t.Fatal(err)
		}
		agent.direct = addresses[number-1]
		opened, err := open.Open(t.Context(), agent.direct)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := opened.Close(); err != nil {
				t.Error(err)
			}
		})
		stores[agent.id] = opened
		agent.wrap = func(store.Store) store.Store { return opened }
	})
	return c, stores
}

// direct counts the reads straight from stores by what came of them.
func (c *cluster) direct(outcome string) int {
	c.t.Helper()
	return c.metric(`restripe_gateway_direct_reads_total{outcome="` + outcome + `"}`)
}

// metric is the value of a metric that counts, 0 where there is none.
func (c *cluster) metric(name string) int {
	c.t.Helper()
	answer := httptest.NewRecorder()
	c.gateway.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(answer.Body.String())
	if found == nil {
		return 0
	}
	count, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		c.t.Fatal(err)
	}
	return int(count)
}

func redisAddresses(t *testing.T, count int) (*server.Process, []string) {
	t.Helper()
	process := server.Redis(t)
	var addresses []string
	for i := range count {
		addresses = append(addresses, fmt.Sprintf("redis://%s/%d", process.Addr, i))
	}
	return process, addresses
}

// What is read straight from memcached and Redis is what was put, whatever is done to it meanwhile; and what a store has lost or
// damaged comes from the others, as it does through agents.
func TestDirectReads(t *testing.T) {
	_, redis := redisAddresses(t, 9)
	var memcached []string
	for range 9 {
		memcached = append(memcached, "memcached://"+server.Memcached(t, "-m", "32").Addr)
	}
	for kind, addresses := range map[string][]string{"redis": redis, "memcached": memcached} {
		t.Run(kind, func(t *testing.T) {
			c, stores := newDirectCluster(t, addresses)
			want := map[string][]byte{}
			for i, size := range []int{1, 100, 1024, 4000, 30_000, 200_000, 1_500_000} {
				key := fmt.Sprint(size)
				want[key] = noise(size, uint64(i))
				c.put(key, want[key], api.PutOptions{})
			}
			c.await("reads straight from the stores", func() bool {
				for key, data := range want {
					c.check(key, data)
				}
				return c.direct("served") > 0
			})
			before := c.direct("served")
			for key, data := range want {
				c.check(key, data)
			}
			if c.direct("served") < before+3 || c.direct("failed") > 0 || c.direct("missed") > 0 {
				t.Errorf("%d before, %d after, %d failed, %d missed", before, c.direct("served"), c.direct("failed"), c.direct("missed"))
			}
			c.damageStored(stores, "1024", func(value []byte) []byte { value[len(value)-1] ^= 1; return value })
			c.damageStored(stores, "4000", func([]byte) []byte { return nil })
			c.damageStored(stores, "100", func(value []byte) []byte { return value[:len(value)/2] })
			for key, data := range want {
				c.check(key, data)
			}
			if c.direct("missed") == 0 {
				t.Error("damage was not noticed")
			}
		})
	}
}

// Of small objects that share a block no more is read than their own bytes, however many there are.
func TestDirectReadsOfObjectsPutTogether(t *testing.T) {
	_, addresses := redisAddresses(t, 9)
	c, stores := newDirectCluster(t, addresses)
	var entries []values.Entry
	want := map[string][]byte{}
	bytesOf := 0
	for i := range 60 {
		key := fmt.Sprintf("k%02d", i)
		want[key] = noise(1500+40*i, uint64(i))
		if i%9 == 0 { // what ends with zeros is stored without them, if it is the last
			clear(want[key][1000:])
		}
		bytesOf += len(want[key])
		entries = append(entries, values.Entry{Key: key, Put: values.Put{Data: want[key]}})
	}
	if err := c.gateway.Values().Anybody().PutMany(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	all := func() {
		for key, data := range want {
			c.check(key, data)
		}
	}
	c.await("reads straight from the stores", func() bool {
		before := c.direct("served")
		all()
		return c.direct("served") == before+len(want)
	})
	before := c.metric("restripe_gateway_direct_read_bytes_total")
	all()
	if read := c.metric("restripe_gateway_direct_read_bytes_total") - before; read > bytesOf || read < bytesOf/2 {
		t.Errorf("%d bytes were read of objects that have %d", read, bytesOf)
	}
	c.damageStored(stores, "k30", func(value []byte) []byte {
		for i := range value {
			value[i] ^= 1
		}
		return value
	})
	all()
	if c.direct("missed") == 0 {
		t.Error("damage was not noticed")
	}
}

// damageStored changes the blocks that a small object lies in, in their store; to nil: they are gone.
func (c *cluster) damageStored(stores map[block.NodeID]store.Store, key string, change func(value []byte) []byte) {
	c.t.Helper()
	snapshot, err := c.catalog.Snapshot(c.t.Context(), key)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, address := range c.blocks(key, snapshot.Object.Extents[0].Column) {
		in := stores[address.Node]
		value := make([]byte, 1<<20)
		length, err := in.ReadAt(c.t.Context(), address.Key(), value, 0)
		if err == nil {
			err = in.Delete(c.t.Context(), address.Key())
		}
		if changed := change(value[:length]); err == nil && changed != nil {
			err = in.Create(c.t.Context(), address.Key(), changed)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

// Objects that are overwritten, updated, moved and deleted while they are read straight from stores are read as they were at one time.
func TestDirectReadsDuringChanges(t *testing.T) {
	_, addresses := redisAddresses(t, 9)
	c, _ := newDirectCluster(t, addresses)
	const keys, size = 6, 2000
	content := func(number int) []byte { return bytes.Repeat([]byte{byte(number)}, size) }
	for i := range keys {
		c.put(fmt.Sprint("k", i), content(i), api.PutOptions{})
	}
	c.await("reads straight from the stores", func() bool {
		c.check("k0", content(0))
		return c.direct("served") > 0
	})
	var readers sync.WaitGroup
	c.during(2*time.Second, func() {
		for i := range keys {
			readers.Go(func() {
				data := c.get(fmt.Sprint("k", i))
				if len(data) != size || !bytes.Equal(data, bytes.Repeat(data[:1], size)) {
					t.Errorf("k%d is a mixture of %d bytes", i, len(data))
				}
			})
		}
		for i := range keys {
			c.put(fmt.Sprint("k", i), content(i+7), api.PutOptions{})
			if _, err := c.gateway.Update(t.Context(), fmt.Sprint("k", i), 0, content(i+9), nil); err != nil {
				t.Error(err)
			}
		}
		if _, err := c.gateway.SweepRecords(t.Context()); err != nil {
			t.Error(err)
		}
		readers.Wait()
	})
	c.transition(api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: "rs(6,2)"})
	for i := range keys {
		c.check(fmt.Sprint("k", i), content(i+9))
	}
	if c.direct("served") < 10 {
		t.Errorf("%d reads were served by stores", c.direct("served"))
	}
}

// While the server of the stores is away the gateway does not wait for it, and reads what it has from the others.
func TestDirectReadsWhileAServerIsAway(t *testing.T) {
	_, steady := redisAddresses(t, 8)
	process, shaky := redisAddresses(t, 1)
	c, _ := newDirectCluster(t, append(steady, shaky...))
	for i := range 30 {
		c.put(fmt.Sprint("k", i), noise(1000, uint64(i)), api.PutOptions{})
	}
	all := func() {
		for i := range 30 {
			c.check(fmt.Sprint("k", i), noise(1000, uint64(i)))
		}
	}
	c.await("reads straight from the stores", func() bool {
		all()
		return c.direct("served") > 20
	})
	process.Kill()
	all()
	all()
}
