package serve

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// echo sends back what comes, a byte at a time.
type echo struct {
	conn net.Conn
	read chan struct{} // closed when Serve returns
}

func (e *echo) Serve(context.Context, *tls.ConnectionState) {
	defer close(e.read)
	var one [1]byte
	for {
		if _, err := e.conn.Read(one[:]); err != nil {
			return
		}
		if _, err := e.conn.Write(one[:]); err != nil {
			return
		}
	}
}

func (e *echo) Stop() { _ = e.conn.Close() }

// Connections are bounded, one too many is told so, room that is left is taken again, and all are over when the server ends.
func TestClientsAreBounded(t *testing.T) {
	c := &Clients{
		Name: "echo", Most: 2, Refusal: "full", Metrics: NewConnectionMetrics("echo", "echo"), Log: slog.New(slog.DiscardHandler),
	}
	var ends []chan struct{}
	c.Begin = func(conn net.Conn) Client {
		e := &echo{conn: conn, read: make(chan struct{})}
		ends = append(ends, e.read) // only the accepting goroutine begins clients
		return e
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Serve(ctx, listener) }()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	served := func(conn net.Conn) bool {
		if _, err := conn.Write([]byte("x")); err != nil {
			return false
		}
		var one [1]byte
		_, err := io.ReadFull(conn, one[:])
		return err == nil && one[0] == 'x'
	}
	first, second := dial(), dial()
	if !served(first) || !served(second) {
		t.Fatal("the first two are not served")
	}
	if text, err := io.ReadAll(dial()); string(text) != "full" {
		t.Errorf("the third is told %q, %v", text, err)
	}
	open, refused := testutil.ToFloat64(c.Metrics.Open), testutil.ToFloat64(c.Metrics.Refused)
	if open != 2 || refused != 1 || c.Count() != 2 {
		t.Errorf("%v connections are counted, and %d, %v refused", open, c.Count(), refused)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for !served(dial()) { // until the server has learned that the first has left
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, end := range ends {
		<-end
	}
	if _, err := second.Read(make([]byte, 1)); err == nil {
		t.Error("a connection is left after the end")
	}
	if open := testutil.ToFloat64(c.Metrics.Open); open != 0 || c.Count() != 0 {
		t.Errorf("%v connections are counted after the end, and %d", open, c.Count())
	}
}
