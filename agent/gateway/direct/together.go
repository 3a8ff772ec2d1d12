package direct

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/blockstore"
	"github.com/restripe/restripe/agent/store"
)

const (
	// laneReads and laneBytes are how much is asked of a store at a time, and lanePatience for how long it is waited for.
	laneReads    = 128
	laneBytes    = 1 << 20
	lanePatience = 100 * time.Millisecond
)

// Place is where bytes of a block lie, from an offset in a unit on.
type Place struct {
	Address              block.Address
	Unit, Offset, Length int
	Checksum             uint32 // CRC-32C; 0: it is not known
}

// Known is a read of bytes whose checksum is known, as of ReadKnown, that is made together with others.
type Known struct {
	Place
	Free func() // is called once, when the memory of the bytes is not needed any more

	state atomic.Int32
	data  []byte // once it has ended; nil: it could not
	of    *Reads
}

// The states of a Known.
const (
	isUnderWay int32 = iota
	hasEnded
	isLeft // nobody waits for it any more
)

// Take returns the bytes, once it has ended, nil where they could not be read. They are the caller's, who calls Free once they are not
// to count any more. Of a read that has not ended it takes leave.
func (k *Known) Take() []byte {
	if k.state.CompareAndSwap(isUnderWay, isLeft) {
		return nil
	}
	if k.data == nil {
		k.Free()
	}
	return k.data
}

// HasEnded reports whether the read has.
func (k *Known) HasEnded() bool { return k.state.Load() == hasEnded }

// end ends the read.
func (k *Known) end(data []byte) {
	if k.data = data; !k.state.CompareAndSwap(isUnderWay, hasEnded) {
		k.Free()
	}
	if k.of.left.Add(-1) == 0 {
		close(k.of.ended)
	}
}

// Reads are several reads under way.
type Reads struct {
	left  atomic.Int32
	ended chan struct{}
}

// Ended is closed when all have ended.
func (r *Reads) Ended() <-chan struct{} { return r.ended }

// lane is the reads that wait for a store. One batch of them is under way at a time: those that come meanwhile are the next one, whoever
// they are for.
type lane struct {
	mutex   sync.Mutex
	waiting []*Known
	busy    bool
}

// Start begins reads, of each store together, and with what others want of it. Each has to be taken.
func (s *Stores) Start(reads []*Known) *Reads {
	r := &Reads{ended: make(chan struct{})}
	r.left.Store(int32(len(reads)) + 1)
	for _, one := range reads {
		one.of = r
	}
	for _, one := range reads {
		if !s.enter(one) {
			one.end(nil)
		}
	}
	if r.left.Add(-1) == 0 {
		close(r.ended)
	}
	return r
}

// enter has a read wait in the lane of its store, if that can be read.
func (s *Stores) enter(one *Known) bool {
	from, known := s.of(one.Address.Node)
	many, isMany := from.(store.ManyReader)
	if !isMany {
		return false
	}
	l := &known.lane
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.waiting = append(l.waiting, one)
	if l.busy {
		return true
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	if s.closed {
		l.waiting = nil
		return false
	}
	l.busy = true
	s.work.Go(func() {
		for batch := l.next(); len(batch) > 0; batch = l.next() {
			s.readBatch(from, many, known, batch)
		}
	})
	return true
}

// next returns the reads that are the next to be made; none: there is nothing to do any more.
func (l *lane) next() []*Known {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	count, bytes := 0, 0
	for count < min(len(l.waiting), laneReads) && (count == 0 || bytes+l.waiting[count].Length <= laneBytes) {
		bytes += l.waiting[count].Length
		count++
	}
	batch := l.waiting[:count:count]
	if l.waiting = l.waiting[count:]; len(l.waiting) == 0 {
		l.waiting = nil
	}
	l.busy = count > 0
	return batch
}

// blocksOf returns the blocks that reads are of, each without a header where that could not be read.
func (s *Stores) blocksOf(ctx context.Context, many store.ManyReader, batch []*Known) []blockstore.Block {
	blocks := make([]blockstore.Block, len(batch))
	var missing []block.Address
	for i, one := range batch {
		var kept bool
		if blocks[i], kept = s.headers.Get(one.Address); !kept {
			missing = append(missing, one.Address)
		}
	}
	if len(missing) == 0 {
		return blocks
	}
	s.headers.Fetch(ctx, many, missing)
	for i, one := range batch {
		if blocks[i].Header == nil {
			blocks[i], _ = s.headers.Get(one.Address)
		}
	}
	return blocks
}

// readBatch makes reads of one store.
func (s *Stores) readBatch(from store.Store, many store.ManyReader, known *way, batch []*Known) {
	ctx, cancel := context.WithTimeout(context.Background(), lanePatience)
	defer cancel()
	blocks := s.blocksOf(ctx, many, batch)
	asked, reads := make([]*Known, 0, len(batch)), make([]store.Read, 0, len(batch))
	wholes := make([][]byte, 0, len(batch))
	fail := func(one *Known, err error) {
		s.note(ctx, known, one.Address, err)
		one.end(nil)
	}
	for i, one := range batch {
		if one.state.Load() == isLeft {
			one.end(nil)
			continue
		}
		found := blocks[i]
		if found.Header == nil { // whatever is wrong with it
			var err error
			if found, err = s.headers.LookUp(ctx, from, one.Address); err != nil {
				fail(one, err)
				continue
			}
		}
		stored, isOne := found.Run(one.Unit, one.Offset, one.Length)
		if !isOne {
			fail(one, errElsewhere)
			continue
		}
		data := make([]byte, one.Length)
		blocks[len(asked)] = found // of those before it all are done with
		asked, wholes = append(asked, one), append(wholes, data)
		reads = append(reads, store.Read{Key: one.Address.Key(), Into: data[:stored], Offset: found.Offset(one.Unit) + int64(one.Offset)})
	}
	if len(reads) > 0 {
		s.batches.Inc()
		many.ReadMany(ctx, reads)
	}
	bytes := 0
	for i, one := range asked {
		r, err := &reads[i], reads[i].Err
		if err == nil && r.Count != len(r.Into) {
			err = fmt.Errorf("block %s: %w: it ends at byte %d", one.Address, store.ErrCorrupt, r.Offset+int64(r.Count))
		}
		if err == nil {
			err = blocks[i].CheckRun(wholes[i], one.Unit, one.Offset, one.Checksum)
		}
		if err != nil {
			fail(one, err)
			continue
		}
		bytes += len(r.Into)
		s.note(ctx, known, one.Address, nil)
		one.end(wholes[i])
	}
	s.bytes.Add(float64(bytes))
}
