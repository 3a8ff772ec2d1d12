package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// scripted serves one connection: what it reads is returned, and it answers by the script at once.
func scripted(t *testing.T, answer string) (address string, asked func() string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan string, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			read <- err.Error()
			return
		}
		_, _ = io.WriteString(conn, answer)
		_ = conn.(*net.TCPConn).CloseWrite() // no more answers come
		all, _ := io.ReadAll(conn)           // until the client leaves
		read <- string(all)
		_ = conn.Close()
	}()
	return listener.Addr().String(), func() string { defer listener.Close(); return <-read }
}

func TestSessionsSpeakTheirProtocols(t *testing.T) {
	for _, one := range []struct {
		name         string
		at           func(address string) connector
		answer, want string
	}{
		{"redis", redisAt, "+OK\r\n$3\r\nabc\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\nabc\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"},
		{"memcached", memcachedAt, "STORED\r\nVALUE k 0 3\r\nabc\r\nEND\r\n", "set k 0 0 3\r\nabc\r\nget k\r\n"},
	} {
		t.Run(one.name, func(t *testing.T) {
			address, asked := scripted(t, one.answer)
			s, err := one.at(address)()
			if err != nil {
				t.Fatal(err)
			}
			if err := s.set("k", []byte("abc")); err != nil {
				t.Error(err)
			}
			if value, err := s.get("k"); err != nil || string(value) != "abc" {
				t.Errorf("got %q, %v", value, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if got := asked(); got != one.want {
				t.Errorf("asked %q, want %q", got, one.want)
			}
		})
	}
}

func TestSessionsTellWhatTheyAreRefused(t *testing.T) {
	for _, one := range []struct {
		at     func(address string) connector
		answer string
	}{
		{redisAt, "$-1\r\n"}, {redisAt, "-ERR no\r\n"}, {redisAt, "$x\r\n"}, {redisAt, ""}, {redisAt, "$9\r\nabc"},
		{memcachedAt, "END\r\n"}, {memcachedAt, "SERVER_ERROR no\r\n"}, {memcachedAt, "VALUE k 0 -3\r\n"}, {memcachedAt, "VALUE k 0 3\r\nab"},
	} {
		for _, ask := range []func(session) error{
			func(s session) error { _, err := s.get("k"); return err }, func(s session) error { return s.set("k", nil) },
		} {
			address, asked := scripted(t, one.answer)
			s, err := one.at(address)()
			if err != nil {
				t.Fatal(err)
			}
			if err := ask(s); err == nil {
				t.Errorf("%q is taken", one.answer)
			}
			_ = s.Close() // may be broken
			asked()
		}
	}
}

func TestSessionOverHTTP(t *testing.T) {
	values := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.URL.Path, "/v1/objects/")
		if r.Method == http.MethodPut {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			values[key] = string(body)
			return
		}
		if value, there := values[key]; there {
			fmt.Fprint(w, value)
			return
		}
		http.Error(w, "there is no such object", http.StatusNotFound)
	}))
	defer server.Close()
	s, err := httpAt(strings.TrimPrefix(server.URL, "http://"))()
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"a longer value", "short"} {
		if err := s.set("a/b", []byte(value)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.get("a/b"); err != nil || string(got) != value {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if _, err := s.get("none"); err == nil || !strings.Contains(err.Error(), "no such object") {
		t.Errorf("what is not there is %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// nobody is a session that does nothing.
type nobody struct{ closed *int }

func (n nobody) get(string) ([]byte, error) { return nil, nil }
func (n nobody) set(string, []byte) error   { return nil }
func (n nobody) Close() error               { *n.closed++; return nil }

func TestClientsDoEverythingOnce(t *testing.T) {
	done, closed := make([]int, 100), 0
	connect := func() (session, error) { return nobody{&closed}, nil }
	err := byClients(1, len(done), connect, func(_ session, i int, buffer []byte) ([]byte, error) {
		done[i]++
		return append(buffer, 1), nil
	})
	for i, times := range done {
		if times != 1 {
			t.Errorf("%d was done %d times", i, times)
		}
	}
	if err != nil || closed != 1 {
		t.Errorf("%v, %d sessions closed", err, closed)
	}
	broken, times := errors.New("broken"), 0
	err = byClients(1, 100, connect, func(session, int, []byte) ([]byte, error) {
		times++
		return nil, broken
	})
	if !errors.Is(err, broken) || times != 1 {
		t.Errorf("%v after %d", err, times)
	}
}

func TestLinesAreSentWhenAnAnswerIsWanted(t *testing.T) {
	address, asked := scripted(t, "one\r\ntwo\r\n")
	s, err := dial(address)
	if err != nil {
		t.Fatal(err)
	}
	s.writer = bufio.NewWriterSize(s.Conn, 1<<20)
	_, _ = s.writer.WriteString("ask\r\n")
	for _, want := range []string{"one", "two"} {
		if line, err := s.line(); err != nil || line != want {
			t.Errorf("line %q, %v", line, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := asked(); got != "ask\r\n" {
		t.Errorf("sent %q", got)
	}
}

func TestWhatEndsLateIsNotInTheRate(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	closed := 0
	connect := func() (session, error) { return nobody{&closed}, nil }
	o, err := forSeconds(ctx, 1, 60, connect, func(session, int, int) (time.Duration, bool, error) {
		stop() // the time is over before the answer is there
		return time.Second, false, nil
	})
	if err != nil || o.operations != 1 || o.reads.count != 1 || o.perSecond != 0 || closed != 1 {
		t.Errorf("%+v, %v, %d sessions closed", o, err, closed)
	}
}

func TestSessionOverS3(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		by := r.Header.Get("Authorization")
		if !strings.HasPrefix(by, "AWS4-HMAC-SHA256 Credential="+s3Key+"/") || r.Header.Get("X-Amz-Content-Sha256") != sumSigned {
			t.Errorf("%s %s is signed by %q", r.Method, r.URL.Path, by)
		}
		fmt.Fprint(w, "value")
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	if err := makeBucket(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	s, err := s3At(address)()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.set("a/b", []byte("value")); err != nil {
		t.Error(err)
	}
	if value, err := s.get("a/b"); err != nil || string(value) != "value" {
		t.Errorf("got %q, %v", value, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := strings.Join(asked, ", "); got != "PUT /bench, PUT /bench/a/b, GET /bench/a/b" {
		t.Errorf("asked %s", got)
	}
}
