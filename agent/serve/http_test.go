package serve_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/restripe/restripe/agent/serve"
)

// A request that is under way when the server is told to stop is answered.
func TestRequestsUnderWayFinish(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	arrived, ending := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-ending
		if _, err := io.WriteString(w, "answered"); err != nil {
			t.Error(err)
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve.Until(ctx, listener, serve.Server(handler), func() { close(ending) }) }()
	go func() {
		<-arrived
		stop()
	}()
	reply, err := http.Get("http://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reply.Body)
	if err != nil || string(text) != "answered" {
		t.Errorf("read %q, %v", text, err)
	}
	if err := reply.Body.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A listener that is closed by somebody else ends the server with an error.
func TestAClosedListenerIsAnError(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := serve.Until(t.Context(), listener, serve.Server(http.NotFoundHandler()), nil); err == nil {
		t.Error("it ended without an error")
	}
}
