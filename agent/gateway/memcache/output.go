package memcache

import (
	"errors"
	"net"
	"os"
	"time"
)

const (
	copiedBytes = 4 << 10  // data up to this size is copied to go out with what is around it
	recordBytes = 16 << 10 // what is written at a time over TLS, where a write cannot go on after a deadline
)

// output is what goes to a client. It belongs to whoever writes at the time.
type output struct {
	conn net.Conn
	sent func(bytes int)

	lent  *buffer
	bytes []byte // to be sent, in lent
	until time.Time
	err   error // after which nothing is sent any more
}

// add has bytes sent. Those of data must not change until flush.
func (o *output) add(line, data, tail []byte) {
	if len(data) <= copiedBytes {
		o.copy(line)
		o.copy(data)
		o.copy(tail)
		return
	}
	o.copy(line)
	if o.err == nil {
		o.send(net.Buffers{o.bytes, data, tail})
		o.bytes = o.bytes[:0]
	}
}

func (o *output) copy(bytes []byte) {
	if len(bytes) == 0 || o.err != nil {
		return
	}
	if o.lent == nil {
		o.lent = buffers.Get().(*buffer)
		o.bytes = o.lent.bytes[:0]
	}
	if len(o.bytes)+len(bytes) > cap(o.bytes) {
		o.send(net.Buffers{o.bytes, bytes})
		o.bytes = o.bytes[:0]
		return
	}
	o.bytes = append(o.bytes, bytes...)
}

// flush sends what was added, and gives the buffer back.
func (o *output) flush() {
	if o.lent == nil {
		return
	}
	if len(o.bytes) > 0 && o.err == nil {
		o.write(o.bytes)
	}
	buffers.Put(o.lent)
	o.lent, o.bytes = nil, nil
}

// send sends all of the buffers. The client has a minute for each step forward.
func (o *output) send(list net.Buffers) {
	if _, is := o.conn.(*net.TCPConn); !is {
		for _, bytes := range list {
			o.write(bytes)
		}
		return
	}
	for o.err == nil && len(list) > 0 {
		o.patience()
		count, err := list.WriteTo(o.conn)
		o.wrote(int(count), err)
	}
}

// write sends bytes.
func (o *output) write(bytes []byte) {
	_, isTCP := o.conn.(*net.TCPConn)
	for o.err == nil && len(bytes) > 0 {
		piece := bytes
		if !isTCP {
			piece = bytes[:min(len(bytes), recordBytes)]
		}
		o.patience()
		count, err := o.conn.Write(piece)
		bytes = bytes[count:]
		if !isTCP && err != nil {
			count = 0
		}
		o.wrote(count, err)
	}
}

// wrote takes note of what a write came to: one that ran out of time after some bytes goes on.
func (o *output) wrote(count int, err error) {
	o.sent(count)
	if errors.Is(err, os.ErrDeadlineExceeded) && count > 0 {
		o.until = time.Time{}
		return
	}
	o.err = err
}

// patience sees to it that a write has a minute.
func (o *output) patience() {
	now := time.Now()
	if o.until.Sub(now) >= progressPatience {
		return
	}
	o.until = now.Add(progressPatience + progressPatience/4)
	o.err = o.conn.SetWriteDeadline(o.until)
}
