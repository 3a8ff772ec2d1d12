package member

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/wire"
)

// A gateway that fills an agent with its own requests still hears from it.
func TestProbesDoNotWaitBehindBlocks(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	listener, err := wire.Listen(ctx, "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	entered, release := make(chan struct{}, 2), make(chan struct{})
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	server := wire.NewServer(wire.ServerOptions{RequestBytes: 100_000, Wait: time.Hour})
	handle := func(_ context.Context, op wire.Op, _ []byte, _ *wire.Payload) (any, []byte, func(), error) {
		if op == wire.OpWrite {
			entered <- struct{}{}
			<-release
		}
		return nil, nil, nil, nil
	}
	running.Go(func() {
		if err := server.Serve(ctx, listener, handle); err != nil {
			t.Error(err)
		}
	})
	agent := newLink(listener.Addr().String(), nil, nil)
	var writes sync.WaitGroup
	for range 2 { // the second waits for the memory that the first has
		writes.Go(func() {
			if _, err := agent.call(ctx, wire.OpWrite, wire.WriteRequest{}, make([]byte, 90_000), nil); err != nil {
				t.Error(err)
			}
		})
	}
	<-entered
	patience, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := agent.call(patience, wire.OpHello, wire.HelloRequest{}, nil, nil); err != nil {
		t.Errorf("a probe beside blocks that wait: %v", err)
	}
	close(release)
	writes.Wait()
	if err := agent.close(); err != nil {
		t.Error(err)
	}
}
