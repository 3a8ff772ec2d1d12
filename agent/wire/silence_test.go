package wire

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// A peer that took a connection and then died without a word is given up, also where every caller gives up long before
// the client does: else calls would go into the dead connection for ever.
func TestADeadPeerIsNotKeptByImpatientCallers(t *testing.T) {
	var dials atomic.Int64
	client := dial(t, "nowhere:1", ClientOptions{KeepAlive: 10 * time.Millisecond, Dial: func(context.Context, string) (net.Conn, error) {
		dials.Add(1)
		ours, theirs := net.Pipe()
		go io.Copy(io.Discard, theirs) // it takes everything and never answers
		t.Cleanup(func() { theirs.Close() })
		return ours, nil
	}})
	limit := within(t, 10*time.Second)
	for dials.Load() < 2 {
		ctx, cancel := context.WithTimeout(limit, time.Millisecond)
		if _, err := client.Call(ctx, OpHello, HelloRequest{}, nil, nil); err == nil {
			t.Fatal("nobody was there, and answered")
		}
		cancel()
		if limit.Err() != nil {
			t.Fatal("the dead connection was kept")
		}
		quiet := time.NewTimer(15 * time.Millisecond) // most of the time nobody waits for the peer
		<-quiet.C
	}
}
