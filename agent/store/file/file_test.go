package file

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// mountFailing mounts an ext4 that fail makes believe that it is damaged: then it is read-only for everybody.
func mountFailing(t *testing.T) (path string, fail func()) {
	t.Helper()
	path = t.TempDir()
	image := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop,errors=remount-ro", image, path}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("a file system of its own takes the rights of root, loop devices and mkfs.ext4: %s: %v: %s", command[0], err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", path).CombinedOutput(); err != nil {
			t.Errorf("unmounting %s: %v: %s", path, err, out)
		}
	})
	device, err := exec.Command("findmnt", "-n", "-o", "SOURCE", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	return path, func() {
		t.Helper()
		trigger := filepath.Join("/sys/fs/ext4", filepath.Base(strings.TrimSpace(string(device))), "trigger_fs_error")
		if err := os.WriteFile(trigger, []byte("1"), 0); err != nil {
			t.Fatal(err)
		}
	}
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
