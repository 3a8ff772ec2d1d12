package node_test

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// splice is a new group made of ranges of two others, whose columns lie on the same nodes.
func splice(t *testing.T) (into *fixture, requests []wire.RunRequest) {
	t.Helper()
	const unitBytes = 3000
	agents := five(t, node.Options{})
	scheme := stripe.RS(3, 2)
	from := []*fixture{newGroup(t, 0, agents, "rep(3),rs(3,2)", scheme, 5000), newGroup(t, 1, agents, "rep(3),rs(3,2)", scheme, 700)}
	into = &fixture{
		t: t, id: block.GroupID{Stamp: stamp(9)}, agents: agents, layout: from[0].layout, unitBytes: unitBytes,
		written: map[int]block.Stamp{},
	}
	plan, err := stripe.NewSplicePlan(into.layout, scheme)
	if err != nil {
		t.Fatal(err)
	}
	requests, _ = into.requests(plan, stamp(9), nil, nil)
	for range into.layout.Cells() {
		into.cells = append(into.cells, make([]byte, unitBytes))
	}
	for column := range into.layout.Columns {
		for _, part := range []struct {
			of   int // which of the others
			copy wire.Copy
		}{ // 100 bytes in front and what is after the last are zeros
			{1, wire.Copy{Offset: 100, Length: 700}},
			{0, wire.Copy{Offset: 2000, Length: 450, From: 4550}},
			{0, wire.Copy{Offset: 800, Length: 1200, From: 10}},
		} {
			h := from[part.of].header(column, stamp(1), 0, 1)
			part.copy.Slot, part.copy.Address = column, h.Address()
			copy(into.cells[column][part.copy.Offset:], from[part.of].cells[column][part.copy.From:part.copy.From+part.copy.Length])
			requests[column].Copies = append(requests[column].Copies, part.copy)
		}
	}
	return into, requests
}

func TestSplicePutsCellsTogetherFromOtherGroups(t *testing.T) {
	into, requests := splice(t)
	receipts, counters, err := into.carryOut(requests, make([][]byte, len(requests)))
	if err != nil {
		t.Fatal(err)
	}
	for _, receipt := range receipts {
		into.expect(receipt, into.slot(stripe.RS(3, 2), receipt.Address.Slot))
	}
	want := wire.Counters{BlocksRead: 3, BytesRead: 3 * 2350, BlocksSent: 4, BytesSent: 4 * 2450, BlocksWritten: 5, BytesWritten: 5 * 3000}
	if counters != want {
		t.Errorf("counters are %+v, want %+v", counters, want)
	}
}

// A column that lacks one of its parts is not written at all.
func TestSpliceIsAllOrNothing(t *testing.T) {
	into, requests := splice(t)
	gone := requests[1].Copies[0].Address
	if err := into.agents[1].call(wire.OpDelete, wire.DeleteRequest{Addresses: []block.Address{gone}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	var reply wire.RunReply
	if err := into.agents[1].call(wire.OpRun, requests[1], nil, &reply); !errors.Is(err, wire.ErrNotFound) {
		t.Fatalf("with a part that is gone: %v", err)
	}
	var there wire.InspectReply
	h := into.header(1, stamp(9), 0, 1)
	if err := into.agents[1].call(wire.OpInspect, wire.InspectRequest{Addresses: []block.Address{h.Address()}}, nil, &there); err != nil {
		t.Fatal(err)
	}
	if len(there.Receipts) > 0 {
		t.Error("the column was written without one of its parts")
	}
}

func TestSpliceRefusesWhatFitsNothing(t *testing.T) {
	into, requests := splice(t)
	for name, change := range map[string]func(*wire.Copy){
		"beyond the cell":     func(c *wire.Copy) { c.Offset = 2999 },
		"before the cell":     func(c *wire.Copy) { c.Offset = -1 },
		"onto another":        func(c *wire.Copy) { c.Offset = 810 },
		"to another slot":     func(c *wire.Copy) { c.Slot++ },
		"from before a unit":  func(c *wire.Copy) { c.From = -1 },
		"from beyond a unit":  func(c *wire.Copy) { c.From = 600 },
		"from far beyond":     func(c *wire.Copy) { c.From = math.MaxInt },
		"from no unit":        func(c *wire.Copy) { c.Source = 7 },
		"of another node":     func(c *wire.Copy) { c.Address.Node = "n4" },
		"nothing":             func(c *wire.Copy) { c.Length = 0 },
		"more than there can": func(c *wire.Copy) { c.Length = 1 << 62 },
	} {
		request := requests[0]
		request.Copies = slices.Clone(request.Copies)
		change(&request.Copies[0])
		var reply wire.RunReply
		if err := into.agents[0].call(wire.OpRun, request, nil, &reply); !errors.Is(err, wire.ErrBadRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !bytes.Equal(into.cells[0][:100], make([]byte, 100)) {
		t.Error("the test covers no cell that begins with zeros")
	}
}
