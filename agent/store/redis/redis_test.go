package redis

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/storetest"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens the store of a server.
func open(t testing.TB, process *server.Process) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Address: process.Addr})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store {
		return open(t, server.Redis(t))
	}, storetest.Options{
		Small: func(t testing.TB) store.Store {
			return open(t, server.Redis(t, "--maxmemory", "16mb", "--maxmemory-policy", "noeviction"))
		},
		Crashing: func(t testing.TB) storetest.Crashing {
			process := server.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
			return storetest.Crashing{Store: open(t, process), Kill: process.Kill, Restart: process.Restart}
		},
	})
}

func BenchmarkStore(b *testing.B) {
	storetest.Benchmark(b, func(t testing.TB) store.Store { return open(t, server.Redis(t)) })
}
