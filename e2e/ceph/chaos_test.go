//go:build ceph

package ceph_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
)

var chaosFaults = flag.Int("chaos.faults", 8, "faults of the chaos test")

// history is what became of one key, which only one writer writes. Every version has a content of its own.
type history struct {
	key          string
	acknowledged uint64 // the last version whose write was acknowledged; 0: none
	tried        uint64 // the last version that was tried
}

// version returns the content of a version of a key.
func (h *history) version(number uint64) []byte {
	source := rand.New(rand.NewPCG(number, uint64(len(h.key))))
	value := binary.BigEndian.AppendUint64([]byte(h.key), number)
	for range 500 + source.IntN(8000) {
		value = append(value, byte(source.Uint32()))
	}
	return value
}

// wreck has OSDs, the monitor, agents and the gateway killed while objects are overwritten and moved up and down the
// ladder. Every object must read as its last acknowledged version, or as one that was tried later and whose outcome nobody
// knows.
func (w *world) wreck() {
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	var group sync.WaitGroup
	histories := make([]*history, 12)
	for i := range histories {
		histories[i] = &history{key: fmt.Sprintf("narrow/chaos/%d", i)}
		group.Go(func() { w.overwrite(ctx, histories[i]) })
	}
	moved := 0
	group.Go(func() { moved = w.moveAbout(ctx) })
	for fault := range *chaosFaults {
		before := w.acknowledged(histories)
		w.fault(fault)
		w.await("objects are written again", func() bool { return w.acknowledged(histories) > before+10 })
	}
	w.await("all nodes are up", w.allUp)
	stop()
	group.Wait()
	w.t.Logf("%d versions were acknowledged, %d transitions ended well", w.acknowledged(histories), moved)
	w.await("every group is whole", w.whole)
	for _, h := range histories {
		w.check(h)
	}
	w.healthy()
}

// counter guards the numbers of all histories.
var counter sync.Mutex

func (w *world) acknowledged(histories []*history) (sum uint64) {
	counter.Lock()
	defer counter.Unlock()
	for _, h := range histories {
		sum += h.acknowledged
	}
	return sum
}

// overwrite writes one version of a key after the other.
func (w *world) overwrite(ctx context.Context, h *history) {
	for ctx.Err() == nil {
		counter.Lock()
		h.tried++
		number := h.tried
		counter.Unlock()
		// A request that is given up while it waits at the gateway may be carried out later, and so undo a later one: each
		// is waited for to its end.
		if err := w.put(w.t.Context(), h.key, h.version(number)); err == nil {
			counter.Lock()
			h.acknowledged = number
			counter.Unlock()
			continue
		}
		w.pause(ctx, 50*time.Millisecond)
	}
}

// pause is the distance between two tries.
func (w *world) pause(ctx context.Context, length time.Duration) {
	select {
	case <-time.After(length):
	case <-ctx.Done():
	}
}

// moveAbout takes the class up and down its ladder and returns how often that succeeded.
func (w *world) moveAbout(ctx context.Context) (moved int) {
	ladder := []string{"rs(3,2)", "rs(6,2)", "rs(3,2)", "rep(3)"}
	for i := 0; ctx.Err() == nil; i++ {
		moving, err := w.client.StartTransition(ctx, api.TransitionRequest{Selector: api.Selector{Class: "narrow"}, To: ladder[i%len(ladder)]})
		for err == nil && !moving.State.Final() && ctx.Err() == nil {
			w.pause(ctx, 100*time.Millisecond)
			if now, lookErr := w.client.Transition(ctx, moving.ID); lookErr == nil {
				moving = now
			}
		}
		if err == nil && moving.State == api.TransitionDone {
			moved++
		}
		w.pause(ctx, 50*time.Millisecond)
	}
	return moved
}

// fault has something killed and, once it was missed for a while, started again.
func (w *world) fault(number int) {
	w.t.Helper()
	osd := w.random.IntN(nodes)
	agent := fmt.Sprint("n", 1+w.random.IntN(nodes))
	var steps []func() error
	var what string
	missed := func() error { w.pause(w.t.Context(), time.Duration(w.random.IntN(5000))*time.Millisecond); return nil }
	switch number % 4 {
	case 0:
		what = fmt.Sprint("osd.", osd)
		steps = []func() error{func() error { return w.ceph.KillOSD(osd) }, missed, func() error { return w.ceph.StartOSD(osd) }}
	case 1:
		what = "the monitor"
		steps = []func() error{w.ceph.StopMon, missed, w.ceph.StartMon}
	case 2:
		other := (osd + 1) % nodes
		what = fmt.Sprintf("osd.%d and osd.%d", osd, other)
		steps = []func() error{
			func() error { return w.ceph.KillOSD(osd) }, func() error { return w.ceph.KillOSD(other) }, missed,
			func() error { return w.ceph.StartOSD(other) }, func() error { return w.ceph.StartOSD(osd) },
		}
	case 3:
		what = agent + " and the gateway"
		steps = []func() error{func() error { return w.cluster.Kill(agent) }, func() error { return w.cluster.Kill(launch.GatewayName) }}
	}
	began := time.Now()
	for _, step := range steps {
		if err := step(); err != nil {
			w.t.Fatalf("killing %s: %v", what, err)
		}
	}
	w.t.Logf("fault %d: %s, for %v", number+1, what, time.Since(began).Round(time.Millisecond))
}

// check reads a key and fails the test if it is older than what was acknowledged, or nothing that was ever tried.
func (w *world) check(h *history) {
	w.t.Helper()
	var got []byte
	w.await(h.key+" reads", func() bool {
		content, err := w.client.Get(w.t.Context(), h.key, client.Range{})
		if errors.Is(err, api.ErrNotFound) && h.acknowledged == 0 {
			return true
		}
		if err != nil {
			return false
		}
		got, err = io.ReadAll(content)
		return errors.Join(err, content.Close()) == nil
	})
	if got == nil {
		return
	}
	for number := max(h.acknowledged, 1); number <= h.tried; number++ {
		if bytes.Equal(got, h.version(number)) {
			return
		}
	}
	w.t.Errorf("%s reads %d bytes that are no version from %d, the last acknowledged, to %d, the last tried", h.key, len(got), h.acknowledged, h.tried)
}

// TestChaosOnCeph kills what can be killed.
func TestChaosOnCeph(t *testing.T) {
	if testing.Short() {
		t.Skip("the chaos test needs minutes; -short leaves it out")
	}
	w := newWorld(t)
	w.await("all nodes are up", w.allUp)
	w.wreck()
}
