package object

import (
	"context"
	"sync"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/wire"
)

// sharedBuffer is bytes to read and to give back, once.
type sharedBuffer struct {
	bytes  []byte
	holder *sharedRead // nil: nobody else has them
}

// own lends bytes that nobody else has.
func own(bytes []byte) sharedBuffer { return sharedBuffer{bytes: bytes} }

func (l sharedBuffer) release() {
	if l.holder == nil {
		wire.Recycle(l.bytes)
	} else {
		l.holder.leave()
	}
}

// hand gives what was read to whoever waits for it, or its data back once nobody does.
func hand[T any](ctx context.Context, to chan<- T, what T, data sharedBuffer) {
	select {
	case to <- what:
	case <-ctx.Done():
		data.release()
	}
}

// sharedReads are the reads of one Reader that are under way or whose bytes are still held, so that a cell that is wanted
// for itself, and to decode another one of its stripe, is sent once. Every holder has reserved memory for all it holds.
type sharedReads struct {
	mutex    sync.Mutex
	reads    map[unitRange]*sharedRead
	expected map[unitRange]int // length, of what will be read soon
}

// unitRange says where bytes of a unit begin, under one record of its group: what is decoded together is of one record
// (protocol, rule 16).
type unitRange struct {
	group              block.GroupID
	generation         block.Stamp
	slot, unit, offset int
}

func rangeOf(group *catalog.Group, slot, unit, offset int) unitRange {
	return unitRange{group: group.ID, generation: group.Generation, slot: slot, unit: unit, offset: offset}
}

func cellRange(snapshot *catalog.Snapshot, f fragment) unitRange {
	group := snapshot.Groups[f.group]
	return rangeOf(group, f.cell%group.Columns, f.cell/group.Columns, f.offset)
}

// sharedRead is one read, and who waits for it or holds its bytes.
type sharedRead struct {
	of      *sharedReads
	key     unitRange
	length  int
	cancel  context.CancelFunc
	ended   chan struct{} // closed when what follows is known
	bytes   []byte
	err     error
	holders int // under of.mutex; with none left it is no longer in of.reads
}

// expect takes note that a fragment will be read from its cell soon.
func (s *sharedReads) expect(snapshot *catalog.Snapshot, f fragment) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.expected == nil {
		s.expected = map[unitRange]int{}
	}
	s.expected[cellRange(snapshot, f)] = f.length
}

// forget takes note that a fragment that was expected has been read, from wherever.
func (s *sharedReads) forget(snapshot *catalog.Snapshot, f fragment) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.expected, cellRange(snapshot, f))
}

// forgetAll takes note that nothing is expected any more.
func (s *sharedReads) forgetAll() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	clear(s.expected)
}

// covers reports whether so many bytes are read, or soon will be, whoever else wants them.
func (s *sharedReads) covers(key unitRange, length int) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if found := s.reads[key]; found != nil {
		return found.length >= length
	}
	return s.expected[key] >= length
}

// read returns bytes that read reads, or that it is reading for somebody else. The caller must not change them. An error
// is that of the caller's own read.
func (s *sharedReads) read(ctx context.Context, key unitRange, length int, read func(context.Context) ([]byte, error)) (sharedBuffer, error) {
	s.mutex.Lock()
	delete(s.expected, key)
	shared := s.reads[key]
	if shared != nil && shared.length < length {
		s.mutex.Unlock()
		bytes, err := read(ctx)
		return own(bytes), err
	}
	first := shared == nil
	if first {
		// It goes on for as long as anybody waits for it, which may be longer than who was the first.
		running, cancel := context.WithCancel(context.WithoutCancel(ctx))
		shared = &sharedRead{of: s, key: key, length: length, cancel: cancel, ended: make(chan struct{})}
		if s.reads == nil {
			s.reads = map[unitRange]*sharedRead{}
		}
		s.reads[key] = shared
		go shared.run(running, read)
	}
	shared.holders++
	s.mutex.Unlock()
	select {
	case <-shared.ended:
	case <-ctx.Done():
		shared.leave()
		return sharedBuffer{}, ctx.Err()
	}
	if shared.err == nil {
		return sharedBuffer{bytes: shared.bytes[:length], holder: shared}, nil
	}
	shared.leave()
	if first {
		return sharedBuffer{}, shared.err
	}
	bytes, err := read(ctx)
	return own(bytes), err
}

func (r *sharedRead) run(ctx context.Context, read func(context.Context) ([]byte, error)) {
	bytes, err := read(ctx)
	r.of.mutex.Lock()
	defer r.of.mutex.Unlock()
	if r.holders == 0 {
		wire.Recycle(bytes)
		return
	}
	if err != nil {
		delete(r.of.reads, r.key) // for others to try
	}
	r.bytes, r.err = bytes, err
	close(r.ended)
}

// leave gives up the wait for the read, or gives its bytes back.
func (r *sharedRead) leave() {
	r.of.mutex.Lock()
	defer r.of.mutex.Unlock()
	if r.holders--; r.holders > 0 {
		return
	}
	r.cancel()
	if r.of.reads[r.key] == r {
		delete(r.of.reads, r.key)
	}
	select {
	case <-r.ended:
		wire.Recycle(r.bytes)
	default: // run does so
	}
}
