package node

import (
	"context"
	"net"

	"github.com/restripe/restripe/agent/wire"
)

// ListenAndServe lets gateways and other agents call n at address (host:port; port 0 picks a free one). Unless
// allowRemote is set the address must be loopback. It returns the address it listens at, and a channel that gets the
// end of serving, nil where ctx ended it, once the last request has been answered.
func ListenAndServe(ctx context.Context, address string, n *Node, allowRemote bool) (net.Addr, <-chan error, error) {
	listener, err := wire.Listen(ctx, address, allowRemote)
	if err != nil {
		return nil, nil, err
	}
	server := wire.NewServer(wire.ServerOptions{AllowRemote: allowRemote})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, n.Handle) }()
	return listener.Addr(), ended, nil
}
