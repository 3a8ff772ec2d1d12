package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
)

// smallDisk mounts a file system of the given size and returns where.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a small file system can only be mounted by root")
	}
	directory := t.TempDir()
	if err := syscall.Mount("tmpfs", directory, "tmpfs", 0, "mode=0755,size="+size); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(directory, 0); err != nil {
			t.Errorf("unmounting %s: %v", directory, err)
		}
	})
	return directory
}

// TestFullDisk fills the disk below the stores. What was acknowledged stays, what is refused leaves nothing behind, a
// transition waits for room, and after deletes everything goes on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, "12m")
	var stores []string
	for i := range 6 {
		stores = append(stores, "file:"+filepath.Join(disk, fmt.Sprintf("n%d", i+1)))
	}
	g := gatewayOver(t, faultClasses, agentsOver(t, stores...)...)
	c := clientOf(t, g.address)
	stored := map[string][]byte{}
	fill := func(size int) error {
		for i := range 2_000 {
			key := fmt.Sprintf("size-%d/%d", size, i)
			data := noise(uint64(size+i), size)
			_, err := c.Put(t.Context(), key, bytes.NewReader(data), client.PutOptions{Size: int64(size), SizeKnown: true})
			if err != nil {
				return err
			}
			stored[key] = data
		}
		return nil
	}
	for _, size := range []int{400_000, 30_000, 5_000} { // groups of their own, then packed ones into what is left
		if err := fill(size); !errors.Is(err, api.ErrFull) {
			t.Fatalf("filling a disk of 12 MiB with objects of %d bytes ends with %v; want that it is full", size, err)
		}
	}
	refused(t, restripe(t, g.address, "put", write(t, "more", string(noise(9, 400_000))), "more"), "store is full", "no space left", "node n", "no other node is free")
	everything := func() {
		t.Helper()
		for key, data := range stored {
			holds(t, c, key, data)
		}
	}
	everything()
	atRest(t, c)

	moving, err := c.StartTransition(t.Context(), api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: "rs(4,1)"})
	if err != nil {
		t.Fatal(err)
	}
	everything()
	deleted := 0
	for key := range stored {
		if deleted++; deleted%3 == 0 {
			continue
		}
		if err := c.Delete(t.Context(), key); err != nil {
			t.Fatalf("deleting on a full disk: %v", err)
		}
		delete(stored, key)
	}
	until(t, "the transition ends", func() bool {
		if _, err := c.Sweep(t.Context(), api.SweepRequest{}); err != nil {
			t.Fatal(err)
		}
		moving, err = c.Transition(t.Context(), moving.ID)
		return err == nil && moving.State.Final()
	})
	if moving.State != api.TransitionDone {
		t.Errorf("the transition ends as %s: %s", moving.State, moving.Error)
	}
	put(t, c, "again", noise(7, 400_000), client.PutOptions{})
	stored["again"] = noise(7, 400_000)
	everything()
	atRest(t, c)
	t.Logf("%d objects on a disk of 12 MiB, %d kept through full, transition and deletes", deleted, len(stored))
}

// TestAFullDiskUnderTheAuditLog fills the disk that a gateway records changes on. Nothing is changed without a record, objects are
// served, and once there is room changes go on in the same log.
func TestAFullDiskUnderTheAuditLog(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, "256k")
	agents := agentsOver(t, directories(t, 6)...)
	g := serve(t, "gateway", "--catalog", "sqlite:"+filepath.Join(t.TempDir(), "catalog.db"), "--nodes", nodeFile(t, agents...),
		"--classes", write(t, "classes.yaml", faultClasses), "--audit", filepath.Join(disk, "audit"), "--listen", "127.0.0.1:0")
	until(t, "all nodes are up", func() bool { return strings.Count(restripe(t, g.address, "status", "-o", "wide").out, " up ") >= 6 })
	done := func(arguments ...string) answer {
		t.Helper()
		a := restripe(t, g.address, arguments...)
		if a.code != 0 {
			t.Fatalf("restripe %v: %s", arguments, a.messages)
		}
		return a
	}
	done("node", "drain", "n1")
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, noise(1, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling a disk of 256 KiB: %v", err)
	}
	// What is left of a page that has begun takes some records; then nothing is changed any more.
	changes := 0
	var last answer
	until(t, "a change is refused", func() bool {
		last = restripe(t, g.address, "node", []string{"undrain", "drain"}[changes%2], "n1")
		changes++
		return last.code != 0
	})
	refused(t, last, "nothing was changed", "no space left")
	c := clientOf(t, g.address)
	put(t, c, "k", noise(2, 100_000), client.PutOptions{})
	holds(t, c, "k", noise(2, 100_000))
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	done("node", "undrain", "n1")
	done("node", "drain", "n1")
	if verified := done("audit", "verify"); !strings.Contains(verified.out, "as it was written") {
		t.Errorf("the log is found to be\n%s", verified.out)
	}
	atRest(t, c)
}

// TestReadOnlyDirectory starts an agent over a file system that cannot be written, and takes the right to write from one
// that runs: puts go to other nodes, or are refused with the cause; reads go on.
func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, "4m")
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("mounting a file system read-only: %v", err)
	}
	refused(t, restripe(t, "", "agent", "--id", "n1", "--store", "file:"+filepath.Join(disk, "store")),
		"opening the store of n1", disk, "store cannot be written", "make it yourself, or give the agent's user the right to")
	refused(t, restripe(t, "", "agent", "--id", "n1", "--store", "file:"+disk), "opening the store of n1", disk, "store cannot be written")

	// Root writes everywhere, so these agents run as nobody, from directories nobody may enter.
	top, err := os.MkdirTemp("", "restripe-readonly-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(top); err != nil {
			t.Error(err)
		}
	})
	binary := filepath.Join(top, "restripe")
	text, err := os.ReadFile(program(t))
	if err == nil {
		err = errors.Join(os.Chmod(top, 0o755), os.WriteFile(binary, text, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	const nobody = 65534
	var agents []*daemon
	store := func(i int) string { return filepath.Join(top, fmt.Sprintf("store%d", i)) }
	for i := 1; i <= 4; i++ {
		if err := errors.Join(os.Mkdir(store(i), 0o755), os.Chown(store(i), nobody, nobody)); err != nil {
			t.Fatal(err)
		}
		command := exec.Command(binary, "agent", "--id", fmt.Sprintf("n%d", i), "--store", "file:"+store(i), "--"+launch.LifelineFlag)
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		command.Dir = top
		agents = append(agents, serveCommand(t, command))
	}
	g := gatewayOver(t, "classes: [{name: default, ladder: 'rep(2),rs(2,1)', prefixes: ['']}]", agents...)
	c := clientOf(t, g.address)
	data := noise(3, 100_000)
	put(t, c, "before", data, client.PutOptions{})
	protect := func(i int, mode os.FileMode) {
		t.Helper()
		err := filepath.WalkDir(store(i), func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				err = os.Chmod(path, mode)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	protect(1, 0o555)
	for i := range 8 { // groups go round the nodes, so that some have n1 as their home
		put(t, c, fmt.Sprintf("one-read-only-%d", i), data, client.PutOptions{})
	}
	protect(2, 0o555)
	a := restripe(t, g.address, "put", write(t, "file", string(data)), "two-read-only")
	refused(t, a, "store cannot be written", "permission denied", "node n", "no other node is free")
	_, err = c.Put(t.Context(), "two-read-only", bytes.NewReader(data), client.PutOptions{})
	if !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("two of four stores are read-only and three are needed: %v; want that it is not available now", err)
	}
	holds(t, c, "before", data)
	protect(1, 0o755)
	protect(2, 0o755)
	put(t, c, "after", data, client.PutOptions{})
	for _, key := range []string{"before", "one-read-only-0", "one-read-only-7", "after"} {
		holds(t, c, key, data)
	}
	atRest(t, c)
}
