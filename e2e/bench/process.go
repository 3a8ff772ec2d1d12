//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/restripe/restripe/agent/launch"
)

// process is an agent or gateway in its namespace. It ends when it is stopped or the bench ends.
type process struct {
	name    string
	command *exec.Cmd
	stdin   io.Closer
	log     *os.File
	drained chan struct{}
}

// How long a process may take to serve, and to leave.
const (
	startPatience = 20 * time.Second
	stopPatience  = 10 * time.Second
)

// startProcess runs the program in a namespace and returns once it says that it listens.
func startProcess(ctx context.Context, name, logPath, program string, arguments ...string) (_ *process, err error) {
	log, err := os.Create(logPath)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	all := append([]string{"netns", "exec", name, program}, arguments...)
	p := &process{name: name, command: exec.Command("ip", append(all, "--"+launch.LifelineFlag)...), log: log, drained: make(chan struct{})}
	p.command.Stderr = log
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", name, err), log.Close())
	}
	output, err := p.command.StdoutPipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", name, err), log.Close())
	}
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", name, err), log.Close())
	}
	serves := make(chan struct{})
	go p.drain(output, serves)
	select {
	case <-serves:
		return p, nil
	case <-p.drained:
		err = errors.New("it ended at once")
	case <-time.After(startPatience):
		err = fmt.Errorf("it does not serve after %s", startPatience)
	case <-ctx.Done():
		err = ctx.Err()
	}
	err = errors.Join(fmt.Errorf("starting %s: %w", name, err), p.stop())
	if text, readErr := os.ReadFile(logPath); readErr == nil && len(text) > 0 {
		err = fmt.Errorf("%w; it said: %s", err, strings.TrimSpace(string(text)))
	}
	return nil, err
}

// drain reads the standard output to its end and closes serves at the line that says the process listens.
func (p *process) drain(output io.Reader, serves chan<- struct{}) {
	defer close(p.drained)
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if serves != nil && strings.Contains(lines.Text(), launch.ListeningMark) {
			close(serves)
			serves = nil
		}
	}
}

// pid is the process id of the program: ip replaces itself by it.
func (p *process) pid() int { return p.command.Process.Pid }

// stop ends the process: by its lifeline, else by SIGKILL.
func (p *process) stop() error {
	err := p.stdin.Close()
	overdue := time.AfterFunc(stopPatience, func() { _ = p.command.Process.Kill() }) // an error means that it has ended
	defer overdue.Stop()
	<-p.drained
	waited := p.command.Wait()
	var ended *exec.ExitError
	if errors.As(waited, &ended) {
		if status, is := ended.Sys().(syscall.WaitStatus); is && status.Signaled() {
			waited = fmt.Errorf("%s had to be killed or crashed: %w", p.name, waited)
		}
	}
	if waited != nil {
		err = errors.Join(err, fmt.Errorf("stopping %s: %w", p.name, waited))
	}
	return errors.Join(err, p.log.Close())
}
