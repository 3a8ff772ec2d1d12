package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/store/mem"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// fixture is one group on its nodes, with the bytes it should hold.
type fixture struct {
	t         testing.TB
	id        block.GroupID
	agents    []*agent
	layout    *stripe.Layout
	unitBytes int
	cells     [][]byte
	written   map[int]block.Stamp // stamp of the block of each slot
}

func newGroup(t *testing.T, index uint32, agents []*agent, ladder string, scheme stripe.Scheme, unitBytes int) *fixture {
	t.Helper()
	return newGroupOf(t, index, agents, ladder, scheme, unitBytes, func(cell int) []byte { return random(uint64(100+cell), unitBytes) })
}

// newGroupOf is newGroup with the given bytes in its cells.
func newGroupOf(
	t testing.TB, index uint32, agents []*agent, ladder string, scheme stripe.Scheme, unitBytes int, bytesOf func(cell int) []byte,
) *fixture {
	t.Helper()
	parsed, err := stripe.ParseLadder(ladder)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := stripe.NewLayout(parsed, 0, stripe.ModeFree)
	if err != nil {
		t.Fatal(err)
	}
	g := &fixture{t: t, id: block.GroupID{Stamp: stamp(1), Index: index}, agents: agents, layout: layout, unitBytes: unitBytes, written: map[int]block.Stamp{}}
	for i := range layout.Cells() {
		g.cells = append(g.cells, bytesOf(i))
	}
	for slot := range layout.Columns + scheme.M {
		units := g.slot(scheme, slot)
		if _, err := agents[slot].write(g.header(slot, stamp(1), 0, len(units)), bytes.Join(units, nil)); err != nil {
			t.Fatal(err)
		}
		g.written[slot] = stamp(1)
	}
	return g
}

func (g *fixture) header(slot int, s block.Stamp, first, units int) block.Header {
	h := header(g.agents[slot].id, slot, s, first, units, g.unitBytes)
	h.Group, h.Columns = g.id, g.layout.Columns
	return h
}

// slot computes the units of a slot by definition.
func (g *fixture) slot(scheme stripe.Scheme, slot int) [][]byte {
	if slot < g.layout.Columns {
		var units [][]byte
		for row := range g.layout.Rows {
			units = append(units, g.cells[row*g.layout.Columns+slot])
		}
		return units
	}
	partition, err := g.layout.Partition(scheme.K)
	if err != nil {
		g.t.Fatal(err)
	}
	units := make([][]byte, len(partition.Stripes))
	for i, cells := range partition.Stripes {
		units[i] = make([]byte, g.unitBytes)
		for _, cell := range cells {
			kernel.MultiplyAdd(stripe.Coefficient(slot-g.layout.Columns, int(cell)%g.layout.Columns), g.cells[cell], units[i])
		}
	}
	return units
}

// requests binds the programs of a plan to the nodes.
func (g *fixture) requests(plan *stripe.Plan, s block.Stamp, patches []wire.Patch, patchBytes []byte) (requests []wire.RunRequest, payloads [][]byte) {
	peers, speaks := map[stripe.Position]string{}, map[stripe.Position]uint8{}
	for position, a := range g.agents {
		peers[stripe.Position(position)], speaks[stripe.Position(position)] = a.address, wire.Understood.Most
	}
	for _, program := range plan.Programs {
		r := wire.RunRequest{
			Stamp: s, Group: g.id, Program: program, Peers: peers, Speaks: speaks, Messages: plan.Messages, UnitBytes: g.unitBytes,
		}
		var payload []byte
		for slot, written := range g.written {
			if slot == int(program.Position) {
				h := g.header(slot, written, 0, 1)
				r.Blocks = append(r.Blocks, wire.Source{Slot: slot, Units: g.units(plan.From, slot), Address: h.Address()})
			}
		}
		from := 0
		for _, patch := range patches {
			if patch.Slot == int(program.Position) {
				r.Patches = append(r.Patches, patch)
				payload = append(payload, patchBytes[from:from+patch.Length]...)
			}
			from += patch.Length
		}
		staged := map[int][]int{}
		for _, row := range program.Rows {
			if row.Message < 0 {
				staged[row.Slot] = append(staged[row.Slot], row.Unit)
			}
		}
		for slot, units := range staged {
			r.Stage = append(r.Stage, g.header(slot, s, slices.Min(units), len(units)))
		}
		requests, payloads = append(requests, r), append(payloads, payload)
	}
	return requests, payloads
}

func (g *fixture) units(scheme stripe.Scheme, slot int) int {
	if slot < g.layout.Columns {
		return g.layout.Rows
	}
	return g.layout.Cells() / scheme.K
}

// carryOut runs all programs at once and returns the receipts and the counters.
func (g *fixture) carryOut(requests []wire.RunRequest, payloads [][]byte) (receipts []block.Receipt, counters wire.Counters, err error) {
	replies := make([]wire.RunReply, len(requests))
	var workers errgroup.Group
	for i := range requests {
		workers.Go(func() error {
			return g.agents[requests[i].Program.Position].call(wire.OpRun, requests[i], payloads[i], &replies[i])
		})
	}
	err = workers.Wait()
	for _, reply := range replies {
		receipts = append(receipts, reply.Receipts...)
		counters.Add(reply.Counters)
	}
	return receipts, counters, err
}

// expect reads a staged block and compares it with the definition.
func (g *fixture) expect(receipt block.Receipt, want [][]byte) {
	g.t.Helper()
	var ranges []wire.Range
	for i := range receipt.Units {
		ranges = append(ranges, wire.Range{Unit: receipt.FirstUnit + i, Length: g.unitBytes})
	}
	got, err := g.agents[receipt.Address.Slot].read(receipt.Address, ranges...)
	if err != nil {
		g.t.Fatal(err)
	}
	joined := bytes.Join(want[receipt.FirstUnit:receipt.FirstUnit+receipt.Units], nil)
	if !bytes.Equal(got, joined) {
		g.t.Fatalf("block %s is not what its scheme defines", receipt.Address)
	}
	if receipt.Fingerprint != printer.JoinUnits(receipt.Fingerprints, g.unitBytes) || g.unitBytes%16 == 0 && receipt.Fingerprint != printer.Sum(got) {
		g.t.Fatalf("block %s: the fingerprints of the receipt do not fit its bytes", receipt.Address)
	}
}

// mergeByHand is rep(3) -> rs(3,2) for one row of three columns: each parity node adds up its three scaled replicas.
func mergeByHand() *stripe.Plan {
	plan := &stripe.Plan{From: stripe.Replicas(3), To: stripe.RS(3, 2), Parities: 2}
	for p := range 2 {
		slot := 3 + p
		program := stripe.Program{Position: stripe.Position(slot), Rows: []stripe.Row{{Message: -1, Slot: slot}}}
		for unit := range 3 {
			program.Inputs = append(program.Inputs, stripe.Input{Kind: stripe.SourceBlock, Slot: slot, Unit: unit})
			program.Rows[0].Terms = append(program.Rows[0].Terms, stripe.Term{Input: unit, Coefficient: 1})
		}
		plan.Programs = append(plan.Programs, program)
	}
	return plan
}

func TestMergeReplicasSendsNothing(t *testing.T) {
	g := newGroup(t, 0, five(t, node.Options{}), "rep(3),rs(3,2)", stripe.Replicas(3), 5000)
	requests, payloads := g.requests(mergeByHand(), stamp(9), nil, nil)
	receipts, counters, err := g.carryOut(requests, payloads)
	if err != nil {
		t.Fatal(err)
	}
	if want := (wire.Counters{BlocksRead: 6, BlocksWritten: 2, BytesRead: 30000, BytesWritten: 10000}); counters != want {
		t.Errorf("counters are %+v, want %+v", counters, want)
	}
	for _, receipt := range receipts {
		g.expect(receipt, g.slot(stripe.RS(3, 2), receipt.Address.Slot))
	}
	again, _, err := g.carryOut(requests, payloads)
	if err != nil || !reflect.DeepEqual(again, receipts) {
		t.Errorf("the same request again: %v, %v; want the same receipts", again, err)
	}
}

// A run's reply vouches for the blocks it was asked to inspect, of those that are there, as an inspection would.
func TestRunInspectsWhatItIsAskedTo(t *testing.T) {
	g := newGroup(t, 0, five(t, node.Options{}), "rep(3),rs(3,2)", stripe.Replicas(3), 5000)
	there, absent := g.header(3, stamp(1), 0, 1), g.header(3, stamp(7), 0, 1)
	requests, _ := g.requests(mergeByHand(), stamp(9), nil, nil)
	requests[0].Inspect = []block.Address{absent.Address(), there.Address()}
	var reply wire.RunReply
	if err := g.agents[3].call(wire.OpRun, requests[0], nil, &reply); err != nil {
		t.Fatal(err)
	}
	var want wire.InspectReply
	if err := g.agents[3].call(wire.OpInspect, wire.InspectRequest{Addresses: requests[0].Inspect}, nil, &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Receipts) != 1 || !reflect.DeepEqual(reply.Inspected, want.Receipts) {
		t.Errorf("the run vouches for %+v, an inspection for %+v", reply.Inspected, want.Receipts)
	}
	elsewhere := g.header(4, stamp(1), 0, 1)
	requests[0].Stamp, requests[0].Stage[0].Stamp = stamp(10), stamp(10)
	requests[0].Inspect = []block.Address{elsewhere.Address()}
	if err := g.agents[3].call(wire.OpRun, requests[0], nil, &reply); !errors.Is(err, wire.ErrBadRequest) {
		t.Errorf("inspecting another node's block: %v, want ErrBadRequest", err)
	}
}

func TestPlansOverTheNetwork(t *testing.T) {
	agents := five(t, node.Options{})
	for i, name := range [][3]string{
		{"rep(3),rs(3,2)", "rep(3)", "rs(3,2)"}, {"rep(3),rs(3,2)", "rs(3,2)", "rep(3)"},
		{"rs(2,2),rs(3,2)", "rs(2,2)", "rs(3,2)"}, {"rs(2,2),rs(3,2)", "rs(3,2)", "rs(2,2)"}, {"rs(2,1),rs(3,2)", "rs(2,1)", "rs(3,2)"},
	} {
		t.Run(name[1]+" to "+name[2], func(t *testing.T) {
			from, err := stripe.ParseScheme(name[1])
			if err != nil {
				t.Fatal(err)
			}
			to, err := stripe.ParseScheme(name[2])
			if err != nil {
				t.Fatal(err)
			}
			g := newGroup(t, uint32(i), agents, name[0], from, 1000)
			plan, err := stripe.NewPlan(g.layout, from, to, "restripe", stripe.LeastNetwork)
			if err != nil {
				t.Fatal(err)
			}
			receipts, counters, err := g.carryOut(g.requests(plan, stamp(9), nil, nil))
			if err != nil {
				t.Fatal(err)
			}
			if int(counters.BlocksRead) != plan.Cost.BlocksRead || int(counters.BlocksSent) != plan.Cost.BlocksSent || int(counters.BlocksWritten) != plan.Cost.BlocksWritten {
				t.Errorf("measured %+v, the plan says %+v", counters, plan.Cost)
			}
			if len(receipts) == 0 {
				t.Fatal("nothing was staged")
			}
			for _, receipt := range receipts {
				g.expect(receipt, g.slot(to, receipt.Address.Slot))
			}
		})
	}
}

func TestUpdateAddsDifferences(t *testing.T) {
	g := newGroup(t, 0, five(t, node.Options{}), "rs(2,2),rs(3,2)", stripe.RS(3, 2), 3000)
	cells := []int{0, 4} // column 0 of row 0, column 1 of row 1
	plan, err := stripe.NewUpdatePlan(g.layout, stripe.RS(3, 2), cells)
	if err != nil {
		t.Fatal(err)
	}
	fresh := random(7, 700)
	patches := []wire.Patch{{Slot: 0, Unit: 0, Offset: 100, Length: 200}, {Slot: 0, Unit: 0, Offset: 2999, Length: 1}, {Slot: 1, Unit: 1, Offset: 0, Length: 499}}
	receipts, _, err := g.carryOut(g.requests(plan, stamp(9), patches, fresh))
	if err != nil {
		t.Fatal(err)
	}
	copy(g.cells[0][100:], fresh[:200])
	copy(g.cells[0][2999:], fresh[200:201])
	copy(g.cells[4], fresh[201:])
	slots := map[int]bool{}
	for _, receipt := range receipts {
		slots[receipt.Address.Slot] = true
		g.expect(receipt, g.slot(stripe.RS(3, 2), receipt.Address.Slot))
	}
	if len(slots) != 4 {
		t.Errorf("slots %v were staged, want two columns and two parity rows", slots)
	}
}

// gather is a program at position 3 that stages the sum of one message from each column.
func gather(g *fixture, s block.Stamp) wire.RunRequest {
	program := stripe.Program{Position: 3, Rows: []stripe.Row{{Message: -1, Slot: 3}}}
	var messages []stripe.Message
	for column := range 3 {
		messages = append(messages, stripe.Message{From: stripe.Position(column), To: 3})
		program.Inputs = append(program.Inputs, stripe.Input{Kind: stripe.SourceMessage, Message: column})
		program.Rows[0].Terms = append(program.Rows[0].Terms, stripe.Term{Input: column, Coefficient: stripe.Coefficient(0, column)})
	}
	return wire.RunRequest{Stamp: s, Group: g.id, Program: program, Messages: messages, UnitBytes: g.unitBytes, Stage: []block.Header{g.header(3, s, 0, 1)}}
}

func (g *fixture) deliver(s block.Stamp, message int) error {
	return g.agents[3].call(wire.OpDeliver, wire.DeliverRequest{Stamp: s, Group: g.id, Message: message, Position: 3}, g.cells[message], nil)
}

// TestRepeatedAndReorderedMessagesCountOnce is mistake 19 of the protocol: a delta that arrives twice must not cancel
// itself.
func TestRepeatedAndReorderedMessagesCountOnce(t *testing.T) {
	g := newGroup(t, 0, five(t, node.Options{}), "rep(3),rs(3,2)", stripe.Replicas(3), 4096)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	source := rand.New(rand.NewPCG(seed, 0))
	for attempt := range uint64(20) {
		s := stamp(100 + attempt)
		var steps []func() error
		var receipts []block.Receipt
		for message := range 3 {
			for range 1 + source.IntN(4) {
				steps = append(steps, func() error { return g.deliver(s, message) })
			}
		}
		steps = append(steps, func() error {
			var reply wire.RunReply
			err := g.agents[3].call(wire.OpRun, gather(g, s), nil, &reply)
			receipts = reply.Receipts
			return err
		})
		source.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		var workers errgroup.Group
		for _, step := range steps {
			workers.Go(step)
		}
		if err := workers.Wait(); err != nil {
			t.Fatal(err)
		}
		if err := g.deliver(s, 1); err != nil { // and once more after the end
			t.Fatal(err)
		}
		g.expect(receipts[0], g.slot(stripe.RS(3, 2), 3))
	}
}

func TestRestartInMidRunNeedsANewAttempt(t *testing.T) {
	g := newGroup(t, 0, five(t, node.Options{DeliverWait: 10 * time.Millisecond}), "rep(3),rs(3,2)", stripe.Replicas(3), 64)
	ended := make(chan error, 1)
	go func() { ended <- g.agents[3].call(wire.OpRun, gather(g, stamp(20)), nil, nil) }()
	eventually(t, func() bool { return g.deliver(stamp(20), 0) == nil })
	g.agents[3].restart()
	if err := <-ended; !errors.Is(err, wire.ErrUnreachable) && !errors.Is(err, wire.ErrCancelled) {
		t.Fatalf("a run whose agent restarts ends with %v, want ErrUnreachable or ErrCancelled", err)
	}
	g.agents[3].attach()
	if err := g.deliver(stamp(20), 1); !errors.Is(err, wire.ErrNotFound) {
		t.Fatalf("delivering to a forgotten run: %v, want ErrNotFound", err)
	}
	var workers errgroup.Group
	var reply wire.RunReply
	workers.Go(func() error { return g.agents[3].call(wire.OpRun, gather(g, stamp(21)), nil, &reply) })
	for message := range 3 {
		eventually(t, func() bool { return g.deliver(stamp(21), message) == nil })
	}
	if err := workers.Wait(); err != nil {
		t.Fatal(err)
	}
	g.expect(reply.Receipts[0], g.slot(stripe.RS(3, 2), 3))
}

// eventually repeats what may need time, without sleeping: every try is a call over the network.
func eventually(t *testing.T, try func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !try(); {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen within 10 s")
		}
	}
}

func TestCancelledRunIsOverForGood(t *testing.T) {
	g := newGroup(t, 0, five(t, node.Options{}), "rep(3),rs(3,2)", stripe.Replicas(3), 64)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := g.agents[3].client.Call(ctx, wire.OpRun, gather(g, stamp(20)), nil, nil)
		ended <- err
	}()
	if err := g.deliver(stamp(20), 0); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled call ends with %v", err)
	}
	// A request that comes before the cancellation joins the run; one that comes after gets its end.
	eventually(t, func() bool {
		again, giveUp := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer giveUp()
		_, err := g.agents[3].client.Call(again, wire.OpRun, gather(g, stamp(20)), nil, nil)
		if err == nil {
			t.Fatal("a run without its messages succeeded")
		}
		return errors.Is(err, wire.ErrCancelled)
	})
}

func TestRunIsRefusedWithoutRoom(t *testing.T) {
	const unitBytes = 64 << 10
	g := newGroup(t, 0, five(t, node.Options{RunBytes: 100 << 10, AdmitWait: 20 * time.Millisecond}), "rep(3),rs(3,2)", stripe.Replicas(3), unitBytes)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := g.agents[3].client.Call(ctx, wire.OpRun, gather(g, stamp(20)), nil, nil)
		ended <- err
	}()
	if err := g.deliver(stamp(20), 0); err != nil {
		t.Fatal(err)
	}
	if err := g.agents[3].call(wire.OpRun, gather(g, stamp(21)), nil, nil); !errors.Is(err, wire.ErrBusy) {
		t.Fatalf("a second run: %v, want ErrBusy", err)
	}
	cancel()
	<-ended
	replies := make(chan error, 1)
	go func() {
		for {
			err := g.agents[3].call(wire.OpRun, gather(g, stamp(21)), nil, nil)
			if !errors.Is(err, wire.ErrBusy) {
				replies <- err
				return
			}
		}
	}()
	for message := range 3 {
		eventually(t, func() bool { return g.deliver(stamp(21), message) == nil })
	}
	if err := <-replies; err != nil {
		t.Fatalf("the same run again, with room: %v", err)
	}
	big := gather(g, stamp(22))
	big.Stage[0].Units, big.Program.Rows = 2, append(slices.Clone(big.Program.Rows), stripe.Row{Message: -1, Slot: 3, Unit: 1, Terms: big.Program.Rows[0].Terms})
	if err := g.agents[3].call(wire.OpRun, big, nil, nil); !errors.Is(err, wire.ErrTooLarge) {
		t.Fatalf("a run over the whole bound: %v, want ErrTooLarge", err)
	}
}

func TestLostContentsVoidRuns(t *testing.T) {
	g := newGroup(t, 0, five(t, node.Options{}), "rep(3),rs(3,2)", stripe.Replicas(3), 64)
	finished := gather(g, stamp(19))
	var workers errgroup.Group
	workers.Go(func() error { return g.agents[3].call(wire.OpRun, finished, nil, nil) })
	for message := range 3 {
		workers.Go(func() error { return g.deliver(stamp(19), message) })
	}
	if err := workers.Wait(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- g.agents[3].call(wire.OpRun, gather(g, stamp(20)), nil, nil) }()
	if err := g.deliver(stamp(20), 0); err != nil {
		t.Fatal(err)
	}
	erase(t, g.agents[3].store.(*mem.Store))
	g.agents[3].hello()
	if err := <-ended; !errors.Is(err, wire.ErrUnregistered) {
		t.Fatalf("a run whose store lost its contents ends with %v, want ErrUnregistered", err)
	}
	g.agents[3].attach()
	if err := g.agents[3].call(wire.OpRun, finished, nil, nil); !errors.Is(err, wire.ErrUnregistered) {
		t.Fatalf("a finished run, asked for after its block is lost: %v; its receipt must not come back", err)
	}
}

func TestRunRefusesBadInputs(t *testing.T) {
	g := newGroup(t, 0, five(t, node.Options{}), "rep(3),rs(3,2)", stripe.Replicas(3), 64)
	next := uint64(30)
	request := func(change func(r *wire.RunRequest)) error {
		next++
		requests, _ := g.requests(mergeByHand(), stamp(next), nil, nil)
		r := requests[0]
		change(&r)
		return g.agents[3].call(wire.OpRun, r, nil, nil)
	}
	for name, c := range map[string]struct {
		change func(r *wire.RunRequest)
		want   error
	}{
		"block is absent":     {func(r *wire.RunRequest) { r.Blocks[0].Address.Stamp.Sequence = 999 }, wire.ErrNotFound},
		"other node":          {func(r *wire.RunRequest) { r.Blocks[0].Address.Node = "n0" }, wire.ErrBadRequest},
		"wrong base":          {func(r *wire.RunRequest) { r.Blocks[0].Base = 1 }, wire.ErrBadRequest},
		"units beyond":        {func(r *wire.RunRequest) { r.Blocks[0].Units = 4 }, wire.ErrBadRequest},
		"no source":           {func(r *wire.RunRequest) { r.Blocks = nil }, wire.ErrBadRequest},
		"unit not produced":   {func(r *wire.RunRequest) { r.Stage[0].Units = 2 }, wire.ErrBadRequest},
		"unit not staged":     {func(r *wire.RunRequest) { r.Stage = nil }, wire.ErrBadRequest},
		"other stamp":         {func(r *wire.RunRequest) { r.Stage[0].Stamp.Sequence++ }, wire.ErrBadRequest},
		"term out of range":   {func(r *wire.RunRequest) { r.Program.Inputs = r.Program.Inputs[:2] }, wire.ErrBadRequest},
		"message not in plan": {func(r *wire.RunRequest) { r.Program.Rows[0].Message = 3 }, wire.ErrBadRequest},
		"patch of nothing":    {func(r *wire.RunRequest) { r.Patches = []wire.Patch{{Slot: 3}} }, wire.ErrBadRequest},
	} {
		if err := request(c.change); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	damaged := g.header(3, stamp(1), 0, 1)
	replace(t, g.agents[3].store.(*mem.Store), damaged.Address().Key(), func(v []byte) []byte { v[len(v)-1] ^= 1; return v })
	if err := request(func(*wire.RunRequest) {}); !errors.Is(err, wire.ErrCorrupt) {
		t.Errorf("a damaged input: %v, want ErrCorrupt", err)
	}
}

func TestLargeRun(t *testing.T) {
	g := newGroup(t, 0, five(t, node.Options{}), "rep(3),rs(3,2)", stripe.Replicas(3), 16<<20/3)
	requests, payloads := g.requests(mergeByHand(), stamp(9), nil, nil)
	// A second slot makes what is staged at one position 16 MiB: the three units of the replica, copied.
	program := &requests[0].Program
	copied := g.header(3, stamp(9), 0, 3)
	copied.Slot = 4
	requests[0].Stage = append(requests[0].Stage, copied)
	for unit := range 3 {
		program.Rows = append(program.Rows, stripe.Row{Message: -1, Slot: 4, Unit: unit, Terms: []stripe.Term{{Input: unit, Coefficient: 1}}})
	}
	receipts, _, err := g.carryOut(requests[:1], payloads[:1])
	if err != nil {
		t.Fatal(err)
	}
	g.expect(receipts[0], g.slot(stripe.RS(3, 2), 3))
	if want := printer.Sum(g.slot(stripe.Replicas(3), 3)[2]); receipts[1].Fingerprints[2] != want {
		t.Error("the copied units differ from the replica")
	}
}

func TestManyRunsAtOnce(t *testing.T) {
	agents := five(t, node.Options{RunBytes: 1 << 20, AdmitWait: 10 * time.Second})
	const groups = 60
	prepared := make([]*fixture, groups)
	requests, payloads := make([][]wire.RunRequest, groups), make([][][]byte, groups)
	for i := range groups {
		g := newGroup(t, uint32(i), agents, "rs(2,2),rs(3,2)", stripe.RS(2, 2), 4000)
		plan, err := stripe.NewPlan(g.layout, stripe.RS(2, 2), stripe.RS(3, 2), "restripe", stripe.LeastNetwork)
		if err != nil {
			t.Fatal(err)
		}
		prepared[i] = g
		requests[i], payloads[i] = g.requests(plan, stamp(uint64(1000+i)), nil, nil)
	}
	var workers sync.WaitGroup
	failures := make([]error, groups)
	for i := range groups {
		workers.Go(func() {
			receipts, _, err := prepared[i].carryOut(requests[i], payloads[i])
			if err == nil && len(receipts) != 2 {
				err = fmt.Errorf("%d receipts", len(receipts))
			}
			failures[i] = err
		})
	}
	workers.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
}
