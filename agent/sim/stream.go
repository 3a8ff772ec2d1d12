package sim

import (
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/wire"
)

// stream is one direction of a connection: bytes in order, cut into the frames of the protocol so that whole messages
// are late or lost.
type stream struct {
	network  *network
	from, to string // processes

	mutex    sync.Mutex
	partial  []byte   // written, no whole frame yet
	sent     []parcel // on their way
	ready    []byte   // arrived, not read yet
	broken   error    // what readers get once ready is empty
	shut     bool     // nothing can be written any more
	hole     bool     // what is written is lost, and nobody says so
	changed  chan struct{}
	deadline time.Time
}

// parcel is a frame on its way, or the end of the stream.
type parcel struct {
	data []byte
	end  error
	at   time.Time
}

func newStream(n *network, from, to string) *stream {
	return &stream{network: n, from: from, to: to, changed: make(chan struct{})}
}

// wake lets readers look again. The caller holds the mutex.
func (s *stream) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stream) read(p []byte) (int, error) {
	for {
		s.mutex.Lock()
		switch {
		case len(s.ready) > 0:
			n := copy(p, s.ready)
			s.ready = s.ready[n:]
			s.mutex.Unlock()
			return n, nil
		case s.broken != nil:
			err := s.broken
			s.mutex.Unlock()
			return 0, err
		}
		changed, deadline := s.changed, s.deadline
		s.mutex.Unlock()
		if !await(changed, deadline) {
			return 0, os.ErrDeadlineExceeded
		}
	}
}

// await waits for a channel to be closed; false says that the deadline, if there is one, came first.
func await(changed <-chan struct{}, deadline time.Time) bool {
	if deadline.IsZero() {
		<-changed
		return true
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-changed:
		return true
	case <-timer.C:
		return false
	}
}

// write takes bytes and sends off the frames that are complete.
func (s *stream) write(p []byte) (int, error) {
	s.mutex.Lock()
	if s.hole {
		s.mutex.Unlock()
		return len(p), nil
	}
	if s.shut {
		s.mutex.Unlock()
		return 0, net.ErrClosed
	}
	s.partial = append(s.partial, p...)
	var frames [][]byte
	for len(s.partial) >= wire.PrefixBytes {
		length := wire.Peek(s.partial).Bytes
		if len(s.partial) < length {
			break
		}
		frames = append(frames, s.partial[:length:length])
		s.partial = s.partial[length:]
	}
	s.mutex.Unlock()
	for _, frame := range frames {
		s.network.carry(s, frame)
	}
	return len(p), nil
}

// send puts a parcel on its way, behind those sent before it.
func (s *stream) send(p parcel) {
	s.mutex.Lock()
	if s.shut {
		s.mutex.Unlock()
		return
	}
	s.shut = p.end != nil
	if n := len(s.sent); n > 0 && p.at.Before(s.sent[n-1].at) {
		p.at = s.sent[n-1].at
	}
	s.sent = append(s.sent, p)
	s.mutex.Unlock()
	time.AfterFunc(time.Until(p.at), s.arrive)
}

// arrive hands over what is due, unless the way is blocked: then it waits until the network has healed.
func (s *stream) arrive() {
	if s.network.isBlocked(s.from, s.to) {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := time.Now()
	for len(s.sent) > 0 && !s.sent[0].at.After(now) {
		first := s.sent[0]
		s.sent = s.sent[1:]
		if s.broken != nil {
			continue
		}
		if first.end != nil {
			s.broken = first.end
		}
		s.ready = append(s.ready, first.data...)
		s.wake()
	}
}

// cut ends the stream at both ends now; what is on its way is lost.
func (s *stream) cut(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.shut, s.sent = true, nil
	if s.broken == nil {
		s.broken = err
		s.wake()
	}
}

// conn is one end of a connection.
type conn struct {
	in, out *stream
	once    sync.Once
}

var _ net.Conn = (*conn)(nil)

func (c *conn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *conn) Write(p []byte) (int, error) { return c.out.write(p) }

// Close implements net.Conn. What was written still arrives, and then the end.
func (c *conn) Close() error {
	closed := net.ErrClosed
	c.once.Do(func() {
		closed = nil
		c.in.cut(net.ErrClosed)
		c.out.send(parcel{end: io.EOF, at: time.Now().Add(c.out.network.latency(c.out))})
	})
	return closed
}

func (c *conn) LocalAddr() net.Addr  { return place(c.in.to) }
func (c *conn) RemoteAddr() net.Addr { return place(c.in.from) }

func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.mutex.Lock()
	defer c.in.mutex.Unlock()
	c.in.deadline = t
	c.in.wake()
	return nil
}

// SetWriteDeadline implements net.Conn; writes do not wait.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// place is the address of a process.
type place string

func (place) Network() string  { return "sim" }
func (p place) String() string { return string(p) }
