package operator_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/restripe/restripe/operator"
)

// Whoever watches over an operator is told once it has started, and may ask whether it lives.
func TestStartedOperatorsSaySo(t *testing.T) {
	w := newWorld(t)
	started := make(chan error, 1)
	w.operator(func(options *operator.Options) {
		options.Started = func(ctx context.Context, alive func(context.Context) error) { started <- alive(ctx) }
	})
	select {
	case err := <-started:
		if err != nil {
			t.Errorf("it has started and does not live: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("it does not say that it has started")
	}
}

// An operator answers about its health where it is told to.
func TestOperatorsAnswerAboutTheirHealth(t *testing.T) {
	w := newWorld(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	w.operator(func(options *operator.Options) { options.HealthListen = address })
	for _, path := range []string{"/healthz", "/readyz"} {
		w.eventually("it answers "+path, func() bool {
			reply, err := http.Get("http://" + address + path)
			if err != nil {
				return false
			}
			if err := reply.Body.Close(); err != nil {
				t.Error(err)
			}
			return reply.StatusCode == http.StatusOK
		})
	}
}
