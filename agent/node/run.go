package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/trace"
	"github.com/restripe/restripe/agent/wire"
)

// run carries out one program as a dataflow: every row has an accumulator, made strip by strip; inputs are added to the
// rows that use them as they come, piece by piece, stored units by the reader and messages by Deliver, each piece exactly
// once. A piece of a row that has all its inputs is sent on, and a strip of a message is given back when all of it is
// acknowledged; a row that is complete is stored with the rest of its block. Nothing here waits for anything but what it
// needs, so the runs of a plan, whose rows can be ordered, finish in any order of arrival.
//
// Pieces of a stored unit are passed on before the whole unit was compared with its checksum, but for the last one: so
// nothing is ever complete, here or at those it was sent to, before all of its inputs are verified.
type run struct {
	name    runName
	program *program

	// Under runs.mutex.
	waiters int
	over    bool
	reply   wire.RunReply
	err     error

	ctx     context.Context
	cancel  context.CancelCauseFunc // the first cause counts
	started chan struct{}           // closed once messages are taken
	ended   chan struct{}           // closed once reply and err are there

	mutex     sync.Mutex
	open      bool       // accumulators are there
	rows      [][][]byte // the strips of each row; nil where nothing was added yet, and of messages what was acknowledged
	buffers   [][]byte   // of the staged slots: room for the header, then the units
	needs     []int32    // inputs each piece of each row still waits for, row by row; passedOn once it is in the queue
	rowLeft   []int      // pieces of each row still to be completed or, of messages, to be acknowledged
	stripLeft [][]int    // of that, by strip of a message
	pieceLeft []int      // of messages: pieces of each row still to be completed
	unknown   []int      // of messages: terms of each row of which it is not known yet how long they are
	reach     []int      // of messages: the longest of those of which it is
	left      []int      // rows each slot still waits for
	delivered []bool     // of each input that is a message: all of it was counted
	partial   map[int]*arrived
	scratch   [][]byte
	dispatch  *dataflow // while open
	results   int       // messages and slots still to be done
	queue     []span    // to be sent
	senders   int
	passed    chan struct{} // of capacity 1: pieces came or were acknowledged
	trouble   error         // of the last delivery that failed, for the report
	complete  chan struct{}
	counters  wire.Counters
	receipts  wire.RunReply
	tasks     sync.WaitGroup
}

func newRun(ctx context.Context, name runName, p *program) *run {
	ctx, cancel := context.WithCancelCause(ctx)
	return &run{
		name: name, program: p, ctx: ctx, cancel: cancel,
		started: make(chan struct{}), ended: make(chan struct{}), complete: make(chan struct{}), passed: make(chan struct{}, 1),
	}
}

func (r *run) hasStarted() bool {
	select {
	case <-r.started:
		return true
	case <-r.ended:
		return true
	default:
		return false
	}
}

// worker carries out this node's part of plans: it takes programs and messages, reads what it is to read, and stores what it
// is to store.
type worker struct {
	*background
	id       block.NodeID
	identity *identity
	reader   *reader
	blocks   *blocks
	runs     *runs
	peers    *peers
	pool     *kernel.Pool
	counters *counters

	runBytes    int64
	admitWait   time.Duration
	deliverWait time.Duration
	runTime     time.Duration
}

func (w *worker) run(ctx context.Context, request *wire.RunRequest, payload []byte) (any, error) {
	under, err := w.identity.attached(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.identity.obeys.checkWrite(ctx, request.Stamp); err != nil {
		return nil, err
	}
	p, err := compile(w.blocks, request, len(payload))
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", w.id, err)
	}
	r, fresh := w.runs.enter(trace.Carry(w.ctx, ctx), runName{request.Stamp, request.Group, request.Program.Position}, p)
	defer w.runs.leave(r)
	if fresh {
		own := append([]byte(nil), payload...) // the run may outlive this call
		w.work.Add(1)
		go func() {
			wire.GrowStack()
			defer w.work.Done()
			w.execute(r, under, own)
		}()
	}
	select {
	case <-r.ended:
		reply, err := w.runs.outcome(r)
		return reply, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// execute runs r to its end and records the outcome.
func (w *worker) execute(r *run, under *serving, payload []byte) {
	ctx, stop := context.WithTimeoutCause(r.ctx, w.runTime, fmt.Errorf("%s: %w: it took longer than %s", r.name, wire.ErrCancelled, w.runTime))
	defer r.cancel(nil)
	defer stop()
	ctx, span := trace.Within(ctx, "run")
	reply, err := w.perform(ctx, r, under, payload)
	if err != nil {
		if ctx.Err() != nil { // the first cause explains more than what it led to
			err = context.Cause(ctx)
		}
		if r.trouble != nil && errors.Is(err, wire.ErrCancelled) {
			err = fmt.Errorf("%w; the last delivery failed: %w", err, plain(r.trouble))
		}
		err = fmt.Errorf("node %s: %s: %w", w.id, r.name, err)
	}
	span.Int("restripe.blocks.read", r.counters.BlocksRead).Int("restripe.blocks.sent", r.counters.BlocksSent).
		Int("restripe.blocks.written", r.counters.BlocksWritten).End(err)
	w.counters.add(wire.Counters{BlocksSent: r.counters.BlocksSent, BytesSent: r.counters.BytesSent})
	r.slim()
	w.runs.finish(r, reply, err)
}

// slim drops what only a run under way needs, and keeps what answers repeated messages.
func (r *run) slim() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.program = &program{unitBytes: r.program.unitBytes, pieces: r.program.pieces, messages: r.program.messages}
	r.needs, r.rowLeft, r.stripLeft, r.left, r.partial, r.queue = nil, nil, nil, nil, nil, nil
}

// plain takes the class from an error, so that it only informs.
func plain(err error) error { return errors.New(err.Error()) }

// perform gathers, sends and stores. When it returns nothing touches the run's buffers any more.
func (w *worker) perform(ctx context.Context, r *run, under *serving, payload []byte) (wire.RunReply, error) {
	sources, err := w.find(ctx, r.program)
	if err != nil {
		return wire.RunReply{}, w.identity.judge(ctx, under, err)
	}
	if err := w.admit(ctx, r.program.bytes); err != nil {
		return wire.RunReply{}, err
	}
	defer w.runs.room.Release(r.program.bytes)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d := &dataflow{worker: w, run: r, under: under, ctx: ctx, fail: cancel}
	d.open(sources)
	defer d.close()
	d.task(func() error { return d.readLocal(sources, payload) })
	d.task(d.copyLocal)
	select {
	case <-r.complete:
		r.tasks.Wait()
		if ctx.Err() != nil {
			return wire.RunReply{}, context.Cause(ctx)
		}
		r.receipts.Counters = r.counters
		if r.receipts.Inspected, err = w.inspectFor(ctx, r.program); err != nil {
			return wire.RunReply{}, err
		}
		return r.receipts, nil
	case <-ctx.Done():
		return wire.RunReply{}, context.Cause(ctx)
	}
}

// inspectFor inspects the blocks that a program's request names, and returns the receipts of those that are there.
func (w *worker) inspectFor(ctx context.Context, p *program) ([]block.Receipt, error) {
	if len(p.request.Inspect) == 0 {
		return nil, nil
	}
	found, err := w.blocks.inspect(ctx, wire.InspectRequest{Addresses: p.request.Inspect})
	return found.Receipts, err
}

// admit waits a bounded time for room to gather in.
func (w *worker) admit(ctx context.Context, bytes int64) error {
	if bytes > w.runBytes {
		return fmt.Errorf("%w: it gathers %d bytes, runs may take %d together; use smaller groups or give the agent more memory", wire.ErrTooLarge, bytes, w.runBytes)
	}
	if w.runs.room.TryAcquire(bytes) {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, w.admitWait)
	defer cancel()
	if err := w.runs.room.Acquire(waiting, bytes); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w: other runs take the memory for %s", wire.ErrBusy, w.admitWait)
	}
	return nil
}
