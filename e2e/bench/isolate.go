//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// insideVariable tells the second start of this program that it is in its own namespaces, and where its files are.
	insideVariable = "RESTRIPE_BENCH_INSIDE"

	binaryName = "restripe"
	stateName  = "state"

	// namesDirectory is where ip keeps the names of network namespaces.
	namesDirectory = "/var/run/netns"
)

// insideEnded is the end of the second start with another status than 0.
type insideEnded struct{ status int }

// Error says which status it was.
func (e *insideEnded) Error() string { return fmt.Sprintf("the bench ended with status %d", e.status) }

// errNotRoot refuses to start without the rights to make namespaces.
var errNotRoot = errors.New("this bench makes network namespaces and shaped links, which takes root: run it as root, for example with sudo -E")

// runOutside builds the product and starts this program again in new namespaces for processes, mounts and the network.
// Whatever ends this process, or the one inside, ends everything inside with it.
func runOutside(arguments []string, o options, out, messages io.Writer) (err error) {
	if os.Geteuid() != 0 {
		return errNotRoot
	}
	for _, program := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is not in PATH: install iproute2: %w", program, err)
		}
	}
	base, err := os.MkdirTemp("", "restripe-bench-")
	if err != nil {
		return fmt.Errorf("making a directory for the bench: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(base)) }()
	if err := prepareBase(base, o, messages); err != nil {
		return err
	}
	release, err := keepNamesDirectory()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	runtime.LockOSThread() // the kernel ends the process inside with the thread that started it
	defer runtime.UnlockOSThread()
	inside := exec.Command(self, arguments...)
	inside.Env = append(os.Environ(), insideVariable+"="+base)
	inside.Stdout, inside.Stderr = out, messages
	inside.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true, // interrupts come through this process alone
	}
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	if err := inside.Start(); err != nil {
		return fmt.Errorf("starting the bench in namespaces of its own: %w; the kernel must allow mount, pid and network namespaces", err)
	}
	ended := make(chan struct{})
	defer close(ended)
	go passOn(interrupts, inside.Process, ended)
	var failure *exec.ExitError
	switch err := inside.Wait(); {
	case errors.As(err, &failure) && failure.Exited():
		return &insideEnded{status: failure.ExitCode()}
	case err != nil:
		return fmt.Errorf("running the bench in its namespaces: %w", err)
	}
	return nil
}

// passOn asks the process inside to leave at the first interrupt and kills it at the second.
func passOn(interrupts <-chan os.Signal, inside *os.Process, ended <-chan struct{}) {
	for _, send := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		select {
		case <-interrupts:
			if inside.Signal(send) != nil {
				return // it has ended
			}
		case <-ended:
			return
		}
	}
}

// prepareBase puts the product and the mount point of the state into base.
func prepareBase(base string, o options, messages io.Writer) error {
	if err := os.Mkdir(filepath.Join(base, stateName), 0o755); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	target := filepath.Join(base, binaryName)
	if o.binary != "" {
		source, err := filepath.Abs(o.binary)
		if err != nil {
			return fmt.Errorf("finding the restripe program: %w", err)
		}
		if _, err := os.Stat(source); err != nil {
			return fmt.Errorf("finding the restripe program: %w", err)
		}
		if err := os.Symlink(source, target); err != nil {
			return fmt.Errorf("linking the restripe program: %w", err)
		}
		return nil
	}
	build := exec.Command("go", "build", "-o", target, "github.com/restripe/restripe/tui/restripe-agent")
	build.Stdout, build.Stderr = messages, messages
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the restripe program: %w; run the bench inside the repository or give -binary", err)
	}
	return nil
}

// keepNamesDirectory makes the directory ip wants, if it is absent, and returns what removes it again.
func keepNamesDirectory() (release func() error, err error) {
	if _, err := os.Stat(namesDirectory); err == nil {
		return func() error { return nil }, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for the directory of namespace names: %w", err)
	}
	if err := os.MkdirAll(namesDirectory, 0o755); err != nil {
		return nil, fmt.Errorf("making the directory of namespace names: %w", err)
	}
	return func() error { return os.Remove(namesDirectory) }, nil
}

// furnish gives the new namespaces what programs expect: their own /proc and /sys, a loopback device, names of network
// namespaces that nobody else sees, and a directory in memory for all state.
func furnish(ctx context.Context, base string) error {
	if os.Getpid() != 1 {
		return fmt.Errorf("%s is set outside of the bench's own namespaces; unset it", insideVariable)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	for _, mount := range []struct{ kind, path, data string }{
		{"proc", "/proc", ""},
		{"sysfs", "/sys", ""},
		{"tmpfs", namesDirectory, "size=1m"},
		{"tmpfs", filepath.Join(base, stateName), "size=75%"},
	} {
		if err := unix.Mount(mount.kind, mount.path, mount.kind, 0, mount.data); err != nil {
			return fmt.Errorf("mounting %s at %s: %w", mount.kind, mount.path, err)
		}
	}
	return call(ctx, "ip", "link", "set", "lo", "up")
}

// call runs a program; what it printed is part of the error.
func call(ctx context.Context, program string, arguments ...string) error {
	text, err := exec.CommandContext(ctx, program, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(arguments, " "), err, strings.TrimSpace(string(text)))
	}
	return nil
}
