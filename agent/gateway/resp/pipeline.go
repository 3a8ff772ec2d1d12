package resp

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// mostAtOnce is how many commands of one connection are under way, or have an answer that is not sent yet.
const mostAtOnce = 64

// pipeline is the commands of a connection that were sent without waiting for answers. They are carried out side by side where they
// have no key in common, or only read, and answered in order.
type pipeline struct {
	out    output
	writer sync.WaitGroup // runs while there are calls

	mutex sync.Mutex
	calls []*call   // not answered yet, the oldest first
	room  sync.Cond // one less is not answered
}

// busy reports whether something is not answered yet.
func (p *pipeline) busy() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.calls) > 0
}

// add has a call carried out, when those before it are done that it hinders, and answered. It waits while there are too many.
func (p *pipeline) add(x *call) {
	p.enter(x)
	x.client.server.workers.run(x)
}

// enter takes calls in that have to be carried out, after those that hinder them. It waits while there are too many.
func (p *pipeline) enter(calls ...*call) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.room.L == nil {
		p.room.L = &p.mutex
	}
	for len(p.calls)+len(calls) > mostAtOnce {
		p.room.Wait()
	}
	isIdle := len(p.calls) == 0
	for _, x := range calls {
		x.done = make(chan struct{})
		x.locate()
		for _, before := range p.calls {
			if before.hinders(x) {
				x.after = append(x.after, before.done)
			}
		}
		p.calls = append(p.calls, x)
	}
	if isIdle {
		p.writer.Add(1)
		go p.answer()
	}
}

// await returns when a call is the next to be answered.
func (p *pipeline) await(x *call) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for p.calls[0] != x {
		p.room.Wait()
	}
}

// answer sends answers until there are no calls any more.
func (p *pipeline) answer() {
	defer p.writer.Done()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for len(p.calls) > 0 {
		x := p.calls[0]
		p.mutex.Unlock()
		select {
		case <-x.done:
		default:
			p.out.flush()
			<-x.done
		}
		p.out.add(&x.reply)
		p.mutex.Lock()
		last := len(p.calls) == 1
		if last {
			p.mutex.Unlock()
			p.out.flush()
			p.mutex.Lock()
		}
		p.calls = slices.Delete(p.calls, 0, 1)
		p.room.Broadcast()
		x.finish()
	}
}

// output sends replies to a client.
type output struct {
	to     net.Conn
	bytes  []byte
	failed atomic.Bool
}

var outputs = sync.Pool{New: func() any { b := make([]byte, 0, bufferBytes); return &b }}

// broken reports whether the client takes nothing any more.
func (o *output) broken() bool { return o.failed.Load() }

// add sends a reply with the next ones.
func (o *output) add(r *reply) {
	from := 0
	for _, l := range r.large {
		o.append(r.bytes[from:l.after])
		o.flush()
		o.write(l.value.Data)
		from = l.after
	}
	o.append(r.bytes[from:])
	if len(o.bytes) >= keptBytes/2 {
		o.flush()
	}
	r.clear()
}

func (o *output) append(bytes []byte) {
	if o.bytes == nil {
		o.bytes = (*outputs.Get().(*[]byte))[:0]
	}
	o.bytes = append(o.bytes, bytes...)
}

// flush sends what was added.
func (o *output) flush() {
	if o.bytes == nil {
		return
	}
	o.write(o.bytes)
	if cap(o.bytes) <= keptBytes {
		b := o.bytes[:0]
		outputs.Put(&b)
	}
	o.bytes = nil
}

// send sends a reply at once.
func (o *output) send(r *reply) {
	o.flush()
	from := 0
	for _, l := range r.large {
		o.write(r.bytes[from:l.after])
		o.write(l.value.Data)
		from = l.after
	}
	o.write(r.bytes[from:])
	r.clear()
}

// write sends bytes, as fast as the client takes them. One that takes nothing for long is given up.
func (o *output) write(bytes []byte) {
	for len(bytes) > 0 && !o.broken() {
		some := bytes[:min(len(bytes), writeBytes)]
		err := o.to.SetWriteDeadline(time.Now().Add(writePatience))
		if err == nil {
			_, err = o.to.Write(some)
		}
		if err != nil {
			o.failed.Store(true)
			_ = o.to.Close() // so that nothing more is read from it
			return
		}
		bytes = bytes[len(some):]
	}
}
