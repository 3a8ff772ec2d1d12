package node

// passedOn is what a piece of a message needs once it is in the queue.
const passedOn = -1

// learnLocal notes how long what is read here is: as far as it is stored, or patched. The caller holds r.mutex.
func (r *run) learnLocal(sources []stored) {
	for _, read := range r.program.reads {
		if read.whole >= 0 {
			r.learn(read.whole, sources[read.source].Length(read.unit))
		}
		if read.change >= 0 {
			reach := 0
			for _, patch := range read.patches {
				reach = max(reach, patch.offset+patch.length)
			}
			r.learn(read.change, reach)
		}
	}
}

// learn notes that an input has nothing but zeros from length on. It is called once for an input, or never: then that has
// the length of its unit. The caller holds r.mutex.
func (r *run) learn(input, length int) {
	for _, row := range r.program.uses[input] {
		r.unknown[row]--
		r.reach[row] = max(r.reach[row], length)
	}
}

// ends returns from where on a message has nothing but zeros, as far as is known: a sum is as long as its longest term. It
// only becomes less. The caller holds r.mutex.
func (r *run) ends(row int) int {
	if r.unknown[row] > 0 {
		return r.program.unitBytes
	}
	return r.reach[row]
}

// holds reports whether a piece of a message leaves only when all of it is complete: the message may end in the piece, or before
// it, and who sends its end stands for all that follows. The caller holds r.mutex.
func (r *run) holds(row, piece int) bool {
	return r.program.short[row] && r.program.pieces.start(piece+1) >= r.ends(row)
}

// passOn has a piece of a message sent that has all its inputs, and the end of the message once all of it is complete. The caller
// holds r.mutex.
func (d *dataflow) passOn(row, piece int) {
	r := d.run
	if r.pieceLeft[row]--; !r.holds(row, piece) {
		d.enqueue(span{row: row, first: piece, count: 1})
	}
	if r.pieceLeft[row] > 0 || !r.program.short[row] {
		return
	}
	pieces := r.program.pieces.count
	needs := r.needs[row*pieces : (row+1)*pieces]
	first := pieces
	for first > 0 && needs[first-1] != passedOn {
		first--
	}
	for held := range first { // one that is behind it left when the message was taken for longer
		if needs[held] != passedOn {
			d.enqueue(span{row: row, first: held, count: 1})
		}
	}
	d.enqueue(span{row: row, first: first, count: pieces - first, last: true})
}
