package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// spec says how to run one child.
type spec struct {
	name    string
	log     string // file that takes what it writes
	address string // where it listens; fixed once it was ready for the first time
	movable bool   // a taken address may be exchanged for another at the first start
	command func(address string) *exec.Cmd
	// probe asks a server at address whether it is ready and is the process pid. nil: the child says on its standard
	// output that it listens, and leaves when its standard input closes.
	probe func(ctx context.Context, address string, pid int) error
}

// Limits of waiting and restarting.
const (
	probeEvery    = 10 * time.Millisecond
	stopPatience  = 10 * time.Second      // between SIGTERM and SIGKILL
	firstBackoff  = 50 * time.Millisecond // before a dead child is started again
	longestPause  = 5 * time.Second       // backoff doubles up to this
	stableAfter   = 10 * time.Second      // a child that lived this long starts over with firstBackoff
	readyPatience = 60 * time.Second      // for one start
	tailBytes     = 2 << 10
	addressTries  = 5
)

// process keeps one child running. After first succeeded, supervise alone starts and ends runs.
type process struct {
	spec
	forker *forker
	ports  *ports
	logger *slog.Logger

	mutex      sync.Mutex
	now        *run            // the present or last run; nil before the first
	serving    bool            // the present run was seen ready and has not been seen ended
	wish       wish            // what supervise is to bring about
	parked     bool            // supervise sees that the child is halted and nothing runs
	supervised bool            // first succeeded
	changed    chan struct{}   // closed and replaced when any of these change
	ended      chan struct{}   // closed when supervise returns
	context    context.Context // of starts by supervise; ends with the wish to run
	cancel     context.CancelFunc
}

// wish is what a process is to do.
type wish int

const (
	wishRun wish = iota
	wishHalt
	wishStop
)

// run is one life of a child.
type run struct {
	command  *exec.Cmd
	started  time.Time
	lifeline *os.File      // write end of the child's standard input
	exited   chan struct{} // closed once the child was waited for
	err      error         // of the wait; read after exited
}

func (r *run) pid() int { return r.command.Process.Pid }

func newProcess(s spec, forker *forker, ports *ports, logger *slog.Logger) *process {
	p := &process{spec: s, forker: forker, ports: ports, logger: logger, changed: make(chan struct{}), ended: make(chan struct{})}
	p.context, p.cancel = context.WithCancel(context.Background())
	return p
}

// change applies f under the mutex and wakes whoever waits for a change.
func (p *process) change(f func()) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

// await returns once holds, evaluated under the mutex, is true.
func (p *process) await(ctx context.Context, holds func() bool) error {
	for {
		p.mutex.Lock()
		done, changed := holds(), p.changed
		p.mutex.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// first starts the child for the first time, exchanging a taken address where that is allowed, and begins to supervise.
func (p *process) first(ctx context.Context) error {
	for try := 1; ; try++ {
		err := p.start(ctx)
		if err == nil {
			p.change(func() { p.supervised = true })
			go p.supervise()
			return nil
		}
		var early *diedEarly
		if !errors.As(err, &early) || addressFree(p.address) {
			return err
		}
		if !p.movable || try == addressTries {
			return fmt.Errorf("%w: something else listens on %s, which %s needs: stop it or choose another address", ErrAddressBusy, p.address, p.name)
		}
		if p.address, err = p.ports.take(); err != nil {
			return err
		}
	}
}

// start runs the child once and returns when it is ready. An error means that it does not run any more.
func (p *process) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	r := &run{command: p.command(p.address), started: time.Now(), exited: make(chan struct{})}
	stdin, lifeline, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("starting %s: %w", p.name, err), log.Close())
	}
	r.lifeline = lifeline
	stdout, stdoutChild, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("starting %s: %w", p.name, err), log.Close(), stdin.Close(), lifeline.Close())
	}
	r.command.Stdin, r.command.Stdout, r.command.Stderr = stdin, stdoutChild, log
	err = p.forker.start(r.command)
	if err = errors.Join(err, stdin.Close(), stdoutChild.Close()); err != nil {
		return errors.Join(fmt.Errorf("starting %s: %w", p.name, err), log.Close(), stdout.Close(), lifeline.Close())
	}
	announced := make(chan struct{})
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		p.listenTo(stdout, log, announced)
	}()
	go func() {
		r.err = r.command.Wait()
		<-copied
		if err := errors.Join(stdout.Close(), log.Close(), lifeline.Close()); err != nil {
			p.logger.Warn("closing the pipes of a child", "process", p.name, "cause", err)
		}
		close(r.exited)
	}()
	p.change(func() { p.now = r })
	if err := p.awaitReady(ctx, r, announced); err != nil {
		err = errors.Join(err, r.kill())
		<-r.exited
		return err
	}
	p.change(func() { p.serving = true })
	return nil
}

// listenTo copies what the child prints into its log and closes announced at the line that says it listens.
func (p *process) listenTo(stdout io.Reader, log io.Writer, announced chan struct{}) {
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, ListeningMark) && announced != nil {
			close(announced)
			announced = nil
		}
		if _, failed := io.WriteString(log, line); failed != nil {
			p.logger.Warn("writing the log of a child", "process", p.name, "cause", failed)
		}
		if err != nil {
			return // the child closed its end; how it ended is told by Wait
		}
	}
}

// ListeningMark is in the line that an agent or gateway prints on its standard output once it serves.
const ListeningMark = " listening on "

func (p *process) awaitReady(ctx context.Context, r *run, announced <-chan struct{}) error {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	var last error
	for {
		select {
		case <-announced:
			if p.probe == nil {
				return nil
			}
			announced = nil
		case <-ticker.C:
			if p.probe != nil {
				if last = p.probe(ctx, p.address, r.pid()); last == nil {
					return nil
				}
			}
		case <-r.exited:
			return &diedEarly{name: p.name, cause: r.end(), log: p.log, tail: tail(p.log)}
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting for %s to be ready: %w; its log is %s", p.name, ctx.Err(), p.log), last)
		}
	}
}

// supervise brings about what is wished: it starts the child again whenever it ended, and ends it on a stop.
func (p *process) supervise() {
	defer close(p.ended)
	backoff := firstBackoff
	look := time.NewTicker(logEvery)
	defer look.Stop()
	for {
		p.mutex.Lock()
		r, wished, changed := p.now, p.wish, p.changed
		p.mutex.Unlock()
		if r.running() && wished == wishStop {
			if err := p.end(r); err != nil {
				p.logger.Warn("stopping a process", "process", p.name, "cause", err)
			}
		}
		if r.running() {
			select {
			case <-r.exited:
				p.change(func() { p.serving = false })
			case <-changed:
			case <-look.C:
				if err := boundLog(p.log, logBytes); err != nil {
					p.logger.Warn("bounding the log of a process", "process", p.name, "cause", err)
				}
			}
			continue
		}
		switch wished {
		case wishStop:
			return
		case wishHalt:
			if !p.isParked() {
				p.change(func() { p.parked, p.serving = true, false })
				continue
			}
			<-changed
			continue
		}
		if p.isParked() {
			p.change(func() { p.parked = false })
			backoff = 0 // asked for: no pause
		} else {
			p.logger.Warn("a process ended, starting it again", "process", p.name, "cause", r.end(), "after", time.Since(r.started).Round(time.Millisecond))
			if time.Since(r.started) > stableAfter {
				backoff = firstBackoff
			}
		}
		if !p.pause(backoff) {
			continue
		}
		backoff = min(max(2*backoff, firstBackoff), longestPause)
		if err := p.start(p.context); err != nil {
			if p.context.Err() == nil {
				p.logger.Warn("a process does not start", "process", p.name, "cause", err)
			}
			continue
		}
		p.logger.Info("a process runs again", "process", p.name, "pid", p.pid())
	}
}

// pause waits before a start and reports whether the start is still wished.
func (p *process) pause(length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	for {
		p.mutex.Lock()
		wished, changed := p.wish, p.changed
		p.mutex.Unlock()
		if wished != wishRun {
			return false
		}
		select {
		case <-timer.C:
			return true
		case <-changed:
		}
	}
}

func (p *process) isParked() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.parked
}

// running reports whether the child of this run was not yet waited for. A nil run does not run.
func (r *run) running() bool {
	if r == nil {
		return false
	}
	select {
	case <-r.exited:
		return false
	default:
		return true
	}
}

// pid returns the process id of the child, 0 while it does not run.
func (p *process) pid() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.now.running() {
		return 0
	}
	return p.now.pid()
}

// kill ends the present run by SIGKILL and returns when it is gone; supervise starts the next.
func (p *process) kill() error {
	p.mutex.Lock()
	r := p.now
	p.mutex.Unlock()
	if !r.running() {
		return nil
	}
	err := r.kill()
	<-r.exited
	p.change(func() { p.serving = p.serving && p.now != r })
	return err
}

// halt ends the child by SIGKILL and keeps it down until resume.
func (p *process) halt() error {
	p.change(func() { p.wish = max(p.wish, wishHalt) })
	for {
		err := p.kill()
		p.mutex.Lock()
		down, changed := p.parked || p.wish == wishStop, p.changed
		p.mutex.Unlock()
		if err != nil || down {
			return err
		}
		<-changed
	}
}

func (r *run) kill() error {
	if err := r.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing process %d: %w", r.pid(), err)
	}
	return nil
}

// resume lets a halted child run again, and returns once it serves.
func (p *process) resume(ctx context.Context) error {
	p.change(func() {
		if p.wish == wishHalt {
			p.wish = wishRun
		}
	})
	err := p.await(ctx, func() bool { return p.serving || p.wish == wishStop })
	if err != nil {
		return fmt.Errorf("waiting for %s to serve: %w; its log is %s", p.name, err, p.log)
	}
	return nil
}

// stop ends the child for good: SIGTERM, then SIGKILL for one that does not leave in time. It returns when it is gone.
func (p *process) stop() {
	supervised := false
	p.change(func() { p.wish, supervised = wishStop, p.supervised })
	p.cancel()
	if supervised {
		<-p.ended
	}
}

// end asks the child to leave and kills it when it does not.
func (p *process) end(r *run) error {
	if err := r.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(fmt.Errorf("asking process %d to leave: %w", r.pid(), err), r.kill())
	}
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	select {
	case <-r.exited:
		return nil
	case <-patience.C:
		p.logger.Warn("a process does not leave, killing it", "process", p.name, "pid", r.pid())
		err := r.kill()
		<-r.exited
		return err
	}
}

// end says how the run ended.
func (r *run) end() error {
	if r.err != nil {
		return r.err
	}
	return errors.New("exit status 0")
}

// tail returns the last lines of a log, for a message.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
		if _, rest, found := strings.Cut(string(text), "\n"); found {
			text = []byte(rest)
		}
	}
	return strings.TrimRight(string(text), "\n")
}
