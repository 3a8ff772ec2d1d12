package node_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// delivery tells one part of a message from others.
type delivery struct {
	stamp   block.Stamp
	message int
	offset  int
}

// recorder notes what agents write to one another, by the frames that go over their connections.
type recorder struct {
	mutex  sync.Mutex
	parts  map[delivery]int // bytes of payload; a repetition is no part of its own
	lasts  map[delivery]bool
	frames int64
}

func (r *recorder) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	return &recorded{Conn: conn, recorder: r}, err
}

// recorded is a connection on which one goroutine writes at a time.
type recorded struct {
	net.Conn
	recorder *recorder
	written  []byte
}

func (c *recorded) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written = append(c.written, p[:n]...)
	for len(c.written) >= wire.PrefixBytes {
		frame := wire.Peek(c.written)
		if len(c.written) < frame.Bytes {
			break
		}
		c.recorder.note(frame, c.written[:frame.Bytes])
		c.written = c.written[frame.Bytes:]
	}
	return n, err
}

func (r *recorder) note(frame wire.Glimpse, whole []byte) {
	last := frame.Op == wire.OpDeliverLast
	if !frame.Request || frame.Op != wire.OpDeliver && !last {
		return
	}
	headerBytes := int(binary.LittleEndian.Uint32(whole[16:]))
	var request wire.DeliverRequest
	if err := wire.Decode(whole[wire.PrefixBytes:][:headerBytes], &request); err != nil {
		panic(err)
	}
	name := delivery{request.Stamp, request.Message, request.Offset}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.parts == nil {
		r.parts, r.lasts = map[delivery]int{}, map[delivery]bool{}
	}
	r.parts[name] = frame.Bytes - wire.PrefixBytes - headerBytes
	r.lasts[name] = last
	r.frames += int64(frame.Bytes)
}

// take returns the bytes of each message of an attempt, and which of them were said to end.
func (r *recorder) take(s block.Stamp) (sent map[int]int, ended map[int]bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	sent, ended = map[int]int{}, map[int]bool{}
	for name, size := range r.parts {
		if name.stamp == s {
			sent[name.message] += size
			ended[name.message] = ended[name.message] || r.lasts[name]
		}
	}
	return sent, ended
}

// filled is a unit that begins with length bytes, none of which is zero.
func filled(seed uint64, length, unitBytes int) []byte {
	unit := make([]byte, unitBytes)
	for i, b := range random(seed, length) {
		unit[i] = max(b, 1)
	}
	return unit
}

// operation is a plan over a group, bound to its nodes.
type operation struct {
	*fixture
	plan    *stripe.Plan
	patches []wire.Patch
	patched []byte              // bytes of the patches
	fresh   [][]byte            // cells as they are to be
	copies  map[int][]wire.Copy // by column, of a splice
	to      stripe.Scheme
	piece   int
}

// lengths computes every message of the plan by definition, and with it how many bytes of it are to be sent where it is sent short to
// the positions that know of that. Where terms cancel one another so far that whole pieces of zeros may have left before the end was found,
// it is what was sent, if that lies between what is there and those: they leave up to the piece in which the longest term ends, and with
// them such pieces of a message that came in, as they came before its end did.
func (o *operation) lengths(knows func(stripe.Position) bool, sent map[int]int) []int {
	values, lengths := make([][]byte, len(o.plan.Messages)), make([]int, len(o.plan.Messages))
	piece := o.piece
	if piece == 0 || piece > o.unitBytes {
		piece = o.unitBytes
	}
	var compute func(message int)
	compute = func(message int) {
		if values[message] != nil {
			return
		}
		for _, program := range o.plan.Programs {
			at := slices.IndexFunc(program.Rows, func(r stripe.Row) bool { return r.Message == message })
			if at < 0 {
				continue
			}
			sum, reach, zeros := make([]byte, o.unitBytes), 0, 0
			for _, term := range program.Rows[at].Terms {
				input := program.Inputs[term.Input]
				var value []byte
				length := -1
				switch input.Kind {
				case stripe.SourceMessage:
					compute(input.Message)
					value, length = values[input.Message], lengths[input.Message]
					if length > block.Trim(value) {
						zeros = max(zeros, length)
					}
				case stripe.SourceBlock:
					value = o.slot(o.plan.From, input.Slot)[input.Unit]
				case stripe.SourceCopy:
					value = o.fresh[input.Unit*o.layout.Columns+input.Slot]
				case stripe.SourcePatch:
					cell := input.Unit*o.layout.Columns + input.Slot
					value, length = bytes.Clone(o.cells[cell]), 0
					kernel.MultiplyAdd(1, o.fresh[cell], value)
					for _, patch := range o.patches {
						if patch.Slot == input.Slot && patch.Unit == input.Unit {
							length = max(length, patch.Offset+patch.Length)
						}
					}
				}
				if length < 0 {
					length = block.Trim(value)
				}
				reach = max(reach, length)
				kernel.MultiplyAdd(term.Coefficient, value, sum)
			}
			values[message], lengths[message] = sum, block.Trim(sum)
			if most := max(zeros, (max(reach, 1)-1)/piece*piece); lengths[message] < most {
				lengths[message] = min(max(sent[message], lengths[message]), most)
			}
			if !knows(o.plan.Messages[message].To) {
				lengths[message] = o.unitBytes
			}
		}
	}
	for message := range o.plan.Messages {
		compute(message)
	}
	return lengths
}

// carryOutKnowing carries the operation out where the agents at those positions are known to take short messages, compares
// what is staged with the definition, and what is sent, message by message, with what has to be.
func (o *operation) carryOutKnowing(s block.Stamp, wires *recorder, knows func(stripe.Position) bool) (sent int) {
	o.t.Helper()
	requests, payloads := o.requests(o.plan, s, o.patches, o.patched)
	for i := range requests {
		r := &requests[i]
		r.PieceBytes, r.Speaks = o.piece, map[stripe.Position]uint8{}
		for position := range r.Peers {
			if knows(position) {
				r.Speaks[position] = wire.VersionShort
			}
		}
		r.Copies = o.copies[int(r.Program.Position)]
	}
	receipts, counters, err := o.carryOut(requests, payloads)
	if err != nil {
		o.t.Fatal(err)
	}
	got, ended := wires.take(s)
	want := o.lengths(knows, got)
	for message, length := range want {
		if got[message] != length || ended[message] != (length < o.unitBytes) {
			o.t.Errorf("message %d of plan %s, %+v, takes %d bytes and says that it ends: %v; want %d of units of %d, in pieces of %d",
				message, o.plan.Planner, o.plan.Messages[message], got[message], ended[message], length, o.unitBytes, o.piece)
		}
		sent += length
	}
	if int(counters.BytesSent) != sent || int(counters.BlocksSent) != o.plan.Cost.BlocksSent {
		o.t.Errorf("counted are %+v, want %d bytes and the plan's %d blocks sent", counters, sent, o.plan.Cost.BlocksSent)
	}
	if len(receipts) == 0 {
		o.t.Fatal("nothing was staged")
	}
	after := &fixture{t: o.t, agents: o.agents, layout: o.layout, unitBytes: o.unitBytes, cells: o.fresh}
	for _, receipt := range receipts {
		after.expect(receipt, after.slot(o.to, receipt.Address.Slot))
	}
	return sent
}

// drawOperation makes a group with cells of any lengths and something to be done with it.
func drawOperation(t *testing.T, rt *rapid.T, agents []*agent, index uint32) *operation {
	t.Helper()
	unitBytes := rapid.SampledFrom([]int{1, 100, 4 << 10, 8 << 10, 20_001, 300_000}).Draw(rt, "unit")
	o := &operation{piece: rapid.SampledFrom([]int{0, min(4<<10, unitBytes), 5000, 64 << 10, 1 << 20}).Draw(rt, "piece")}
	length := rapid.OneOf(rapid.Just(0), rapid.Just(unitBytes), rapid.IntRange(0, unitBytes), rapid.IntRange(0, max(1, unitBytes/8)))
	shape := rapid.SampledFrom([][3]string{
		{"rep(3),rs(3,2)", "rep(3)", "rs(3,2)"}, {"rep(3),rs(3,2)", "rs(3,2)", "rep(3)"}, {"rs(2,2),rs(3,2)", "rs(2,2)", "rs(3,2)"},
		{"rs(2,2),rs(3,2)", "rs(3,2)", "rs(2,2)"}, {"rs(2,1),rs(3,2)", "rs(2,1)", "rs(3,2)"}, {"rs(3,2),rs(6,2)", "rs(3,2)", "rs(6,2)"},
	}).Draw(rt, "shape")
	from, to := scheme(t, shape[1]), scheme(t, shape[2])
	kind := rapid.SampledFrom([]string{"transition", "repair", "update", "splice"}).Draw(rt, "kind")
	o.fixture = newGroupOf(t, index, agents, shape[0], from, unitBytes, func(cell int) []byte {
		return filled(uint64(index)<<8+uint64(cell), length.Draw(rt, "length"), unitBytes)
	})
	o.to, o.fresh = from, o.cells
	var err error
	switch kind {
	case "transition":
		o.to = to
		objective := rapid.SampledFrom([]stripe.Objective{stripe.LeastNetwork, ""}).Draw(rt, "objective")
		o.plan, err = stripe.NewPlan(o.layout, from, to, "restripe", objective)
	case "repair":
		lost := []int{rapid.IntRange(0, o.layout.Columns-1).Draw(rt, "lost")}
		if from.M > 1 && rapid.Bool().Draw(rt, "two") {
			lost = append(lost, o.layout.Columns+rapid.IntRange(0, from.M-1).Draw(rt, "parity"))
		}
		o.plan, err = stripe.NewShapedRepairPlan(o.layout, from, rapid.SampledFrom(stripe.RepairShapes()).Draw(rt, "repair"), lost, nil)
		o.lose(lost...)
	case "update":
		o.fresh = nil
		var cells []int
		for cell, was := range o.cells {
			now := bytes.Clone(was)
			if cell == 0 || rapid.Bool().Draw(rt, "updated") {
				patch := wire.Patch{Slot: cell % o.layout.Columns, Unit: cell / o.layout.Columns}
				patch.Offset = rapid.IntRange(0, unitBytes-1).Draw(rt, "offset")
				patch.Length = rapid.IntRange(1, unitBytes-patch.Offset).Draw(rt, "bytes")
				part := make([]byte, patch.Length) // of zeros, or
				if rapid.Bool().Draw(rt, "fresh") {
					part = filled(uint64(index)<<8+200+uint64(cell), patch.Length, patch.Length)
				}
				copy(now[patch.Offset:], part)
				o.patches, o.patched, cells = append(o.patches, patch), append(o.patched, part...), append(cells, cell)
			}
			o.fresh = append(o.fresh, now)
		}
		o.plan, err = stripe.NewUpdatePlan(o.layout, from, cells)
	case "splice":
		o.fresh, o.copies = nil, map[int][]wire.Copy{}
		for range o.cells {
			o.fresh = append(o.fresh, make([]byte, unitBytes))
		}
		for cell, into := range o.fresh {
			for at := 0; at < unitBytes && rapid.Bool().Draw(rt, "copied"); {
				row, column := rapid.IntRange(0, o.layout.Rows-1).Draw(rt, "row"), cell%o.layout.Columns
				part := wire.Copy{
					Slot: column, Unit: cell / o.layout.Columns, Source: row, Address: o.address(column, stamp(1)),
					Offset: rapid.IntRange(at, unitBytes-1).Draw(rt, "offset"), From: rapid.IntRange(0, unitBytes-1).Draw(rt, "from"),
				}
				part.Length = rapid.IntRange(1, unitBytes-max(part.Offset, part.From)).Draw(rt, "bytes")
				copy(into[part.Offset:], o.cells[row*o.layout.Columns+column][part.From:part.From+part.Length])
				o.copies[column], at = append(o.copies[column], part), part.Offset+part.Length
			}
		}
		o.written = map[int]block.Stamp{}
		o.plan, err = stripe.NewSplicePlan(o.layout, from)
	}
	if err != nil {
		rt.Fatalf("there is no such plan: %v", err)
	}
	return o
}

func scheme(t *testing.T, text string) stripe.Scheme {
	t.Helper()
	parsed, err := stripe.ParseScheme(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func everybody(stripe.Position) bool { return true }

func nobody(stripe.Position) bool { return false }

// Whatever is done with groups of any contents, in pieces of any size, ends in the same bytes whether all, some or none of the agents
// are known to take short messages; and exactly the bytes that are there are sent to those that are, whole units to the others.
func TestMessagesCarryWhatIsThere(t *testing.T) {
	wires := &recorder{}
	agents := several(t, 9, node.Options{Dial: wires.dial})
	index := uint32(0)
	rapid.Check(t, func(rt *rapid.T) {
		index++
		o := drawOperation(t, rt, agents, index)
		sequence := 1000 * uint64(index)
		short := o.carryOutKnowing(stamp(sequence), wires, everybody)
		whole := o.carryOutKnowing(stamp(sequence+1), wires, nobody)
		if whole != o.plan.Cost.BlocksSent*o.unitBytes || short > whole {
			t.Errorf("%d bytes are sent short and %d whole, of %d messages of %d", short, whole, o.plan.Cost.BlocksSent, o.unitBytes)
		}
		old := rapid.SliceOfN(rapid.IntRange(0, len(agents)-1), 0, 4).Draw(rt, "old")
		o.carryOutKnowing(stamp(sequence+2), wires, func(p stripe.Position) bool { return !slices.Contains(old, int(p)) })
	})
}

// A group with cells of 8 KiB of which one column has one object of 1 KiB, and the others have none.
func TestALoneObjectIsSentAsLongAsItIs(t *testing.T) {
	const unitBytes, object = 8 << 10, 1 << 10
	wires := &recorder{}
	agents := several(t, 8, node.Options{Dial: wires.dial})
	lone := func(index uint32, column int) *operation {
		g := newGroupOf(t, index, agents, "rs(3,2),rs(6,2)", stripe.RS(6, 2), unitBytes, func(cell int) []byte {
			if cell == column {
				return filled(1, object, unitBytes)
			}
			return make([]byte, unitBytes)
		})
		return &operation{piece: 4 << 10, fixture: g}
	}
	for i, c := range []struct {
		name   string
		column int
		plan   func(o *operation) (*stripe.Plan, error)
		sent   int
	}{
		{"transition", 4, func(o *operation) (*stripe.Plan, error) {
			o.to = stripe.RS(3, 2)
			return stripe.NewPlan(o.layout, stripe.RS(6, 2), stripe.RS(3, 2), "restripe", stripe.LeastNetwork)
		}, 2 * object}, // to the two parities of the stripe that the column is in then
		{"repair of a parity", 0, func(o *operation) (*stripe.Plan, error) {
			o.lose(7)
			return stripe.NewShapedRepairPlan(o.layout, o.to, stripe.RepairStar, []int{7}, nil)
		}, object},
		{"repair by a chain", 0, func(o *operation) (*stripe.Plan, error) {
			o.lose(0)
			return stripe.NewShapedRepairPlan(o.layout, o.to, stripe.RepairChain, []int{0}, nil)
		}, object}, // which the parity at the end of the chain has, while all others are zeros
		{"update", 0, func(o *operation) (*stripe.Plan, error) {
			o.patches, o.patched = []wire.Patch{{Slot: 2, Offset: 100, Length: 10}}, filled(9, 10, 10)
			o.fresh = slices.Clone(o.cells)
			o.fresh[2] = slices.Concat(make([]byte, 100), o.patched, make([]byte, unitBytes-110))
			return stripe.NewUpdatePlan(o.layout, o.to, []int{2})
		}, 2 * 110},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := lone(uint32(i), c.column)
			o.to, o.fresh = stripe.RS(6, 2), o.cells
			plan, err := c.plan(o)
			if err != nil {
				t.Fatal(err)
			}
			o.plan = plan
			sent := o.carryOutKnowing(stamp(uint64(100+i)), wires, everybody)
			t.Logf("%d bytes of %d messages, %d if they were whole", sent, plan.Cost.BlocksSent, plan.Cost.BlocksSent*unitBytes)
			if sent != c.sent {
				t.Errorf("%d bytes were sent, want %d", sent, c.sent)
			}
		})
	}
}

// Messages come with their ends in either form, in pieces of any size, several times and in any order, and each piece is counted once.
func TestEndsAreCountedOnce(t *testing.T) {
	agents := five(t, node.Options{})
	sequence := uint64(100)
	rapid.Check(t, func(rt *rapid.T) {
		sequence++
		s := stamp(sequence)
		unitBytes := rapid.SampledFrom([]int{10, 4 << 10, 3*testPiece - 5, 7 * testPiece, 300_001}).Draw(rt, "unit")
		piece := rapid.SampledFrom([]int{min(testPiece, unitBytes), 5001, 64 << 10}).Draw(rt, "piece")
		piece = min(piece, unitBytes)
		count := (unitBytes + piece - 1) / piece
		g := newGroupOf(t, uint32(sequence), agents, "rep(3),rs(3,2)", stripe.Replicas(3), unitBytes, func(cell int) []byte {
			length := rapid.OneOf(rapid.Just(0), rapid.Just(unitBytes), rapid.IntRange(0, unitBytes)).Draw(rt, "length")
			return filled(sequence<<4+uint64(cell), length, unitBytes)
		})
		deliver := func(op wire.Op, message, from, to int) func() error {
			request := wire.DeliverRequest{Stamp: s, Group: g.id, Message: message, Position: 3, Offset: from}
			return func() error { return g.agents[3].call(op, request, g.cells[message][from:to], nil) }
		}
		var steps []func() error
		for message := range 3 {
			length := block.Trim(g.cells[message])
			last := func() func() error { // from any piece on that has all that is there behind it
				from := rapid.IntRange(0, min(length/piece, count-1)).Draw(rt, "last") * piece
				to := rapid.IntRange(max(from, length), unitBytes).Draw(rt, "end")
				if from == min(length/piece, count-1)*piece {
					to = max(from, length)
				}
				return deliver(wire.OpDeliverLast, message, from, to)
			}
			short := rapid.Bool().Draw(rt, "short")
			for at := range count { // all of it once, in one form or the other
				if short && at == length/piece {
					steps = append(steps, deliver(wire.OpDeliverLast, message, at*piece, length))
					break
				}
				steps = append(steps, deliver(wire.OpDeliver, message, at*piece, min((at+1)*piece, unitBytes)))
			}
			for range rapid.IntRange(0, 4).Draw(rt, "again") {
				if rapid.Bool().Draw(rt, "in short") {
					steps = append(steps, last())
					continue
				}
				first := rapid.IntRange(0, count-1).Draw(rt, "first")
				end := rapid.IntRange(first+1, count).Draw(rt, "before")
				steps = append(steps, deliver(wire.OpDeliver, message, first*piece, min(end*piece, unitBytes)))
			}
		}
		var receipts []block.Receipt
		steps = append(steps, func() error {
			var reply wire.RunReply
			request := gather(g, s)
			request.PieceBytes = piece
			err := g.agents[3].call(wire.OpRun, request, nil, &reply)
			receipts = reply.Receipts
			return err
		})
		seed := rapid.Uint64().Draw(rt, "order")
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		var workers errgroup.Group
		for _, step := range steps {
			workers.Go(step)
		}
		if err := workers.Wait(); err != nil {
			rt.Fatal(err)
		}
		if err := deliver(wire.OpDeliverLast, 1, 0, block.Trim(g.cells[1]))(); err != nil { // and once more after the end
			rt.Fatal(err)
		}
		g.expect(receipts[0], g.slot(stripe.RS(3, 2), 3))
	})
}

func TestEndsThatDoNotFitAreRefused(t *testing.T) {
	g := newGroup(t, 0, five(t, node.Options{}), "rep(3),rs(3,2)", stripe.Replicas(3), 3*testPiece)
	ended := make(chan error, 1)
	request := gather(g, stamp(20))
	request.PieceBytes = testPiece
	go func() { ended <- g.agents[3].call(wire.OpRun, request, nil, nil) }()
	last := func(message, offset int, payload []byte) error {
		request := wire.DeliverRequest{Stamp: stamp(20), Group: g.id, Message: message, Position: 3, Offset: offset}
		return g.agents[3].call(wire.OpDeliverLast, request, payload, nil)
	}
	for _, c := range []struct{ message, offset, length int }{
		{0, 1, testPiece}, {0, -testPiece, testPiece}, {0, 3 * testPiece, 0}, {0, 2 * testPiece, testPiece + 1}, {0, 0, 4 * testPiece},
		{0, -1 << 62, 0}, {3, 0, 0}, {-1, 0, 0},
	} {
		if err := last(c.message, c.offset, make([]byte, c.length)); !errors.Is(err, wire.ErrBadRequest) {
			t.Errorf("%d bytes at %d of message %d: %v", c.length, c.offset, c.message, err)
		}
	}
	for message := range 3 {
		if err := last(message, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// The end of a message leaves only when every unit in it was compared with its checksum, also where a unit is short and
// all that is stored of it was read before.
func TestTheEndOfADamagedUnitIsNotSent(t *testing.T) {
	const stored = 3 * testPiece
	g := newGroupOf(t, 0, five(t, node.Options{}), "rs(3,2)", stripe.RS(3, 2), 8*testPiece, func(cell int) []byte {
		return filled(uint64(cell), stored, 8*testPiece)
	})
	damage(t, g, 1, stored)
	s, address := startSink(t)
	request := hop(g, stamp(9), address)
	request.Speaks = map[stripe.Position]uint8{3: wire.VersionShort}
	ended := make(chan error, 1)
	go func() { ended <- g.agents[1].call(wire.OpRun, request, nil, nil) }()
	err := g.agents[1].call(wire.OpDeliverLast, wire.DeliverRequest{Stamp: stamp(9), Group: g.id, Position: 1}, g.cells[0][:stored], nil)
	if err != nil && !errors.Is(err, wire.ErrNotFound) { // the run may have ended already
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, wire.ErrCorrupt) {
		t.Errorf("the run ended with %v, want a damaged block", err)
	}
	if s.bytes() >= stored {
		t.Error("the end of a sum left the node")
	}
}

// An agent that refuses what it was said to know ends the run at once, rather than have it wait for what does not come.
func TestAnAgentOfTheReleaseBeforeRefusesAnEnd(t *testing.T) {
	g := newGroupOf(t, 0, five(t, node.Options{}), "rs(3,2)", stripe.RS(3, 2), 2*testPiece, func(cell int) []byte {
		return filled(uint64(cell), 10, 2*testPiece)
	})
	s, address := startSink(t)
	s.old.Store(true)
	request := hop(g, stamp(9), address)
	request.Speaks = map[stripe.Position]uint8{3: wire.VersionShort}
	ended := make(chan error, 1)
	go func() { ended <- g.agents[1].call(wire.OpRun, request, nil, nil) }()
	err := g.agents[1].call(wire.OpDeliverLast, wire.DeliverRequest{Stamp: stamp(9), Group: g.id, Position: 1}, nil, nil)
	if err != nil && !errors.Is(err, wire.ErrNotFound) { // the run may have ended already
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, wire.ErrUnsupported) {
		t.Errorf("the run ended with %v, want ErrUnsupported", err)
	}
	request = hop(g, stamp(10), address) // which does not say what it knows
	go func() { ended <- g.agents[1].call(wire.OpRun, request, nil, nil) }()
	if err := g.agents[1].call(wire.OpDeliverLast, wire.DeliverRequest{Stamp: stamp(10), Group: g.id, Position: 1}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if s.bytes() != g.unitBytes {
		t.Errorf("%d bytes came, want all %d", s.bytes(), g.unitBytes)
	}
}

// What a message does not want, as it lies behind its end, is read on without waiting for acknowledgements that cannot come.
func TestTheReaderGoesOnBehindTheEndOfAMessage(t *testing.T) {
	wires := &recorder{}
	agents := five(t, node.Options{Dial: wires.dial})
	const unitBytes = 5 << 20
	o := &operation{piece: 64 << 10, to: stripe.RS(3, 2), fixture: newGroup(t, 0, agents, "rs(3,2)", stripe.RS(3, 2), unitBytes)}
	o.patches, o.patched = []wire.Patch{{Slot: 1, Offset: 5, Length: 100}}, filled(3, 100, 100)
	o.fresh = slices.Clone(o.cells)
	o.fresh[1] = bytes.Clone(o.cells[1])
	copy(o.fresh[1][5:], o.patched)
	var err error
	if o.plan, err = stripe.NewUpdatePlan(o.layout, o.to, []int{1}); err != nil {
		t.Fatal(err)
	}
	if sent := o.carryOutKnowing(stamp(9), wires, everybody); sent > 2*105 {
		t.Errorf("%d bytes were sent", sent)
	}
}
