package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// Nodes that are removed while another gateway does not know that they are to be left.

// delayed is an engine whose client learns no more of the members and whose updates wait where a test says.
type delayed struct {
	kv.Engine
	mutex   sync.Mutex
	members []kv.Record // where given, what Scan says of the members
	before  func(write kv.Write)
}

func (e *delayed) freeze(ctx context.Context) error {
	members, err := e.Engine.Scan(ctx, "n/", "", 1000)
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.members = members
	return err
}

func (e *delayed) hold(before func(kv.Write)) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.before = before
}

func (e *delayed) Scan(ctx context.Context, prefix, after string, limit int) ([]kv.Record, error) {
	e.mutex.Lock()
	members := e.members
	e.mutex.Unlock()
	if prefix != "n/" || members == nil {
		return e.Engine.Scan(ctx, prefix, after, limit)
	}
	from := slices.IndexFunc(members, func(record kv.Record) bool { return record.Key > after })
	if from < 0 {
		return nil, nil
	}
	return members[from:min(len(members), from+limit)], nil
}

func (e *delayed) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	e.mutex.Lock()
	before := e.before
	e.mutex.Unlock()
	if before != nil {
		for _, write := range writes {
			before(write)
		}
	}
	return e.Engine.Update(ctx, checks, writes)
}

// over has a gateway keep its records in an engine.
func (c *cluster) over(engine kv.Engine) func(*gateway.Options) {
	return func(options *gateway.Options) {
		c.t.Helper()
		records, err := catalog.Open(c.t.Context(), engine, catalog.Owner(options.ID+"-over", options.Start), catalog.WithGrace(0))
		if err != nil {
			c.t.Fatal(err)
		}
		options.Catalog = records
	}
}

// removal is a cluster whose gateway is about to remove the empty node n1 while another one takes it for up.
type removal struct {
	*cluster
	own, others *delayed
	other       *gateway.Gateway
}

func newRemoval(t *testing.T) *removal {
	t.Helper()
	c := newCluster(t, 9)
	r := &removal{cluster: c, own: &delayed{Engine: c.engine}, others: &delayed{Engine: c.engine}}
	c.with(c.over(r.own))
	r.other = c.newGateway("gw-b", c.over(r.others))
	if err := r.others.freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.gateway.DrainNode(t.Context(), "n1", api.DrainRequest{}); err != nil {
		t.Fatal(err)
	}
	return r
}

// put has a gateway store an object of two groups: of nine nodes each leaves out another one.
func (r *removal) put(g *gateway.Gateway, data []byte) error {
	return putWithin(r.t, g, "k", bytes.NewReader(data), int64(len(data)))
}

// onRemoval has work done between the gateway's look at what lies on n1 and the first change of its record.
func (r *removal) onRemoval(work func()) {
	var once sync.Once
	r.own.hold(func(write kv.Write) {
		if write.Key == "n/n1" {
			once.Do(work)
		}
	})
}

// removeNode removes a node, by a gateway or a client of one, however long that takes.
func removeNode[ID ~string](ctx context.Context, from interface {
	RemoveNode(ctx context.Context, id ID) (done bool, err error)
}, id ID) error {
	for {
		if done, err := from.RemoveNode(ctx, id); done || err != nil {
			return err
		}
	}
}

func (r *removal) slotsOn(id block.NodeID) (count int) {
	r.t.Helper()
	views, err := r.catalog.ListGroups(r.t.Context(), block.GroupID{}, 1000)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range views {
		for _, slot := range views[i].Slots {
			if slot[0].Node == id {
				count++
			}
		}
	}
	return count
}

// What another gateway has staged on a node that is removed meanwhile is never committed.
func TestNothingIsCommittedOntoARemovedNode(t *testing.T) {
	t.Parallel()
	r := newRemoval(t)
	staged, removed, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var once sync.Once
	r.others.hold(func(write kv.Write) {
		if strings.HasPrefix(write.Key, "g/") {
			once.Do(func() { close(staged) })
			<-removed
		}
	})
	r.onRemoval(func() {
		go func() { ended <- r.put(r.other, noise(128<<10, 1)) }()
		<-staged
	})
	if err := removeNode(t.Context(), r.gateway, "n1"); err != nil {
		t.Errorf("removing a node that nothing lies on: %v", err)
	}
	close(removed)
	if err := <-ended; !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("a put onto a node that was removed: %v", err)
	}
	if slots := r.slotsOn("n1"); slots > 0 || r.record("n1").State != catalog.NodeRemoved {
		t.Errorf("%d slots lie on %+v", slots, r.record("n1"))
	}
}

// What another gateway commits onto a node at the last moment is seen: the node is not removed before it was rebuilt
// elsewhere, and takes blocks again when it is declared up.
func TestRemovalSeesWhatCameAtTheLastMoment(t *testing.T) {
	t.Parallel()
	r := newRemoval(t)
	want := noise(128<<10, 1)
	r.onRemoval(func() {
		if err := r.put(r.other, want); err != nil {
			t.Errorf("putting before the removal: %v", err)
		}
	})
	err := removeNode(t.Context(), r.gateway, "n1")
	if !errors.Is(err, api.ErrConflict) {
		t.Fatalf("removing a node that a slot lies on: %v", err)
	}
	if record := r.record("n1"); record.State != catalog.NodeRemoving {
		t.Errorf("%+v", record)
	}
	r.check("k", want)
	r.await("its blocks are rebuilt elsewhere", func() bool {
		r.repaired()
		return r.slotsOn("n1") == 0
	})
	if err := removeNode(t.Context(), r.gateway, "n1"); err != nil {
		t.Fatalf("removing it again: %v", err)
	}
	r.check("k", want)
	if _, err := r.gateway.UpNode(t.Context(), "n1"); err != nil {
		t.Fatal(err)
	}
	want = noise(128<<10, 2)
	r.await("it is given blocks again", func() bool {
		r.relocated() // which sweeps its store
		if err := r.put(r.gateway, want); err != nil {
			t.Fatal(err)
		}
		return r.slotsOn("n1") > 0
	})
	r.check("k", want)
	r.audit()
}
