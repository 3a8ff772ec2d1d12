package catalogtest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// catalogs runs two Catalogs over the engine: concurrent puts, deletes and frees of few keys, and an audit.
func catalogs(t *testing.T, instance Instance) {
	ctx := deadline(t)
	nodes := []block.NodeID{"n0", "n1", "n2"}
	incarnations := map[block.NodeID]block.Incarnation{}
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
	for _, node := range nodes {
		incarnations[node] = block.Incarnation("contents of " + node)
		if err := both[0].RegisterIncarnation(ctx, node, "", incarnations[node]); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	stamps := map[uint64]bool{}
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			c := both[client%2]
			for i := range 6 {
				key := fmt.Sprintf("key\xff\x00%d", (client+i)%5)
				attempt, err := c.Begin(ctx, catalog.KindPut, time.Now().Add(time.Hour), func(stamp block.Stamp) []catalog.BlockSet {
					return []catalog.BlockSet{Announce(stamp, 0, nodes)}
				})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if stamps[attempt.Stamp().Sequence] {
					t.Errorf("stamp %s was drawn twice", attempt.Stamp())
				}
				stamps[attempt.Stamp().Sequence] = true
				mu.Unlock()
				group := NewGroup(attempt.Stamp(), 0, nodes, incarnations)
				err = attempt.Commit(ctx, catalog.Change{
					NewGroups: []catalog.Group{group},
					Put:       []catalog.Object{{Key: key, Size: 10, Extents: []catalog.Extent{{Group: group.ID, Column: i % 2, Length: 10}}}},
				})
				if err != nil {
					t.Error(err)
					return
				}
				switch i % 3 {
				case 1:
					if _, err := c.Delete(ctx, key, nil); err != nil && !errors.Is(err, catalog.ErrNoObject) {
						t.Error(err)
					}
				case 2:
					if _, err := c.FreeAll(ctx); err != nil {
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
	if _, err := both[1].FreeAll(ctx); err != nil {
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
