package postgres

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// silence bounds how long what was sent may stay without an acknowledgement.
func silence(network, _ string, connection syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var set error
	err := connection.Control(func(descriptor uintptr) {
		set = unix.SetsockoptInt(int(descriptor), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silentTimeout.Milliseconds()))
	})
	return errors.Join(err, set)
}

// ended reports whether the other side of an idle connection has ended it, or said something, which it does before it goes.
func ended(wire net.Conn) bool {
	if secure, is := wire.(*tls.Conn); is {
		wire = secure.NetConn()
	}
	socket, is := wire.(syscall.Conn)
	if !is {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true
	}
	var heard error
	err = raw.Control(func(descriptor uintptr) {
		_, _, heard = unix.Recvfrom(int(descriptor), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return err != nil || !errors.Is(heard, unix.EAGAIN)
}
