//go:build ceph

package ceph_test

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/store/ceph/cephtest"
)

// TestUpOverPoolsThatInitMade goes the way of a new user: pools by `restripe ceph init`, then `restripe up --store ceph`
// as an unprivileged user, with everything still there at the second start.
func TestUpOverPoolsThatInitMade(t *testing.T) {
	ceph := cephtest.Start(t, cephtest.Options{Hosts: 6})
	directory := t.TempDir()
	access := unprivileged(t, ceph, directory)
	run := func(arguments ...string) string {
		t.Helper()
		output, err := exec.Command(program, arguments...).CombinedOutput()
		if err != nil {
			t.Fatalf("restripe %s: %v\n%s", strings.Join(arguments, " "), err, output)
		}
		return string(output)
	}
	refused := func(says string, arguments ...string) {
		t.Helper()
		output, err := exec.Command(program, arguments...).CombinedOutput()
		if err == nil || !strings.Contains(string(output), says) {
			t.Errorf("restripe %s: %v, does not say %q:\n%s", strings.Join(arguments, " "), err, says, output)
		}
	}
	over := []string{"up", "--store", "ceph", "--ceph-conf", access.Config, "--keyring", access.Keyring,
		"--listen", "127.0.0.1:0", "--console", "127.0.0.1:0", "--dir", filepath.Join(directory, "state"), "--classes", filepath.Join(directory, "classes.yaml")}
	refused("restripe ceph init", over...)
	run("ceph", "init", "--ceph-conf", ceph.Config(), "--keyring", ceph.Keyring(), "--yes")
	if err := os.WriteFile(filepath.Join(directory, "classes.yaml"),
		[]byte("classes:\n- name: default\n  ladder: rep(3),rs(4,2)\n  prefixes: [\"\"]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(directory, "file")
	want := bytes.Repeat([]byte("what a user has"), 40_000)
	if err := os.WriteFile(file, want, 0o644); err != nil {
		t.Fatal(err)
	}
	for start := range 2 {
		u := up(t, directory, over)
		if start == 0 {
			run("put", file, "kept", "--gateway", u.gateway)
			run("transition", "start", "--to", "rs(4,2)", "--class", "default", "--wait", "--gateway", u.gateway)
		}
		back := filepath.Join(directory, "back")
		run("get", "kept", back, "--gateway", u.gateway)
		if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, want) {
			t.Errorf("start %d: the object reads %d bytes unlike the %d put: %v", start+1, len(got), len(want), err)
		}
		if err := os.Remove(back); err != nil {
			t.Error(err)
		}
		if said := run("status", "--gateway", u.gateway); !strings.Contains(said, "6") {
			t.Errorf("the status of six nodes: %s", said)
		}
		u.stop()
	}
	refused("asked for are", append(over, "--ceph-pool", "one-of-them")...)
}

// running is `restripe up`.
type running struct {
	t       *testing.T
	command *exec.Cmd
	said    []string   // read only after exited
	exited  chan error // gets its end
	gateway string
}

// upSays is the last line of what `restripe up` says once everything runs.
const upSays = "Ctrl-C stops everything."

// up starts `restripe up` and returns once everything runs.
func up(t *testing.T, directory string, arguments []string) *running {
	t.Helper()
	u := &running{t: t, command: exec.Command(program, arguments...), exited: make(chan error, 1)}
	u.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := u.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	u.command.Stderr = u.command.Stdout
	if err := u.command.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			u.said = append(u.said, lines.Text())
			if lines.Text() == upSays {
				close(ready)
			}
		}
		u.exited <- errors.Join(lines.Err(), u.command.Wait())
	}()
	select {
	case <-ready:
	case err := <-u.exited:
		t.Fatalf("restripe up ended: %v\n%s", err, strings.Join(u.said, "\n"))
	case <-time.After(2 * time.Minute):
		u.stop()
		t.Fatalf("restripe up does not get ready:\n%s", strings.Join(u.said, "\n"))
	}
	address, err := os.ReadFile(filepath.Join(directory, "state", "gateway.addr"))
	if err != nil {
		t.Fatal(err)
	}
	u.gateway = strings.TrimSpace(string(address))
	return u
}

// stop ends it as Ctrl-C does.
func (u *running) stop() {
	u.t.Helper()
	if err := u.command.Process.Signal(os.Interrupt); err != nil {
		u.t.Errorf("interrupting restripe up: %v", err)
	}
	if err := <-u.exited; err != nil {
		u.t.Errorf("restripe up ended with %v:\n%s", err, strings.Join(u.said, "\n"))
	}
}
