package resp

import (
	"sync"
	"time"
)

// workerIdle is how long a worker waits for another call.
const workerIdle = time.Second

// task is what a worker does: a call, or several together.
type task interface{ work() }

// workers carry calls of pipelines out. They outlast them, since a goroutine that is new has to grow its stack for each.
type workers struct {
	next  chan task
	over  chan struct{} // closed when there are no calls any more
	alive sync.WaitGroup
}

func newWorkers() *workers { return &workers{next: make(chan task), over: make(chan struct{})} }

// run has a task done.
func (w *workers) run(x task) {
	select {
	case w.next <- x:
	default:
		w.alive.Add(1)
		go w.work(x)
	}
}

func (w *workers) work(x task) {
	defer w.alive.Done()
	idle := time.NewTimer(workerIdle)
	defer idle.Stop()
	for {
		x.work()
		idle.Reset(workerIdle)
		select {
		case x = <-w.next:
		case <-idle.C:
			return
		case <-w.over:
			return
		}
	}
}

// work carries the call out after those that hinder it.
func (x *call) work() {
	for _, done := range x.after {
		<-done
	}
	x.carryOutAhead()
	close(x.done)
}

// end returns when no worker is left. There must be no calls any more.
func (w *workers) end() {
	close(w.over)
	w.alive.Wait()
}
