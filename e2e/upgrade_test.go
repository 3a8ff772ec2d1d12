package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
)

// TestRollingUpgrade takes a cluster from the release before to this one under load, one part at a time, and back: agents first,
// then the gateway. What was stored by either is read by either, and no request fails but while the gateway itself is exchanged.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	before, now := programBefore(t), program(t)
	stores := directories(t, 6)
	catalog, classes := "sqlite:"+filepath.Join(t.TempDir(), "catalog.db"), write(t, "classes.yaml", faultClasses)
	start := func(binary string, arguments ...string) *daemon {
		t.Helper()
		return serveCommand(t, exec.Command(binary, append(arguments, "--"+launch.LifelineFlag)...))
	}
	agents := make([]*daemon, len(stores))
	for i, store := range stores {
		agents[i] = start(before, "agent", "--id", fmt.Sprintf("n%d", i+1), "--store", store)
	}
	nodes := nodeFile(t, agents...)
	gateway := func(binary, address string) *daemon {
		return start(binary, "gateway", "--catalog", catalog, "--nodes", nodes, "--classes", classes, "--listen", address, "--grace", "0s")
	}
	g := gateway(before, "127.0.0.1:0")
	address := g.address
	c := clientOf(t, address)
	u := &upgrading{t: t, client: c, stored: map[string]uint64{}}
	exchange := func(binary string) {
		t.Helper()
		for i := range agents {
			where := agents[i].address
			agents[i].stop(t)
			agents[i] = start(binary, "agent", "--id", fmt.Sprintf("n%d", i+1), "--store", stores[i], "--listen", where)
			allUp(t, address, len(agents))
			u.progress()
		}
		u.pause(func() {
			g.stop(t)
			g = gateway(binary, address)
			allUp(t, address, len(agents))
		})
		u.progress()
		must(t, address, "transition", "start", "--class", "default", "--to", "rs(4,1)", "--wait")
		must(t, address, "transition", "start", "--class", "default", "--to", "rs(2,1)", "--wait")
	}
	var load sync.WaitGroup
	defer load.Wait()
	defer u.ended.Store(true)
	for worker := range 3 {
		load.Go(func() { u.work(t.Context(), worker) })
	}
	exchange(now)
	exchange(before)
	u.ended.Store(true)
	load.Wait()
	for key, seed := range u.stored {
		holds(t, c, key, noise(seed, 30_000))
	}
	if len(u.stored) == 0 {
		t.Error("nothing was stored")
	}
	atRest(t, c)
}

// upgrading is the load on a cluster that is upgraded.
type upgrading struct {
	t      *testing.T
	client *client.Client
	gate   sync.RWMutex // held for writing while the gateway is exchanged
	count  atomic.Int64
	ended  atomic.Bool
	mutex  sync.Mutex // of stored
	stored map[string]uint64
}

// work stores objects, reads them back and overwrites them, until that ends.
func (u *upgrading) work(ctx context.Context, worker int) {
	for turn := 0; !u.ended.Load(); turn++ {
		u.gate.RLock()
		key, seed := fmt.Sprintf("w%d/%d", worker, turn%40), uint64(worker*1_000_000+turn)
		data := noise(seed, 30_000)
		_, err := u.client.Put(ctx, key, bytes.NewReader(data), client.PutOptions{})
		var got []byte
		if err == nil {
			got, err = fetch(ctx, u.client, key)
		}
		u.gate.RUnlock()
		if err != nil || !bytes.Equal(got, data) {
			u.t.Errorf("storing and reading %s: %d bytes, %v", key, len(got), err)
			return
		}
		u.mutex.Lock()
		u.stored[key] = seed
		u.mutex.Unlock()
		u.count.Add(1)
	}
}

// progress waits until something was stored.
func (u *upgrading) progress() {
	u.t.Helper()
	want := u.count.Load() + 10
	until(u.t, "objects are stored", func() bool { return u.count.Load() >= want })
}

// pause does something while there is no load.
func (u *upgrading) pause(what func()) {
	u.gate.Lock()
	defer u.gate.Unlock()
	what()
}
