//go:build linux

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	// insideVariable tells the second start of this test that it is in namespaces of its own, and where its files are.
	insideVariable = "RESTRIPE_CHAOS_INSIDE"

	// namesDirectory is where ip keeps the names of network namespaces.
	namesDirectory = "/var/run/netns"
)

// notTested begins the reason of a test that is skipped because this machine does not allow it.
const notTested = "NOT TESTED, faults of the network and of stores: "

// inside starts this test once more in new namespaces for processes, mounts and the network, so that whatever ends it
// ends all its processes and links with it. What it prints is logged here, and it fails this test if it fails.
func inside(t *testing.T, arguments ...string) {
	t.Helper()
	refuse := func(format string, values ...any) {
		reason := notTested + fmt.Sprintf(format, values...)
		fmt.Fprintln(os.Stderr, reason)
		t.Skip(reason)
	}
	if os.Geteuid() != 0 {
		refuse("network namespaces take root; run as root, for example with sudo -E")
	}
	for _, name := range []string{"ip", "memcached", "redis-server"} {
		if _, err := exec.LookPath(name); err != nil {
			refuse("%v; e2e/setup.sh installs it", err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	if err := os.Symlink(program(t), filepath.Join(base, "restripe")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(namesDirectory); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(namesDirectory, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.Remove(namesDirectory); err != nil {
				t.Errorf("removing what the test made: %v", err)
			}
		})
	}
	runtime.LockOSThread() // the kernel ends the process inside with the thread that started it
	defer runtime.UnlockOSThread()
	command := exec.CommandContext(t.Context(), self, append([]string{"-test.run=^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$", "-test.v"}, arguments...)...)
	command.Env = append(os.Environ(), insideVariable+"="+base)
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL, Setpgid: true,
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = command.Stdout
	if err := command.Start(); errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSPC) {
		refuse("the kernel does not allow new mount, process and network namespaces: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	skipped, said := relay(t, output)
	if err := command.Wait(); err != nil {
		t.Errorf("inside its namespaces the test failed: %v; the last it said before the logs of its processes:\n%s", err, strings.Join(said, "\n"))
	} else if skipped != "" {
		refuse("%s", skipped)
	}
}

// relay logs what the test inside prints, line by line, and returns why it was skipped, if it was, and the last it said
// before the logs of its processes, which are so long that they hide why it failed.
func relay(t *testing.T, output io.Reader) (skipped string, said []string) {
	const last = 20
	lines, logs := bufio.NewReader(output), false
	for {
		line, err := lines.ReadString('\n')
		if text := strings.TrimRight(line, "\n"); text != "" {
			t.Log(text)
			if logs = logs || strings.Contains(text, logMark); !logs {
				said = append(said[max(0, len(said)-last+1):], text)
			}
		}
		if _, reason, found := strings.Cut(strings.TrimSpace(line), notTested); found {
			skipped = reason
		}
		if err != nil {
			return skipped, said // it has ended; how is told by Wait
		}
	}
}

// furnish gives the new namespaces what programs expect: their own /proc and /sys, a loopback device, and names of network
// namespaces that nobody else sees.
func furnish(ctx context.Context) error {
	if os.Getpid() != 1 {
		return fmt.Errorf("%s is set outside of the test's own namespaces; unset it", insideVariable)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	for _, mount := range []struct{ kind, path, data string }{{"proc", "/proc", ""}, {"sysfs", "/sys", ""}, {"tmpfs", namesDirectory, "size=1m"}} {
		if err := unix.Mount(mount.kind, mount.path, mount.kind, 0, mount.data); err != nil {
			return fmt.Errorf("mounting %s at %s: %w", mount.kind, mount.path, err)
		}
	}
	return ip(ctx, "", "link set lo up")
}

// ip runs commands of ip in a network namespace; none is the one around all.
func ip(ctx context.Context, namespace string, commands ...string) error {
	arguments := []string{"-batch", "-"}
	if namespace != "" {
		arguments = append([]string{"-n", namespace}, arguments...)
	}
	command := exec.CommandContext(ctx, "ip", arguments...)
	command.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s < %q: %w: %s", strings.Join(arguments, " "), commands, err, strings.TrimSpace(string(text)))
	}
	return nil
}
