package object

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

const (
	// readAhead is how many fragments of one read are fetched side by side, and keepWritten how many bytes of it are kept a
	// little longer than it takes to write them.
	readAhead   = 6
	keepWritten = 1 << 20
	// stalled is how long a client may leave bytes untaken before what was read ahead for it is dropped, where others wait for
	// that memory.
	stalled = 100 * time.Millisecond
	// A client that stalled gets slowBytes at a time, for which no memory of the budget is held while it takes them, until it
	// took slowTimes of them without delay.
	slowBytes = 16 << 10
	slowTimes = 64
	noDelay   = 10 * time.Millisecond
)

// writeTo writes bytes of the object as fast as w takes them. One that does not take any holds no memory that others want.
func (r *Reader) writeTo(ctx context.Context, w io.Writer, offset, length int64) error {
	var bounce bytes.Buffer
	var used block.GroupID
	var pace pace
	for length > 0 {
		seen, err := r.look(ctx, offset, length)
		if err != nil {
			return err
		}
		if !pace.isSlow() {
			n, err := r.stream(ctx, w, offset, seen, &used, r.counted)
			if err != nil {
				return err
			}
			if offset, length = offset+n, length-n; n < seen {
				pace.stalled()
			}
			continue
		}
		bounce.Reset()
		n, err := r.stream(ctx, &bounce, offset, min(seen, slowBytes), &used, false)
		if err != nil {
			return err
		}
		began := time.Now()
		if _, err := w.Write(bounce.Bytes()); err != nil {
			return err
		}
		offset, length = offset+n, length-n
		pace.took(time.Since(began))
	}
	return nil
}

// pace says whether a client is to get little at a time. The zero value is that of one that takes what it gets.
type pace struct {
	left int // times that it has to take some without delay before it gets as much as others
}

func (p *pace) isSlow() bool { return p.left > 0 }

func (p *pace) stalled() { p.left = slowTimes }

// took is told how long a slow client took for what it got.
func (p *pace) took(long time.Duration) {
	if p.left--; long > noDelay {
		p.stalled()
	}
}

// piece is a fragment that was read, or why it was not.
type piece struct {
	data    sharedBuffer
	err     error
	release func()
}

func (p *piece) free() {
	p.data.release()
	p.release()
}

// flow is one run of fragments on their way from nodes to a client.
type flow struct {
	reader *Reader
	queue  chan chan piece
	drops  bool // what it has may be dropped
	cancel context.CancelFunc
	timer  *time.Timer

	mutex     sync.Mutex
	kept      []piece // written, while others are under way that may be decoded from it
	keptBytes int
	writing   bool
	current   *piece // being written, from a copy
	dropped   bool
	drained   sync.WaitGroup
}

// stream writes bytes of the object and says how many: with drops, fewer where w stalled while others waited for memory. used
// is the group that was counted last.
func (r *Reader) stream(
	ctx context.Context, w io.Writer, offset, length int64, used *block.GroupID, drops bool,
) (written int64, failed error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &flow{reader: r, queue: make(chan chan piece, readAhead), drops: drops, cancel: cancel}
	f.timer = time.AfterFunc(stalled, f.drop)
	defer f.timer.Stop()
	go r.produce(ctx, f.queue, offset, length, used)
	for result := range f.queue {
		got := <-result
		if failed == nil {
			failed = got.err
		}
		if failed != nil {
			cancel()
			got.free()
			continue
		}
		var n int
		n, failed = f.write(w, &got)
		written += int64(n)
		if f.isDropped() {
			break
		}
	}
	f.drained.Wait()
	f.keep(nil, 0)
	if f.isDropped() {
		r.shared.forgetAll()
	}
	return written, failed
}

// produce reads the fragments of a range side by side, in order, holding memory for each.
func (r *Reader) produce(ctx context.Context, queue chan<- chan piece, offset, length int64, used *block.GroupID) {
	defer close(queue)
	snapshot := r.snapshot()
	list := fragments(snapshot, offset, length)
	expected := 0
	for i, f := range list {
		for ; expected < min(i+readAhead, len(list)); expected++ {
			r.shared.expect(snapshot, list[expected])
		}
		if r.counted && f.group != *used {
			*used = f.group
			r.objects.heat.Used(snapshot.Groups[f.group])
			if snapshot.Groups[f.group].Packed {
				r.objects.readSmall(snapshot, snapshot.Groups[f.group])
			}
		}
		release, err := r.memory.Reserve(ctx, int64(f.length))
		result := make(chan piece, 1)
		select {
		case queue <- result:
		case <-ctx.Done():
			if err == nil {
				release()
			}
			return
		}
		if err != nil {
			result <- piece{err: err, release: func() {}}
			return
		}
		go func() { result <- r.fetchPiece(ctx, snapshot, f, release) }()
	}
}

func (r *Reader) fetchPiece(ctx context.Context, snapshot *catalog.Snapshot, f fragment, release func()) piece {
	data, err := r.fetch(ctx, f)
	r.shared.forget(snapshot, f)
	if err == nil {
		r.objects.hedge.Served(f.length)
	}
	return piece{data: data, err: err, release: release}
}

// write hands a piece to the client, and keeps it or frees it. The bytes go as they lie while few clients stall; else through a
// copy, a part at a time, so that the piece can be dropped meanwhile.
func (f *flow) write(w io.Writer, got *piece) (written int, err error) {
	length := len(got.data.bytes)
	stuck := &f.reader.objects.stuck
	if stuck.Add(int64(length)) <= f.reader.memory.Bytes/2 {
		written, err = f.put(w, got.data.bytes, nil)
		stuck.Add(-int64(length))
		f.keep(got, length)
		return written, err
	}
	stuck.Add(-int64(length))
	part := make([]byte, min(length, slowBytes))
	for written < length && err == nil {
		n := copy(part, got.data.bytes[written:])
		n, err = f.put(w, part[:n], got)
		written += n
		if f.isDropped() {
			return written, err
		}
	}
	f.keep(got, length)
	return written, err
}

// put is one write to the client, during which droppable, unless it is nil, may be dropped with all that was read ahead.
func (f *flow) put(w io.Writer, data []byte, droppable *piece) (int, error) {
	f.mutex.Lock()
	f.writing, f.current = true, droppable
	f.mutex.Unlock()
	f.timer.Reset(stalled)
	n, err := w.Write(data)
	f.mutex.Lock()
	f.writing, f.current = false, nil
	f.mutex.Unlock()
	f.timer.Stop()
	if err != nil {
		f.cancel()
	}
	return n, err
}

func (f *flow) isDropped() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.dropped
}

// keep takes a piece that was written, nil at the end, and frees those that were kept for long enough.
func (f *flow) keep(got *piece, length int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if got != nil && f.dropped {
		got.free()
	} else if got != nil {
		f.kept, f.keptBytes = append(f.kept, *got), f.keptBytes+length
	}
	for len(f.kept) > 0 && (f.keptBytes > keepWritten || len(f.queue) == 0 || got == nil) {
		f.keptBytes -= len(f.kept[0].data.bytes)
		f.kept[0].free()
		f.kept = f.kept[1:]
	}
}

// drop gives the memory back that a stalled client has, once others wait for it.
func (f *flow) drop() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !f.writing || f.dropped || !f.drops {
		return
	}
	if !f.reader.memory.IsContended() {
		f.timer.Reset(stalled)
		return
	}
	f.dropped = true
	f.cancel()
	for i := range f.kept {
		f.kept[i].free()
	}
	f.kept = nil
	if f.current != nil {
		f.current.free()
	}
	f.drained.Go(func() {
		for result := range f.queue {
			late := <-result
			late.free()
		}
	})
}
