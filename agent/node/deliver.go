package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/wire"
)

func (w *worker) deliver(ctx context.Context, request wire.DeliverRequest, last bool, payload *wire.Payload) error {
	if _, err := w.identity.attached(ctx); err != nil {
		return err
	}
	r, err := w.runs.await(ctx, runName{request.Stamp, request.Group, request.Position}, len(payload.Bytes), w.deliverWait)
	if err == nil {
		err = r.take(request.Message, request.Offset, last, payload)
	}
	if err != nil {
		return fmt.Errorf("node %s: %w", w.id, err)
	}
	return nil
}

const (
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// send delivers complete pieces of a row and repeats them until they are acknowledged or the run ends: the other side
// counts each once. It returns how many bytes that took.
func (d *dataflow) send(next span) (bytes int, err error) {
	p := d.run.program
	message := p.request.Program.Rows[next.row].Message
	from, to := p.pieces.start(next.first), p.pieces.start(next.first+next.count)
	var part []byte
	d.run.mutex.Lock()
	if next.last {
		to = max(from, d.run.ends(next.row))
	}
	if !next.last || d.run.rows[next.row][d.run.strip(next.first)] != nil {
		part = d.run.at(next.row, from, to-from)
	}
	d.run.mutex.Unlock()
	op := wire.OpDeliver
	if next.last {
		part = part[:block.Trim(part)]
		if from+len(part) < p.unitBytes { // else there is nothing that it would say
			op = wire.OpDeliverLast
		}
	}
	return len(part), d.resend(op, message, from, part)
}

// resend delivers a part of a message, from offset on.
func (d *dataflow) resend(op wire.Op, message, offset int, part []byte) error {
	p := d.run.program
	to := p.request.Messages[message].To
	client := d.worker.peers.client(p.request.Peers[to])
	request := wire.DeliverRequest{Stamp: p.request.Stamp, Group: p.request.Group, Message: message, Position: to, Offset: offset}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		_, err := client.Call(d.ctx, op, request, part, nil)
		if err == nil {
			return nil
		}
		if d.ctx.Err() != nil {
			return context.Cause(d.ctx)
		}
		if !passing(err) {
			return fmt.Errorf("delivering message %d to position %d: %w", message, to, err)
		}
		d.run.mutex.Lock()
		d.run.trouble = err
		d.run.mutex.Unlock()
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-d.ctx.Done():
			timer.Stop()
			return context.Cause(d.ctx)
		}
	}
}

// passing reports whether a delivery may yet succeed: the peer, its store or its run are not there now.
func passing(err error) bool {
	for _, class := range []error{wire.ErrUnreachable, wire.ErrNotFound, wire.ErrBusy, wire.ErrDown, wire.ErrUnregistered, wire.ErrCancelled} {
		if errors.Is(err, class) {
			return true
		}
	}
	return false
}
