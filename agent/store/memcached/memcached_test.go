package memcached

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/storetest"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens the store of a server.
func open(t testing.TB, process *server.Process, options Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), process.Addr, options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store {
		return open(t, server.Memcached(t, "-M", "-m", "256"), Options{})
	}, storetest.Options{
		Small: func(t testing.TB) store.Store {
			return open(t, server.Memcached(t, "-M", "-m", "16"), Options{})
		},
		Crashing: func(t testing.TB) storetest.Crashing {
			process := server.Memcached(t, "-M", "-m", "256")
			return storetest.Crashing{Store: open(t, process, Options{}), Kill: process.Kill, Restart: process.Restart}
		},
	})
}

func BenchmarkStore(b *testing.B) {
	storetest.Benchmark(b, func(t testing.TB) store.Store {
		return open(t, server.Memcached(t, "-M", "-m", "256"), Options{})
	})
}
