package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// countingEngine counts the records of groups that are read.
type countingEngine struct {
	kv.Engine
	groups *atomic.Int64
}

func (e countingEngine) Read(ctx context.Context, keys ...string) ([][]byte, error) {
	for _, key := range keys {
		if strings.HasPrefix(key, "g/") {
			e.groups.Add(1)
		}
	}
	return e.Engine.Read(ctx, keys...)
}

// What is read of the catalog is what the bytes lie in, however large the object is.
func TestAReadOfARangeReadsItsGroups(t *testing.T) {
	c := newCluster(t, 8)
	const groupBytes = 64 << 10
	data := noise(150*groupBytes+7, 1)
	c.put("k", data, api.PutOptions{})
	var groups atomic.Int64
	c.stopGateway()
	c.catalog, c.gateway = c.makeGateway("gw", func(o *gateway.Options) {
		var err error
		o.Start = "counted"
		owner := catalog.Owner(o.ID, o.Start)
		if o.Catalog, err = catalog.Open(t.Context(), countingEngine{c.engine, &groups}, owner, catalog.WithGrace(0)); err != nil {
			t.Fatal(err)
		}
	})
	c.answering()
	for _, test := range []struct{ offset, length, groups int64 }{
		{0, 1, 1}, {100 * groupBytes, 1, 1}, {int64(len(data)) - 1, 1, 1}, {62*groupBytes + 1, 3 * groupBytes, 4}, {0, int64(len(data)), 151},
		{0, 0, 0}, {int64(len(data)), 0, 0},
	} {
		groups.Store(0)
		reader, err := c.gateway.Open(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := reader.WriteTo(t.Context(), &got, test.offset, test.length); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), data[test.offset:test.offset+test.length]) {
			t.Errorf("%d bytes at %d are not those that were put", test.length, test.offset)
		}
		if read := groups.Load(); read > test.groups {
			t.Errorf("%d bytes at %d: the records of %d groups, want %d at most", test.length, test.offset, read, test.groups)
		}
	}
	groups.Store(0)
	patch := noise(groupBytes/2, 2)
	if _, err := c.gateway.Update(t.Context(), "k", 70*groupBytes, patch, nil); err != nil {
		t.Fatal(err)
	}
	copy(data[70*groupBytes:], patch)
	if read := groups.Load(); read > 3 { // as it is read, checked and committed
		t.Errorf("an update of one group read the records of %d", read)
	}
	if !bytes.Equal(c.get("k"), data) {
		t.Error("what is read is not what was written")
	}
}

// hookedWriter keeps what is written to it, and does something once, when the first bytes come.
type hookedWriter struct {
	bytes.Buffer
	hook func()
}

func (w *hookedWriter) Write(p []byte) (int, error) {
	if w.hook != nil {
		w.hook()
		w.hook = nil
	}
	return w.Buffer.Write(p)
}

// An object that changes while it is read is read as it was, or not to its end; one that is moved meanwhile is read to its end.
func TestAnObjectChangesBetweenItsGroups(t *testing.T) {
	c := newCluster(t, 8)
	c.stopGateway()
	c.catalog, c.gateway = c.makeGateway("gw", func(o *gateway.Options) { o.ReadGroups = 2 })
	c.answering()
	data := noise(40*64<<10, 1)
	c.put("k", data, api.PutOptions{})
	read := func(hook func()) ([]byte, error) {
		t.Helper()
		reader, err := c.gateway.Open(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		w := &hookedWriter{hook: hook}
		err = reader.WriteTo(t.Context(), w, 0, int64(len(data)))
		return w.Bytes(), err
	}
	got, err := read(func() { c.transition(api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: "rs(6,2)"}) })
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("moved meanwhile: %d bytes, %v", len(got), err)
	}
	for name, change := range map[string]func() error{
		"put": func() error {
			c.put("k", noise(len(data), 3), api.PutOptions{})
			return nil
		},
		"updated": func() error {
			_, err := c.gateway.Update(t.Context(), "k", 39*64<<10, noise(100, 4), nil)
			return err
		},
		"deleted": func() error { return c.gateway.Delete(t.Context(), "k", nil) },
	} {
		c.put("k", data, api.PutOptions{})
		got, err := read(func() {
			if err := change(); err != nil {
				t.Error(err)
			}
		})
		if !errors.Is(err, api.ErrConflict) || !bytes.HasPrefix(data, got) {
			t.Errorf("%s meanwhile: %d bytes, %v", name, len(got), err)
		}
	}
}
