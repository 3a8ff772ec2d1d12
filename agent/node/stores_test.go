package node_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/store/open"
	"github.com/restripe/restripe/agent/store/storetest/server"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// TestServersThatRestartEmpty puts nodes before real servers that forget everything when they are killed.
func TestServersThatRestartEmpty(t *testing.T) {
	for name, launch := range map[string]func() (*server.Process, string){
		"memcached": func() (*server.Process, string) {
			p := server.Memcached(t)
			return p, "memcached://" + p.Addr
		},
		"redis": func() (*server.Process, string) {
			p := server.Redis(t, "--save", "", "--appendonly", "no")
			return p, "redis://" + p.Addr
		},
	} {
		t.Run(name, func(t *testing.T) {
			process, address := launch()
			s, err := open.Open(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Errorf("closing the store: %v", err)
				}
			})
			a := start(t, "n1", s, node.Options{})
			was := a.attach()
			payload := random(1, 3<<20) // memcached keeps it in several items
			h := header("n1", 0, stamp(2), 0, 3, 1<<20)
			if _, err := a.write(h, payload); err != nil {
				t.Fatal(err)
			}
			part := wire.Range{Unit: 1, Offset: 1000, Length: 5000}
			if got, err := a.read(h.Address(), part); err != nil || !bytes.Equal(got, payload[1<<20+1000:1<<20+6000]) {
				t.Fatalf("reading: %d bytes, %v", len(got), err)
			}
			process.Kill()
			if _, err := a.read(h.Address(), part); !errors.Is(err, wire.ErrDown) {
				t.Fatalf("reading while the server is dead: %v, want ErrDown", err)
			}
			process.Restart()
			eventually(t, func() bool {
				_, err := a.read(h.Address(), part)
				if err == nil || errors.Is(err, wire.ErrNotFound) {
					t.Fatalf("reading from a server that lost everything: %v; only ErrUnregistered or ErrDown may be said", err)
				}
				return errors.Is(err, wire.ErrUnregistered)
			})
			if now := a.attach(); now == was {
				t.Fatalf("the incarnation is %s still", now)
			}
			if _, err := a.read(h.Address(), part); !errors.Is(err, wire.ErrNotFound) {
				t.Fatalf("reading after attaching: %v, want ErrNotFound", err)
			}
			if _, err := a.write(h, payload); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestAMarkerChangesUnderAWrite has the marker of a server that reads it in the same round trip as it creates a block vanish, and be
// another one, before a write: nothing is vouched for until the node is attached to what is there now.
func TestAMarkerChangesUnderAWrite(t *testing.T) {
	process := server.Redis(t)
	s, err := open.Open(t.Context(), "redis://"+process.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing the store: %v", err)
		}
	})
	const marker = "restripe/incarnation"
	a := start(t, "n1", s, node.Options{})
	sequence, was := uint64(1), a.attach()
	write := func() error {
		sequence++
		_, err := a.write(header("n1", 0, stamp(sequence), 0, 3, 1<<10), random(sequence, 3<<10))
		return err
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	for _, now := range []string{"", string(block.NewIncarnation(7, "another", ""))} {
		if err := s.Delete(t.Context(), marker); err != nil {
			t.Fatal(err)
		}
		if now != "" {
			if err := s.Create(t.Context(), marker, []byte(now)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := write(); !errors.Is(err, wire.ErrUnregistered) {
				t.Fatalf("writing after the marker became %q: %v, want ErrUnregistered", now, err)
			}
		}
		is := a.attach()
		if is == was {
			t.Fatalf("the incarnation is %s still", is)
		}
		was = is
		if err := write(); err != nil {
			t.Fatalf("writing after attaching: %v", err)
		}
	}
	h := header("n1", 0, stamp(sequence), 0, 3, 1<<10)
	if _, err := a.write(h, random(sequence, 3<<10)); err != nil {
		t.Errorf("writing the same once more: %v", err)
	}
	if _, err := a.write(h, random(0, 3<<10)); !errors.Is(err, wire.ErrConflict) {
		t.Errorf("writing something else in its place: %v, want ErrConflict", err)
	}
}

// TestMergeOnMemcached carries a transition out on a real server for each node.
func TestMergeOnMemcached(t *testing.T) {
	agents := make([]*agent, 5)
	for i := range agents {
		s, err := open.Open(t.Context(), "memcached://"+server.Memcached(t).Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("closing a store: %v", err)
			}
		})
		agents[i] = start(t, nodeName(i), s, node.Options{})
		agents[i].attach()
	}
	g := newGroup(t, 0, agents, "rep(3),rs(3,2)", stripe.Replicas(3), 100_000)
	receipts, _, err := g.carryOut(g.requests(mergeByHand(), stamp(9), nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, receipt := range receipts {
		g.expect(receipt, g.slot(stripe.RS(3, 2), receipt.Address.Slot))
	}
}
