package node_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/wire"
)

// TestDeepInspectionSaysWhatIsWrong: a flipped bit is found in its unit, and so is a fingerprint that is not that of the
// bytes though the checksums are right; a shallow inspection sees neither.
func TestDeepInspectionSaysWhatIsWrong(t *testing.T) {
	a, store := attached(t, node.Options{})
	payload := random(3, 3*3<<20) // each unit is read in several pieces
	clear(payload[3<<20+1000 : 6<<20])
	clear(payload[6<<20:])
	addresses := make([]block.Address, 3)
	for slot := range addresses {
		h := header("n1", slot, stamp(2), 4, 3, 3<<20)
		if _, err := a.write(h, payload); err != nil {
			t.Fatal(err)
		}
		addresses[slot] = h.Address()
	}
	inspect := func(deep bool) (reply wire.InspectReply) {
		t.Helper()
		if err := a.call(wire.OpInspect, wire.InspectRequest{Addresses: addresses, Deep: deep}, nil, &reply); err != nil {
			t.Fatal(err)
		}
		return reply
	}
	if reply := inspect(true); len(reply.Receipts) != 3 || len(reply.Damaged) != 0 {
		t.Fatalf("blocks that are whole: %+v", reply)
	}
	change := func(slot int, change func(value []byte) []byte) {
		t.Helper()
		if !store.Damage(addresses[slot].Key(), change) {
			t.Fatal("there is no such block")
		}
	}
	change(1, func(value []byte) []byte {
		value[len(value)-1] ^= 1 // the last byte that is stored, of the second unit
		return value
	})
	change(2, func(value []byte) []byte {
		h, err := block.DecodeHeader(value)
		if err != nil {
			t.Fatal(err)
		}
		head, err := block.HeadBytes(value)
		if err != nil {
			t.Fatal(err)
		}
		rest := bytes.Clone(value[head:])
		h.Fingerprints[0][7] ^= 1
		forged, err := block.Encode(h, rest)
		if err != nil {
			t.Fatal(err)
		}
		return forged
	})
	if reply := inspect(false); len(reply.Receipts) != 3 {
		t.Fatalf("a shallow inspection: %+v", reply)
	}
	reply := inspect(true)
	if len(reply.Receipts) != 1 || len(reply.Missing) != 2 || len(reply.Damaged) != 2 {
		t.Fatalf("a deep inspection: %+v", reply)
	}
	for i, unit := range []int{5, 4} {
		if damage := reply.Damaged[i]; damage.Address != addresses[i+1] || damage.Unit != unit || damage.Cause == "" {
			t.Errorf("%+v, want unit %d of %s", damage, unit, addresses[i+1])
		}
	}
}

// TestTheStoreKeepsTheKeyOfFingerprints: an agent that starts anew knows it, and refuses a catalog that has another.
func TestTheStoreKeepsTheKeyOfFingerprints(t *testing.T) {
	a, _ := attached(t, node.Options{})
	for range 2 {
		if hello := a.hello(); kernel.Key(hello.FingerprintKey) != kernel.Key(fingerprintKey) {
			t.Fatalf("it says %x, was attached with %x", hello.FingerprintKey, fingerprintKey)
		}
		a.restart()
	}
	request := wire.AttachRequest{Cluster: cluster, Incarnation: a.hello().Incarnation, FingerprintKey: [16]byte{9}}
	if err := a.call(wire.OpAttach, request, nil, nil); !errors.Is(err, wire.ErrBadRequest) {
		t.Fatalf("attaching with another key: %v, want ErrBadRequest", err)
	}
	a.attach()
}
