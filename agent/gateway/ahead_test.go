package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// announcing counts the updates of an engine that announce attempts.
type announcing struct {
	kv.Engine
	count atomic.Int64
}

// Update implements kv.Engine.
func (a *announcing) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	for _, write := range writes {
		if strings.HasPrefix(write.Key, schema.PrefixIntent) && write.Kind != kv.Remove {
			a.count.Add(1)
			break
		}
	}
	return a.Engine.Update(ctx, checks, writes)
}

// figure returns the value of a metric of a gateway.
func (c *cluster) figure(g *gateway.Gateway, name string, labels map[string]string) float64 {
	c.t.Helper()
	families, err := g.Figures().Gather()
	if err != nil {
		c.t.Fatal(err)
	}
	value, found := sample(c.t, families, name, labels)
	if !found {
		c.t.Fatalf("there is no metric %s with %v", name, labels)
	}
	return value
}

// putAhead puts small objects, one after the other, until so many have found their attempts announced, and returns how many it put.
func (c *cluster) putAhead(g *gateway.Gateway, count float64) (puts int) {
	c.t.Helper()
	ahead := func() float64 {
		return c.figure(g, "restripe_packing_attempts_total", map[string]string{"announced": "ahead"})
	}
	want := ahead() + count
	c.await("puts find their attempts announced", func() bool {
		for range 10 {
			puts++
			c.putBy(g, fmt.Sprint("ahead/", puts%7), noise(1000, uint64(puts)))
		}
		return ahead() >= want
	})
	return puts
}

func (c *cluster) putBy(g *gateway.Gateway, key string, data []byte) {
	c.t.Helper()
	c.putUnder(g, "", key, data)
}

func (c *cluster) putUnder(g *gateway.Gateway, scheme, key string, data []byte) {
	c.t.Helper()
	if _, err := g.Put(c.t.Context(), key, bytes.NewReader(data), api.PutOptions{Size: int64(len(data)), Scheme: scheme}); err != nil {
		c.t.Fatalf("putting %q: %v", key, err)
	}
}

// settled waits until no attempt is under way, and audits.
func (c *cluster) settled() {
	c.t.Helper()
	c.await("the attempts that were not used are given up", func() bool {
		intents, err := c.catalog.Intents(c.t.Context(), block.Stamp{}, 100)
		return err == nil && len(intents) == 0
	})
	if err := c.catalog.Audit(c.t.Context()); err != nil {
		c.t.Error(err)
	}
}

// Puts that go into an open group use attempts that were announced with it, and those that others have overtaken do without.
func TestAppendsAreAnnouncedAhead(t *testing.T) {
	c := newCluster(t, 9)
	other := c.newGateway("other", c.over(c.engine))
	g := c.gateway
	figure := func(name, label, value string) float64 { return c.figure(g, name, map[string]string{label: value}) }
	want := map[string][]byte{}
	round := 0
	puts := func(count int) {
		for range count {
			round++
			key := fmt.Sprint("lone/", round%9)
			want[key] = noise(1000, uint64(round))
			c.putUnder(g, "rs(3,2)", key, want[key])
		}
	}
	c.await("appends find their attempts announced", func() bool {
		puts(20)
		return figure("restripe_packing_attempts_total", "announced", "ahead") >= figure("restripe_packing_writes_total", "into", "new")+10
	})
	if refused := c.figure(g, "restripe_packing_refused_total", nil); refused > 0 {
		t.Errorf("a gateway alone had %.0f attempts refused", refused)
	}
	c.checkAll(want)
	appended := c.appended()
	c.await("an append is overtaken", func() bool {
		puts(9)
		c.putUnder(other, "rs(3,2)", "k", noise(500, 2))
		if err := other.Delete(t.Context(), "k", nil); err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprint("fresh/", round) // which nobody has put: it is below what was deleted
		want[key] = noise(1000, uint64(round))
		c.putUnder(g, "rs(3,2)", key, want[key])
		return c.figure(g, "restripe_packing_refused_total", nil) > 0 && c.appended() > appended
	})
	c.checkAll(want)
	c.settled()
	c.audit()
}

// Small puts that come one after the other share the transactions that announce them. Nothing of it is left when they end.
func TestPutsAreAnnouncedAhead(t *testing.T) {
	c := newCluster(t, 9)
	engine := &announcing{Engine: c.engine}
	g := c.newGateway("ahead", c.over(engine))
	puts := c.putAhead(g, 100)
	if announced := engine.count.Load(); announced >= int64(puts) {
		t.Errorf("%d puts took %d transactions that announced attempts", puts, announced)
	}
	for i := puts - 6; i <= puts; i++ {
		got, err := c.readFrom(g, fmt.Sprint("ahead/", i%7))
		if err != nil || !bytes.Equal(got, noise(1000, uint64(i))) {
			t.Errorf("what was put last under ahead/%d: %d bytes, %v", i%7, len(got), err)
		}
	}
	c.settled()
}

// A gateway that closes gives up what it has announced ahead.
func TestClosingGivesUpWhatIsAhead(t *testing.T) {
	c := newCluster(t, 9)
	_, g := c.makeGateway("ahead", c.over(c.engine))
	c.putAhead(g, 20)
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	intents, err := c.catalog.Intents(t.Context(), block.Stamp{}, 100)
	if err != nil || len(intents) > 0 {
		t.Errorf("a gateway that was closed left the attempts %v, %v", intents, err)
	}
}

// Where another gateway has written over a key, or deleted it, after an attempt was announced, the put is announced anew.
func TestPutsOvertakenByAnotherGateway(t *testing.T) {
	c := newCluster(t, 9)
	g, other := c.newGateway("ahead", c.over(c.engine)), c.gateway
	refused := func() float64 { return c.figure(g, "restripe_packing_refused_total", nil) }
	for name, meanwhile := range map[string]func(){
		"put": func() { c.putBy(other, "k", noise(500, 1)) },
		"put and deleted": func() {
			c.putBy(other, "k", noise(500, 2))
			if err := other.Delete(t.Context(), "k", nil); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, round := refused(), uint64(0)
			c.await("a put is overtaken", func() bool {
				round++
				c.putAhead(g, 3)
				meanwhile()
				c.putBy(g, "k", noise(1000, round))
				got, err := c.readFrom(other, "k")
				if err != nil || !bytes.Equal(got, noise(1000, round)) {
					t.Fatalf("what was put last: %d bytes, %v", len(got), err)
				}
				return refused() > before
			})
		})
	}
}
