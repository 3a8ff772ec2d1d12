package node

import (
	"errors"
	"sync"

	"github.com/restripe/restripe/agent/wire"
)

// peers holds one client for each agent that messages went to.
type peers struct {
	dial    wire.Dial // nil: TCP
	mutex   sync.Mutex
	clients map[string]*wire.Client
}

func (p *peers) client(address string) *wire.Client {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	client, known := p.clients[address]
	if !known {
		if p.clients == nil {
			p.clients = map[string]*wire.Client{}
		}
		client = wire.NewClientWith(address, wire.ClientOptions{Dial: p.dial})
		p.clients[address] = client
	}
	return client
}

func (p *peers) close() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var failures []error
	for _, client := range p.clients {
		failures = append(failures, client.Close())
	}
	p.clients = nil
	return errors.Join(failures...)
}
