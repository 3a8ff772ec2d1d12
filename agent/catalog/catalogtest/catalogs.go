package catalogtest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// catalogs runs two Catalogs over the engine: concurrent puts, deletes and frees of few keys, and an audit.
func catalogs(t *testing.T, instance Instance) {
	ctx := deadline(t)
	var both []*catalog.Catalog
	for i := range 2 {
		c, err := catalog.Open(ctx, instance.Engine, catalog.Owner(fmt.Sprintf("gateway%d", i), "start"))
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, c)
	}
	if both[0].Cluster() != both[1].Cluster() || both[0].Cluster().ID == "" {
		t.Errorf("two catalogs of one engine say they are %q and %q", both[0].Cluster().ID, both[1].Cluster().ID)
	}
	nodes, incarnations := Enroll(ctx, t, both[0])
	var mu sync.Mutex
	stamps := map[block.Stamp]bool{}
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			c := both[client%2]
			for i := range 6 {
				key := fmt.Sprintf("key\xff\x00%d", (client+i)%5)
				stamp, err := PutAlone(ctx, c, key, i%2, nodes, incarnations)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if stamps[stamp] {
					t.Errorf("stamp %s was drawn twice", stamp)
				}
				stamps[stamp] = true
				mu.Unlock()
				switch i % 3 {
				case 1:
					if _, err := c.Delete(ctx, key, nil); err != nil && !errors.Is(err, catalog.ErrNoObject) {
						t.Error(err)
					}
				case 2:
					if _, _, err := c.FreeAll(ctx); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	if err := both[0].Audit(ctx); err != nil {
		t.Error(err)
	}
	if _, _, err := both[1].FreeAll(ctx); err != nil {
		t.Error(err)
	}
	if err := both[1].Audit(ctx); err != nil {
		t.Error(err)
	}
	objects, err := both[0].ListObjects(ctx, "key", "", 100)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := both[0].ListGroups(ctx, block.GroupID{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != len(groups) {
		t.Errorf("%d objects in %d groups, one of each expected", len(objects), len(groups))
	}
}
