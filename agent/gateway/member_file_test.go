package gateway_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store/mem"
)

// Node lists that are older than the records, and newer ones.

// listed has a gateway's node list say something of a node.
func listed(id block.NodeID, change func(*catalog.Node)) func(*gateway.Options) {
	return func(options *gateway.Options) {
		for i := range options.Nodes {
			if options.Nodes[i].ID == id {
				change(&options.Nodes[i])
			}
		}
	}
}

// move starts the agent of a node at another address. The old one goes on until the test ends.
func (c *cluster) move(agent *testAgent) (was string) {
	c.t.Helper()
	was = agent.address
	c.t.Cleanup(agent.stop)
	agent.address = "127.0.0.1:0"
	c.startAgent(agent)
	return was
}

// What people have declared outlives the start of a gateway whose node list says what was true once.
func TestANodeListUndoesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	domain, spare, usual := "rack", true, false
	for id, declare := range map[block.NodeID]func(block.NodeID) error{
		"n1": func(id block.NodeID) error {
			_, err := c.gateway.DrainNode(t.Context(), id, api.DrainRequest{})
			return err
		},
		"n2": func(id block.NodeID) error {
			_, err := c.gateway.PlaceNode(t.Context(), id, api.PlaceRequest{Domain: &domain, Spare: &usual})
			return err
		},
		"n3": func(id block.NodeID) error {
			_, err := c.gateway.PlaceNode(t.Context(), id, api.PlaceRequest{Spare: &spare})
			return err
		},
		"n4": func(id block.NodeID) error {
			if _, err := c.gateway.DownNode(t.Context(), id); err != nil {
				return err
			}
			return removeNode(t.Context(), c.gateway, id)
		},
		"n5": func(id block.NodeID) error {
			_, err := c.gateway.DownNode(t.Context(), id)
			return err
		},
	} {
		if err := declare(id); err != nil {
			t.Fatal(err)
		}
	}
	was := map[block.NodeID]catalog.Node{}
	for _, agent := range c.agents {
		was[agent.id] = c.record(agent.id)
	}
	up := func(node *catalog.Node) { node.State = catalog.NodeUp }
	c.with(listed("n1", up), listed("n4", up), listed("n5", up), listed("n2", func(node *catalog.Node) { node.Domain, node.Spare = "hall", true }))
	for id, want := range was {
		if have := c.record(id); have != want {
			t.Errorf("%s was %+v and is %+v", id, want, have)
		}
	}
	c.with(listed("n6", func(node *catalog.Node) { node.Domain = "hall" }))
	if c.record("n6").Domain != "hall" {
		t.Errorf("a node without a failure domain: %+v", c.record("n6"))
	}
}

// A node that is added and drained while others are about to add it stays drained: by a gateway that did not find it of its
// node list, or in the place of a node that is replaced.
func TestANodeIsAddedOnce(t *testing.T) {
	t.Parallel()
	for how, add := range map[string]func(*cluster, *delayed){
		"from a node list": func(c *cluster, slow *delayed) { c.newGateway("gw-b", c.over(slow)) },
		"in the place of another": func(c *cluster, _ *delayed) {
			_, err := c.gateway.ReplaceNode(t.Context(), "n1", api.ReplaceRequest{With: "n9", Address: c.agent("n9").address})
			if !errors.Is(err, catalog.ErrStale) {
				t.Errorf("a node that is there by now replaces another: %v", err)
			}
		},
	} {
		c := newCluster(t, 8)
		slow := &delayed{Engine: c.engine}
		c.with(c.over(slow))
		added := c.addAgent()
		var once sync.Once
		slow.hold(func(write kv.Write) {
			if write.Key != "n/"+string(added.id) {
				return
			}
			once.Do(func() {
				first := catalog.Node{ID: added.id, Address: added.address, State: catalog.NodeDraining, Domain: "hall"}
				if _, err := c.catalog.ChangeNode(t.Context(), catalog.Node{}, first); err != nil {
					t.Errorf("%s: %v", how, err)
				}
			})
		})
		add(c, slow)
		if record := c.record(added.id); record.State != catalog.NodeDraining || record.Domain != "hall" || record.Replaces != "" {
			t.Errorf("%s: it is drained and then %+v", how, record)
		}
	}
}

// An agent that has moved with what it had is found by the node list, at the start of a gateway or after it; so is one that
// came with an empty store where nobody else is.
func TestANodeListLeadsToAgentsThatMoved(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	moved, late, reborn := c.agent("n1"), c.agent("n2"), c.agent("n3")
	for _, agent := range []*testAgent{moved, late, reborn} {
		agent.stop()
	}
	reborn.store = mem.New(0)
	for _, agent := range []*testAgent{moved, late, reborn} {
		c.move(agent)
	}
	late.stop()
	c.with()
	for _, agent := range []*testAgent{moved, reborn} {
		if record := c.record(agent.id); record.Address != agent.address {
			t.Errorf("%s is at %s: %+v", agent.id, agent.address, record)
		}
	}
	c.startAgent(late)
	c.await("the one that comes later is found", func() bool { return c.record(late.id).Address == late.address })
	c.noticed(late.id, "up")
	c.repaired()
	c.check("k", data)
	c.audit()
}

// A node list that is older than a replacement does not lead back to the agent that was replaced, though only that runs.
func TestANodeListDoesNotLeadBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	replaced := c.agent("n1")
	was := replaced.address
	reborn := &testAgent{id: "n1", store: mem.New(0), address: "127.0.0.1:0"}
	c.startAgent(reborn)
	t.Cleanup(reborn.stop)
	if _, err := c.gateway.ReplaceNode(t.Context(), "n1", api.ReplaceRequest{Address: reborn.address}); err != nil {
		t.Fatal(err)
	}
	c.noticed("n1", "up")
	for range 2 {
		c.with() // its list has the old address
		if record := c.record("n1"); record.Address != reborn.address {
			t.Fatalf("replaced at %s by %s: %+v", was, reborn.address, record)
		}
		reborn.stop()
	}
}
