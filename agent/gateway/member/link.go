package member

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/restripe/restripe/agent/wire"
)

// link is the connections to the agent at an address: one for blocks, and one by which it is seen whether the agent lives,
// which must not wait behind them. It outlives what the records say of the node.
type link struct {
	address string
	dial    wire.Dial     // nil: TCP
	traffic *wire.Traffic // nil: it is not counted

	mutex   sync.Mutex
	clients clients
	closed  bool
}

type clients struct{ data, control *wire.Client }

func (c clients) of(op wire.Op) *wire.Client {
	if wire.IsControl(op) {
		return c.control
	}
	return c.data
}

func (c clients) close() error { return errors.Join(c.data.Close(), c.control.Close()) }

func newLink(address string, dial wire.Dial, traffic *wire.Traffic) *link {
	l := &link{address: address, dial: dial, traffic: traffic}
	l.clients = l.newClients()
	return l
}

func (l *link) newClients() clients {
	options := wire.ClientOptions{Dial: l.dial, Traffic: l.traffic}
	return clients{data: wire.NewClientWith(l.address, options), control: wire.NewClientWith(l.address, options)}
}

// call is wire.Client.Call. One that is under way when the link is renewed ends as if its connection had been lost: its
// outcome is unknown.
func (l *link) call(ctx context.Context, op wire.Op, request any, payload []byte, reply any) ([]byte, error) {
	l.mutex.Lock()
	present := l.clients
	l.mutex.Unlock()
	answer, err := present.of(op).Call(ctx, op, request, payload, reply)
	if errors.Is(err, wire.ErrClosed) && l.replaced(present) {
		err = fmt.Errorf("calling %s at %s: %w: it stopped answering probes while it was asked", op, l.address, wire.ErrUnreachable)
	}
	return answer, err
}

func (l *link) replaced(were clients) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.clients != were
}

// renew gives up the calls under way and the connections, which may be some to a peer that is no more: the next calls make
// others.
func (l *link) renew() error {
	l.mutex.Lock()
	were := l.clients
	if l.closed {
		l.mutex.Unlock()
		return nil
	}
	l.clients = l.newClients()
	l.mutex.Unlock()
	return were.close()
}

// close ends the connections for good.
func (l *link) close() error {
	l.mutex.Lock()
	l.closed = true
	present := l.clients
	l.mutex.Unlock()
	return present.close()
}
