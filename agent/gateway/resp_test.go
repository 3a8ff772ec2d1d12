package gateway_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/resp"
)

// serveRedis serves the gateway of a cluster to clients of Redis until the test ends, and returns its address.
func (c *cluster) serveRedis(changes ...func(*resp.Options)) string {
	c.t.Helper()
	options := resp.Options{Store: c.gateway.Values(), Logger: slog.New(slog.DiscardHandler)}
	for _, change := range changes {
		change(&options)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- resp.New(options).Serve(ctx, listener) }()
	c.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
	})
	return listener.Addr().String()
}

// wire is a connection to a server of the protocol of Redis, as a client has it.
type redisWire struct {
	t    *testing.T
	conn net.Conn
	from *bufio.Reader
}

func dialRedis(t *testing.T, address string) *redisWire {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // some tests close it first
	return &redisWire{t, conn, bufio.NewReader(conn)}
}

// command is a command as it is sent.
func redisCommand(arguments ...string) string {
	var text strings.Builder
	text.WriteString("*" + strconv.Itoa(len(arguments)) + "\r\n")
	for _, argument := range arguments {
		text.WriteString("$" + strconv.Itoa(len(argument)) + "\r\n" + argument + "\r\n")
	}
	return text.String()
}

func (w *redisWire) send(text string) {
	w.t.Helper()
	if _, err := io.WriteString(w.conn, text); err != nil {
		w.t.Fatal(err)
	}
}

// reply is the next reply, as a text in which lists are in brackets.
func (w *redisWire) reply() string {
	w.t.Helper()
	if err := w.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		w.t.Fatal(err)
	}
	text, err := readReply(w.from)
	if err != nil {
		w.t.Fatalf("reading a reply: %v", err)
	}
	return text
}

func (w *redisWire) do(arguments ...string) string {
	w.t.Helper()
	w.send(redisCommand(arguments...))
	return w.reply()
}

func (w *redisWire) want(want string, arguments ...string) {
	w.t.Helper()
	if got := w.do(arguments...); got != want {
		w.t.Errorf("%.200q: %.200q, want %.200q", arguments, got, want)
	}
}

func readReply(from *bufio.Reader) (string, error) {
	line, err := from.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	switch line[0] {
	case '$', '=':
		length, err := strconv.Atoi(line[1:])
		if err != nil {
			return "", err
		}
		if length < 0 {
			return "(nil)", nil
		}
		data := make([]byte, length+2)
		if _, err := io.ReadFull(from, data); err != nil {
			return "", err
		}
		return string(data[:length]), nil
	case '*', '~', '%':
		count, err := strconv.Atoi(line[1:])
		if err != nil {
			return "", err
		}
		if count < 0 {
			return "(nil list)", nil
		}
		if line[0] == '%' {
			count *= 2
		}
		parts := make([]string, count)
		for i := range parts {
			if parts[i], err = readReply(from); err != nil {
				return "", err
			}
		}
		return line[:1] + "[" + strings.Join(parts, " ") + "]", nil
	case '_':
		return "(nil)", nil
	}
	return line, nil
}

// A client of Redis stores, reads and changes objects that others read over the gateway's own interface.
func TestRedisClientsShareObjects(t *testing.T) {
	c := newCluster(t, 8)
	w := dialRedis(t, c.serveRedis())
	w.want("+OK", "SET", "a key", "one")
	c.check("a key", []byte("one"))
	w.want("one", "get", "a key")
	w.want(":6", "APPEND", "a key", "two")
	c.check("a key", []byte("onetwo"))
	w.want("(nil)", "GET", "nothing")
	large := string(noise(300_000, 1))
	w.want("+OK", "SET", "large", large)
	w.want(large, "GET", "large")
	w.want("+OK", "MSET", "a", "one", "b", "two")
	w.want("*[one two onetwo (nil)]", "MGET", "a", "b", "a key", "c")
}
