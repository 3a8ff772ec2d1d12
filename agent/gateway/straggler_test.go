package gateway_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
)

// stuckStore is a store whose reads wait for as long as it is stuck.
type stuckStore struct {
	store.Store
	mutex sync.Mutex
	free  chan struct{} // nil: not stuck
}

func (s *stuckStore) stick() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.free = make(chan struct{})
}

func (s *stuckStore) release() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	close(s.free)
	s.free = nil
}

func (s *stuckStore) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	s.mutex.Lock()
	free := s.free
	s.mutex.Unlock()
	if free != nil {
		select {
		case <-free:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return s.Store.ReadAt(ctx, key, p, offset)
}

// A node that answers greetings and no reads holds nobody up: calls would wait for an hour here, and every object reads
// back without it.
func TestAStragglerHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	stuck := &stuckStore{}
	c := newCluster(t, 9, func(agent *testAgent) {
		if agent.id == "n4" {
			agent.wrap = func(inner store.Store) store.Store {
				stuck.Store = inner
				return stuck
			}
		}
	})
	g := c.newGateway("patient", func(o *gateway.Options) { o.CallTimeout = time.Hour })
	objects := map[string][]byte{}
	for i, scheme := range []string{"rep(3)", "rs(3,2)", "rs(6,2)"} {
		for j := range 3 {
			key := fmt.Sprintf("%s %d", scheme, j)
			objects[key] = noise(100<<10, uint64(10*i+j))
			c.put(key, objects[key], api.PutOptions{Scheme: scheme})
		}
	}
	stuck.stick()
	defer stuck.release()
	var readers errgroup.Group
	for range 20 { // side by side, which takes more hedges than the ration has at once
		for key, want := range objects {
			readers.Go(func() error {
				got, err := c.readFrom(g, key)
				if err == nil && string(got) != string(want) {
					err = fmt.Errorf("%s: %d other bytes", key, len(got))
				}
				return err
			})
		}
	}
	if err := readers.Wait(); err != nil {
		t.Fatal(err)
	}
}

// A block that is lost is rebuilt for the read that meets it also where its node takes so long to say so that the bytes were decoded.
func TestALossThatIsToldLateIsMended(t *testing.T) {
	t.Parallel()
	stores := map[block.NodeID]*stuckStore{}
	c := newCluster(t, 9, func(agent *testAgent) {
		stuck := &stuckStore{}
		stores[agent.id] = stuck
		agent.wrap = func(inner store.Store) store.Store {
			stuck.Store = inner
			return stuck
		}
	})
	g := c.newGateway("patient", func(o *gateway.Options) { o.CallTimeout = time.Hour }, patient)
	want := noise(100<<10, 1)
	c.put("k", want, api.PutOptions{Scheme: "rs(3,2)"})
	lost := c.blocks("k", 0)[0]
	c.lose("k", 0)
	stuck := stores[lost.Node]
	stuck.stick()
	c.checkAt(g, "k", want)
	if count := readRepairs(t, g, "wait", "repaired"); count > 0 {
		t.Fatalf("%d groups are rebuilt before the loss is known", count)
	}
	stuck.release()
	c.await("the block is there again", func() bool { return c.stat("k").Groups[0].Slots[0].State == "ok" })
	if count := readRepairs(t, g, "wait", "repaired"); count != 1 {
		t.Errorf("%d groups were rebuilt for reads, want 1", count)
	}
	c.checkAt(g, "k", want)
}
