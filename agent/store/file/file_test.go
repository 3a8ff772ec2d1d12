package file

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

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
	storetest.Run(t, func(t testing.TB) store.Store { return open(t, t.TempDir()) }, storetest.Options{
		Small: func(t testing.TB) store.Store {
			return open(t, mountMemory(t, fmt.Sprintf("size=%d", storetest.SmallBytes)))
		},
	})
}

// mountMemory mounts a file system in memory for the time of the test; without the right to, the test is skipped.
func mountMemory(t testing.TB, options string) string {
	t.Helper()
	path := t.TempDir()
	if err := unix.Mount("restripe-test", path, "tmpfs", 0, options); err != nil {
		t.Skipf("mounting a small file system takes the rights of root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			t.Errorf("unmounting %s: %v", path, err)
		}
	})
	return path
}

func TestConformanceWithoutNamelessFiles(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store {
		s := open(t, mountMemory(t, "size=256m")) // the disk had its turn in TestConformance
		s.namelessFiles = false
		return s
	}, storetest.Options{})
}

func BenchmarkStore(b *testing.B) {
	storetest.Benchmark(b, func(t testing.TB) store.Store { return open(t, t.TempDir()) })
}
