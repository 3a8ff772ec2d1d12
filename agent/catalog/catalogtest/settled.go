package catalogtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// catalogsThroughFaults runs two Catalogs where requests and answers are lost. What nobody was told of is settled, as the protocol
// says: every put that was acknowledged is there, none is that was answered with its failure, and nothing is left behind.
func catalogsThroughFaults(t *testing.T, instance Instance) {
	ctx := deadline(t)
	seed := seedOf(t)
	pause := catalog.WithPause(func(ctx context.Context, _ int) error { breathe(ctx); return ctx.Err() })
	plain, err := catalog.Open(ctx, instance.Engine, catalog.Owner("plain", "start"))
	if err != nil {
		t.Fatal(err)
	}
	nodes, incarnations := Enroll(ctx, t, plain)
	var both []*catalog.Catalog
	for i := range 2 {
		c, err := catalog.Open(ctx, through(t, instance, seed+uint64(i)), catalog.Owner(fmt.Sprintf("gateway%d", i), "start"), pause)
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, c)
	}
	const putters, puts = 8, 12
	var acknowledged, unknown [putters]block.Stamp
	var all sync.WaitGroup
	for client := range putters {
		all.Go(func() {
			c, key := both[client%2], fmt.Sprintf("settled/%d", client)
			for range puts {
				stamp, err := PutAlone(ctx, c, key, 0, nodes, incarnations)
				switch {
				case err == nil:
					acknowledged[client], unknown[client] = stamp, block.Stamp{}
				case stamp == block.Stamp{}:
					t.Errorf("client %d: %v", client, err)
					return
				case errors.Is(err, catalog.ErrNotActive): // it failed, for certain
				default:
					t.Logf("client %d: %v", client, err)
					unknown[client] = stamp
				}
			}
		})
	}
	all.Wait()
	for client := range putters {
		snapshot, err := plain.Snapshot(ctx, fmt.Sprintf("settled/%d", client))
		if err != nil {
			t.Errorf("client %d: %v", client, err)
			continue
		}
		if snapshot.Object.Revision != acknowledged[client] && snapshot.Object.Revision != unknown[client] {
			t.Errorf("client %d: its object is of %s; acknowledged was %s, unknown is %s", client,
				snapshot.Object.Revision, acknowledged[client], unknown[client])
		}
	}
	if _, _, err := plain.FreeAll(ctx); err != nil {
		t.Error(err)
	}
	if err := plain.Audit(ctx); err != nil {
		t.Error(err)
	}
	groups, err := plain.ListGroups(ctx, block.GroupID{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(groups) != putters {
		t.Errorf("%d groups are left of %d objects", len(groups), putters)
	}
}
