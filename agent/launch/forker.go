package launch

import (
	"os/exec"
	"runtime"
)

// forker starts every child from one operating system thread. On Linux a child can ask to be killed when its parent
// dies, but "parent" there means the thread that forked it, so that thread must live as long as the launcher.
type forker struct {
	requests chan forkRequest
	ended    chan struct{}
}

type forkRequest struct {
	command *exec.Cmd
	err     chan error
}

func newForker() *forker {
	f := &forker{requests: make(chan forkRequest), ended: make(chan struct{})}
	go f.run()
	return f
}

func (f *forker) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(f.ended)
	for request := range f.requests {
		request.err <- request.command.Start()
	}
}

// start starts command as a child that dies with this process.
func (f *forker) start(command *exec.Cmd) error {
	bindToParent(command)
	request := forkRequest{command: command, err: make(chan error, 1)}
	f.requests <- request
	return <-request.err
}

// close ends the thread; every child must have been waited for.
func (f *forker) close() {
	close(f.requests)
	<-f.ended
}
