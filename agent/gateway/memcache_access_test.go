package gateway_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/memcache"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

// replyOf sends text, and returns so many lines of the reply.
func (m *memcacheClient) replyOf(text string, lines int) string {
	m.t.Helper()
	m.send(text)
	var reply strings.Builder
	for range lines {
		line, err := m.reader.ReadString('\n')
		if err != nil {
			m.t.Fatalf("%.200q is answered by %.200q, and then %v", text, reply.String()+line, err)
		}
		reply.WriteString(line)
	}
	return reply.String()
}

// login sends a name and a secret, and returns the reply.
func (m *memcacheClient) login(words string) string {
	m.t.Helper()
	return m.replyOf(fmt.Sprintf("set who 0 0 %d\r\n%s\r\n", len(words), words), 1)
}

// Where users are asked for, clients say who they are as memcached has it, and may do what these may.
func TestMemcacheUsers(t *testing.T) {
	c := newCluster(t, 9)
	users := usersFile(t)
	c.put("photos/a", []byte("pixels"), api.PutOptions{})
	c.put("photos/b", []byte("pixels"), api.PutOptions{Class: "odd"})
	c.stopGateway()
	c.catalog, c.gateway = c.makeGateway("gw", func(o *gateway.Options) { o.Users = users })
	c.answering()
	address := c.serveMemcache()

	secrets := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(secrets, []byte("GALLERY:"+keySecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	we, they := dialMemcache(t, address), dialMemcache(t, server.Memcached(t, "-Y", secrets).Addr)
	for _, exchange := range []struct {
		send  string
		lines int
	}{
		{"get a\r\n", 1}, {"\r\n", 1}, {"set a 0 0\r\n", 1}, {"set a 0 0 x\r\n", 1}, {"add a 0 0 1\r\n", 1}, {"version\r\n", 1}, {"quit\r\n", 1},
		{"set a 0 0 3\r\nxxx\r\n", 1}, {"set a 0 0 3\r\nx y\r\n", 1}, {"set a 0 0 3\r\n   \r\n", 1}, {"set a 0 0 3\r\nx yz\r", 1},
		{"set a 0 0 40\r\nGALLERY " + keySecret + "\r\n", 1}, {"get a\r\n", 1}, {"set photos/a 0 0 x\r\n", 1},
	} {
		our, their := we.replyOf(exchange.send, exchange.lines), they.replyOf(exchange.send, exchange.lines)
		switch exchange.send {
		case "set a 0 0 3\r\nxxx\r\n": // with one word, which is a token here
			if our != "CLIENT_ERROR authentication failure\r\n" {
				t.Errorf("a token that nobody has is answered by %q", our)
			}
		case "get a\r\n":
			if strings.HasPrefix(their, "END") && !strings.HasPrefix(our, "CLIENT_ERROR forbidden: gallery may not do this") {
				t.Errorf("who may not read is told %q", our)
			} else if strings.HasPrefix(their, "CLIENT") && our != their {
				t.Errorf("who is not known is told %q, by memcached %q", our, their)
			}
		default:
			if our != their {
				t.Errorf("%q is answered by %q, by memcached %q", exchange.send, our, their)
			}
		}
	}
	for words, reply := range map[string]string{
		"token of ada": "CLIENT_ERROR authentication failure\r\n", "GALLERY wrong": "CLIENT_ERROR authentication failure\r\n",
		"GALLERY " + keySecret: "STORED\r\n", "  GALLERY   " + keySecret + "  ": "STORED\r\n",
	} {
		if got := dialMemcache(t, address).login(words); got != reply {
			t.Errorf("who says %q is told %q", words, got)
		}
	}
	gallery := dialMemcache(t, address)
	gallery.login("GALLERY " + keySecret)
	gallery.want("get photos/a photos/b\r\n", "VALUE photos/a 0 6\r\npixels\r\nVALUE photos/b 0 6\r\npixels\r\nEND\r\n")
	gallery.want("append photos/b 0 0 1\r\n2\r\nget photos/b\r\n", "STORED\r\nVALUE photos/b 0 7\r\npixels2\r\nEND\r\n")
	for _, command := range []string{
		"set photos/a 0 0 1\r\n1\r\n", "delete photos/a\r\n", "incr photos/a 1\r\n", "touch photos/a 1\r\n", "get other\r\n",
	} {
		if reply := gallery.ask(command); !strings.HasPrefix(reply, "CLIENT_ERROR ") || strings.Count(reply, "\n") != 1 {
			t.Errorf("%q is answered by %q", command, reply)
		}
	}
	c.check("photos/a", []byte("pixels"))

	session, err := c.gateway.Values().Login(t.Context(), "GALLERY", keySecret)
	if err != nil {
		t.Fatal(err)
	}
	theirs := dialMemcache(t, c.serveMemcache(func(o *memcache.Options) { o.Session = session }))
	theirs.want("get photos/a\r\n", "VALUE photos/a 0 6\r\npixels\r\nEND\r\n")
}

// Over TLS a certificate says who a client is, and who has none says it otherwise.
func TestMemcacheOverTLS(t *testing.T) {
	authority, directory := newAuthority(t, "blue"), t.TempDir()
	c := newCertifiedCluster(t, 9, authority, directory)
	c.stopGateway()
	own, err := pki.Load(filepath.Join(directory, "gw"))
	if err != nil {
		t.Fatal(err)
	}
	users := usersFile(t)
	c.catalog, c.gateway = c.makeGateway("gw", certified(own), func(o *gateway.Options) { o.HTTPS, o.Users = true, users })
	c.answering()
	address := c.serveMemcache(func(o *memcache.Options) { o.TLS = own.Doors() })
	dial := func(role pki.Role) *memcacheClient {
		t.Helper()
		config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // who serves is not what is tested
		if role != "" {
			config = issued(t, authority, role, string(role)+"-client", t.TempDir()).Client("", pki.RoleGateway)
		}
		conn, err := tls.Dial("tcp", address, config)
		if err != nil {
			t.Fatal(err)
		}
		return overConn(t, conn)
	}
	admin := dial(pki.RoleAdmin)
	data := noise(3<<20, 1)
	admin.want(fmt.Sprintf("set a 0 0 %d\r\n%s\r\nget a\r\n", len(data), data),
		fmt.Sprintf("STORED\r\nVALUE a 0 %d\r\n%s\r\nEND\r\n", len(data), data))
	if reply := dial(pki.RoleOperator).ask("get a\r\n"); !strings.HasPrefix(reply, "CLIENT_ERROR forbidden") {
		t.Errorf("the operator is told %q", reply)
	}
	nobody := dial("")
	if reply := nobody.replyOf("get a\r\n", 1); reply != "CLIENT_ERROR unauthenticated\r\n" {
		t.Errorf("nobody is told %q", reply)
	}
	if reply := nobody.login("GALLERY " + keySecret); reply != "STORED\r\n" {
		t.Errorf("one who says who it is is told %q", reply)
	}
	plain := dialMemcache(t, address)
	plain.send("get a\r\n")
	if reply, err := io.ReadAll(plain.conn); err == nil && strings.Contains(string(reply), "END") {
		t.Errorf("without TLS it answers %q", reply)
	}
}

func TestMemcacheConnectionsAreBounded(t *testing.T) {
	c := newCluster(t, 9)
	figures := prometheus.NewRegistry()
	address := c.serveMemcache(func(o *memcache.Options) { o.MaxConnections, o.Metrics = 2, figures })
	first, second := dialMemcache(t, address), dialMemcache(t, address)
	first.want("get a\r\n", "END\r\n")
	second.want("set a 0 0 1\r\n1\r\n", "STORED\r\n")
	if reply, err := io.ReadAll(dialMemcache(t, address).conn); string(reply) != "ERROR Too many open connections\r\n" {
		t.Errorf("the third is told %q, %v", reply, err)
	}
	text := "# HELP restripe_memcache_connections_refused_total Connections of clients of memcached that were one too many.\n" +
		"# TYPE restripe_memcache_connections_refused_total counter\nrestripe_memcache_connections_refused_total 1\n" +
		"# HELP restripe_memcache_connections Connections of clients of memcached.\n" +
		"# TYPE restripe_memcache_connections gauge\nrestripe_memcache_connections 2\n"
	if err := testutil.GatherAndCompare(figures, strings.NewReader(text), "restripe_memcache_connections_refused_total",
		"restripe_memcache_connections"); err != nil {
		t.Error(err)
	}
	if count, err := testutil.GatherAndCount(figures, "restripe_memcache_command_seconds"); err != nil || count != 3 { // get, set, mn
		t.Errorf("%d figures of commands, %v", count, err)
	}
	if err := first.conn.Close(); err != nil {
		t.Fatal(err)
	}
	c.await("there is room again", func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // it was only to see whether it is taken in
		if _, err := io.WriteString(conn, "mn\r\n"); err != nil {
			return false
		}
		reply := make([]byte, 4)
		_, err = io.ReadFull(conn, reply)
		return err == nil && string(reply) == "MN\r\n"
	})
}

// A server that ends carries out what it has begun, and closes what is idle.
func TestMemcacheServerEnds(t *testing.T) {
	c := newCluster(t, 9)
	s, err := memcache.New(memcache.Options{Store: c.gateway.Values()})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	idle, busy := dialMemcache(t, listener.Addr().String()), dialMemcache(t, listener.Addr().String())
	idle.want("get a\r\n", "END\r\n")
	var script strings.Builder
	for i := range 50 {
		fmt.Fprintf(&script, "set e%d 0 0 1 noreply\r\n1\r\n", i)
	}
	busy.want("get none\r\n", "END\r\n")
	busy.send(script.String() + "set half 0 0 5\r\n1")
	c.await("what was sent has come", func() bool {
		return strings.Contains(idle.ask("stats\r\n"), "STAT cmd_set 50\r\n")
	})
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	for _, m := range []*memcacheClient{idle, busy} {
		if rest, err := io.ReadAll(m.conn); len(rest) > 0 {
			t.Errorf("it was told %q at the end, %v", rest, err)
		}
	}
	for i := range 50 {
		c.check(fmt.Sprintf("e%d", i), []byte("1"))
	}
	c.audit()
}

// A client that takes nothing is not what others wait for, and costs no more memory than the server has for those.
func TestMemcacheClientsThatTakeNothing(t *testing.T) {
	c := newCluster(t, 9)
	address := c.serveMemcache(func(o *memcache.Options) { o.MemoryBytes = 1 << 20 })
	m := dialMemcache(t, address)
	data := noise(300_000, 1)
	m.want(fmt.Sprintf("set a 0 0 %d\r\n%s\r\nset b 0 0 1\r\n1\r\n", len(data), data), "STORED\r\nSTORED\r\n")
	var stuck []*memcacheClient
	for range 3 {
		one := dialMemcache(t, address)
		one.send(strings.Repeat("get a\r\nmg a v\r\n", 20))
		stuck = append(stuck, one)
	}
	for range 10 {
		m.want("get b\r\n", "VALUE b 0 1\r\n1\r\nEND\r\n")
		m.want("get a b\r\n", fmt.Sprintf("VALUE a 0 %d\r\n%s\r\nVALUE b 0 1\r\n1\r\nEND\r\n", len(data), data))
	}
	want := fmt.Sprintf("VALUE a 0 %d\r\n%s\r\nEND\r\nVA %d\r\n%s\r\n", len(data), data, len(data), data)
	reply := make([]byte, len(want))
	for _, one := range stuck { // when they do, they get all of it
		for range 20 {
			if _, err := io.ReadFull(one.reader, reply); err != nil || string(reply) != want {
				t.Fatalf("what was not taken for long is %.50q, %v", reply, err)
			}
		}
	}
	slow := dialMemcache(t, address)
	for _, piece := range strings.SplitAfter("set s 0 0 6\r\nsix\r\ny\r\nget s\r\n", "") {
		slow.send(piece)
	}
	slow.want("", "STORED\r\nVALUE s 0 6\r\nsix\r\ny\r\nEND\r\n")
}
