package catalogtest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// members runs two Catalogs over the engine that both change one node, each on top of what it read: no change is lost, and
// every version has one author; of two that add one node, one is told that it is there.
func members(t *testing.T, instance Instance) {
	ctx := deadline(t)
	var both []*catalog.Catalog
	for i := range 2 {
		c, err := catalog.Open(ctx, instance.Engine, catalog.Owner(fmt.Sprintf("gateway%d", i), "start"))
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, c)
	}
	added, err := both[0].ChangeNode(ctx, catalog.Node{}, catalog.Node{ID: "n1", Address: "a:1", State: catalog.NodeUp, Domain: "r"})
	if err != nil || added.Version != 1 {
		t.Fatalf("adding a node: %+v, %v", added, err)
	}
	if _, err := both[1].ChangeNode(ctx, catalog.Node{}, catalog.Node{ID: "n1", Address: "b:1", State: catalog.NodeUp}); !errors.Is(err, catalog.ErrStale) {
		t.Errorf("adding a node that is there: %v", err)
	}
	node := func() catalog.Node {
		t.Helper()
		nodes, err := both[1].Nodes(ctx)
		if err != nil || len(nodes) != 1 {
			t.Fatalf("%+v, %v", nodes, err)
		}
		return nodes[0]
	}
	const rounds = 6
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			c := both[client%2]
			for done := 0; done < rounds; {
				nodes, err := c.Nodes(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				is := nodes[0]
				is.Drain.Slots++
				changed, err := c.ChangeNode(ctx, nodes[0], is)
				switch {
				case err == nil && changed.Version == nodes[0].Version+1:
					done++
				case !errors.Is(err, catalog.ErrStale):
					t.Errorf("%+v, %v", changed, err)
					return
				}
			}
		})
	}
	all.Wait()
	if now := node(); now.Drain.Slots != clients*rounds || now.Version != 1+clients*rounds || now.Domain != "r" || now.Fenced {
		t.Errorf("after %d changes: %+v", clients*rounds, now)
	}
	was := node()
	out := was
	out.Out = "gateway0"
	if _, err := both[0].ChangeNode(ctx, was, out); err != nil {
		t.Fatal(err)
	}
	if now := node(); !now.Fenced || now.Out != "gateway0" {
		t.Errorf("given up: %+v", now)
	}
	if _, err := both[0].ChangeNode(ctx, catalog.Node{ID: "n2"}, catalog.Node{ID: "n2", State: catalog.NodeUp}); !errors.Is(err, catalog.ErrStale) {
		t.Errorf("changing a node that is not there: %v", err)
	}
	if _, err := both[0].ChangeNode(ctx, was, catalog.Node{ID: "n2"}); !errors.Is(err, catalog.ErrBadChange) {
		t.Errorf("changing one node to another: %v", err)
	}
	if _, err := both[0].ChangeNode(ctx, catalog.Node{}, catalog.Node{}); !errors.Is(err, catalog.ErrBadChange) {
		t.Errorf("adding a node without an id: %v", err)
	}
	patience := catalog.Membership{DownAfter: 1000, OutAfter: -1}
	if err := both[0].PutMembership(ctx, patience); err != nil {
		t.Fatal(err)
	}
	if now, err := both[1].Membership(ctx); err != nil || now != patience {
		t.Errorf("patience: %+v, %v", now, err)
	}
}

// exclusion has a node excluded: in the same transaction its contents are no longer registered, so that what was stored on
// it cannot be committed, and nobody registers them again before the node is a member again.
func exclusion(t *testing.T, instance Instance) {
	ctx := deadline(t)
	c, err := catalog.Open(ctx, instance.Engine, catalog.Owner("gateway", "start"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ChangeNode(ctx, catalog.Node{}, catalog.Node{ID: "n1", State: catalog.NodeUp}); err != nil {
		t.Fatal(err)
	}
	registered := func() block.Incarnation {
		t.Helper()
		incarnations, err := c.Incarnations(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return incarnations["n1"]
	}
	change := func(state catalog.NodeState) {
		t.Helper()
		nodes, err := c.Nodes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		is := nodes[0]
		is.State = state
		if _, err := c.ChangeNode(ctx, nodes[0], is); err != nil {
			t.Fatal(err)
		}
	}
	for _, state := range []catalog.NodeState{catalog.NodeRemoving, catalog.NodeRemoved} {
		if err := c.RegisterIncarnation(ctx, "n1", "", "first"); err != nil {
			t.Fatal(err)
		}
		change(state)
		if now := registered(); now != "" {
			t.Errorf("a node that is %s is registered with %q", state, now)
		}
		if err := c.RegisterIncarnation(ctx, "n1", "", "first"); !errors.Is(err, catalog.ErrStale) || registered() != "" {
			t.Errorf("registering a node that is %s: %v, then %q", state, err, registered())
		}
		change(catalog.NodeUp)
	}
	if err := c.RegisterIncarnation(ctx, "n1", "", "first"); err != nil || registered() != "first" {
		t.Errorf("registering a member again: %v, then %q", err, registered())
	}
}
