package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// ErrRemote refuses to listen where other machines can connect.
var ErrRemote = errors.New("address is not loopback")

// Listen opens a TCP listener. Unless allowRemote is set the address must be loopback (ErrRemote): the protocol has no
// authentication of its own, so opening it to a network is a decision to take.
func Listen(ctx context.Context, address string, allowRemote bool) (net.Listener, error) {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening at %q: %w; give host:port, for example 127.0.0.1:7420", address, err)
	}
	if err := checkLocal(resolved, allowRemote); err != nil {
		return nil, err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", resolved.String())
	if err != nil {
		return nil, fmt.Errorf("listening at %s: %w", address, err)
	}
	return listener, nil
}

func checkLocal(address net.Addr, allowRemote bool) error {
	tcp, isTCP := address.(*net.TCPAddr)
	if allowRemote || !isTCP || tcp.IP.IsLoopback() {
		return nil
	}
	return fmt.Errorf("listening at %s: %w; use 127.0.0.1, or allow remote connections on a network you trust", address, ErrRemote)
}
