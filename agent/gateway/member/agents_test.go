package member

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	catalogmem "github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/wire"
)

// A node that swallows its probes is waited for; the others are asked every second all the same.
func TestABlackHoleHoldsUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		records, err := catalog.Open(t.Context(), catalogmem.New(), catalog.Owner("gw", "start"))
		if err != nil {
			t.Fatal(err)
		}
		var mutex sync.Mutex
		asked := map[string]int{}
		dial := func(ctx context.Context, address string) (net.Conn, error) {
			mutex.Lock()
			asked[address]++
			mutex.Unlock()
			if address == "hole" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, errors.New("nobody is there")
		}
		a := NewAgents(records, "gw", time.Second, func(block.NodeID) wire.Dial { return dial }, slog.New(slog.DiscardHandler))
		for _, id := range []string{"hole", "closed"} {
			if _, err := records.ChangeNode(t.Context(), catalog.Node{}, catalog.Node{ID: block.NodeID(id), Address: id, State: catalog.NodeUp}); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			a.ProbeLoop(ctx)
		}()
		<-time.After(20*time.Second + time.Second/2)
		cancel()
		<-ended
		if asked["closed"] != 21 || asked["hole"] < 5 || asked["hole"] > 9 {
			t.Errorf("asked in 20 seconds: %v", asked)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The connections to nodes that were removed are closed with the others.
func TestConnectionsToRemovedNodesAreClosed(t *testing.T) {
	t.Parallel()
	removed := &Agent{Node: catalog.Node{ID: "n1", State: catalog.NodeRemoved}, link: newLink("localhost:1", nil, nil)}
	a := &Agents{Nodes: map[block.NodeID]*Agent{"n1": removed}}
	if err := a.Close(); err != nil || !removed.link.closed {
		t.Errorf("closed %t, %v", removed.link.closed, err)
	}
}
