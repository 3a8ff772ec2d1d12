package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// gated is an engine whose walks over groups wait while it is shut.
type gated struct {
	kv.Engine
	mutex sync.Mutex
	open  chan struct{} // closed: walks go on
}

func (e *gated) shut() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.open = make(chan struct{})
}

func (e *gated) release() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	close(e.open)
}

func (e *gated) Scan(ctx context.Context, prefix, after string, limit int) ([]kv.Record, error) {
	if prefix == "g/" && strings.TrimPrefix(after, prefix) == "" {
		e.mutex.Lock()
		open := e.open
		e.mutex.Unlock()
		select {
		case <-open:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return e.Engine.Scan(ctx, prefix, after, limit)
}

// Where it takes long to count the groups, nobody waits for it who asks about nodes or changes them. Nothing is said of what lies
// on them before it was counted; what was counted before is told with its time, and what nodes have lost since then counts as lost.
func TestNobodyWaitsForLongCounts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10)
	engine := &gated{Engine: c.engine, open: make(chan struct{})}
	c.with(c.over(engine), func(o *gateway.Options) { o.SweepEvery = -1 })
	for i := range 3 {
		c.put(fmt.Sprintf("firm/%d", i), noise(60<<10, uint64(i)), api.PutOptions{})
	}
	ctx := t.Context()
	list, err := c.gateway.Nodes(ctx)
	if err != nil || list.CountedAt != nil || len(list.Nodes) != 10 {
		t.Fatalf("before anything is counted: %+v, %v", list, err)
	}
	for _, node := range list.Nodes {
		if node.Slots != -1 {
			t.Errorf("%d slots lie on node %s before they were counted", node.Slots, node.ID)
		}
	}
	node, err := c.gateway.DrainNode(ctx, "n8", api.DrainRequest{})
	if err != nil || node.Drain == nil || node.Drain.SlotsLeft != -1 || node.Drain.ETASeconds != -1 {
		t.Errorf("draining before anything is counted: %+v, %v", node.Drain, err)
	}
	if node, err = c.gateway.UndrainNode(ctx, "n8"); err != nil || node.State != "up" {
		t.Errorf("ending that: %+v, %v", node, err)
	}
	engine.release()
	status, err := c.gateway.Status(ctx)
	if err != nil || status.CountedAt == nil || status.Groups != 3 || status.Objects != 3 || status.NotWhole != 0 || status.CanLose != 2 {
		t.Fatalf("once it is counted: %+v, %v", status, err)
	}
	engine.shut()
	c.put("firm/more", noise(60<<10, 9), api.PutOptions{})
	list, err = c.gateway.Nodes(ctx)
	if err != nil || list.CountedAt == nil || !list.CountedAt.Equal(*status.CountedAt) {
		t.Errorf("while it is counted again: %+v, %v", list, err)
	}
	slots := map[string]int64{}
	for _, node := range list.Nodes {
		slots[string(node.ID)] = node.Slots
	}
	lost := c.agents[0]
	if slots[string(lost.id)] < 1 {
		t.Fatalf("nothing lies on %s: %v", lost.id, slots)
	}
	lost.stop()
	c.noticed(lost.id, "suspect")
	status, err = c.gateway.Status(ctx)
	if err != nil || status.CountedAt == nil || status.NotWhole != slots[string(lost.id)] || status.CanLose != 1 {
		t.Errorf("without a node that %v slots lie on: %+v, %v", slots, status, err)
	}
	if node, err = c.gateway.DownNode(ctx, lost.id); err != nil || node.Declared != "down" || node.Slots != slots[string(lost.id)] {
		t.Errorf("declaring it down: %+v, %v", node, err)
	}
	if done, err := c.gateway.RemoveNode(ctx, lost.id); done || err != nil {
		t.Errorf("removing it while nobody can look: done %t, %v", done, err)
	}
	engine.release()
	if err := removeNode(ctx, c.gateway, lost.id); !errors.Is(err, api.ErrConflict) {
		t.Errorf("removing it: %v", err)
	}
	c.await("it is counted again", func() bool {
		status, err := c.gateway.Status(ctx)
		return err == nil && status.Groups == 4
	})
}
