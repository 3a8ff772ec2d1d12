package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/memcache"
)

// serveMemcache serves the values of the cluster's gateway to clients of memcached until the test ends, and returns its address.
func (c *cluster) serveMemcache(options ...func(*memcache.Options)) string {
	c.t.Helper()
	o := memcache.Options{Store: c.gateway.Values(), Logger: slog.New(slog.DiscardHandler)}
	for _, option := range options {
		option(&o)
	}
	server, err := memcache.New(o)
	if err != nil {
		c.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	c.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
	})
	return listener.Addr().String()
}

// memcacheClient is a connection to a server that speaks memcached's protocol.
type memcacheClient struct {
	t      testing.TB
	conn   net.Conn
	reader *bufio.Reader
}

func dialMemcache(t testing.TB, address string) *memcacheClient {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return overConn(t, conn)
}

func overConn(t testing.TB, conn net.Conn) *memcacheClient {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() }) // the server may have closed it
	if err := conn.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	return &memcacheClient{t: t, conn: conn, reader: bufio.NewReader(conn)}
}

func (m *memcacheClient) send(text string) {
	m.t.Helper()
	if _, err := io.WriteString(m.conn, text); err != nil {
		m.t.Fatal(err)
	}
}

// ask sends commands and returns all of their reply: what comes before that to a command which tells nothing.
func (m *memcacheClient) ask(text string) string {
	m.t.Helper()
	m.send(text + "mn\r\n")
	var reply bytes.Buffer
	for {
		line, err := m.reader.ReadString('\n')
		if err != nil {
			m.t.Fatalf("%.200q is answered by %.200q, and then %v", text, reply.String()+line, err)
		}
		if line == "MN\r\n" {
			return reply.String()
		}
		reply.WriteString(line)
	}
}

// want asks, and compares the reply.
func (m *memcacheClient) want(text, reply string) {
	m.t.Helper()
	if got := m.ask(text); got != reply {
		m.t.Errorf("%.200q is answered by %.300q, want %.300q", text, got, reply)
	}
}

func TestMemcacheCommands(t *testing.T) {
	c := newCluster(t, 9)
	m := dialMemcache(t, c.serveMemcache())
	m.want("get none\r\n", "END\r\n")
	m.want("set a 7 0 5\r\nhello\r\n", "STORED\r\n")
	m.want("get a\r\n", "VALUE a 7 5\r\nhello\r\nEND\r\n")
	m.want("add a 7 0 5\r\nhello\r\n", "NOT_STORED\r\n")
	m.want("append a 0 0 3\r\nend\r\n", "STORED\r\n")
	m.want("get a none a\r\n", "VALUE a 7 8\r\nhelloend\r\nVALUE a 7 8\r\nhelloend\r\nEND\r\n")
	m.want("set n 0 0 2 noreply\r\n10\r\nincr n 5\r\ndecr n 100\r\n", "15\r\n0\r\n")
	m.want("touch a 100\r\nmg a t\r\n", "TOUCHED\r\nHD t100\r\n")
	m.want("delete a\r\ndelete a\r\nget a\r\n", "DELETED\r\nNOT_FOUND\r\nEND\r\n")
	m.want("flush_all\r\n", "SERVER_ERROR flush_all is refused: it would delete objects that other clients and other protocols stored; "+
		"delete keys one by one, or start the gateway with --memcached-flush\r\n")
	var script, replies strings.Builder
	for i := range 200 {
		fmt.Fprintf(&script, "set k%d 0 0 2 noreply\r\n%02d\r\n", i%50, i%100)
		fmt.Fprintf(&script, "get k%d\r\n", i%50)
		fmt.Fprintf(&replies, "VALUE k%d 0 2\r\n%02d\r\nEND\r\n", i%50, i%100)
	}
	m.want(script.String(), replies.String())
	c.audit()
}
