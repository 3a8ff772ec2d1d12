package wire

import (
	"net"
	"syscall"

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
