package gateway_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
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
	c.put("other", noise(50_000, 2), api.PutOptions{}) // draws a number that the lost timeline drew as well
	for range 3 {
		result, err := c.gateway.Sweep(t.Context(), api.SweepRequest{})
		if !errors.Is(err, catalog.ErrAlarm) || result.OrphansDeleted > 0 || result.BlocksDeleted > 0 {
			t.Fatalf("sweeping with a catalog that was put back: %+v, %v", result, err)
		}
		clock.move(48 * time.Hour)
	}
	c.still(before)
	status, err := c.gateway.Status(t.Context())
	if err != nil || !strings.Contains(status.CatalogBehind, "it never drew") {
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
	if err := c.catalog.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
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
