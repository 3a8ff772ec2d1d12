package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/wire"
)

var (
	errReset   = errors.New("connection reset")
	errRefused = errors.New("connection refused")
	errSilent  = errors.New("no answer to the attempt to connect")
)

// way is from one process to another; ways back are ways of their own.
type way struct{ from, to string }

// network connects processes, which have their names for addresses. Messages take time. Connections keep the order of
// messages, as TCP does; across connections there is none.
type network struct {
	journal *journal
	dice    *dice

	mutex     sync.Mutex
	listeners map[string]*listener
	streams   []*stream
	blocked   map[way]bool
	slow      map[string]time.Duration // added to what a process sends and gets
	odds      networkOdds
	counts    map[string]int
}

// networkOdds are probabilities per message.
type networkOdds struct {
	lose  float64 // the connection breaks: before the message, or right after it
	twice float64 // a request comes a second time, later, by another connection
	late  float64 // it takes up to lateness
}

const (
	lateness     = 8 * time.Second
	dialPatience = 5 * time.Second
)

func newNetwork(j *journal, d *dice) *network {
	return &network{journal: j, dice: d, listeners: map[string]*listener{}, blocked: map[way]bool{}, slow: map[string]time.Duration{}, counts: map[string]int{}}
}

func (n *network) isBlocked(from, to string) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.blocked[way{from, to}]
}

// with changes the odds of messages until what it returns is called.
func (n *network) with(change func(*networkOdds)) func() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	change(&n.odds)
	return func() {
		n.mutex.Lock()
		defer n.mutex.Unlock()
		n.odds = networkOdds{}
	}
}

// latency is how long the next message of a stream takes.
func (n *network) latency(s *stream) time.Duration {
	n.mutex.Lock()
	odds, extra := n.odds, n.slow[s.from]+n.slow[s.to]
	n.mutex.Unlock()
	took := n.dice.between(50*time.Microsecond, 700*time.Microsecond)
	if extra > 0 {
		took += n.dice.between(0, extra)
	}
	if odds.late > 0 && n.dice.chance(odds.late) {
		took += n.dice.between(0, lateness)
	}
	return took
}

// carry takes a frame on its way, or lets it meet with an accident.
func (n *network) carry(s *stream, frame []byte) {
	n.mutex.Lock()
	odds := n.odds
	n.mutex.Unlock()
	at := time.Now().Add(n.latency(s))
	glimpse := wire.Peek(frame)
	n.count("messages")
	if glimpse.Request && odds.twice > 0 && n.dice.chance(odds.twice) {
		n.again(s.from, s.to, glimpse.Op, frame, n.dice.late())
	}
	if odds.lose > 0 && n.dice.chance(odds.lose) {
		n.count("lost")
		if glimpse.Request && n.dice.chance(0.5) { // lost for its sender, and yet it arrives
			n.again(s.from, s.to, glimpse.Op, frame, n.dice.late())
		}
		s.send(parcel{end: errReset, at: at})
		return
	}
	s.send(parcel{data: frame, at: at})
}

// again lets a request arrive once more by a connection of its own, whose answers nobody reads.
func (n *network) again(from, to string, op wire.Op, frame []byte, after time.Duration) {
	frame = append([]byte(nil), frame...)
	n.count("repeated")
	time.AfterFunc(after, func() {
		l := n.listener(to)
		if l == nil || n.isBlocked(from, to) {
			return
		}
		n.journal.write("net", "%s of %s arrives at %s once more, %s late", op, from, to, after.Round(time.Millisecond))
		ours, theirs := n.pair(from, to)
		if !l.offer(theirs) {
			return
		}
		ours.out.send(parcel{data: frame, at: time.Now()})
		time.AfterFunc(30*time.Second, func() { ours.in.cut(errReset); ours.out.cut(errReset) })
	})
}

func (n *network) count(what string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.counts[what]++
}

func (n *network) listener(at string) *listener {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.listeners[at]
}

// pair makes the two ends of a connection.
func (n *network) pair(from, to string) (ours, theirs *conn) {
	there, back := newStream(n, from, to), newStream(n, to, from)
	n.mutex.Lock()
	n.streams = append(n.streams, there, back)
	n.mutex.Unlock()
	return &conn{in: back, out: there}, &conn{in: there, out: back}
}

// dialer is how a process reaches others.
func (n *network) dialer(from *process) wire.Dial {
	return func(ctx context.Context, address string) (net.Conn, error) {
		if !from.isAlive() {
			return nil, errRefused
		}
		if n.isBlocked(from.name, address) || n.isBlocked(address, from.name) {
			if err := wait(ctx, dialPatience); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("%s: %w", address, errSilent)
		}
		if err := wait(ctx, n.dice.between(50*time.Microsecond, time.Millisecond)); err != nil {
			return nil, err
		}
		l := n.listener(address)
		if l == nil || !from.isAlive() {
			return nil, fmt.Errorf("%s: %w", address, errRefused)
		}
		ours, theirs := n.pair(from.name, address)
		if !l.offer(theirs) {
			return nil, fmt.Errorf("%s: %w", address, errRefused)
		}
		return ours, nil
	}
}

// wait waits for a while, or until ctx ends.
func wait(ctx context.Context, length time.Duration) error {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// block stops what goes one way. Connections stay, as TCP's do, and what was sent arrives when the way is free.
func (n *network) block(from, to string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.blocked[way{from, to}] = true
}

// heal frees every way.
func (n *network) heal() {
	n.mutex.Lock()
	clear(n.blocked)
	streams := append([]*stream(nil), n.streams...)
	n.mutex.Unlock()
	for _, s := range streams {
		s.arrive()
	}
}

// forget cuts all connections of a process that has crashed. What it had sent may arrive or not; its peers learn of the
// end, or only that it is silent.
func (n *network) forget(name string) {
	n.mutex.Lock()
	delete(n.listeners, name)
	var mine, rest []*stream
	for _, s := range n.streams {
		if s.from == name || s.to == name {
			mine = append(mine, s)
		} else {
			rest = append(rest, s)
		}
	}
	n.streams = rest
	n.mutex.Unlock()
	silent := n.dice.chance(0.3)
	for _, s := range mine {
		switch {
		case s.to == name:
			s.fall()
		case silent:
			s.vanish()
		case n.dice.chance(0.5):
			s.cut(errReset)
		default:
			s.send(parcel{end: errReset, at: time.Now().Add(n.latency(s))})
		}
	}
}

// fall is the end of a stream whose reader has crashed: what is written goes nowhere, and the writer is not told.
func (s *stream) fall() {
	s.cut(errReset)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.hole = true
}

// vanish is the end of a stream whose writer has crashed without a word.
func (s *stream) vanish() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.shut, s.sent = true, nil
}

// listener is where a process takes connections.
type listener struct {
	network *network
	name    string
	offered chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (n *network) listen(name string) *listener {
	l := &listener{network: n, name: name, offered: make(chan net.Conn, 64), closed: make(chan struct{})}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.listeners[name] = l
	return l
}

func (l *listener) offer(c net.Conn) bool {
	select {
	case <-l.closed:
		return false
	default:
	}
	select {
	case l.offered <- c:
		return true
	default:
		return false
	}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.offered:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.network.mutex.Lock()
		defer l.network.mutex.Unlock()
		if l.network.listeners[l.name] == l {
			delete(l.network.listeners, l.name)
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return place(l.name) }
