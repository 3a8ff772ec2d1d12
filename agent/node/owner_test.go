package node_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/mem"
	"github.com/restripe/restripe/agent/wire"
)

// TestAStoreIsItsNodes starts an agent under another id on a store that a node was attached with: as where a disk moved, or
// where two agents are given one server.
func TestAStoreIsItsNodes(t *testing.T) {
	a, s := attached(t, node.Options{})
	h := header("n1", 0, stamp(2), 0, 1, 1000)
	if _, err := a.write(h, random(1, 1000)); err != nil {
		t.Fatal(err)
	}
	other := start(t, "n7", s, node.Options{})
	err := other.call(wire.OpHello, wire.HelloRequest{}, nil, nil)
	refused(t, "greeting", err)
	attach := wire.AttachRequest{Cluster: cluster, Incarnation: a.hello().Incarnation, FingerprintKey: fingerprintKey}
	err = other.call(wire.OpAttach, attach, nil, nil)
	refused(t, "attaching", err)
	if err := other.call(wire.OpList, wire.ListRequest{}, nil, nil); !errors.Is(err, wire.ErrUnregistered) {
		t.Errorf("listing: %v, want ErrUnregistered", err)
	}
	moved := start(t, "n1", s, node.Options{}) // the disk on another host, under its id
	moved.attach()
	if _, err := moved.read(h.Address(), wire.Range{Length: 1000}); err != nil {
		t.Errorf("reading on another host: %v", err)
	}
}

// refused wants the error that says whose the store is and what to do.
func refused(t *testing.T, doing string, err error) {
	t.Helper()
	if !errors.Is(err, wire.ErrBadRequest) || !strings.Contains(err.Error(), "start the agent with --id n1") {
		t.Errorf("%s: %v, want ErrBadRequest with the cure", doing, err)
	}
}

// TestAStoreThatDoesNotSayWhose takes the marker of the node away, as in stores of earlier releases.
func TestAStoreThatDoesNotSayWhose(t *testing.T) {
	a, s := attached(t, node.Options{})
	if _, err := a.write(header("n1", 0, stamp(2), 0, 1, 1000), random(1, 1000)); err != nil {
		t.Fatal(err)
	}
	unmark := func() {
		if err := s.Delete(t.Context(), "restripe/node"); err != nil {
			t.Fatal(err)
		}
	}
	unmark()
	attach := wire.AttachRequest{Cluster: cluster, Incarnation: a.hello().Incarnation, FingerprintKey: fingerprintKey}
	err := start(t, "n7", s, node.Options{}).call(wire.OpAttach, attach, nil, nil)
	refused(t, "attaching", err)
	start(t, "n1", s, node.Options{}).attach()
	if whose, err := value(t, s, "restripe/node"); err != nil || whose != "n1" {
		t.Errorf("the store is %q's after attaching, %v", whose, err)
	}
}

func value(t *testing.T, s *mem.Store, key string) (string, error) {
	t.Helper()
	buffer := make([]byte, 100)
	length, err := s.ReadAt(t.Context(), key, buffer, 0)
	return string(buffer[:length]), err
}

// TestOrphansOfOthersStay has blocks in a store whose headers name another node, as where two nodes had one store.
func TestOrphansOfOthersStay(t *testing.T) {
	a, s := attached(t, node.Options{})
	mine, theirs, rotten := header("n1", 0, stamp(2), 0, 1, 1000), header("n2", 1, stamp(2), 0, 1, 1000), header("n1", 2, stamp(2), 0, 1, 1000)
	for _, h := range []block.Header{mine, rotten} {
		if _, err := a.write(h, random(1, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	replace(t, s, rotten.Address().Key(), func(data []byte) []byte { data[40] ^= 1; return data })
	b, from := attachedAs(t, "n2")
	if _, err := b.write(theirs, random(1, 1000)); err != nil {
		t.Fatal(err)
	}
	foreign := copyValue(t, from, s, theirs.Address().Key())

	var listed wire.ListReply
	if err := a.call(wire.OpList, wire.ListRequest{}, nil, &listed); err != nil || len(listed.Addresses) != 3 {
		t.Fatalf("listing: %v, %v", listed, err)
	}
	var reply wire.DeleteReply
	if err := a.call(wire.OpDelete, wire.DeleteRequest{Addresses: listed.Addresses, Orphans: true}, nil, &reply); err != nil {
		t.Fatal(err)
	}
	if len(reply.Foreign) != 1 || reply.Foreign[0].Key() != foreign {
		t.Errorf("foreign are %v, want the block %s", reply.Foreign, foreign)
	}
	for _, h := range []block.Header{mine, rotten} {
		if _, err := value(t, s, h.Address().Key()); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the orphan %s: %v, want ErrNotFound", h.Address(), err)
		}
	}
	if _, err := value(t, s, foreign); err != nil {
		t.Errorf("the block of another node: %v", err)
	}
}

func attachedAs(t *testing.T, id block.NodeID) (*agent, *mem.Store) {
	t.Helper()
	s := mem.New(0)
	a := start(t, id, s, node.Options{})
	a.attach()
	return a, s
}

func copyValue(t *testing.T, from, to *mem.Store, key string) string {
	t.Helper()
	buffer := make([]byte, 1<<16)
	length, err := from.ReadAt(t.Context(), key, buffer, 0)
	if err == nil {
		err = to.Create(t.Context(), key, buffer[:length])
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}
