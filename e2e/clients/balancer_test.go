package clients_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// balancer is one address before several servers, as a balancer of TCP has it: a connection leads to the first that takes it.
type balancer struct {
	address string
	moved   atomic.Int64 // connections that the first did not take
	lose    atomic.Int64 // answers that are to be lost: the connection ends when one comes
}

// answers are what a server sends, until one is to be lost.
type answers struct {
	net.Conn
	balancer *balancer
}

func (a *answers) Read(into []byte) (int, error) {
	n, err := a.Conn.Read(into)
	if n > 0 && !bytes.HasPrefix(into[:n], []byte("HTTP/1.1 100 ")) && a.balancer.lose.Add(-1) >= 0 {
		return 0, io.EOF
	}
	return n, err
}

// balance starts a balancer, which ends with the test.
func balance(t *testing.T, servers ...string) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{address: listener.Addr().String()}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return // closed
			}
			running.Go(func() { b.lead(t.Context(), from, servers) })
		}
	})
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		running.Wait()
	})
	return b
}

// lead copies both ways until either side ends, or the test.
func (b *balancer) lead(ctx context.Context, from net.Conn, servers []string) {
	defer from.Close()
	for i, server := range servers {
		to, err := net.Dial("tcp", server)
		if err != nil {
			continue
		}
		defer to.Close()
		defer context.AfterFunc(ctx, func() { _, _ = from.Close(), to.Close() })()
		if i > 0 {
			b.moved.Add(1)
		}
		var both sync.WaitGroup
		for _, way := range []struct {
			into net.Conn
			from io.Reader
		}{{to, from}, {from, &answers{to, b}}} {
			both.Go(func() {
				_, _ = io.Copy(way.into, way.from) // whatever ends it, ends both
				_, _ = from.Close(), to.Close()
			})
		}
		both.Wait()
		return
	}
}
