package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// A large batch is put as the keys that are written most, and the others. What of it is refused is refused alone.
func TestPopularKeysShareAGroup(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	c.putClass(c.gateway, api.ClassSpec{
		Name: "many", Ladder: "rs(3,2)", Prefixes: []string{"many/"}, PackMode: api.PackBatch, PackDelay: "1m", GroupBytes: "64KiB",
	})
	class, err := c.gateway.For("many/", "")
	if err != nil {
		t.Fatal(err)
	}
	const count, popular, size = 300, 150, 219 // the last fills the group
	name := func(i int) string { return fmt.Sprintf("many/%d", i) }
	for i := range popular {
		for range 4 {
			c.gateway.Popularity.Wrote(class, name(2*i))
		}
	}
	var puts sync.WaitGroup
	for i := range count {
		puts.Go(func() {
			options := api.PutOptions{Size: size}
			if i == 1 || i == 2 {
				options.IfRevision = &block.Stamp{Sequence: 1}
			}
			_, err := c.gateway.Put(t.Context(), name(i), bytes.NewReader(noise(size, uint64(i))), options)
			if refused := options.IfRevision != nil; refused != errors.Is(err, api.ErrConflict) || !refused && err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	puts.Wait()
	var groups [2]map[block.GroupID]bool
	for i := range groups {
		groups[i] = map[block.GroupID]bool{}
	}
	for i := range count {
		if i == 1 || i == 2 {
			if _, err := c.read(name(i)); !errors.Is(err, catalog.ErrNoObject) {
				t.Errorf("%d was refused, and is there: %v", i, err)
			}
			continue
		}
		c.check(name(i), noise(size, uint64(i)))
		groups[i%2][c.stat(name(i)).Groups[0].ID] = true
	}
	if len(groups[0]) != 1 || len(groups[1]) != 1 {
		t.Errorf("popular keys are in %d groups and others in %d, want one each", len(groups[0]), len(groups[1]))
	}
	for id := range groups[0] {
		if groups[1][id] {
			t.Errorf("popular keys and others are in group %s", id)
		}
	}
	c.audit()
}

// A group that compaction makes is as hot as its objects were where they lay, and what lay beside something hot is not.
func TestCompactionKeepsHeat(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	clock := newHandClock()
	c.restart(clock, func(o *gateway.Options) {
		o.SweepEvery, o.CompactEvery, o.CompactSettled = 20*time.Millisecond, time.Hour, time.Hour
	})
	groupOf := func(key string) block.GroupID { return c.stat(key).Groups[0].ID }
	heat := func(key string) float64 { return c.gateway.HeatOf("default", groupOf(key), clock.Now()) }
	const objects, reads = 30, 40
	name := func(i int) string { return fmt.Sprintf("lone/%02d", i) }
	for i := range objects {
		c.put(name(i), noise(700, uint64(i)), api.PutOptions{})
	}
	c.use(c.gateway, name(3), reads)
	before, was := heat(name(3)), groupOf(name(3))
	if _, err := c.gateway.StartCompaction(t.Context(), api.CompactionRequest{Everything: true}); err != nil {
		t.Fatal(err)
	}
	c.until("the hot object has moved", func() bool { return groupOf(name(3)) != was })
	after := heat(name(3))
	if after < before*0.9 || after > before*1.1 {
		t.Errorf("the group is used %.1f times a day, the one that the object came from was %.1f", after, before)
	}
}
