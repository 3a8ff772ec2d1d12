package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/mem"
	"github.com/restripe/restripe/agent/wire"
)

func random(seed uint64, size int) []byte {
	source := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(source.Uint32())
	}
	return data
}

func TestWriteReadInspectDelete(t *testing.T) {
	a, _ := attached(t, node.Options{})
	incarnation := a.hello().Incarnation
	payload := random(1, 4*100)
	h := header("n1", 2, stamp(5), 10, 4, 100)
	h.Manifest = random(2, 9000) // longer than the first reading
	receipt, err := a.write(h, payload)
	if err != nil {
		t.Fatal(err)
	}
	if receipt.Incarnation != incarnation || receipt.FirstUnit != 10 || receipt.Units != 4 || receipt.Address != h.Address() {
		t.Fatalf("receipt is %+v", receipt)
	}
	for i, print := range receipt.Fingerprints {
		if want := printer.Sum(payload[100*i : 100*i+100]); print != want {
			t.Errorf("fingerprint of unit %d is %x, want %x", i, print, want)
		}
	}
	again, err := a.write(h, payload)
	if err != nil || again.Checksum != receipt.Checksum || again.Fingerprint != receipt.Fingerprint {
		t.Fatalf("writing the same again: %+v, %v; want the same receipt", again, err)
	}
	if _, err := a.write(h, random(3, 400)); !errors.Is(err, wire.ErrConflict) {
		t.Fatalf("writing other content: %v, want ErrConflict", err)
	}
	got, err := a.read(h.Address(), wire.Range{Unit: 11, Offset: 20, Length: 30}, wire.Range{Unit: 12, Length: 100}, wire.Range{Unit: 13, Length: 100}, wire.Range{Unit: 10, Offset: 99, Length: 1})
	want := bytes.Join([][]byte{payload[120:150], payload[200:400], payload[99:100]}, nil)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("reading ranges: %d bytes, %v; want %d", len(got), err, len(want))
	}
	for _, wrong := range []wire.Range{{Unit: 9, Length: 1}, {Unit: 14, Length: 1}, {Unit: 10, Offset: 1, Length: 100}, {Unit: 10, Offset: -1, Length: 1}, {Unit: 10, Length: -1}} {
		if _, err := a.read(h.Address(), wrong); !errors.Is(err, wire.ErrBadRequest) {
			t.Errorf("reading %+v: %v, want ErrBadRequest", wrong, err)
		}
	}
	var headerReply wire.HeaderReply
	if err := a.call(wire.OpHeader, wire.HeaderRequest{Address: h.Address()}, nil, &headerReply); err != nil || !bytes.Equal(headerReply.Header.Manifest, h.Manifest) {
		t.Fatalf("reading the header: %v, manifest of %d bytes", err, len(headerReply.Header.Manifest))
	}
	absent := h.Address()
	absent.Slot = 3
	for _, deep := range []bool{false, true} {
		var reply wire.InspectReply
		if err := a.call(wire.OpInspect, wire.InspectRequest{Addresses: []block.Address{absent, h.Address()}, Deep: deep}, nil, &reply); err != nil {
			t.Fatal(err)
		}
		if len(reply.Receipts) != 1 || reply.Receipts[0].Fingerprint != receipt.Fingerprint || len(reply.Missing) != 1 || reply.Missing[0] != absent {
			t.Fatalf("inspecting, deep %v: %+v", deep, reply)
		}
	}
	for range 2 { // deleting what is absent succeeds
		if err := a.call(wire.OpDelete, wire.DeleteRequest{Addresses: []block.Address{h.Address()}}, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.read(h.Address(), wire.Range{Unit: 10, Length: 1}); !errors.Is(err, wire.ErrNotFound) {
		t.Fatalf("reading a deleted block: %v, want ErrNotFound", err)
	}
}

func TestListPages(t *testing.T) {
	a, s := attached(t, node.Options{})
	var want []string
	for i := range 25 {
		h := header("n1", 0, stamp(uint64(100-i)), 0, 1, 16)
		if _, err := a.write(h, make([]byte, 16)); err != nil {
			t.Fatal(err)
		}
		want = append([]string{h.Address().Key()}, want...)
	}
	if err := s.Create(context.Background(), "b/not-ours", []byte("x")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for after, more := "", true; more; {
		var reply wire.ListReply
		if err := a.call(wire.OpList, wire.ListRequest{After: after, Limit: 10}, nil, &reply); err != nil {
			t.Fatal(err)
		}
		for _, address := range reply.Addresses {
			got = append(got, address.Key())
		}
		if more = reply.More; more {
			after = got[len(got)-1]
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("listed %d blocks %v, want %v", len(got), got, want)
	}
}

func TestDamagedBlockIsCorrupt(t *testing.T) {
	payload := random(4, 4096)
	for name, damage := range map[string]func(value []byte) []byte{
		"payload bit":  func(v []byte) []byte { v[len(v)-1] ^= 1; return v },
		"header bit":   func(v []byte) []byte { v[40] ^= 1; return v },
		"end torn off": func(v []byte) []byte { return v[:len(v)-7] },
		"only a stub":  func(v []byte) []byte { return v[:10] },
	} {
		t.Run(name, func(t *testing.T) {
			a, s := attached(t, node.Options{HeaderBytes: 1}) // no cached headers
			h := header("n1", 0, stamp(2), 0, 1, 4096)
			if _, err := a.write(h, payload); err != nil {
				t.Fatal(err)
			}
			replace(t, s, h.Address().Key(), damage)
			if _, err := a.read(h.Address(), wire.Range{Unit: 0, Offset: 5, Length: 9}); !errors.Is(err, wire.ErrCorrupt) {
				t.Errorf("reading a part: %v, want ErrCorrupt", err)
			}
			if _, err := a.read(h.Address(), wire.Range{Unit: 0, Length: 4096}); !errors.Is(err, wire.ErrCorrupt) {
				t.Errorf("reading the unit: %v, want ErrCorrupt", err)
			}
			var reply wire.InspectReply
			if err := a.call(wire.OpInspect, wire.InspectRequest{Addresses: []block.Address{h.Address()}, Deep: true}, nil, &reply); err != nil || len(reply.Missing) != 1 {
				t.Errorf("inspecting: %+v, %v; want it missing", reply, err)
			}
			if _, err := a.write(h, payload); !errors.Is(err, wire.ErrCorrupt) {
				t.Errorf("writing over it: %v, want ErrCorrupt", err)
			}
		})
	}
}

func replace(t *testing.T, s *mem.Store, key string, damage func([]byte) []byte) {
	t.Helper()
	ctx := context.Background()
	value := make([]byte, 1<<20)
	n, err := s.ReadAt(ctx, key, value, 0)
	if err == nil {
		err = s.Delete(ctx, key)
	}
	if err == nil {
		err = s.Create(ctx, key, damage(value[:n]))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestUnregisteredUntilAttached(t *testing.T) {
	s := mem.New(0)
	a := start(t, "n1", s, node.Options{})
	h := header("n1", 0, stamp(2), 0, 1, 16)
	if _, err := a.write(h, make([]byte, 16)); !errors.Is(err, wire.ErrUnregistered) {
		t.Fatalf("writing: %v, want ErrUnregistered", err)
	}
	if hello := a.hello(); hello.Registered || hello.Incarnation == "" || hello.Cluster != "" {
		t.Fatalf("hello is %+v", hello)
	}
	if err := a.call(wire.OpAttach, wire.AttachRequest{Cluster: cluster, Incarnation: "another"}, nil, nil); !errors.Is(err, wire.ErrUnregistered) {
		t.Fatalf("attaching another incarnation: %v, want ErrUnregistered", err)
	}
	incarnation := a.attach()
	if _, err := a.write(h, make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	a.restart()
	if hello := a.hello(); hello.Registered || hello.Incarnation != incarnation || hello.Cluster != cluster {
		t.Fatalf("after a restart hello is %+v, want incarnation %s kept", hello, incarnation)
	}
	if err := a.call(wire.OpAttach, wire.AttachRequest{Cluster: "other", Incarnation: incarnation}, nil, nil); !errors.Is(err, wire.ErrBadRequest) {
		t.Fatalf("attaching to another cluster: %v, want ErrBadRequest", err)
	}
	a.attach()
	if _, err := a.read(h.Address(), wire.Range{Unit: 0, Length: 16}); err != nil {
		t.Fatal(err)
	}
}

func TestVanishedMarker(t *testing.T) {
	h := header("n1", 0, stamp(2), 0, 1, 16)
	other := header("n1", 1, stamp(2), 0, 1, 16)
	for name, meet := range map[string]func(a *agent) error{
		"read":  func(a *agent) error { _, err := a.read(h.Address(), wire.Range{Unit: 0, Length: 16}); return err },
		"write": func(a *agent) error { _, err := a.write(other, random(1, 16)); return err },
		"inspect": func(a *agent) error {
			return a.call(wire.OpInspect, wire.InspectRequest{Addresses: []block.Address{h.Address()}}, nil, &wire.InspectReply{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, s := attached(t, node.Options{})
			was := a.hello().Incarnation
			if _, err := a.write(h, random(1, 16)); err != nil {
				t.Fatal(err)
			}
			erase(t, s)
			if err := meet(a); !errors.Is(err, wire.ErrUnregistered) {
				t.Fatalf("after the store lost everything: %v, want ErrUnregistered", err)
			}
			if hello := a.hello(); hello.Registered || hello.Incarnation == was {
				t.Fatalf("hello is %+v, want a new incarnation, unregistered", hello)
			}
			a.attach()
			if err := a.call(wire.OpHeader, wire.HeaderRequest{Address: h.Address()}, nil, &wire.HeaderReply{}); !errors.Is(err, wire.ErrNotFound) {
				t.Fatalf("reading a lost block under the new incarnation: %v, want ErrNotFound", err)
			}
		})
	}
}

func erase(t *testing.T, s *mem.Store) {
	t.Helper()
	var keys []string
	err := s.List(context.Background(), "", func(key string, _ int64) error { keys = append(keys, key); return nil })
	for _, key := range keys {
		err = errors.Join(err, s.Delete(context.Background(), key))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// gate is a store whose reads and creations of blocks can be failed and followed.
type gate struct {
	*mem.Store
	down     atomic.Bool
	onCreate atomic.Pointer[func()] // called after a block was created
}

func (g *gate) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	if g.down.Load() {
		return 0, store.ErrDown
	}
	return g.Store.ReadAt(ctx, key, p, offset)
}

func (g *gate) Create(ctx context.Context, key string, value []byte) error {
	if g.down.Load() {
		return store.ErrDown
	}
	err := g.Store.Create(ctx, key, value)
	if _, parsing := block.ParseKey("n1", key); parsing == nil {
		if hook := g.onCreate.Load(); hook != nil {
			(*hook)()
		}
	}
	return err
}

func TestStoreEmptiedDuringWriteGivesNoReceipt(t *testing.T) {
	g := &gate{Store: mem.New(0)}
	a := start(t, "n1", g, node.Options{})
	a.attach()
	hook := func() { erase(t, g.Store) }
	g.onCreate.Store(&hook)
	if _, err := a.write(header("n1", 0, stamp(2), 0, 1, 16), make([]byte, 16)); !errors.Is(err, wire.ErrUnregistered) {
		t.Fatalf("writing while the store loses everything: %v, want ErrUnregistered", err)
	}
}

func TestStoreDownThenBackEmpty(t *testing.T) {
	g := &gate{Store: mem.New(0)}
	a := start(t, "n1", g, node.Options{})
	a.attach()
	h := header("n1", 0, stamp(2), 0, 1, 16)
	if _, err := a.write(h, random(1, 16)); err != nil {
		t.Fatal(err)
	}
	g.down.Store(true)
	if _, err := a.read(h.Address(), wire.Range{Unit: 0, Length: 16}); !errors.Is(err, wire.ErrDown) {
		t.Fatalf("reading from a store that is down: %v, want ErrDown", err)
	}
	if err := a.call(wire.OpHello, wire.HelloRequest{}, nil, nil); !errors.Is(err, wire.ErrDown) {
		t.Fatalf("greeting while the store is down: %v, want ErrDown", err)
	}
	erase(t, g.Store)
	g.down.Store(false)
	// Deleting would succeed on any store: only the doubt makes the node look first.
	if err := a.call(wire.OpDelete, wire.DeleteRequest{Addresses: []block.Address{h.Address()}}, nil, nil); !errors.Is(err, wire.ErrUnregistered) {
		t.Fatalf("first operation after the store came back empty: %v, want ErrUnregistered", err)
	}
}

func TestConcurrentWritersOfOneAddress(t *testing.T) {
	a, _ := attached(t, node.Options{})
	h := header("n1", 0, stamp(2), 0, 1, 1000)
	results := make(chan error, 16)
	for i := range 16 {
		go func() {
			_, err := a.write(h, random(uint64(i%2), 1000))
			results <- err
		}()
	}
	good, conflicts := 0, 0
	for range 16 {
		switch err := <-results; {
		case err == nil:
			good++
		case errors.Is(err, wire.ErrConflict):
			conflicts++
		default:
			t.Error(err)
		}
	}
	if good != 8 || conflicts != 8 {
		t.Errorf("%d receipts and %d conflicts, want 8 of each: one content wins", good, conflicts)
	}
}
