package gateway_test

import (
	"errors"
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
)

// What lies on a node that does not answer is not lost, however much of the rest is: the read may be tried again.
func TestAReadCallsNothingLostThatANodeMayStillHave(t *testing.T) {
	c := newCluster(t, 8)
	data := noise(3*64, 7)
	c.put("k", data, api.PutOptions{Class: "default", Scheme: "rs(3,2)"})
	// Small objects are packed into one column: which one says its node.
	group := c.stat("k").Groups[0]
	view, err := c.catalog.Group(t.Context(), group.ID)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := c.catalog.Snapshot(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	own := snapshot.Object.Extents[0].Column
	c.agent(view.Slots[own][0].Node).stop()
	for slot, items := range view.Slots {
		if slot != own && len(items) > 0 {
			c.agent(items[0].Node).store.Damage(view.Address(slot, items[0]).Key(), func(value []byte) []byte { return value[:len(value)/2] })
		}
	}
	if _, err = c.read("k"); !errors.Is(err, api.ErrUnavailable) || errors.Is(err, api.ErrDataLoss) {
		t.Fatalf("a read where the cell's node does not answer: %v, want ErrUnavailable and no ErrDataLoss", err)
	}
}
