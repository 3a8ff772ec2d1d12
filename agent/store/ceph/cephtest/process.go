//go:build ceph

package cephtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// process is a daemon that was started.
type process struct {
	name    string
	command *exec.Cmd
	exited  chan struct{}
}

// forker starts every daemon from one operating system thread that lives as long as it does: the kernel kills the
// daemons when that thread ends, be it that this process was killed.
type forker struct {
	requests chan func()
	ended    chan struct{}
	once     sync.Once
}

func newForker() *forker {
	f := &forker{requests: make(chan func()), ended: make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(f.ended)
		for request := range f.requests {
			request()
		}
	}()
	return f
}

// start starts a daemon, whose output is added to the file log.
func (f *forker) start(name, program, log string, arguments []string) (*process, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	p := &process{name: name, command: exec.Command(program, arguments...), exited: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = output, output
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	f.requests <- func() { started <- p.command.Start() }
	if err := errors.Join(<-started, output.Close()); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		_ = p.command.Wait() // daemons end by signal; what matters is that it ended
		close(p.exited)
	}()
	return p, nil
}

// close ends the thread; every daemon must have ended.
func (f *forker) close() {
	f.once.Do(func() { close(f.requests) })
	<-f.ended
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill ends the daemon with SIGKILL and waits until it is gone.
func (p *process) kill() error {
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", p.name, err)
	}
	<-p.exited
	return nil
}
