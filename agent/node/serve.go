package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/agent/wire"
)

// ListenAndServe lets gateways and other agents call n at address (host:port; port 0 picks a free one). Unless
// allowRemote is set the address must be loopback. Where the node has certificates callers are of the same cluster, and ask for
// nothing but what their role does. It returns the address it listens at, and a channel that gets the end of serving, nil where
// ctx ended it, once the last request has been answered.
func ListenAndServe(ctx context.Context, address string, n *Node, allowRemote bool) (net.Addr, <-chan error, error) {
	listener, err := wire.Listen(ctx, address, allowRemote)
	if err != nil {
		return nil, nil, err
	}
	options := wire.ServerOptions{AllowRemote: allowRemote}
	if certificates := n.certificates; certificates != nil {
		listener = tls.NewListener(listener, certificates.Server(pki.RoleGateway, pki.RoleAgent, pki.RoleAdmin))
		options.Admit = func(ctx context.Context, conn net.Conn) (wire.May, error) {
			peer, err := certificates.Handshake(ctx, conn)
			if errors.Is(err, io.EOF) { // who only looked whether somebody listens
				return nil, err
			}
			if err != nil {
				n.log.Warn("a connection was refused", "from", conn.RemoteAddr(), "cause", err)
				return nil, err
			}
			return func(op wire.Op) error { return n.mayAsk(peer, op) }, nil
		}
	}
	server := wire.NewServer(options)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, n.Handle) }()
	return listener.Addr(), ended, nil
}

// asks is what each role may ask an agent for. Agents bring one another what runs send; people look, to rebuild a catalog.
var asks = map[pki.Role]map[wire.Op]bool{
	pki.RoleAgent: {wire.OpDeliver: true, wire.OpDeliverLast: true},
	pki.RoleAdmin: {wire.OpHello: true, wire.OpAttach: true, wire.OpList: true, wire.OpHeader: true},
	pki.RoleGateway: {
		wire.OpHello: true, wire.OpAttach: true, wire.OpWrite: true, wire.OpRead: true, wire.OpInspect: true, wire.OpRun: true,
		wire.OpDeliver: true, wire.OpDeliverLast: true, wire.OpDelete: true, wire.OpList: true, wire.OpHeader: true, wire.OpWitness: true,
	},
}

// mayAsk refuses what the role of a peer does not do, and peers that are not to be believed any more.
func (n *Node) mayAsk(peer *pki.Peer, op wire.Op) error {
	if err := peer.Check(); err != nil {
		n.log.Warn("a connection is ended", "cause", err)
		return err
	}
	if !asks[peer.Role][op] {
		n.log.Warn("a request was refused", "from", peer.Identity, "operation", op)
		return fmt.Errorf("node %s: %w: %s may not ask for %s", n.id, wire.ErrForbidden, peer.Identity, op)
	}
	return nil
}
