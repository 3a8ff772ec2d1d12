package wire

import (
	"crypto/tls"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// waker sets how much a connection must have received before whoever reads it is woken. It belongs to the reader.
type waker struct {
	socket syscall.RawConn // nil where there is none
	bytes  int
}

func newWaker(conn net.Conn) waker {
	w := waker{bytes: 1}
	if tcp, ok := conn.(*net.TCPConn); ok {
		w.socket, _ = tcp.SyscallConn() // nil if it is closed, which reading will tell
	}
	return w
}

// at asks to be woken at so many bytes, at least one. No more may be asked for than will come. A system that cannot do it
// wakes sooner, which costs time and is right.
func (w *waker) at(bytes int) {
	bytes = max(bytes, 1)
	if w.socket == nil || w.bytes == bytes {
		return
	}
	w.bytes = bytes
	_ = w.socket.Control(func(descriptor uintptr) {
		_ = unix.SetsockoptInt(int(descriptor), unix.SOL_SOCKET, unix.SO_RCVLOWAT, bytes)
	})
}

// silenceTime is how long a peer may leave what was sent to it unacknowledged, or not take in anything, before its connection
// breaks. A server that waits for memory reads nothing for a while, which must be shorter.
const silenceTime = 10 * time.Second

// boundSilence has the system break a connection whose peer is no more while something is on its way to it. Without it that
// is for pings to find out, which only clients send, or takes a quarter of an hour.
func boundSilence(conn net.Conn) {
	if within, ok := conn.(*tls.Conn); ok {
		conn = within.NetConn()
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	socket, err := tcp.SyscallConn()
	if err != nil { // it is closed, which reading will tell
		return
	}
	// A system that cannot do it finds out later, as said above.
	_ = socket.Control(func(descriptor uintptr) {
		_ = unix.SetsockoptInt(int(descriptor), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silenceTime.Milliseconds()))
	})
}
