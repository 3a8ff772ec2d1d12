package file

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/restripe/restripe/agent/store"
)

// scarcePercent is the share of free space below which Info warns.
const scarcePercent = 5

// machine names this machine as it was started; empty where it does not tell, so that nobody is said to share its disks.
var machine = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(id))
})

// volume names the file system of a directory by its device; empty: it is not known who shares it.
func volume(root *os.File) (string, error) {
	var status unix.Stat_t
	if err := retryInterrupted(func() error { return unix.Fstat(int(root.Fd()), &status) }); err != nil {
		return "", err
	}
	if machine() == "" {
		return "", nil
	}
	return fmt.Sprintf("%s/%x", machine(), status.Dev), nil
}

// Info implements store.Store. Capacity and use are those of the whole file system: what other programs use is used,
// and what is reserved for the superuser is no capacity.
func (s *Store) Info(ctx context.Context) (store.Info, error) {
	if err := ctx.Err(); err != nil {
		return store.Info{}, fmt.Errorf("describing the directory %s: %w", s.path, err)
	}
	var status unix.Statfs_t
	var err error
	if err = retryInterrupted(func() error { return unix.Fstatfs(int(s.root.Fd()), &status) }); err != nil {
		return store.Info{}, fmt.Errorf("describing the directory %s: %w", s.path, classify(err))
	}
	info := store.Info{Kind: "file", Location: "file:" + s.path, Durable: true}
	if info.Volume, err = volume(s.root); err != nil {
		return store.Info{}, fmt.Errorf("describing the directory %s: %w", s.path, classify(err))
	}
	used := int64(status.Blocks-status.Bfree) * status.Bsize
	available := int64(status.Bavail) * status.Bsize
	info.CapacityBytes, info.UsedBytes = used+available, used
	if available*100 < info.CapacityBytes*scarcePercent {
		info.Warnings = append(info.Warnings, fmt.Sprintf("Only %d of %d bytes are free on the file system of %s; remove other files, enlarge it, or drain the node.",
			available, info.CapacityBytes, s.path))
	}
	if status.Type == unix.TMPFS_MAGIC || status.Type == unix.RAMFS_MAGIC {
		info.Durable = false
		info.Warnings = append(info.Warnings, fmt.Sprintf("%s lies in memory (tmpfs) and is empty after a restart of the machine; use a directory on a disk.", s.path))
	}
	if status.Flags&unix.ST_RDONLY != 0 || s.refusesWrites.Load() {
		info.Warnings = append(info.Warnings, fmt.Sprintf("The file system of %s is read-only; look for disk errors in the kernel's log and mount it writable.", s.path))
	}
	return info, nil
}
