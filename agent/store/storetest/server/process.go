package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a running server. Its methods fail the test it was started for when they cannot do what they say.
type Process struct {
	Addr string // host:port it listens on

	t       testing.TB
	program string
	command func(port int) []string
	ready   func(ctx context.Context, addr string) error

	mu     sync.Mutex
	port   int
	cmd    *exec.Cmd
	output *bytes.Buffer // read only after exited is closed
	exited chan struct{}
}

// startTimeout is how long a server may take until it answers.
const startTimeout = 10 * time.Second

// start finds a free port and starts program on it. The server ends with the test.
func start(t testing.TB, program, debianPackage string, command func(port int) []string, ready func(ctx context.Context, addr string) error) *Process {
	t.Helper()
	path, err := find(program)
	if err != nil {
		t.Fatalf("this test needs a real %s, which is neither in PATH nor in /usr/bin (%v); install it: apt-get install %s", program, err, debianPackage)
	}
	p := &Process{t: t, program: path, command: command, ready: ready}
	var failures error
	for range 5 { // somebody else may take a port between the look and the start
		if p.port, err = freePort(); err != nil {
			t.Fatalf("looking for a free port: %v", err)
		}
		p.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port))
		if err = p.launch(); err == nil {
			t.Cleanup(p.Kill) // nobody needs what it holds, and memcached takes a second to end by itself
			return p
		}
		failures = errors.Join(failures, err)
	}
	t.Fatalf("starting %s: %v", path, failures)
	return nil
}

// find returns the path of program.
func find(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err == nil {
		return path, nil
	}
	if _, statErr := os.Stat("/usr/bin/" + program); statErr == nil {
		return "/usr/bin/" + program, nil
	}
	return "", err
}

// freePort returns a port nobody listens on at the moment.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// launch starts the program on p.port and waits until it answers.
func (p *Process) launch() error {
	cmd := exec.Command(p.program, p.command(p.port)...)
	output := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // should the test itself be killed
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // ends by signal in most tests; what matters is that it ended
		close(exited)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		err := p.ready(ctx, p.Addr)
		select {
		case <-exited:
			return fmt.Errorf("%s ended at once: %s", p.program, output)
		default:
		}
		if err == nil {
			break
		}
		poll := time.NewTimer(5 * time.Millisecond)
		select {
		case <-poll.C:
		case <-ctx.Done():
			killErr := cmd.Process.Kill()
			<-exited
			return errors.Join(fmt.Errorf("%s does not answer on %s: %w; it said: %s", p.program, p.Addr, err, output), killErr)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.output, p.exited = cmd, output, exited
	return nil
}

// Kill ends the server at once with SIGKILL, as a crash does, and waits for its end. It does nothing if the server has
// ended.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("killing %s: %v", p.program, err)
		return
	}
	<-p.exited
	p.cmd = nil
}

// Suspend stops the server from answering without closing its connections, until Resume or Kill. It returns when every
// thread has stopped.
func (p *Process) Suspend() {
	p.send(syscall.SIGSTOP)
	for deadline := time.Now().Add(startTimeout); !p.stopped(); {
		if time.Now().After(deadline) {
			p.t.Errorf("%s does not stop", p.program)
			return
		}
		runtime.Gosched()
	}
}

// stopped reports whether all threads of the server are stopped, as Linux tells it (proc(5)); true if it does not run.
func (p *Process) stopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return true
	}
	states, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	if err != nil {
		p.t.Errorf("looking for the threads of %s: %v", p.program, err)
		return true
	}
	for _, name := range states {
		state, err := os.ReadFile(name)
		if err != nil { // the thread has ended
			continue
		}
		_, afterName, _ := bytes.Cut(state, []byte(") "))
		if !bytes.HasPrefix(afterName, []byte("T")) {
			return false
		}
	}
	return true
}

// Resume undoes Suspend.
func (p *Process) Resume() { p.send(syscall.SIGCONT) }

// send delivers a signal that does not end the server.
func (p *Process) send(signal syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		p.t.Errorf("sending %v: %s does not run", signal, p.program)
		return
	}
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.t.Errorf("sending %v to %s: %v", signal, p.program, err)
	}
}

// Restart starts the server again on the same port, with the same arguments and data directory, after Kill, or after ending
// it with Kill itself.
func (p *Process) Restart() {
	p.t.Helper()
	p.Kill()
	var failures error
	for range 5 {
		err := p.launch()
		if err == nil {
			return
		}
		failures = errors.Join(failures, err)
	}
	p.t.Fatalf("restarting %s: %v", p.program, failures)
}
