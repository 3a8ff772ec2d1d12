package node_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/mem"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

const testPiece = 4 << 10

// lose removes the block of a slot, as it were: a repair must not read it.
func (g *fixture) lose(slots ...int) {
	for _, slot := range slots {
		delete(g.written, slot)
	}
}

func inPieces(requests []wire.RunRequest, bytes int) {
	for i := range requests {
		requests[i].PieceBytes = bytes
	}
}

// Every shape of repair ends in the same bytes, in pieces that do not divide the unit and whole, in one strip and in several
// of one piece or four, and costs what its plan says.
func TestRepairsInPieces(t *testing.T) {
	agents := several(t, 6, node.Options{}) // the last one is the proxy
	for i, shape := range stripe.RepairShapes() {
		for j, c := range []struct{ unit, piece int }{{50_001, 0}, {50_001, testPiece}, {50_001, 10_000}, {900_001, 256 << 10}, {900_001, 64 << 10}} {
			g := newGroup(t, uint32(10*i+j), agents, "rs(3,2)", stripe.RS(3, 2), c.unit)
			lost := []int{1, 4}
			plan, err := stripe.NewShapedRepairPlan(g.layout, stripe.RS(3, 2), shape, lost, nil)
			if err != nil {
				t.Fatal(err)
			}
			g.lose(lost...)
			requests, payloads := g.requests(plan, stamp(9), nil, nil)
			inPieces(requests, c.piece)
			receipts, counters, err := g.carryOut(requests, payloads)
			if err != nil {
				t.Fatalf("%s: %v", shape, err)
			}
			if int(counters.BlocksSent) != plan.Cost.BlocksSent || int(counters.BytesSent) != plan.Cost.BlocksSent*g.unitBytes || int(counters.BlocksRead) != plan.Cost.BlocksRead {
				t.Errorf("%s: measured %+v, the plan says %+v", shape, counters, plan.Cost)
			}
			if len(receipts) != 2 {
				t.Fatalf("%s: %d blocks were staged", shape, len(receipts))
			}
			for _, receipt := range receipts {
				g.expect(receipt, g.slot(stripe.RS(3, 2), receipt.Address.Slot))
			}
		}
	}
}

// Transitions, whose rows use several units, in pieces.
func TestTransitionsInPieces(t *testing.T) {
	g := newGroup(t, 0, five(t, node.Options{}), "rs(2,2),rs(3,2)", stripe.RS(2, 2), 9_999)
	plan, err := stripe.NewPlan(g.layout, stripe.RS(2, 2), stripe.RS(3, 2), "", "")
	if err != nil {
		t.Fatal(err)
	}
	requests, payloads := g.requests(plan, stamp(9), nil, nil)
	inPieces(requests, testPiece)
	receipts, _, err := g.carryOut(requests, payloads)
	if err != nil {
		t.Fatal(err)
	}
	for _, receipt := range receipts {
		g.expect(receipt, g.slot(stripe.RS(3, 2), receipt.Address.Slot))
	}
}

// Mistake 19 of the protocol, for pieces: they come several times, in any order and in spans that overlap.
func TestRepeatedAndReorderedPiecesCountOnce(t *testing.T) {
	const pieces = 7
	g := newGroup(t, 0, five(t, node.Options{}), "rep(3),rs(3,2)", stripe.Replicas(3), pieces*testPiece-5)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	source := rand.New(rand.NewPCG(seed, 0))
	for attempt := range uint64(20) {
		s := stamp(100 + attempt)
		var steps []func() error
		var receipts []block.Receipt
		part := func(message, first, end int) func() error {
			request := wire.DeliverRequest{Stamp: s, Group: g.id, Message: message, Position: 3, Offset: first * testPiece}
			return func() error {
				return g.agents[3].call(wire.OpDeliver, request, g.cells[message][first*testPiece:min(end*testPiece, g.unitBytes)], nil)
			}
		}
		for message := range 3 {
			for piece := range pieces {
				steps = append(steps, part(message, piece, piece+1))
			}
			for range 5 {
				first := source.IntN(pieces)
				steps = append(steps, part(message, first, first+1+source.IntN(pieces-first)))
			}
		}
		steps = append(steps, func() error {
			var reply wire.RunReply
			request := gather(g, s)
			request.PieceBytes = testPiece
			err := g.agents[3].call(wire.OpRun, request, nil, &reply)
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
		if err := part(1, 2, 5)(); err != nil { // and once more after the end
			t.Fatal(err)
		}
		g.expect(receipts[0], g.slot(stripe.RS(3, 2), 3))
	}
}

func TestPiecesThatDoNotFitAreRefused(t *testing.T) {
	g := newGroup(t, 0, five(t, node.Options{}), "rep(3),rs(3,2)", stripe.Replicas(3), 3*testPiece)
	ended := make(chan error, 1)
	request := gather(g, stamp(20))
	request.PieceBytes = testPiece
	go func() { ended <- g.agents[3].call(wire.OpRun, request, nil, nil) }()
	for _, c := range []struct{ offset, length int }{
		{1, testPiece}, {testPiece, testPiece - 1}, {2 * testPiece, testPiece + 1}, {-testPiece, testPiece}, {0, 0}, {0, 4 * testPiece},
		{3 * testPiece, testPiece},
	} {
		err := g.agents[3].call(wire.OpDeliver, wire.DeliverRequest{Stamp: stamp(20), Group: g.id, Position: 3, Offset: c.offset}, make([]byte, c.length), nil)
		if !errors.Is(err, wire.ErrBadRequest) {
			t.Errorf("%d bytes at %d: %v", c.length, c.offset, err)
		}
	}
	for message := range 3 {
		if err := g.deliver(stamp(20), message); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	request.Stamp, request.PieceBytes = stamp(21), 100
	request.Stage[0].Stamp = stamp(21)
	if err := g.agents[3].call(wire.OpRun, request, nil, nil); !errors.Is(err, wire.ErrBadRequest) {
		t.Errorf("pieces of 100 bytes: %v", err)
	}
}

// sink takes messages and notes what came.
type sink struct {
	mutex   sync.Mutex
	came    map[int][]byte // by offset
	old     atomic.Bool    // it knows of no messages that end before their unit does
	changed chan struct{}
}

func startSink(t *testing.T) (*sink, string) {
	t.Helper()
	s := &sink{came: map[int][]byte{}, changed: make(chan struct{}, 100)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- wire.NewServer(wire.ServerOptions{}).Serve(ctx, listener, func(_ context.Context, op wire.Op, header []byte, payload *wire.Payload) (any, []byte, func(), error) {
			var request wire.DeliverRequest
			if op == wire.OpDeliverLast && s.old.Load() {
				return nil, nil, nil, wire.ErrUnsupported
			}
			if err := wire.Decode(header, &request); err != nil || op != wire.OpDeliver && op != wire.OpDeliverLast {
				return nil, nil, nil, wire.ErrBadRequest
			}
			s.mutex.Lock()
			s.came[request.Offset] = bytes.Clone(payload.Bytes)
			s.mutex.Unlock()
			s.changed <- struct{}{}
			return nil, nil, nil, nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, listener.Addr().String()
}

// bytes returns how many bytes came.
func (s *sink) bytes() (total int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, part := range s.came {
		total += len(part)
	}
	return total
}

// hop is a program at position 1 that adds its own block to message 0 and sends the sum to position 3 at an address.
func hop(g *fixture, s block.Stamp, address string) wire.RunRequest {
	stored := g.header(1, stamp(1), 0, 1)
	return wire.RunRequest{
		Stamp: s, Group: g.id, UnitBytes: g.unitBytes, PieceBytes: testPiece,
		Program: stripe.Program{
			Position: 1,
			Inputs:   []stripe.Input{{Kind: stripe.SourceMessage}, {Kind: stripe.SourceBlock, Slot: 1}},
			Rows:     []stripe.Row{{Message: 1, Terms: []stripe.Term{{Input: 0, Coefficient: 1}, {Input: 1, Coefficient: 1}}}},
		},
		Messages: []stripe.Message{{From: 0, To: 1}, {From: 1, To: 3}},
		Peers:    map[stripe.Position]string{3: address},
		Blocks:   []wire.Source{{Slot: 1, Units: 1, Address: stored.Address()}},
	}
}

// A hop forwards what it has added up while the rest of the message is still to come.
func TestHopForwardsPieceByPiece(t *testing.T) {
	g := newGroup(t, 0, five(t, node.Options{}), "rs(3,2)", stripe.RS(3, 2), 4*testPiece)
	s, address := startSink(t)
	ended := make(chan error, 1)
	go func() { ended <- g.agents[1].call(wire.OpRun, hop(g, stamp(9), address), nil, nil) }()
	for piece := range 4 {
		from := piece * testPiece
		err := g.agents[1].call(wire.OpDeliver, wire.DeliverRequest{Stamp: stamp(9), Group: g.id, Position: 1, Offset: from}, g.cells[0][from:from+testPiece], nil)
		if err != nil {
			t.Fatal(err)
		}
		for s.bytes() < from+testPiece {
			<-s.changed
		}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for offset, part := range s.came {
		for i := range part {
			if part[i] != g.cells[0][offset+i]^g.cells[1][offset+i] {
				t.Fatalf("byte %d is not the sum", offset+i)
			}
		}
	}
}

// readAhead is a store that tells how far values were read.
type readAhead struct {
	*mem.Store
	mutex   sync.Mutex
	end     int64
	changed chan struct{}
}

func (s *readAhead) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	s.mutex.Lock()
	s.end = max(s.end, offset+int64(len(p)))
	s.mutex.Unlock()
	select {
	case s.changed <- struct{}{}:
	default: // the test has been woken already
	}
	return s.Store.ReadAt(ctx, key, p, offset)
}

func (s *readAhead) far() int64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.end
}

// A hop whose message does not come reads a buffer of its own block ahead, and goes on with the message.
func TestHopReadsNotFarAhead(t *testing.T) {
	const unit, piece, buffer = 24 << 20, 256 << 10, 1 << 20
	slow := &readAhead{Store: mem.New(0), changed: make(chan struct{}, 1)}
	agents := make([]*agent, 5)
	for i := range agents {
		var kept store.Store = mem.New(0)
		if i == 1 {
			kept = slow
		}
		agents[i] = start(t, nodeName(i), kept, node.Options{})
		agents[i].attach()
	}
	g := newGroup(t, 0, agents, "rs(3,2)", stripe.RS(3, 2), unit)
	s, address := startSink(t)
	request := hop(g, stamp(9), address)
	request.PieceBytes = piece
	ended := make(chan error, 1)
	go func() { ended <- g.agents[1].call(wire.OpRun, request, nil, nil) }()
	for slow.far() < buffer {
		<-slow.changed
	}
	for from := 0; from < unit; from += piece {
		err := g.agents[1].call(wire.OpDeliver, wire.DeliverRequest{Stamp: stamp(9), Group: g.id, Position: 1, Offset: from}, g.cells[0][from:from+piece], nil)
		if err != nil {
			t.Fatal(err)
		}
		for s.bytes() < from+piece {
			<-s.changed
		}
		// Beyond what came lies the buffer that waits to be added; the other buffer is more than the header, which values
		// begin with.
		if far, limit := slow.far(), int64(from+piece+2*buffer); far > limit {
			t.Fatalf("%d bytes were read when %d had been sent: more than %d", far, from+piece, limit)
		}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if s.bytes() != unit {
		t.Errorf("%d bytes came", s.bytes())
	}
}

// Pieces may be larger than what is read ahead: a piece that was begun is read to its end.
func TestHopWithLargePieces(t *testing.T) {
	g := newGroup(t, 0, five(t, node.Options{}), "rs(3,2)", stripe.RS(3, 2), 11<<20)
	s, address := startSink(t)
	for i, piece := range []int{0, 5 << 20} {
		request := hop(g, stamp(uint64(9+i)), address)
		request.PieceBytes = piece
		ended := make(chan error, 1)
		go func() { ended <- g.agents[1].call(wire.OpRun, request, nil, nil) }()
		if err := g.agents[1].call(wire.OpDeliver, wire.DeliverRequest{Stamp: request.Stamp, Group: g.id, Position: 1}, g.cells[0], nil); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Fatalf("pieces of %d bytes: %v", piece, err)
		}
	}
	if s.bytes() < g.unitBytes {
		t.Errorf("%d bytes came", s.bytes())
	}
}

// damage changes a byte of the block of a slot, so far from its end.
func damage(t *testing.T, g *fixture, slot, fromEnd int) {
	t.Helper()
	stored := g.header(slot, stamp(1), 0, 1)
	if !g.agents[slot].store.(*mem.Store).Damage(stored.Address().Key(), func(value []byte) []byte {
		value[len(value)-fromEnd] ^= 1
		return value
	}) {
		t.Fatal("there is no block to damage")
	}
}

// A block that is found damaged ends the run, and what was sent before that is not the whole of a message, so nobody
// completes a sum with it.
func TestDamagedUnitEndsTheRun(t *testing.T) {
	g := newGroup(t, 0, five(t, node.Options{}), "rs(3,2)", stripe.RS(3, 2), 4*testPiece)
	damage(t, g, 1, 3*testPiece)
	s, address := startSink(t)
	ended := make(chan error, 1)
	go func() { ended <- g.agents[1].call(wire.OpRun, hop(g, stamp(9), address), nil, nil) }()
	err := g.agents[1].call(wire.OpDeliver, wire.DeliverRequest{Stamp: stamp(9), Group: g.id, Position: 1}, g.cells[0], nil)
	if err != nil && !errors.Is(err, wire.ErrNotFound) { // the run may have ended already
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, wire.ErrCorrupt) {
		t.Errorf("the run ended with %v, want a damaged block", err)
	}
	if s.bytes() == g.unitBytes {
		t.Error("the whole of a sum left the node")
	}
}

// Pieces that an agent gathered before it restarted are void: the same run, asked for again, is not complete with those
// that come after.
func TestPiecesBeforeARestartAreVoid(t *testing.T) {
	g := newGroup(t, 0, five(t, node.Options{}), "rep(3),rs(3,2)", stripe.Replicas(3), 2*testPiece)
	part := func(message, piece int) error {
		request := wire.DeliverRequest{Stamp: stamp(20), Group: g.id, Message: message, Position: 3, Offset: piece * testPiece}
		return g.agents[3].call(wire.OpDeliver, request, g.cells[message][piece*testPiece:(piece+1)*testPiece], nil)
	}
	request := gather(g, stamp(20))
	request.PieceBytes = testPiece
	run := func() <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- g.agents[3].call(wire.OpRun, request, nil, nil) }()
		return ended
	}
	first := run()
	for message := range 3 {
		if err := part(message, 0); err != nil {
			t.Fatal(err)
		}
	}
	g.agents[3].restart()
	if err := <-first; err == nil {
		t.Fatal("a run whose agent restarted succeeded")
	}
	g.agents[3].attach()
	second := run()
	for message := range 3 {
		if err := part(message, 1); err != nil {
			t.Fatal(err)
		}
	}
	for message := range 2 {
		if err := part(message, 0); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-second:
		t.Fatalf("without a piece the run ended: %v", err)
	default:
	}
	if err := part(2, 0); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
}
