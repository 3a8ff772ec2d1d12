package rebuild_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/rebuild"
)

// goesOn does everything that clients and operators do to the objects of fill, and returns what they hold then, and which of
// them are gone. Nothing of it is in a copy of the catalog that was made before.
func (c *cluster) goesOn(want map[string][]byte) (after map[string][]byte, deleted string) {
	c.t.Helper()
	after = map[string][]byte{}
	for key, data := range want {
		after[key] = slices.Clone(data)
	}
	put := func(key string, size int, seed uint64) {
		after[key] = noise(size, seed)
		c.put(key, after[key], "")
	}
	put("new", 200_000, 70)
	for i := range 5 {
		put(fmt.Sprintf("small/new%d", i), 300+i, uint64(71+i))
	}
	put("large", 250_000, 80)
	put("small/3", 700, 81)
	put("new", 100_000, 82)
	c.update("wide", after["wide"], 12_345, noise(1_000, 83))
	c.update("small/5", after["small/5"], 10, noise(50, 84))
	c.transition("cold/", "rs(6,2)")
	c.transition("firm/", "rs(3,3)")
	deleted = "stream"
	if err := c.gateway.Delete(c.t.Context(), deleted, nil); err != nil {
		c.t.Fatal(err)
	}
	delete(after, deleted)
	for range 3 {
		c.sweep()
	}
	return after, deleted
}

// merge brings what the catalog lacks into it with agents that were started anew. Every second try is broken off.
func (c *cluster) merge() *catalog.Merged {
	c.t.Helper()
	c.stopGateway()
	c.stopAgents()
	c.startAgents()
	contents, _, err := rebuild.Run(c.t.Context(), rebuild.Options{Nodes: c.nodes, Modified: time.Now()})
	if err != nil {
		c.t.Fatal(err)
	}
	before := c.engine.(*mem.Engine).Clone()
	would, err := catalog.Merge(c.t.Context(), c.engine, contents, true, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	for broken := 0; ; broken++ {
		merged, err := catalog.Merge(c.t.Context(), &breaking{Engine: c.engine, left: broken}, contents, false, nil)
		if err == nil {
			if broken == 0 {
				c.t.Error("the merge takes no update")
			}
			c.t.Logf("broken off %d times: %+v, of %+v", broken, merged, would)
			break
		}
		if !errors.Is(err, errBroken) {
			c.t.Fatal(err)
		}
		if _, err := catalog.Open(c.t.Context(), c.engine, "gw/none"); broken > 0 && !errors.Is(err, catalog.ErrAside) {
			c.t.Fatalf("opening a catalog whose merge was broken off: %v, want ErrAside", err)
		}
	}
	if again, err := catalog.Merge(c.t.Context(), c.engine, contents, true, nil); err != nil || again.Objects+again.Newer > 0 {
		c.t.Errorf("what is lacking after the merge: %+v, %v", again, err)
	}
	whole, err := catalog.Merge(c.t.Context(), before, contents, false, nil)
	if err != nil || whole.Objects != would.Objects || whole.Newer != would.Newer {
		c.t.Errorf("a merge without a break: %+v, %v, and it was to be %+v", whole, err, would)
	}
	c.startGateway()
	return would
}

var errBroken = errors.New("broken off")

// breaking is an engine of which the process dies after so many updates.
type breaking struct {
	kv.Engine
	left int
}

func (b *breaking) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	if b.left--; b.left < 0 {
		return nil, errBroken
	}
	return b.Engine.Update(ctx, checks, writes)
}

// A catalog that was put back takes up all that came after the copy: new objects, later versions, updates, and groups that were
// re-striped since.
func TestACatalogThatWasPutBackTakesUpWhatItLacks(t *testing.T) {
	c := newCluster(t, stores(t, "mem", 9))
	want := c.fill()
	copied := c.engine.(*mem.Engine).Clone()
	after, deleted := c.goesOn(want)
	c.stopGateway()
	c.engine = copied
	merged := c.merge()
	if !slices.Equal(merged.Missing, []string{deleted}) || len(merged.Kept) > 0 || merged.Objects != 6 {
		t.Errorf("%+v, want 6 new objects, and %q as missing", merged, deleted)
	}
	if err := c.gateway.Delete(t.Context(), deleted, nil); err != nil { // as a person decides who reads the report
		t.Fatal(err)
	}
	c.check(after)
	if result := c.sweep(); result.OrphansDeleted+result.BlocksDeleted > 0 {
		t.Errorf("a sweep before the catalog is accepted: %+v", result)
	}
	if err := c.catalog.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.sweep()
	}
	c.check(after)
	after["newer"] = noise(70_000, 91)
	c.put("newer", after["newer"], "")
	c.update("large", after["large"], 200_000, noise(500, 92))
	c.transition("over", "rs(6,2)")
	c.sweep()
	c.check(after)
	c.scrubClean()
}

// newClaimed is a cluster without a gateway whose catalog is a copy from before goesOn, which a person has claimed.
func newClaimed(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, stores(t, "mem", 9))
	want := c.fill()
	copied := c.engine.(*mem.Engine).Clone()
	c.goesOn(want)
	starts, _ := c.gateway.Starts(time.Time{})
	c.stopGateway()
	c.engine = copied
	c.startGateway()
	if err := c.catalog.Claim(t.Context(), starts); err != nil {
		t.Fatal(err)
	}
	c.stopGateway()
	return c
}

// changes writes and deletes what the catalog lacks a later version of.
func (c *cluster) changes() {
	c.t.Helper()
	c.put("large", noise(60_000, 90), "")
	if err := c.gateway.Delete(c.t.Context(), "over", nil); err != nil {
		c.t.Fatal(err)
	}
}

// keepsChanges looks whether what changes did has stayed, in a catalog whose records fit.
func (c *cluster) keepsChanges() {
	c.t.Helper()
	reader, err := c.gateway.Open(c.t.Context(), "large")
	if err != nil || reader.Size() != 60_000 {
		c.t.Errorf("large has %v bytes, %v; want those that were written last", reader, err)
	}
	if _, err := c.gateway.Open(c.t.Context(), "over"); !errors.Is(err, catalog.ErrNoObject) {
		c.t.Errorf("what was deleted last: %v, want ErrNoObject", err)
	}
	if err := c.catalog.Audit(c.t.Context()); err != nil {
		c.t.Error(err)
	}
}

// What the catalog itself went on to do, after a person had claimed it, is later than what it lacks.
func TestWhatAClaimedCatalogWroteStays(t *testing.T) {
	c := newClaimed(t)
	c.startGateway()
	c.changes()
	c.merge()
	if _, err := c.gateway.Open(t.Context(), "new"); err != nil {
		t.Errorf("what it lacked: %v", err)
	}
	c.keepsChanges()
}

// between is an engine that has something happen before the first update that somebody else makes.
type between struct {
	kv.Engine
	happens func()
}

func (b *between) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	if happens := b.happens; happens != nil {
		b.happens = nil
		happens()
	}
	return b.Engine.Update(ctx, checks, writes)
}

// What a gateway that was forgotten commits until the merge ends its session stays, and nothing more is committed afterwards.
func TestAMergeReadsOnceNobodyElseWrites(t *testing.T) {
	c := newClaimed(t)
	contents, _, err := rebuild.Run(t.Context(), rebuild.Options{Nodes: c.nodes, Modified: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = catalog.Merge(t.Context(), &between{c.engine, func() {
		c.startGateway()
		c.changes()
	}}, contents, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.gateway.Delete(t.Context(), "wide", nil); !errors.Is(err, catalog.ErrClaimed) {
		t.Errorf("a gateway goes on after the merge: %v, want ErrClaimed", err)
	}
	c.stopGateway()
	c.startGateway()
	c.keepsChanges()
}

func TestMergesThatAreRefused(t *testing.T) {
	c := newCluster(t, stores(t, "mem", 9))
	c.fill()
	c.stopGateway()
	contents, _, err := rebuild.Run(t.Context(), rebuild.Options{Nodes: c.nodes, Modified: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := catalog.Merge(t.Context(), mem.New(), contents, false, nil); !errors.Is(err, catalog.ErrBadChange) {
		t.Errorf("merging into no catalog: %v, want ErrBadChange", err)
	}
	other := mem.New()
	if _, err := catalog.Open(t.Context(), other, "gw/1"); err != nil {
		t.Fatal(err)
	}
	if _, err := catalog.Merge(t.Context(), other, contents, false, nil); !errors.Is(err, catalog.ErrBadChange) {
		t.Errorf("merging into the catalog of another cluster: %v, want ErrBadChange", err)
	}
}
