package file

import (
	"testing"

	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/storetest"
)

// open opens the store in a directory.
func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store { return open(t, t.TempDir()) }, storetest.Options{})
}

func TestConformanceWithoutNamelessFiles(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store {
		s := open(t, t.TempDir())
		s.namelessFiles = false
		return s
	}, storetest.Options{})
}

func BenchmarkStore(b *testing.B) {
	storetest.Benchmark(b, func(t testing.TB) store.Store { return open(t, t.TempDir()) })
}
