package serve

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Connections that do nothing make room for those that do.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	open := &connections{most: 3, quiet: map[net.Conn]time.Time{}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			close(entered)
			<-release
		}
		if _, err := io.WriteString(w, "ok"); err != nil {
			t.Error(err)
		}
	}))
	var most int
	server.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		open.state(conn, state)
		open.mutex.Lock()
		defer open.mutex.Unlock()
		most = max(most, len(open.quiet))
	}
	server.Start()
	defer server.Close()
	get := func(path string) {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		reply, err := client.Get(server.URL + path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		text, err := io.ReadAll(reply.Body)
		if err := errors.Join(err, reply.Body.Close()); err != nil || string(text) != "ok" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	var busy sync.WaitGroup
	busy.Go(func() { get("/long") })
	<-entered
	var idle []net.Conn
	for range 10 {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // it is closed by the server, or with the test
		idle = append(idle, conn)
	}
	get("/")
	if rest, err := io.ReadAll(idle[0]); len(rest) > 0 {
		t.Errorf("the connection that was idle for the longest: %q, %v", rest, err)
	}
	close(release)
	busy.Wait()
	open.mutex.Lock()
	defer open.mutex.Unlock()
	if most != open.most {
		t.Errorf("%d connections at a time, of %d", most, open.most)
	}
}
