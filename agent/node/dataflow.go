package node

import (
	"context"
	"crypto/subtle"
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/wire"
)

// senders is how many messages of one run are on their way at a time.
const senders = 8

// dataflow is what moves a run's data while it is performed.
type dataflow struct {
	node  *Node
	run   *run
	under *serving
	ctx   context.Context
	fail  context.CancelCauseFunc
}

// task runs work beside the others; its error ends the run.
func (d *dataflow) task(work func() error) {
	d.run.tasks.Add(1)
	go func() {
		defer d.run.tasks.Done()
		if err := work(); err != nil {
			d.fail(err)
		}
	}()
}

// open makes the accumulators and lets messages in.
func (d *dataflow) open() {
	r, p := d.run, d.run.program
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.rows, r.scratch = make([][]byte, len(p.places)), make([][]byte, len(p.places))
	r.needs = append([]int(nil), p.needs...)
	r.delivered = make([]bool, len(p.uses))
	r.left = make([]int, len(p.slots))
	r.buffers = make([][]byte, len(p.slots))
	r.receipts.Receipts = make([]block.Receipt, len(p.slots))
	for i, header := range p.slots {
		r.buffers[i] = d.node.pool.Get(p.rooms[i] + int(header.FullBytes()))
		clear(r.buffers[i])
	}
	r.results = len(p.slots)
	for row, place := range p.places {
		if place.slot < 0 {
			r.rows[row] = d.node.pool.Get(p.unitBytes)
			clear(r.rows[row])
			r.results++
			continue
		}
		r.left[place.slot]++
		from := p.rooms[place.slot] + place.unit*p.unitBytes
		r.rows[row] = r.buffers[place.slot][from : from+p.unitBytes : from+p.unitBytes]
	}
	r.open = true
	r.dispatch = d
	if r.results == 0 {
		close(r.complete)
	}
	close(r.started)
}

// close shuts messages out, waits for every task, and gives the buffers back.
func (d *dataflow) close() {
	d.fail(nil)
	r := d.run
	r.mutex.Lock()
	r.open = false
	r.mutex.Unlock()
	r.tasks.Wait()
	for row, place := range r.program.places {
		if place.slot < 0 {
			d.node.pool.Put(r.rows[row])
		}
	}
	for _, buffer := range r.buffers {
		d.node.pool.Put(buffer)
	}
	r.rows, r.buffers, r.scratch, r.dispatch = nil, nil, nil, nil
}

// accumulate adds bytes of an input, from offset on, to the rows that use it. The caller holds r.mutex.
func (r *run) accumulate(input, offset int, data []byte) {
	for _, row := range r.program.uses[input] {
		r.scratch[row] = r.rows[row][offset : offset+len(data)]
	}
	r.program.matrix.AccumulateColumn(r.scratch, input, data)
}

// count notes that an input was added whole, and starts what became complete by it. The caller holds r.mutex.
func (d *dataflow) count(input int) {
	r := d.run
	r.delivered[input] = true
	for _, row := range r.program.uses[input] {
		if r.needs[row]--; r.needs[row] > 0 {
			continue
		}
		slot := r.program.places[row].slot
		if slot < 0 {
			d.enqueue(int(row))
		} else if r.left[slot]--; r.left[slot] == 0 {
			d.task(func() error { return d.store(slot) })
		}
	}
}

// done notes that one message or slot is settled. The caller holds r.mutex.
func (r *run) done() {
	if r.results--; r.results == 0 {
		close(r.complete)
	}
}

// readLocal adds the stored units and the patches.
func (d *dataflow) readLocal(sources []stored, payload []byte) error {
	r, reads := d.run, d.run.program.reads
	for len(reads) > 0 {
		units := 1
		for units < len(reads) && reads[units].source == reads[0].source && reads[units].unit == reads[0].unit+units {
			units++
		}
		part := reads[:units]
		reads = reads[units:]
		piece := func(unit, offset int, data []byte) {
			read := &part[unit-part[0].unit]
			r.mutex.Lock()
			defer r.mutex.Unlock()
			if read.whole >= 0 {
				r.accumulate(read.whole, offset, data)
			}
			for _, patch := range read.patches {
				d.change(read.change, patch, payload, offset, data)
			}
		}
		complete := func(unit int) {
			read := &part[unit-part[0].unit]
			r.mutex.Lock()
			defer r.mutex.Unlock()
			r.counters.BlocksRead++
			r.counters.BytesRead += int64(r.program.unitBytes)
			if read.whole >= 0 {
				d.count(read.whole)
			}
			if read.change >= 0 {
				stored := sources[read.source].length(unit)
				for _, patch := range read.patches {
					d.changeZeros(read.change, patch, payload, stored)
				}
				d.count(read.change)
			}
		}
		if err := d.node.readPieces(d.ctx, sources[part[0].source], part[0].unit, units, piece, complete); err != nil {
			return d.node.judge(d.ctx, d.under, err)
		}
	}
	return nil
}

// change adds new - old for the bytes of a patch that lie in data, which is the old unit from offset on. The caller
// holds r.mutex.
func (d *dataflow) change(input int, patch localPatch, payload []byte, offset int, data []byte) {
	from, to := max(patch.offset, offset), min(patch.offset+patch.length, offset+len(data))
	if from >= to {
		return
	}
	difference := d.node.pool.Get(to - from)
	defer d.node.pool.Put(difference)
	subtle.XORBytes(difference, data[from-offset:to-offset], payload[patch.from+from-patch.offset:])
	d.run.accumulate(input, from, difference)
}

// changeZeros adds the bytes of a patch from offset from of the unit on, where the old unit is zeros. The caller holds
// r.mutex.
func (d *dataflow) changeZeros(input int, patch localPatch, payload []byte, from int) {
	from = max(patch.offset, from)
	if to := patch.offset + patch.length; from < to {
		start := patch.from - patch.offset
		d.run.accumulate(input, from, payload[start+from:start+to])
	}
}

// store writes a staged block whose rows are complete.
func (d *dataflow) store(slot int) error {
	r := d.run
	receipt, err := d.node.create(d.ctx, d.under, r.program.slots[slot], r.buffers[slot], r.program.rooms[slot])
	if err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.receipts.Receipts[slot] = *receipt
	r.counters.BlocksWritten += int64(receipt.Units)
	r.counters.BytesWritten += r.program.slots[slot].FullBytes()
	r.done()
	return nil
}

// enqueue has a complete row sent. The caller holds r.mutex.
func (d *dataflow) enqueue(row int) {
	r := d.run
	r.queue = append(r.queue, row)
	if r.senders == senders {
		return
	}
	r.senders++
	d.task(d.sendQueued)
}

func (d *dataflow) sendQueued() error {
	r := d.run
	for {
		r.mutex.Lock()
		if len(r.queue) == 0 {
			r.senders--
			r.mutex.Unlock()
			return nil
		}
		row := r.queue[0]
		r.queue = r.queue[1:]
		r.mutex.Unlock()
		if err := d.send(row); err != nil {
			return err
		}
		r.mutex.Lock()
		r.counters.BlocksSent++
		r.counters.BytesSent += int64(r.program.unitBytes)
		r.done()
		r.mutex.Unlock()
	}
}

// take adds a message, once. A repetition is acknowledged and changes nothing.
func (r *run) take(message int, payload []byte) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	input, expected := r.program.messages[message]
	if !expected || len(payload) != r.program.unitBytes {
		return fmt.Errorf("%s: %w: message %d of %d bytes; it takes units of %d bytes", r.name, wire.ErrBadRequest, message, len(payload), r.program.unitBytes)
	}
	if r.delivered != nil && r.delivered[input] {
		return nil
	}
	if !r.open {
		return fmt.Errorf("%s: %w: it is over", r.name, wire.ErrNotFound)
	}
	r.accumulate(input, 0, payload)
	r.dispatch.count(input)
	return nil
}
