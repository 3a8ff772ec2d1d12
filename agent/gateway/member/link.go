package member

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/restripe/restripe/agent/wire"
)

// link is the connection to the agent at an address. It outlives what the records say of the node.
type link struct {
	address string
	dial    wire.Dial // nil: TCP

	mutex  sync.Mutex
	client *wire.Client
	closed bool
}

func newLink(address string, dial wire.Dial) *link {
	l := &link{address: address, dial: dial}
	l.client = l.newClient()
	return l
}

func (l *link) newClient() *wire.Client {
	return wire.NewClientWith(l.address, wire.ClientOptions{Dial: l.dial})
}

// call is wire.Client.Call. One that is under way when the link is renewed ends as if its connection had been lost: its
// outcome is unknown.
func (l *link) call(ctx context.Context, op wire.Op, request any, payload []byte, reply any) ([]byte, error) {
	l.mutex.Lock()
	client := l.client
	l.mutex.Unlock()
	answer, err := client.Call(ctx, op, request, payload, reply)
	if errors.Is(err, wire.ErrClosed) && l.replaced(client) {
		err = fmt.Errorf("calling %s at %s: %w: it stopped answering probes while it was asked", op, l.address, wire.ErrUnreachable)
	}
	return answer, err
}

func (l *link) replaced(client *wire.Client) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.client != client
}

// renew gives up the calls under way and the connection, which may be one to a peer that is no more: the next call makes
// another one.
func (l *link) renew() error {
	l.mutex.Lock()
	was := l.client
	if l.closed {
		l.mutex.Unlock()
		return nil
	}
	l.client = l.newClient()
	l.mutex.Unlock()
	return was.Close()
}

// close ends the connection for good.
func (l *link) close() error {
	l.mutex.Lock()
	l.closed = true
	client := l.client
	l.mutex.Unlock()
	return client.Close()
}
