package gateway_test

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/decorate"
)

// scattered puts small objects and deletes two of three, so that all groups are mostly dead, and returns what is left.
func (c *cluster) scattered() map[string][]byte {
	c.t.Helper()
	count := 3000
	if testing.Short() {
		count *= 3 // of which a quarter are put
	}
	want := c.putMany("k/", count, 1)
	for i, key := range slices.Sorted(maps.Keys(want)) {
		if i%3 == 0 {
			continue
		}
		if err := c.gateway.Delete(c.t.Context(), key, nil); err != nil {
			c.t.Fatal(err)
		}
		delete(want, key)
	}
	return want
}

// compacted has a gateway compact until nothing is left to be moved.
func (c *cluster) compacted() {
	c.t.Helper()
	c.with(compacting)
	c.until("the compaction rests", func() bool {
		compaction, err := c.gateway.Compaction(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		moved := c.figure(c.gateway, "restripe_compaction_moved_bytes_total", nil)
		return moved > 0 && compaction.State == api.CompactionIdle && compaction.GroupsTotal == 0
	})
}

// What is compacted stays on its node, and crosses the network once to become parities: for rs(3,2) 1 + 1/3 bytes for a byte.
func TestCompactionLeavesBytesOnTheirNodes(t *testing.T) {
	c := newCluster(t, 9)
	want := c.scattered()
	c.compacted()
	moved := c.figure(c.gateway, "restripe_compaction_moved_bytes_total", nil)
	spliced := c.figure(c.gateway, "restripe_compaction_spliced_bytes_total", nil)
	sent := c.figure(c.gateway, "restripe_compaction_splice_sent_bytes_total", nil)
	t.Logf("of %.0f bytes moved %.0f stayed on their nodes, for which nodes sent %.0f", moved, spliced, sent)
	if spliced < moved/2 {
		t.Error("less than half of what was moved stayed on its node")
	}
	if sent < spliced*4/3 || sent > spliced*4/3*1.15 { // columns are not all as full as the fullest
		t.Error("1 1/3 bytes for each are to be sent")
	}
	if refused := c.figure(c.gateway, "restripe_compaction_unspliced_total", nil); refused > 0 {
		t.Errorf("%.0f groups could not be spliced", refused)
	}
	for key, data := range want {
		c.check(key, data)
	}
	c.audit()
}

// Where a node cannot read what it is to copy nothing is spliced, and the gateway decodes and moves it.
func TestWhatCannotBeSplicedIsMoved(t *testing.T) {
	var failing atomic.Bool
	c := newCluster(t, 9, func(agent *testAgent) {
		if agent.id != "n3" {
			return
		}
		agent.wrap = func(inner store.Store) store.Store {
			fault := &decorate.Fault{Rule: func(call decorate.Call) decorate.Effect {
				if failing.Load() && strings.HasPrefix(call.Key, "b/") && call.Operation == decorate.ReadAt {
					return decorate.Effect{Refuse: decorate.ErrInjected}
				}
				return decorate.Effect{}
			}}
			return fault.Wrap(inner)
		}
	})
	want := c.scattered()
	failing.Store(true)
	c.compacted()
	if refused := c.figure(c.gateway, "restripe_compaction_unspliced_total", nil); refused == 0 {
		t.Error("every group was spliced, though a store cannot be read")
	}
	for key, data := range want {
		c.check(key, data)
	}
	failing.Store(false)
	c.audit()
}
