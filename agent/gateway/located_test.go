package gateway_test

import (
	"bytes"
	"context"
	"fmt"
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

// reads takes down which kinds of records an engine was read for, in each read that has one of an object.
type reads struct {
	kv.Engine
	mutex sync.Mutex
	kinds []string
}

// take returns what was taken down, and forgets it.
func (r *reads) take() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	taken := r.kinds
	r.kinds = nil
	return taken
}

// Read implements kv.Engine.
func (r *reads) Read(ctx context.Context, keys ...string) ([][]byte, error) {
	var kinds []string
	for _, key := range keys {
		kind, _, _ := strings.Cut(key, "/")
		kinds = append(kinds, kind)
	}
	if slices.Contains(kinds, "o") {
		r.mutex.Lock()
		r.kinds = append(r.kinds, strings.Join(kinds, " "))
		r.mutex.Unlock()
	}
	return r.Engine.Read(ctx, keys...)
}

// readsOf returns what is read of the catalog while a gateway that has seen nothing of a cluster reads an object, and then once more.
func (c *cluster) readsOf(key string, want []byte) (first, second []string) {
	c.t.Helper()
	seen := &reads{Engine: c.engine}
	other := c.newGateway(fmt.Sprint("other", c.starts), func(options *gateway.Options) {
		options.Start += " seen"
		records, err := catalog.Open(c.t.Context(), seen, catalog.Owner(options.ID, options.Start), catalog.WithGrace(0))
		if err != nil {
			c.t.Fatal(err)
		}
		options.Catalog = records
	})
	for _, found := range []*[]string{&first, &second} {
		seen.take()
		got, err := c.readFrom(other, key)
		if err != nil || !bytes.Equal(got, want) {
			c.t.Fatalf("reading %q: %d bytes, %v; want %d", key, len(got), err, len(want))
		}
		*found = seen.take()
	}
	return first, second
}

// A small object is read with its record alone, as long as its bytes are where that says; once they are not, with its group's as well, and
// then with both at once. Damage and nodes that do not answer are met as ever.
func TestSmallObjectsAreReadWhereTheirRecordsSay(t *testing.T) {
	c := newCluster(t, 9)
	const key = "small"
	data := noise(3000, 1)
	c.put(key, data, api.PutOptions{})
	alone, both := "o", "o g l"
	check := func(what string, want ...string) {
		t.Helper()
		var first, second []string
		for range 10 { // on a busy machine a node may be late, which is as if it had nothing
			first, second = c.readsOf(key, data)
			if slices.Equal(first, want[:len(want)-1]) && slices.Equal(second, want[len(want)-1:]) {
				return
			}
		}
		t.Errorf("%s: a get reads %q and the next one %q of the catalog, want %q", what, first, second, want)
	}
	place := func() block.Address {
		t.Helper()
		snapshot, err := c.catalog.Snapshot(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if snapshot.Object.Location == nil {
			t.Fatal("the record does not say where the object lies")
		}
		return snapshot.Object.Address()
	}
	check("as it was put", alone, alone)

	at := place()
	if _, err := c.gateway.DrainNode(t.Context(), at.Node, api.DrainRequest{}); err != nil {
		t.Fatal(err)
	}
	c.relocated()
	if place() != at {
		t.Error("the record was written by a relocation")
	}
	check("while the block is where it was", alone, alone)
	if err := c.agent(at.Node).store.Delete(t.Context(), at.Key()); err != nil {
		t.Fatal(err)
	}
	check("when the block is elsewhere", alone, both, both)

	data = noise(3000, 2)
	c.put(key, data, api.PutOptions{})
	check("as it was put once more", alone, alone)
	copy(data[100:], "other bytes")
	if _, err := c.gateway.Update(t.Context(), key, 100, []byte("other bytes"), nil); err != nil {
		t.Fatal(err)
	}
	check("after an update", alone, both, both)

	data = noise(3000, 3)
	c.put(key, data, api.PutOptions{})
	c.damage(key, place().Slot)
	met := func(what string) {
		t.Helper()
		if first, _ := c.readsOf(key, data); len(first) < 2 || first[0] != alone || first[1] != both {
			t.Errorf("%s: a get reads %q of the catalog, want %q and %q, and what shows the loss", what, first, alone, both)
		}
	}
	met("when the block is damaged")

	data = noise(3000, 4)
	c.put(key, data, api.PutOptions{})
	c.agent(place().Node).stop()
	met("when the node does not answer")
}
