package catalogtest

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// through opens the records of an instance so that requests and answers are lost on the way: by connections that are cut where a
// server has the records, and within the process else. The engine is closed when the test ends.
func through(t *testing.T, instance Instance, seed uint64) kv.Engine {
	t.Helper()
	if instance.Dial == nil {
		random := rand.New(rand.NewPCG(seed, 1<<32))
		return &Faulty{Engine: instance.Engine, Decide: func() Fault {
			switch random.IntN(8) {
			case 0:
				return LoseRequest
			case 1:
				return LoseAnswer
			}
			return None
		}}
	}
	proxy := newProxy(t, instance.Server, seed)
	engine, err := instance.Dial(proxy.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	proxy.cutting.Store(true)
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine
}

// proxy passes connections on to a server, and, while it is cutting, cuts each of them after a while: with a request that did not get
// there, or with one whose answer does not come back.
type proxy struct {
	listener net.Listener
	target   string
	cutting  atomic.Bool
	random   *rand.Rand
	mutex    sync.Mutex
	open     map[net.Conn]bool
	work     sync.WaitGroup
}

func newProxy(t *testing.T, target string, seed uint64) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: target, random: rand.New(rand.NewPCG(seed, 1<<33)), open: map[net.Conn]bool{}}
	p.work.Go(p.accept)
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		p.mutex.Lock()
		for connection := range p.open {
			drop(connection)
		}
		p.open = nil
		p.mutex.Unlock()
		p.work.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil || !p.keep(client, server) {
			drop(client)
			if server != nil {
				drop(server)
			}
			continue
		}
		p.mutex.Lock()
		// The first exchanges greet.
		most, lose := 4+p.random.IntN(40), p.random.IntN(2) == 0
		p.mutex.Unlock()
		silent := make(chan struct{})
		p.work.Go(func() { p.requests(client, server, most, lose, silent) })
		p.work.Go(func() { p.answers(client, server, silent) })
	}
}

// keep takes connections down that are to be closed when the test ends, and reports whether it goes on.
func (p *proxy) keep(connections ...net.Conn) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.open == nil {
		return false
	}
	for _, connection := range connections {
		p.open[connection] = true
	}
	return true
}

// requests passes on what a client says, so many times while it is cutting; the last of it is lost, or its answer is.
func (p *proxy) requests(client, server net.Conn, most int, lose bool, silent chan struct{}) {
	buffer := make([]byte, 1<<16)
	for i := 0; ; {
		n, err := client.Read(buffer)
		if p.cutting.Load() {
			i++
		}
		if err != nil || i == most && lose {
			break
		}
		if i == most {
			close(silent)
		}
		if _, err := server.Write(buffer[:n]); err != nil || i == most {
			break
		}
	}
	select {
	case <-silent: // the server reads what it was sent, and is not told that nobody waits
		if half, ok := server.(*net.TCPConn); ok {
			_ = half.CloseWrite() // the server may have gone
		}
	default:
		drop(server)
	}
	drop(client)
}

// answers passes on what a server says, until nobody is to hear it.
func (p *proxy) answers(client, server net.Conn, silent chan struct{}) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			break
		}
		select {
		case <-silent:
			continue
		default:
		}
		if _, err := client.Write(buffer[:n]); err != nil && !errors.Is(err, net.ErrClosed) {
			break
		}
	}
	drop(server)
	drop(client)
}

// drop ends a connection.
func drop(connection net.Conn) { _ = connection.Close() } // the other side, or somebody here, may have done so
