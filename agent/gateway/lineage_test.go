package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/wire"
)

// TestACatalogThatWasPutBack puts an old copy of the catalog in the place of the catalog, as after a failed disk. What came after
// the copy is in the stores alone, and stays there for as long as nobody decides.
func TestACatalogThatWasPutBack(t *testing.T) {
	c := newCluster(t, 8)
	c.put("old", noise(50_000, 1), api.PutOptions{})
	copied := c.engine.Clone()
	for i := range 5 {
		c.put(fmt.Sprintf("later%d", i), noise(50_000, uint64(10+i)), api.PutOptions{})
	}
	lived := c.engine
	c.stopGateway()
	before := c.blocksAtRest()

	clock := newHandClock()
	expiring := func(o *gateway.Options) { o.Clock, o.Now = clock.Now, clock.Now }
	c.engine = copied
	c.catalog, c.gateway = c.makeGateway("gw", expiring)
	_, err := c.gateway.Put(t.Context(), "other", bytes.NewReader(noise(50_000, 2)), api.PutOptions{Size: 50_000})
	if !errors.Is(err, wire.ErrNotObeyed) {
		t.Errorf("a put into a catalog that was put back: %v, want ErrNotObeyed", err)
	}
	c.check("old", noise(50_000, 1))
	for range 3 {
		result, err := c.gateway.Sweep(t.Context(), api.SweepRequest{})
		if !errors.Is(err, catalog.ErrAlarm) || result.OrphansDeleted > 0 || result.BlocksDeleted > 0 {
			t.Fatalf("sweeping with a catalog that was put back: %+v, %v", result, err)
		}
		clock.move(48 * time.Hour)
	}
	c.still(before)
	status, err := c.gateway.Status(t.Context())
	if err != nil || !strings.Contains(status.CatalogBehind, "that this catalog lacks") {
		t.Errorf("status says %q, %v", status.CatalogBehind, err)
	}
	if said := c.finding("catalog"); said.Severity != "error" || !strings.Contains(said.Cure, "restripe catalog claim") {
		t.Errorf("the doctor says %+v", said)
	}

	c.stopGateway()
	c.engine = lived
	c.catalog, c.gateway = c.makeGateway("gw", expiring)
	for i := range 5 {
		c.check(fmt.Sprintf("later%d", i), noise(50_000, uint64(10+i)))
	}

	c.stopGateway()
	c.engine = copied
	c.catalog, c.gateway = c.makeGateway("gw", expiring)
	starts, unheard := c.gateway.Starts(time.Time{})
	if len(starts) == 0 || len(unheard) > 0 {
		t.Errorf("the nodes know the starts %v, those of %v do not say", starts, unheard)
	}
	if err := c.catalog.Claim(t.Context(), starts); err != nil {
		t.Fatal(err)
	}
	c.stopGateway()
	c.catalog, c.gateway = c.makeGateway("gw", expiring)
	c.put("other", noise(50_000, 2), api.PutOptions{})
	if err := c.gateway.Delete(t.Context(), "old", nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if result, err := c.gateway.Sweep(t.Context(), api.SweepRequest{}); err != nil || result.OrphansDeleted+result.BlocksDeleted > 0 {
			t.Errorf("sweeping a claimed catalog: %+v, %v", result, err)
		}
		clock.move(48 * time.Hour)
	}
	c.still(before)
	if err := c.catalog.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.audit()
	c.check("other", noise(50_000, 2))
}

// blocksAtRest returns the blocks that the stores hold.
func (c *cluster) blocksAtRest() (keys []string) {
	c.t.Helper()
	for _, agent := range c.agents {
		err := agent.store.List(c.t.Context(), block.KeyPrefix, func(key string, _ int64) error {
			keys = append(keys, string(agent.id)+" "+key)
			return nil
		})
		if err != nil {
			c.t.Fatal(err)
		}
	}
	return keys
}

// still fails where a block is not at rest any more.
func (c *cluster) still(before []string) {
	c.t.Helper()
	now := map[string]bool{}
	for _, key := range c.blocksAtRest() {
		now[key] = true
	}
	for _, key := range before {
		if !now[key] {
			c.t.Errorf("the block %s is gone", key)
		}
	}
}

// TestACopyBesideItsOriginal starts a gateway on a copy of the catalog while the original is at work. The nodes obey the
// original, which goes on; what the copy wrote meanwhile is no sign that the original is behind.
func TestACopyBesideItsOriginal(t *testing.T) {
	c := newCluster(t, 8)
	c.put("old", noise(50_000, 1), api.PutOptions{})
	original, lived := c.gateway, c.engine
	var (
		records *catalog.Catalog
		copied  *gateway.Gateway
	)
	defer func() {
		if err := copied.Close(); err != nil {
			t.Error(err)
		}
	}()
	putInto := func(g *gateway.Gateway) error {
		_, err := g.Put(t.Context(), "old", bytes.NewReader(noise(50_000, 3)), api.PutOptions{Size: 50_000})
		return err
	}
	for try := 0; ; try++ {
		c.engine = lived.Clone()
		records, copied = c.makeGateway("gw")
		err := putInto(copied)
		if err == nil {
			break
		}
		if try == 5 || !strings.Contains(err.Error(), "obeys another catalog") {
			t.Fatalf("a put by a gateway that may as well be a new one of the original: %v", err)
		}
		// The original has given signs of life meanwhile, which the copy does not have: the machine is slow.
		if err := copied.Close(); err != nil {
			t.Fatal(err)
		}
	}
	before := c.blocksAtRest()
	if result, err := copied.Sweep(t.Context(), api.SweepRequest{}); result.BlocksDeleted+result.OrphansDeleted > 0 {
		t.Errorf("a sweep by it deleted blocks: %+v, %v", result, err)
	}
	if result, err := original.Sweep(t.Context(), api.SweepRequest{}); err != nil || result.Quarantined == 0 {
		t.Errorf("a sweep of the original right after: %+v, %v; want what the copy wrote left, and no alarm", result, err)
	}
	c.await("the nodes expel the gateway of the copy", func() bool {
		refusals := original.Refusals()
		return len(refusals) == 8 && slices.Contains(refusals[7].Expelled, records.Start())
	})
	c.await("the copy is alarmed", func() bool {
		return errors.Is(records.CheckAlarm(t.Context()), catalog.ErrAlarm)
	})
	if err := putInto(copied); !errors.Is(err, wire.ErrNotObeyed) {
		t.Errorf("a put into the copy: %v, want ErrNotObeyed", err)
	}
	if status, err := copied.Status(t.Context()); err != nil || !strings.Contains(status.CatalogBehind, "a copy") {
		t.Errorf("the copy says %q, %v", status.CatalogBehind, err)
	}
	c.still(before)

	c.engine, c.gateway = lived, original
	c.check("old", noise(50_000, 1))
	c.put("old", noise(50_000, 4), api.PutOptions{})
	result, err := original.Sweep(t.Context(), api.SweepRequest{})
	if err != nil || result.BlocksDeleted == 0 || result.Quarantined == 0 {
		t.Errorf("sweeping the original: %+v, %v; want dead blocks deleted, and those of the copy left", result, err)
	}
	if said := c.finding("node n1"); said.Severity != "error" || !strings.Contains(said.Text, records.Start()) {
		t.Errorf("the doctor says %+v", said)
	}
	c.check("old", noise(50_000, 4))
}

// TestACrashedGatewayIsWaitedFor starts a gateway again that did not say that it stops: it writes at once, and deletes once the
// nodes have not heard the earlier start for long enough.
func TestACrashedGatewayIsWaitedFor(t *testing.T) {
	for name, silence := range map[string]time.Duration{"soon": time.Hour, "late": time.Nanosecond} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 8, func(agent *testAgent) { agent.silence = silence })
			c.put("k", noise(50_000, 1), api.PutOptions{})
			crashed := c.gateway
			c.startGateway()
			defer func() {
				if err := crashed.Close(); err != nil {
					t.Error(err)
				}
			}()
			c.put("k", noise(50_000, 2), api.PutOptions{})
			result, err := c.gateway.Sweep(t.Context(), api.SweepRequest{})
			if silence == time.Hour && (err != nil || result.BlocksDeleted > 0 || result.GravesLeft == 0) {
				t.Errorf("right after the crash: %+v, %v; want the graves left", result, err)
			}
			if silence == time.Nanosecond && (err != nil || result.BlocksDeleted == 0) {
				t.Errorf("long after the crash: %+v, %v; want dead blocks deleted", result, err)
			}
			c.check("k", noise(50_000, 2))
		})
	}
}

// forgetful is an engine that may lose what it has acknowledged.
type forgetful struct{ kv.Engine }

func (forgetful) MayLose() bool { return true }

// Where the engine may lose what it acknowledged, nodes know of what a client was told when it is told: a catalog that has lost it
// is refused, although its gateway failed before the next probe.
func TestWhatIsAcknowledgedIsWitnessed(t *testing.T) {
	data := noise(50_000, 1)
	for name, change := range map[string]struct {
		do   func(c *cluster) error
		most int // nodes that need not know
	}{
		"a put": {func(c *cluster) error {
			_, err := c.gateway.Put(t.Context(), "k", bytes.NewReader(data), api.PutOptions{Size: 50_000})
			return err
		}, 7},
		"a put of a small object": {func(c *cluster) error {
			_, err := c.gateway.Put(t.Context(), "small", bytes.NewReader(data[:100]), api.PutOptions{Size: 100})
			return err
		}, 7},
		"an update": {func(c *cluster) error {
			_, err := c.gateway.Update(t.Context(), "old", 0, data[:1000], nil)
			return err
		}, 7},
		"a delete": {func(c *cluster) error { return c.gateway.Delete(t.Context(), "old", nil) }, 3},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			c := newCluster(t, 8)
			c.put("old", data, api.PutOptions{})
			c.stopGateway()
			var records *catalog.Catalog
			_, c.gateway = c.makeGateway("gw", func(o *gateway.Options) {
				var err error
				if records, err = catalog.Open(t.Context(), forgetful{c.engine}, catalog.Owner(o.ID, "lossy"), catalog.WithGrace(0)); err != nil {
					t.Fatal(err)
				}
				o.Catalog, o.Start = records, "lossy"
			})
			c.catalog = records
			c.answering()
			read, err := records.Timeline(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			before := &wire.Timeline{Start: records.Start(), Read: *read}
			if err := change.do(c); err != nil {
				t.Fatal(err)
			}
			ignorant := 0
			for _, agent := range c.agents {
				var hello wire.HelloReply
				client := wire.NewClient(agent.address)
				request := wire.HelloRequest{Cluster: records.Cluster().ID, Timeline: before}
				if _, err := client.Call(t.Context(), wire.OpHello, request, nil, &hello); err != nil {
					t.Error(err)
				} else if hello.Allegiance == nil || hello.Allegiance.Lacks[records.Start()] == nil {
					ignorant++
				}
				if err := client.Close(); err != nil {
					t.Error(err)
				}
			}
			if ignorant > change.most {
				t.Errorf("%d of %d nodes do not know of it", ignorant, len(c.agents))
			}
		})
	}
}
