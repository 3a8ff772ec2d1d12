//go:build ceph

package ceph

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/ceph/cephtest"
	"github.com/restripe/restripe/agent/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The least capabilities of an agent's user, as docs/ceph.md has them: every test opens stores with these.
var leastCapabilities = []string{"mon", "allow r", "osd", "allow rw tag restripe *=*"}

// world is a cluster with an unprivileged user.
type world struct {
	*cephtest.Cluster
	keyring string
	timeout time.Duration
	pools   atomic.Int32
}

func start(t testing.TB, options cephtest.Options) *world {
	t.Helper()
	w := &world{Cluster: cephtest.Start(t, options), timeout: 10 * time.Second}
	keyring, err := w.CreateUser("restripe", leastCapabilities...)
	if err != nil {
		t.Fatal(err)
	}
	w.keyring = keyring
	return w
}

// options are those of a pool.
func (w *world) storeOptions(pool string) Options {
	return Options{Pool: pool, Config: w.Config(), Keyring: w.keyring, Timeout: w.timeout}
}

// open makes a pool of four placement groups over the first host, and opens it.
func (w *world) open(t testing.TB) *Store {
	t.Helper()
	pool := fmt.Sprintf("pool%d", w.pools.Add(1))
	must(t, w.CreateNodePool(pool, "node1", 4))
	return w.openPool(t, pool)
}

func (w *world) openPool(t testing.TB, pool string) *Store {
	t.Helper()
	s, err := Open(t.Context(), w.storeOptions(pool))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	w := start(t, cephtest.Options{Hosts: 1, OSDsPerHost: 2})
	storetest.Run(t, func(t testing.TB) store.Store { return w.open(t) }, storetest.Options{
		Crashing: func(t testing.TB) storetest.Crashing {
			w := start(t, cephtest.Options{Hosts: 1, Bluestore: true})
			w.timeout = time.Second
			return storetest.Crashing{
				Store: w.open(t), Kill: func() { must(t, w.KillOSD(0)) },
				Restart: func() { must(t, w.StartOSD(0)); must(t, w.AwaitServing()) },
			}
		},
	})
}

func BenchmarkStore(b *testing.B) {
	w := start(b, cephtest.Options{Hosts: 1})
	storetest.Benchmark(b, func(t testing.TB) store.Store { return w.open(t) })
}
