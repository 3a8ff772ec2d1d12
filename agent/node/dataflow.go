package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/wire"
)

// senders is how many parts of messages of one run are on their way at a time: enough to fill a link whose acknowledgements
// wait behind what the other side sends on, and few enough that what waits is in the cache.
const senders = 4

// dataflow is what moves a run's data while it is performed.
type dataflow struct {
	worker *worker
	run    *run
	under  *serving
	ctx    context.Context
	fail   context.CancelCauseFunc
}

// task runs work beside the others; its error ends the run.
func (d *dataflow) task(work func() error) {
	d.run.tasks.Add(1)
	go func() {
		wire.GrowStack()
		defer d.run.tasks.Done()
		if err := work(); err != nil {
			d.fail(err)
		}
	}()
}

// open makes the accumulators and lets messages in.
func (d *dataflow) open(sources []stored) {
	r, p := d.run, d.run.program
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.rows, r.scratch = make([][][]byte, len(p.places)), make([][]byte, len(p.places))
	r.needs, r.rowLeft = make([]int32, len(p.places)*p.pieces.count), make([]int, len(p.places))
	r.stripLeft = make([][]int, len(p.places))
	r.pieceLeft, r.unknown, r.reach = make([]int, len(p.places)), slices.Clone(p.needs), make([]int, len(p.places))
	for row := range p.places {
		r.rows[row] = make([][]byte, p.pieces.strips())
		r.rowLeft[row], r.pieceLeft[row] = p.pieces.count, p.pieces.count
		for piece := range p.pieces.count {
			r.needs[row*p.pieces.count+piece] = int32(p.needs[row])
		}
	}
	r.delivered, r.partial = make([]bool, len(p.uses)), map[int]*arrived{}
	r.left = make([]int, len(p.slots))
	r.buffers = make([][]byte, len(p.slots))
	r.receipts.Receipts = make([]block.Receipt, len(p.slots))
	for i, header := range p.slots {
		r.buffers[i] = d.worker.pool.Get(p.rooms[i] + int(header.FullBytes()))
	}
	r.results = len(p.slots)
	for row, place := range p.places {
		if place.slot >= 0 {
			if p.needs[row] > 0 {
				r.left[place.slot]++
			}
			continue
		}
		r.stripLeft[row] = make([]int, p.pieces.strips())
		for piece := range p.pieces.count {
			r.stripLeft[row][r.strip(piece)]++
		}
		r.results++
	}
	r.learnLocal(sources)
	r.open = true
	r.dispatch = d
	for slot, rows := range r.left {
		if rows == 0 {
			d.task(func() error { return d.store(slot) })
		}
	}
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
			for _, strip := range r.rows[row] {
				wire.Recycle(strip)
			}
		}
	}
	for _, buffer := range r.buffers {
		d.worker.pool.Put(buffer)
	}
	r.rows, r.buffers, r.scratch, r.dispatch = nil, nil, nil, nil
}

// at returns a range of a row, which lies within one strip. What nothing was added to is zeros. The caller holds r.mutex.
func (r *run) at(row, offset, length int) []byte {
	size := r.program.pieces.strip()
	number, within := offset/size, offset%size
	if r.rows[row][number] == nil {
		r.makeStrip(row, number)
		clear(r.rows[row][number])
	}
	return r.rows[row][number][within : within+length]
}

// makeStrip gives a strip of a row its memory, which holds anything. The caller holds r.mutex.
func (r *run) makeStrip(row, number int) {
	size := r.program.pieces.strip()
	start, end := number*size, min((number+1)*size, r.program.unitBytes)
	if place := r.program.places[row]; place.slot < 0 {
		r.rows[row][number] = wire.Buffer(end - start)
	} else {
		unit := r.program.rooms[place.slot] + place.unit*r.program.unitBytes
		r.rows[row][number] = r.buffers[place.slot][unit+start : unit+end : unit+end]
	}
}

// accumulate adds bytes of an input, from offset on, to the rows that use it. The caller holds r.mutex.
func (r *run) accumulate(input, offset int, data []byte) {
	for len(data) > 0 {
		part := r.inStrip(offset, data)
		if r.begin(input, offset, len(part)) {
			r.program.matrix.ApplyColumn(r.rowsAt(input, offset, len(part)), input, part)
		} else {
			r.program.matrix.AccumulateColumn(r.rowsAt(input, offset, len(part)), input, part)
		}
		offset, data = offset+len(part), data[len(part):]
	}
}

// begin reports whether a range is a whole strip and nothing was added to that of any row that uses the input, and makes
// them, to be overwritten: sums whose first term comes at once need not begin as zeros. The caller holds r.mutex.
func (r *run) begin(input, offset, length int) bool {
	number, whole := r.program.pieces.wholeStrip(offset, length)
	if !whole {
		return false
	}
	uses := r.program.uses[input]
	for _, row := range uses {
		if r.rows[row][number] != nil {
			return false
		}
	}
	for _, row := range uses {
		r.makeStrip(int(row), number)
	}
	return true
}

// adopt makes the payload that is a whole strip of a message the strip of the only row that uses it, and uses it as it is,
// if nothing was added to that yet. The caller holds r.mutex.
func (r *run) adopt(input, offset int, payload *wire.Payload) bool {
	row, inherits := r.program.heirs[input]
	number, whole := r.program.pieces.wholeStrip(offset, len(payload.Bytes))
	if !inherits || !whole || r.rows[row][number] != nil {
		return false
	}
	r.rows[row][number] = payload.Take()
	return true
}

// inStrip returns the beginning of data, bytes of a unit from offset on, that lies in one strip.
func (r *run) inStrip(offset int, data []byte) []byte {
	size := r.program.pieces.strip()
	return data[:min(len(data), size-offset%size)]
}

// rowsAt returns a range, within one strip, of the rows that use an input. The caller holds r.mutex.
func (r *run) rowsAt(input, offset, length int) [][]byte {
	for _, row := range r.program.uses[input] {
		r.scratch[row] = r.at(int(row), offset, length)
	}
	return r.scratch
}

// count notes that pieces first..end-1 of an input were added, and starts what became complete by it. The caller holds
// r.mutex.
func (d *dataflow) count(input, first, end int) {
	r := d.run
	for _, row := range r.program.uses[input] {
		needs := r.needs[int(row)*r.program.pieces.count:]
		for piece := first; piece < end; piece++ {
			if needs[piece]--; needs[piece] == 0 {
				d.completed(int(row), piece)
			}
		}
	}
}

// completed passes on a piece of a row that has all its inputs. The caller holds r.mutex.
func (d *dataflow) completed(row, piece int) {
	r := d.run
	slot := r.program.places[row].slot
	if slot < 0 {
		d.passOn(row, piece)
		return
	}
	if r.rowLeft[row]--; r.rowLeft[row] > 0 {
		return
	}
	if r.left[slot]--; r.left[slot] == 0 {
		d.task(func() error { return d.store(slot) })
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
	r, reads, pieces := d.run, d.run.program.reads, d.run.program.pieces
	counted := 0 // pieces of the unit that is being read
	for len(reads) > 0 {
		units := 1
		for units < len(reads) && reads[units].source == reads[0].source && reads[units].unit == reads[0].unit+units {
			units++
		}
		part := reads[:units]
		reads = reads[units:]
		strip := func(read *localRead, offset int, data []byte) {
			d.keepPace(read, offset)
			r.mutex.Lock()
			defer r.mutex.Unlock()
			if read.whole >= 0 {
				r.accumulate(read.whole, offset, data)
			}
			for _, patch := range read.patches {
				d.change(read.change, patch, payload, offset, data)
			}
			if end := min((offset+len(data))/pieces.bytes, pieces.count-1); end > counted {
				d.countLocal(read, counted, end)
				counted = end
			}
		}
		piece := func(unit, offset int, data []byte) {
			for len(data) > 0 {
				now := r.inStrip(offset, data)
				strip(&part[unit-part[0].unit], offset, now)
				offset, data = offset+len(now), data[len(now):]
			}
		}
		complete := func(unit int) {
			read := &part[unit-part[0].unit]
			r.mutex.Lock()
			defer r.mutex.Unlock()
			r.counters.BlocksRead++
			r.counters.BytesRead += int64(r.program.unitBytes)
			stored := sources[read.source].Length(unit)
			for _, patch := range read.patches {
				d.changeZeros(read.change, patch, payload, stored)
			}
			d.countLocal(read, counted, pieces.count)
			counted = 0
		}
		if err := d.worker.reader.readPieces(d.ctx, sources[part[0].source], part[0].unit, units, piece, complete); err != nil {
			return d.worker.identity.judge(d.ctx, d.under, err)
		}
	}
	return nil
}

// aheadBytes is how far a run that reads one unit reads ahead of what it sent, so that sums that wait for the network take
// little memory, and are in the cache.
const aheadBytes = 1 << 20

// keepPace waits until a message that what is read at offset goes into wants it, or the run ends. A message that sums others
// wants a piece when the same piece of another came, which is in the cache then; any other one wants what is at most
// aheadBytes beyond what was acknowledged of it, and what leaves only when all of it was read. One of several messages is enough: so a
// peer whose run has not begun holds up nobody but those who wait for it anyway. Where one unit is read, pieces depend on those with the
// same numbers alone, so
// that none waits for what is not read yet; of several, messages may take those that are read later, and nothing waits. Nor
// does the first piece: of short units it is all.
func (d *dataflow) keepPace(read *localRead, offset int) {
	for len(d.run.program.reads) == 1 && !d.inPace(read, offset) {
		select {
		case <-d.run.passed:
		case <-d.ctx.Done():
			return
		}
	}
}

func (d *dataflow) inPace(read *localRead, offset int) bool {
	r := d.run
	r.mutex.Lock()
	defer r.mutex.Unlock()
	pieces, messages := r.program.pieces, 0
	piece := offset / pieces.bytes
	for _, input := range []int{read.whole, read.change} {
		if input < 0 {
			continue
		}
		for _, row := range r.program.uses[input] {
			if r.program.places[row].slot >= 0 {
				continue
			}
			messages++
			wants := (pieces.count-r.rowLeft[row])*pieces.bytes+aheadBytes > pieces.start(piece) || r.holds(int(row), piece)
			if r.program.summed[row] {
				wants = piece == 0 || int(r.needs[int(row)*pieces.count+piece]) < r.program.needs[row]
			}
			if wants {
				return true
			}
		}
	}
	return messages == 0
}

// countLocal notes that pieces of a stored unit were added to whatever uses it. The caller holds r.mutex.
func (d *dataflow) countLocal(read *localRead, first, end int) {
	if read.whole >= 0 {
		d.count(read.whole, first, end)
	}
	if read.change >= 0 {
		d.count(read.change, first, end)
	}
}

// change adds new - old for the bytes of a patch that lie in data, which is the old unit from offset on. The caller
// holds r.mutex.
func (d *dataflow) change(input int, patch localPatch, payload []byte, offset int, data []byte) {
	from, to := max(patch.offset, offset), min(patch.offset+patch.length, offset+len(data))
	if from >= to {
		return
	}
	old, fresh := data[from-offset:to-offset], payload[patch.from-patch.offset+from:]
	for len(old) > 0 {
		part := d.run.inStrip(from, old)
		d.run.program.matrix.AccumulateDelta(d.run.rowsAt(input, from, len(part)), input, part, fresh[:len(part)])
		from, old, fresh = from+len(part), old[len(part):], fresh[len(part):]
	}
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
	r.mutex.Lock()
	for row, place := range r.program.places {
		for strip := 0; place.slot == slot && strip < len(r.rows[row]); strip++ {
			r.at(row, strip*r.program.pieces.strip(), 0) // zeros, where nothing was added
		}
	}
	r.mutex.Unlock()
	receipt, err := d.worker.blocks.create(d.ctx, d.under, r.program.slots[slot], r.buffers[slot], r.program.rooms[slot])
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

// enqueue has complete pieces of a row sent, together with those before them in their strip that wait. The caller holds
// r.mutex.
func (d *dataflow) enqueue(next span) {
	r := d.run
	for piece := next.first; piece < next.first+next.count; piece++ {
		r.needs[next.row*r.program.pieces.count+piece] = passedOn
	}
	if end := len(r.queue) - 1; end >= 0 {
		waiting := &r.queue[end]
		if waiting.row == next.row && waiting.first+waiting.count == next.first && r.strip(waiting.first) == r.strip(next.first) {
			waiting.count, waiting.last = waiting.count+next.count, next.last
			return
		}
	}
	r.queue = append(r.queue, next)
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
		next := r.queue[0]
		r.queue = r.queue[1:]
		r.mutex.Unlock()
		sent, err := d.send(next)
		if err != nil {
			return err
		}
		r.mutex.Lock()
		r.counters.BytesSent += int64(sent)
		r.acknowledged(next)
		r.mutex.Unlock()
		r.wakeReader()
	}
}

// acknowledged gives back the strips of which nothing is to be sent any more. The caller holds r.mutex.
func (r *run) acknowledged(sent span) {
	for piece, end := sent.first, sent.first+sent.count; piece < end; {
		strip := r.strip(piece)
		next := min(r.program.pieces.afterStrip(strip), end)
		if r.stripLeft[sent.row][strip] -= next - piece; r.stripLeft[sent.row][strip] == 0 {
			wire.Recycle(r.rows[sent.row][strip])
			r.rows[sent.row][strip] = nil
		}
		piece = next
	}
	if r.rowLeft[sent.row] -= sent.count; r.rowLeft[sent.row] == 0 {
		r.counters.BlocksSent++
		r.done()
	}
}

// wakeReader has the reader look anew whether it keeps pace.
func (r *run) wakeReader() {
	select {
	case r.passed <- struct{}{}:
	default: // it has been woken already
	}
}

// strip returns the strip that a piece lies in.
func (r *run) strip(piece int) int { return r.program.pieces.start(piece) / r.program.pieces.strip() }

// take adds the pieces of a message that begin at offset, each once; with the last of them come all that follow, which are zeros
// beyond the payload. A repetition is acknowledged and changes nothing.
func (r *run) take(message, offset int, last bool, payload *wire.Payload) error {
	data := payload.Bytes
	r.mutex.Lock()
	defer r.mutex.Unlock()
	pieces := r.program.pieces
	input, expected := r.program.messages[message]
	first, end, whole := pieces.whole(offset, len(data))
	if last {
		first, end, whole = pieces.rest(offset, len(data))
	}
	if !expected || !whole {
		return fmt.Errorf("%s: %w: %d bytes at %d of message %d; it takes pieces of %d bytes of units of %d", r.name, wire.ErrBadRequest,
			len(data), offset, message, pieces.bytes, pieces.unit)
	}
	if r.delivered != nil && r.delivered[input] {
		return nil
	}
	if !r.open {
		return fmt.Errorf("%s: %w: it is over", r.name, wire.ErrNotFound)
	}
	came := r.partial[input]
	if came == nil {
		came = &arrived{have: make([]bool, pieces.count), left: pieces.count}
		r.partial[input] = came
	}
	if last && !came.ends {
		came.ends = true
		r.learn(input, offset+len(data))
	}
	for first < end {
		fresh := first
		for fresh < end && !came.have[fresh] {
			came.have[fresh] = true
			fresh++
		}
		if fresh == first { // counted before
			first++
			continue
		}
		if fresh < end || !r.adopt(input, offset, payload) {
			from, to := pieces.start(first)-offset, min(pieces.start(fresh)-offset, len(data))
			r.accumulate(input, offset+from, data[min(from, to):to])
		}
		r.dispatch.count(input, first, fresh)
		came.left -= fresh - first
		first = fresh
	}
	if came.left == 0 {
		r.delivered[input] = true
		delete(r.partial, input)
	}
	r.wakeReader()
	return nil
}
