package node_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/mem"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// payloadAtRest returns how many bytes a store keeps of a block besides its header.
func payloadAtRest(t testing.TB, s store.Store, address block.Address) int {
	t.Helper()
	value := make([]byte, 1<<20)
	length, err := s.ReadAt(context.Background(), address.Key(), value, 0)
	if err != nil {
		t.Fatal(err)
	}
	headBytes, err := block.HeadBytes(value[:length])
	if err != nil {
		t.Fatal(err)
	}
	return length - headBytes
}

func (g *fixture) address(slot int, written block.Stamp) block.Address {
	return block.Address{Node: g.agents[slot].id, Group: g.id, Slot: slot, Stamp: written}
}

func withoutPadding(units [][]byte) (size int) {
	for _, unit := range units {
		size += len(bytes.TrimRight(unit, "\x00"))
	}
	return size
}

// expectTrimmed is expect for a block that must be stored without padding too.
func (g *fixture) expectTrimmed(receipt block.Receipt, want [][]byte) {
	g.t.Helper()
	g.expect(receipt, want)
	a := g.agents[receipt.Address.Slot]
	want = want[receipt.FirstUnit : receipt.FirstUnit+receipt.Units]
	if got, least := payloadAtRest(g.t, a.store, receipt.Address), withoutPadding(want); got != least {
		g.t.Errorf("block %s takes %d bytes, its units without trailing zeros have %d", receipt.Address, got, least)
	}
	for i, unit := range want {
		if receipt.Fingerprints[i] != printer.Sum(unit) {
			g.t.Errorf("block %s: the fingerprint of unit %d is not that of the full unit", receipt.Address, i)
		}
	}
	for _, deep := range []bool{false, true} {
		var reply wire.InspectReply
		err := a.call(wire.OpInspect, wire.InspectRequest{Addresses: []block.Address{receipt.Address}, Deep: deep}, nil, &reply)
		if err != nil || len(reply.Receipts) != 1 || reply.Receipts[0].Fingerprint != receipt.Fingerprint || reply.Receipts[0].Checksum != receipt.Checksum {
			g.t.Errorf("inspecting block %s, deep %v: %+v, %v; want the receipt of the write", receipt.Address, deep, reply, err)
		}
	}
}

// newPackedGroup is a group of six columns of two cells and two parity rows that holds three small objects: a cell and
// a bit in column 0, some bytes in column 1, and one byte at the end of the first cell of column 4. Columns 2, 3 and 5
// are empty.
func newPackedGroup(t *testing.T, scheme stripe.Scheme, unitBytes int) *fixture {
	t.Helper()
	return newGroupOf(t, 0, several(t, 8, node.Options{}), "rep(3),rs(3,2),rs(4,2),rs(6,2)", scheme, unitBytes, func(cell int) []byte {
		data := make([]byte, unitBytes)
		switch cell {
		case 0:
			copy(data, random(1, unitBytes))
		case 1:
			copy(data, random(2, unitBytes/7))
		case 4:
			data[unitBytes-1] = 9
		case 6: // row 1 of column 0
			copy(data, random(3, unitBytes/3))
		}
		return data
	})
}

// carryOutStep carries a plan out, checks what it stored, and makes it what the group has.
func (g *fixture) carryOutStep(plan *stripe.Plan, s block.Stamp) (receipts []block.Receipt) {
	g.t.Helper()
	receipts, counters, err := g.carryOut(g.requests(plan, s, nil, nil))
	if err != nil {
		g.t.Fatal(err)
	}
	unit, cost := int64(g.unitBytes), plan.Cost
	if counters.BytesRead != unit*int64(cost.BlocksRead) || counters.BytesWritten != unit*int64(cost.BlocksWritten) ||
		int(counters.BlocksSent) != cost.BlocksSent || counters.BytesSent > unit*int64(cost.BlocksSent) {
		g.t.Errorf("measured %+v, the plan says %+v in units of %d bytes", counters, cost, unit)
	}
	if len(receipts) == 0 {
		g.t.Fatal("nothing was staged")
	}
	for _, receipt := range receipts {
		g.expectTrimmed(receipt, g.slot(plan.To, receipt.Address.Slot))
		g.written[receipt.Address.Slot] = s
	}
	return receipts
}

func TestTransitionsOfAPackedGroupStoreNoPadding(t *testing.T) {
	const unitBytes = 3000
	g := newPackedGroup(t, stripe.Replicas(3), unitBytes)
	for slot, written := range g.written {
		units := g.slot(stripe.Replicas(3), slot)
		address := g.address(slot, written)
		if got, least := payloadAtRest(t, g.agents[slot].store, address), withoutPadding(units); got != least {
			t.Errorf("slot %d takes %d bytes, its units without trailing zeros have %d", slot, got, least)
		}
	}
	steps := []stripe.Scheme{stripe.Replicas(3), stripe.RS(3, 2), stripe.RS(6, 2), stripe.RS(4, 2), stripe.RS(6, 2), stripe.RS(3, 2), stripe.Replicas(3)}
	for i, to := range steps[1:] {
		plan, err := stripe.NewPlan(g.layout, steps[i], to, "restripe", stripe.LeastNetwork)
		if err != nil {
			t.Fatal(err)
		}
		g.carryOutStep(plan, stamp(uint64(10+i)))
	}
}

func TestRepairOfAPackedGroupStoresNoPadding(t *testing.T) {
	scheme := stripe.RS(3, 2)
	g := newPackedGroup(t, scheme, 3000)
	for i, lost := range []int{0, 4, 5, 6} { // 5 is a column of nothing but zeros
		address := g.address(lost, g.written[lost])
		if err := g.agents[lost].call(wire.OpDelete, wire.DeleteRequest{Addresses: []block.Address{address}}, nil, nil); err != nil {
			t.Fatal(err)
		}
		plan, err := stripe.NewRepairPlan(g.layout, scheme, []int{lost}, nil)
		if err != nil {
			t.Fatal(err)
		}
		g.carryOutStep(plan, stamp(uint64(10+i)))
	}
}

func TestUpdateOfAPackedGroupStoresNoPadding(t *testing.T) {
	const unitBytes = 3000
	scheme := stripe.RS(6, 2)
	g := newPackedGroup(t, scheme, unitBytes)
	cells := []int{0, 1, 2, 4}
	plan, err := stripe.NewUpdatePlan(g.layout, scheme, cells)
	if err != nil {
		t.Fatal(err)
	}
	patches := []wire.Patch{
		{Slot: 0, Unit: 0, Offset: 100, Length: unitBytes - 100},  // zeros to the end: less is stored
		{Slot: 1, Unit: 0, Offset: unitBytes/7 - 10, Length: 500}, // over the end of what is stored
		{Slot: 1, Unit: 0, Offset: 2000, Length: 7},               // behind it
		{Slot: 2, Unit: 0, Offset: 40, Length: 60},                // where nothing is stored
		{Slot: 4, Unit: 0, Offset: unitBytes - 1, Length: 1},      // and where nothing is left
	}
	var fresh []byte
	for i, patch := range patches {
		part := make([]byte, patch.Length)
		if patch.Slot != 0 && patch.Slot != 4 {
			part = random(uint64(50+i), patch.Length)
		}
		fresh = append(fresh, part...)
		copy(g.cells[patch.Slot][patch.Offset:], part)
	}
	receipts, _, err := g.carryOut(g.requests(plan, stamp(9), patches, fresh))
	if err != nil {
		t.Fatal(err)
	}
	slots := map[int]bool{}
	for _, receipt := range receipts {
		slots[receipt.Address.Slot] = true
		g.expectTrimmed(receipt, g.slot(scheme, receipt.Address.Slot))
	}
	if len(slots) != 6 {
		t.Errorf("slots %v were staged, want four columns and two parity rows", slots)
	}
	if got := payloadAtRest(t, g.agents[4].store, g.address(4, stamp(9))); got != 0 {
		t.Errorf("a column that was emptied takes %d bytes", got)
	}
}

// TestZerosStandForNoBlock: a run does not take a block for present because all of it that is asked for is zeros, which
// the remembered header tells.
func TestZerosStandForNoBlock(t *testing.T) {
	scheme := stripe.RS(3, 2)
	g := newPackedGroup(t, scheme, 3000)
	plan, err := stripe.NewRepairPlan(g.layout, scheme, []int{4}, nil)
	if err != nil {
		t.Fatal(err)
	}
	requests, _ := g.requests(plan, stamp(9), nil, nil)
	empty := g.address(5, stamp(1))
	if err := g.agents[5].store.Delete(t.Context(), empty.Key()); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(requests, func(r wire.RunRequest) bool { return r.Program.Position == 5 })
	if err := g.agents[5].call(wire.OpRun, requests[at], nil, nil); !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("a run over an empty column whose block is gone: %v, want ErrNotFound", err)
	}
	if _, err := g.agents[5].read(empty, wire.Range{Unit: 0, Length: 3000}); !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("reading it once that was seen: %v, want ErrNotFound", err)
	}
}

// TestWritesAndReadsOfPaddedUnits writes blocks of any shape, in full and trimmed, and reads any ranges of them.
func TestWritesAndReadsOfPaddedUnits(t *testing.T) {
	a, s := attached(t, node.Options{})
	sequence := uint64(10)
	rapid.Check(t, func(rt *rapid.T) {
		sequence++
		units, unitBytes := rapid.IntRange(1, 6).Draw(rt, "units"), rapid.IntRange(1, 100).Draw(rt, "bytes")
		h := header("n1", 0, stamp(sequence), rapid.IntRange(0, 3).Draw(rt, "first"), units, unitBytes)
		full := make([]byte, 0, units*unitBytes)
		var split [][]byte
		for range units {
			unit := make([]byte, unitBytes)
			copy(unit, rapid.SliceOfN(rapid.Byte(), 0, unitBytes).Draw(rt, "data"))
			full, split = append(full, unit...), append(split, unit)
		}
		trimmed := h
		trimmedPayload := trimmed.Pack(bytes.Clone(full))
		requests := []struct {
			header  block.Header
			payload []byte
		}{{h, full}, {trimmed, trimmedPayload}}
		if rapid.Bool().Draw(rt, "trimmed first") {
			slices.Reverse(requests)
		}
		var receipts []block.Receipt
		for _, request := range requests {
			receipt, err := a.write(request.header, request.payload)
			if err != nil {
				rt.Fatal(err)
			}
			receipts = append(receipts, receipt)
		}
		if receipts[0].Checksum != receipts[1].Checksum || receipts[0].Fingerprint != receipts[1].Fingerprint {
			rt.Fatalf("sent in full and trimmed the block has receipts %+v", receipts)
		}
		if got := payloadAtRest(t, s, h.Address()); got != withoutPadding(split) {
			rt.Fatalf("%d bytes are stored of units %x", got, split)
		}
		for i, unit := range split {
			if receipts[0].Fingerprints[i] != printer.Sum(unit) {
				rt.Fatalf("the fingerprint of unit %d is not that of the full unit", i)
			}
		}
		var ranges []wire.Range
		var want []byte
		for range rapid.IntRange(1, 8).Draw(rt, "ranges") {
			i := rapid.IntRange(0, units-1).Draw(rt, "unit")
			r := wire.Range{Unit: h.FirstUnit + i, Length: unitBytes}
			if rapid.Bool().Draw(rt, "part") {
				r.Offset = rapid.IntRange(0, unitBytes).Draw(rt, "offset")
				r.Length = rapid.IntRange(0, unitBytes-r.Offset).Draw(rt, "length")
			}
			ranges, want = append(ranges, r), append(want, split[i][r.Offset:r.Offset+r.Length]...)
		}
		for i := range split { // and all units in a row
			ranges, want = append(ranges, wire.Range{Unit: h.FirstUnit + i, Length: unitBytes}), append(want, split[i]...)
		}
		if got, err := a.read(h.Address(), ranges...); err != nil || !bytes.Equal(got, want) {
			rt.Fatalf("read %x, %v; want %x", got, err, want)
		}
		replace(t, s, h.Address().Key(), func(value []byte) []byte { return append(value, 0) })
		var reply wire.InspectReply
		if err := a.call(wire.OpInspect, wire.InspectRequest{Addresses: []block.Address{h.Address()}}, nil, &reply); err != nil || len(reply.Missing) != 1 {
			rt.Fatalf("inspecting a block with a byte too many: %+v, %v", reply, err)
		}
	})
}

func TestZerosAreNotRead(t *testing.T) {
	g := &gate{Store: mem.New(0)}
	a := start(t, "n1", g, node.Options{})
	a.attach()
	payload := make([]byte, 3*100)
	copy(payload, random(1, 30))
	h := header("n1", 0, stamp(2), 0, 3, 100)
	if _, err := a.write(h, payload); err != nil {
		t.Fatal(err)
	}
	g.down.Store(true)
	got, err := a.read(h.Address(), wire.Range{Unit: 1, Length: 100}, wire.Range{Unit: 2, Length: 100}, wire.Range{Unit: 0, Offset: 30, Length: 70}, wire.Range{Unit: 2, Offset: 1, Length: 9})
	if err != nil || !bytes.Equal(got, make([]byte, 279)) {
		t.Fatalf("reading zeros: %x, %v", got, err)
	}
	if _, err := a.read(h.Address(), wire.Range{Unit: 0, Length: 100}); !errors.Is(err, wire.ErrDown) {
		t.Fatalf("reading what is stored: %v, want ErrDown", err)
	}
}

// TestBlocksStoredInFull are those written before padding was left out.
func TestBlocksStoredInFull(t *testing.T) {
	a, s := attached(t, node.Options{})
	payload := make([]byte, 3*100)
	copy(payload[100:], random(1, 30))
	h := header("n1", 0, stamp(2), 0, 3, 100)
	old := h
	for i := range 3 {
		old.Checksums = append(old.Checksums, kernel.Checksum(payload[100*i:100*i+100]))
		old.Fingerprints = append(old.Fingerprints, printer.Sum(payload[100*i:100*i+100]))
	}
	value, err := block.Encode(&old, payload)
	if err == nil {
		err = s.Create(t.Context(), h.Address().Key(), value)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.write(h, payload); err != nil {
		t.Fatalf("writing the same: %v", err)
	}
	for _, ranges := range [][]wire.Range{{{Unit: 0, Length: 100}, {Unit: 1, Length: 100}, {Unit: 2, Length: 100}}, {{Unit: 1, Offset: 10, Length: 50}}} {
		from := 100*ranges[0].Unit + ranges[0].Offset
		length := 0
		for _, r := range ranges {
			length += r.Length
		}
		if got, err := a.read(h.Address(), ranges...); err != nil || !bytes.Equal(got, payload[from:from+length]) {
			t.Errorf("reading %+v: %x, %v", ranges, got, err)
		}
	}
	if got := payloadAtRest(t, s, h.Address()); got != 300 {
		t.Errorf("%d bytes are stored, the block was written in full and is immutable", got)
	}
	copy(payload[100:], random(2, 30))
	if _, err := a.write(h, payload); !errors.Is(err, wire.ErrConflict) {
		t.Errorf("writing other content: %v, want ErrConflict", err)
	}
}

func TestWrongLengthsAreRefused(t *testing.T) {
	a, _ := attached(t, node.Options{})
	for name, c := range map[string]struct {
		lengths []int
		payload int
	}{
		"full payload":     {[]int{10, 0}, 200},
		"payload too long": {[]int{10, 0}, 11},
		"one length":       {[]int{10}, 10},
		"over the unit":    {[]int{101, 0}, 101},
		"negative":         {[]int{100, -1}, 99},
		"all full":         {[]int{100, 100}, 200},
	} {
		h := header("n1", 0, stamp(2), 0, 2, 100)
		h.Lengths = c.lengths
		if _, err := a.write(h, make([]byte, c.payload)); !errors.Is(err, wire.ErrBadRequest) {
			t.Errorf("%s: %v, want ErrBadRequest", name, err)
		}
	}
	g := newGroup(t, 0, five(t, node.Options{}), "rep(3),rs(3,2)", stripe.Replicas(3), 64)
	requests, payloads := g.requests(mergeByHand(), stamp(9), nil, nil)
	requests[0].Stage[0].Lengths = []int{1}
	if _, _, err := g.carryOut(requests[:1], payloads[:1]); !errors.Is(err, wire.ErrBadRequest) {
		t.Errorf("a run that says what is left of its units: %v, want ErrBadRequest", err)
	}
}
