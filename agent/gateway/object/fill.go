package object

import (
	"context"
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/budget"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/stripe"
)

const (
	// beginBytes is how much of a group has to have come before there is memory for all of it.
	beginBytes = 4 << 10
	// groupAdmission is how long a put waits for the memory of a group before it is refused.
	groupAdmission = 30 * time.Second
	// groupPatience is how long a group may take to fill while others wait for memory before it is staged with what it has, and
	// groupLooks how often it is looked at from then on.
	groupPatience = 500 * time.Millisecond
	groupLooks    = 100 * time.Millisecond
	// leastGroup is how large a group is made for the slowest of clients.
	leastGroup = 64 << 10
	// pieceBytes is how much of a body is read at a time, into a buffer from which it is copied: no client that stalls keeps a
	// group from being staged.
	pieceBytes = 32 << 10
)

// filling is a group that gets bytes as they come.
type filling struct {
	draft       *group.Draft
	bytes, want int64
	timer       *time.Timer
}

func (f *filling) isFull() bool { return f.bytes == f.want }

// readAll reads the body to its end and has groups staged as they get full. ctx ends when one could not be.
func (p *put) readAll(ctx context.Context, head []byte) error {
	piece := p.objects.groups.Pool.Get(pieceBytes)
	defer p.objects.groups.Pool.Put(piece)
	defer p.drop()
	if err := p.take(ctx, head); err != nil {
		return err
	}
	for came := int64(len(head)); came != p.size; {
		into := piece
		if p.size >= 0 {
			into = piece[:min(pieceBytes, p.size-came)]
		}
		n, ended, err := group.ReadSome(p.body, into)
		came += int64(n)
		if err != nil {
			return fmt.Errorf("reading the object's bytes: %w", err)
		}
		if err := p.take(ctx, into[:n]); err != nil || ctx.Err() != nil {
			return err
		}
		if ended {
			break
		}
	}
	return p.end(ctx)
}

// take puts bytes that came into groups.
func (p *put) take(ctx context.Context, came []byte) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for len(came) > 0 {
		if p.filling == nil {
			p.head = append(p.head, came...)
			if int64(len(p.head)) < p.wants(beginBytes) {
				return nil // a client that has not begun to send a group holds no memory for it
			}
			came, p.head = p.head, nil
			if err := p.open(ctx); err != nil {
				return err
			}
		}
		f := p.filling
		n := f.draft.Fill(f.bytes, came[:min(int64(len(came)), f.want-f.bytes)])
		came, f.bytes = came[n:], f.bytes+int64(n)
		// Whether a full group of a body of unknown size is its last one is seen by what comes next.
		if f.isFull() && (p.size >= 0 || len(came) > 0) {
			if err := p.seal(ctx, p.record.Size+f.bytes == p.size); err != nil {
				return err
			}
		}
	}
	return nil
}

// wants is how many bytes there will be in the next group, up to most.
func (p *put) wants(most int64) int64 {
	if p.size >= 0 {
		return min(most, p.size-p.record.Size)
	}
	return most
}

// open has memory for one more group. p.mutex is held.
func (p *put) open(ctx context.Context) error {
	want := p.wants(p.wanted)
	layout, err := stripe.NewLayout(p.class.Ladder, 0, p.class.Mode)
	if err != nil {
		return fmt.Errorf("class %s: %w", p.class.Name, err)
	}
	memory, cell := p.objects.groups.Memory.Groups, group.CellBytesFor(layout.Cells(), want)
	waiting, cancel := context.WithTimeout(ctx, groupAdmission)
	defer cancel()
	d, err := p.objects.groups.NewDraft(waiting, memory, p.class, p.scheme, cell)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", api.ErrBusy, budget.ErrFull)
	}
	if err != nil {
		return err
	}
	f := &filling{draft: d, want: want}
	f.timer = time.AfterFunc(groupPatience, func() { p.giveUp(ctx, f) })
	p.filling = f
	return nil
}

// giveUp has a group staged before it is full, once others wait for memory. Its client gets small ones, and larger ones as it
// fills them.
func (p *put) giveUp(ctx context.Context, f *filling) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.filling != f {
		return
	}
	if !p.objects.groups.Memory.Groups.IsContended() {
		f.timer.Reset(groupLooks)
		return
	}
	p.wanted = min(max(f.bytes, leastGroup), p.class.GroupBytes)
	if p.size < 0 { // there is a group after it, which can say how long the object is
		f.bytes--
		p.head = []byte{f.draft.At(f.bytes)}
	}
	if err := p.seal(ctx, false); err != nil {
		p.workers.Go(func() error { return err })
	}
}

// seal has the group that was filled staged with what it has. p.mutex is held.
func (p *put) seal(ctx context.Context, last bool) error {
	f := p.filling
	p.filling = nil
	f.timer.Stop()
	if f.isFull() {
		p.wanted = min(4*p.wanted, p.class.GroupBytes)
	} else {
		p.objects.groups.Shrink(f.draft, f.bytes)
	}
	return p.stage(ctx, f.draft, f.bytes, last)
}

// end has what is left of the body staged.
func (p *put) end(ctx context.Context) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.filling == nil && len(p.head) > 0 {
		if err := p.open(ctx); err != nil {
			return err
		}
		p.filling.bytes = int64(p.filling.draft.Fill(0, p.head))
	}
	if p.filling == nil {
		return nil
	}
	return p.seal(ctx, true)
}

// drop gives the memory of a group back that is not to be staged any more.
func (p *put) drop() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.filling != nil {
		p.filling.timer.Stop()
		p.objects.groups.Release(p.filling.draft)
		p.filling = nil
	}
}
